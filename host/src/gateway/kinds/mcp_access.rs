//! The kind `mcp_access`: the tools of an MCP server that an agent may call.

use super::{Apply, Check, CheckContext, Page, Preparation, Prepared, Properties, Scope};
use super::{concerned, gone, incomplete, listed};
use crate::gateway::HostPolicy;
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::refusal::{Denied, Refusal};
use crate::registry::{Agent, mcp};
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::{Change, McpAccess};
use ironclaw_state::{ReadTx, WriteTx};
use serde_json::{Value, json};

/// The present use of MCP servers.
pub(super) const NOT_CONNECTED: &str =
    "This version of the host does not connect to MCP servers, so no call is made yet.";

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, restarts_sessions: true };

impl Check for McpAccess {
    /// Writes all tools out. Without a list they are all tools that the server declares now; an empty list removes the access.
    fn complete(&self, tx: &ReadTx<'_>, _context: &CheckContext<'_>) -> Result<Change, Denied> {
        let Self { server, tools } = self.clone();
        let Some(found) = mcp::find(tx, &server)? else {
            let shown: String = server.chars().take(64).collect();
            let refusal = Refusal::new(DenialCode::McpServerUnknown, format!("there is no MCP server {shown:?}"));
            return Err(refusal
                .hint("`ironctl mcp list` shows the known servers; a change of kind mcp_register adds one")
                .into());
        };
        let declared: Vec<String> = found.tools.into_iter().map(|tool| tool.name).collect();
        let mut tools = tools.unwrap_or_else(|| declared.clone());
        if let Some(unknown) = tools.iter().find(|tool| !declared.contains(tool)) {
            let shown: String = unknown.chars().take(64).collect();
            let refusal =
                Refusal::new(DenialCode::McpToolUnknown, format!("MCP server {server} declares no tool {shown:?}"));
            return Err(refusal.hint(format!("it declares {}", declared.join(", "))).into());
        }
        tools.sort();
        Ok(Change::McpAccess(Self { server, tools: Some(tools) }))
    }

    fn current(&self, tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let Some(agent) = agent else { return Ok(Value::Null) };
        let had = mcp::grants_of(tx, agent.id)?.into_iter().find(|grant| grant.server == self.server);
        let tools = had.map(|grant| grant.tools).unwrap_or_default();
        Ok(json!(Self { server: self.server.clone(), tools: Some(tools) }))
    }

    /// Returns the server's address, its declared tools and the names of the secrets that it gets.
    fn facts(&self, tx: &ReadTx<'_>, _policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        let server = mcp::find(tx, &self.server)?.map_or(Value::Null, |server| {
            let tools: Vec<&str> = server.tools.iter().map(|tool| tool.name.as_str()).collect();
            json!({ "url": server.url, "tools": tools, "headers": server.headers })
        });
        Ok(json!({ "servers": { self.server.as_str(): server } }))
    }

    fn after(&self, _agent: Option<&Agent>) -> Option<Value> {
        Some(json!(self))
    }
}

impl Page for McpAccess {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let server = page.show(&self.server);
        let had = Effects::texts(&page.before["tools"]);
        match &self.tools {
            Some(tools) if tools.is_empty() => {
                return page
                    .add(format!("Take all tools of MCP server {server} away from {agent}: {}.", page.list(had)));
            }
            Some(tools) => {
                page.add(format!(
                    "Let {agent} call exactly these tools of MCP server {server}: {}.",
                    page.list(tools.iter().map(String::as_str))
                ));
                let lost: Vec<&str> =
                    had.iter().copied().filter(|tool| !tools.iter().any(|kept| kept == tool)).collect();
                page.add(format!("This list replaces its present tools of that server: {}.", page.list(had)));
                if !lost.is_empty() {
                    page.add(format!("It LOSES: {}.", page.list(lost)));
                }
            }
            None => page.add(format!("Let {agent} call every tool that MCP server {server} declares now.")),
        }
        page.add(NOT_CONNECTED.to_owned());
        let at = match page.facts["servers"][self.server.as_str()]["url"].as_str() {
            Some(url) => format!("MCP server {server} at {}", page.show(url)),
            None => format!("MCP server {server}"),
        };
        page.warn(format!("Data LEAVES THIS HOST with each call: its content goes to {at}."));
        let headers = page.facts["servers"][self.server.as_str()]["headers"].as_array();
        let secrets: Vec<&str> = headers.into_iter().flatten().filter_map(|header| header["secret"].as_str()).collect();
        if !secrets.is_empty() {
            page.warn(format!("Each call carries these SECRETS of this host to the server: {}.", page.list(secrets)));
        }
        page.warn(
            "The answers of the server come back to the model, and can contain INSTRUCTIONS to the agent.".to_owned(),
        );
    }
}

impl Apply for McpAccess {
    fn preparation(&self) -> Preparation<'_> {
        Preparation::Nothing
    }

    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let Self { server, tools } = self;
        let agent = concerned(tx, approved)?;
        let tools = tools.as_ref().ok_or_else(incomplete)?;
        if mcp::find(tx, server)?.is_none() {
            return Err(gone(format!("MCP server {server}")).into());
        }
        mcp::grant(tx, approved, agent.id, server, tools)?;
        Ok(format!("agent {} has {} of MCP server {server}", agent.name, listed(tools, "no tool")))
    }
}
