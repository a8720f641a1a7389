//! The catalogue of MCP servers that people confirmed, and the tools of them that an agent has.
//!
//! Never contacts a server and never holds the value of a secret: a header names the secret. See [`crate::gateway`].

use super::{approved_entry, changed_entry};
use crate::gateway::decide::proof::Approved;
use crate::refusal::{Denied, Refusal};
use crate::secrets::SecretName;
use crate::tables::channels as table;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_contract::seam::change::{McpHeader, McpRegister};
use ironclaw_state::{ReadTx, WriteTx};

pub use crate::tables::channels::{
    McpGrant as Grant, McpServer as Server, grants_of, holders, server as find, servers,
};

/// Servers of one host.
const SERVERS_MAX: i64 = 64;

impl Server {
    /// Returns the change that would register this server.
    pub fn described(&self) -> McpRegister {
        let Self { name, url, tools, headers, made_at: _ } = self.clone();
        McpRegister { name, url, tools, headers }
    }
}

/// Returns the tools that remain of a grant after its server is registered again: none if the URL differs, because people approved the
/// old URL; otherwise the tools that the server still declares.
pub fn left_of(grant: &Grant, was: &Server, becomes: &McpRegister) -> Vec<String> {
    if was.url != becomes.url {
        return Vec::new();
    }
    grant.tools.iter().filter(|tool| becomes.tools.iter().any(|declared| declared.name == **tool)).cloned().collect()
}

/// Returns the names of the servers whose headers use a secret, for people.
pub fn using_secret(tx: &ReadTx<'_>, name: &SecretName) -> Result<Vec<String>, ironclaw_state::Error> {
    let holds = |header: &McpHeader| header.secret.parse::<SecretName>().is_ok_and(|secret| secret == *name);
    let using = servers(tx)?.into_iter().filter(|server| server.headers.iter().any(holds));
    Ok(using.map(|server| format!("MCP server {}", server.name)).collect())
}

/// Adds a server to the catalogue, or replaces the one of the same name. Grants that no longer fit are reduced. Returns the number of
/// agents that lose a tool.
///
/// # Errors
/// Refuses a server beyond the bound.
pub fn register(tx: &mut WriteTx<'_>, approved: &Approved, wanted: &McpRegister) -> Result<usize, Denied> {
    let was = find(tx, &wanted.name)?;
    let count = table::count_servers(tx)?;
    if was.is_none() && count >= SERVERS_MAX {
        let refusal =
            Refusal::new(DenialCode::McpServersTooMany, format!("there are {SERVERS_MAX} MCP servers already"));
        return Err(refusal.into());
    }
    let mut losing = 0;
    if let Some(was) = &was {
        for held in holders(tx, &wanted.name)? {
            let left = left_of(&held, was, wanted);
            if left != held.tools {
                grant(tx, approved, held.agent, &wanted.name, &left)?;
                losing += 1;
            }
        }
    }
    let now = tx.now();
    table::put_server(tx, wanted, now)?;
    let before = was.map(|was| canonical::to_string(&was.described())).unwrap_or_default();
    approved_entry(LedgerEvent::McpRegistered, approved)
        .with("server", wanted.name.clone())
        .with("before", Digest::of(before.as_bytes()).to_string())
        .with("after", Digest::of(&canonical::to_vec(wanted)).to_string())
        .append(tx)?;
    Ok(losing)
}

/// Sets the tools of a server that an agent has; an empty list revokes the access.
pub fn grant(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: AgentId,
    server: &str,
    tools: &[String],
) -> Result<(), ironclaw_state::Error> {
    let had = grants_of(tx, agent)?.into_iter().find(|grant| grant.server == server);
    let before = canonical::to_string(&had.map(|grant| grant.tools).unwrap_or_default());
    let after = canonical::to_string(&tools);
    if tools.is_empty() {
        table::delete_grant(tx, agent, server)?;
    } else {
        table::put_grant(tx, agent, server, tools)?;
    }
    changed_entry(LedgerEvent::McpGranted, approved, agent, before.as_bytes(), after.as_bytes())
        .with("server", server.to_owned())
        .append(tx)?;
    Ok(())
}
