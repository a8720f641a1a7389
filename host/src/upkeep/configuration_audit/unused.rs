//! The findings about rights without a use in the last days: tools, hosts, MCP servers, skills and tokens.
//!
//! A right that is younger than that time is no finding, and neither is a tool that an agent has by default.

use crate::registry::tokens::FILE_TOKEN_NAME;
use crate::registry::tools::{gives_tool, usual};
use crate::registry::{self, Agent, TokenState, egress, mcp, skills, tokens};
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_judge::manifest::server;
use ironclaw_operator::{Finding, UNUSED_DAYS};
use ironclaw_state::{Error, ReadTx};
use ironclaw_store::tables::turns;
use ironclaw_store::tables::waiting::changes;
use ironclaw_store::times::DAY_MS;

/// Adds the findings about the rights of every agent, and about tokens.
pub(super) fn find(tx: &ReadTx<'_>, all: &mut Vec<Finding>) -> Result<(), Error> {
    let since = tx.wall() - i64::from(UNUSED_DAYS) * DAY_MS;
    for agent in registry::agents(tx)? {
        find_rights(tx, &agent, since, all)?;
    }
    for token in tokens(tx)? {
        let used_at = token.used_at.unwrap_or(token.created_at).max(token.created_at);
        if token.state == TokenState::Live && used_at <= since && token.name != FILE_TOKEN_NAME {
            all.push(Finding::TokenUnused { token: token.id, person: token.person.name });
        }
    }
    Ok(())
}

fn find_rights(tx: &ReadTx<'_>, agent: &Agent, since: i64, all: &mut Vec<Finding>) -> Result<(), Error> {
    let used = turns::tools_used_since(tx, agent.id, since)?;
    let is_old = |kind| {
        let changed_at = changes::newest_applied(tx, agent.id, kind)?;
        Ok::<_, Error>(changed_at.unwrap_or(agent.created_at) <= since)
    };
    let (name, usual): (_, Vec<&str>) = (|| agent.name.clone(), usual().collect());
    let mut tools = agent.enabled_tools.clone();
    tools.retain(|tool| gives_tool(tool) && !used.contains(tool) && !usual.contains(&tool.as_str()));
    if !tools.is_empty() && is_old(ChangeKind::EnabledTools)? {
        all.push(Finding::ToolsUnused { agent: name(), tools });
    }
    if is_old(ChangeKind::McpAccess)? {
        for grant in mcp::grants_of(tx, agent.id)? {
            if !used.iter().any(|tool| server::is_of(&grant.server, tool)) {
                all.push(Finding::ServerUnused { agent: name(), server: grant.server });
            }
        }
    }
    for held in egress::egress_of(tx, agent.id)? {
        if held.used_at.max(held.granted_at).is_some_and(|newest| newest <= since) {
            all.push(Finding::HostUnused { agent: name(), host: held.host });
        }
    }
    for held in skills::list_for_agent(tx, agent.id)? {
        if held.used_at.max(Some(held.installed_at)).is_some_and(|newest| newest <= since) {
            all.push(Finding::SkillUnused { agent: name(), skill: held.package.name });
        }
    }
    Ok(())
}
