//! The catalogue of MCP servers that people confirmed, and which of their tools an agent has.
//!
//! Never talks to one and never holds a value of a secret: a header names the secret. Next: `gateway::checks`.

use super::{approved_entry, changed_entry};
use crate::gateway::decide::proof::Approved;
use crate::refusal::{Denied, Refusal};
use crate::secrets::SecretName;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_contract::seam::change::{McpHeader, McpRegister, McpTool};
use ironclaw_state::{ReadTx, WriteTx, stored_json};
use rusqlite::{OptionalExtension, Row, ToSql, params};

/// Servers of one host.
const SERVERS_MAX: i64 = 64;

/// A server of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Where it answers.
    pub url: String,
    /// The tools that it declares.
    pub tools: Vec<McpTool>,
    /// Headers of each request; values are secrets' names.
    pub headers: Vec<McpHeader>,
    /// Milliseconds since the epoch.
    pub made_at: i64,
}

impl Server {
    /// As the change that would register it.
    pub fn described(&self) -> McpRegister {
        let Self { name, url, tools, headers, made_at: _ } = self.clone();
        McpRegister { name, url, tools, headers }
    }
}

/// Tools of a server that an agent has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The agent.
    pub agent: AgentId,
    /// Its name.
    pub agent_name: String,
    /// Name of the server.
    pub server: String,
    /// Names of the tools, sorted.
    pub tools: Vec<String>,
}

/// What remains of a grant once its server is registered as this: nothing where it answers elsewhere, as people said yes to that
/// place; otherwise the tools that it still declares.
pub fn left_of(grant: &Grant, was: &Server, becomes: &McpRegister) -> Vec<String> {
    if was.url != becomes.url {
        return Vec::new();
    }
    grant.tools.iter().filter(|tool| becomes.tools.iter().any(|declared| declared.name == **tool)).cloned().collect()
}

fn server(row: &Row<'_>) -> rusqlite::Result<Server> {
    Ok(Server {
        name: row.get("name")?,
        url: row.get("url")?,
        tools: stored_json(row, "tools")?,
        headers: stored_json(row, "headers")?,
        made_at: row.get("made_at")?,
    })
}

/// Every server, by name.
pub fn servers(tx: &ReadTx<'_>) -> Result<Vec<Server>, ironclaw_state::Error> {
    let mut statement = tx.db().prepare_cached("SELECT * FROM mcp_servers ORDER BY name")?;
    let servers = statement.query_map([], server)?.collect::<rusqlite::Result<_>>()?;
    Ok(servers)
}

/// The server of exactly this name.
pub fn find(tx: &ReadTx<'_>, name: &str) -> Result<Option<Server>, ironclaw_state::Error> {
    Ok(tx.db().prepare_cached("SELECT * FROM mcp_servers WHERE name = ?1")?.query_row([name], server).optional()?)
}

/// The servers whose headers hold a secret, in words.
pub fn using_secret(tx: &ReadTx<'_>, name: &SecretName) -> Result<Vec<String>, ironclaw_state::Error> {
    let holds = |header: &McpHeader| header.secret.parse::<SecretName>().is_ok_and(|secret| secret == *name);
    let using = servers(tx)?.into_iter().filter(|server| server.headers.iter().any(holds));
    Ok(using.map(|server| format!("MCP server {}", server.name)).collect())
}

const GRANTS: &str = "SELECT agent_id, agents.name AS agent_name, server, tools FROM mcp_grants \
                      JOIN agents ON agent_id = agents.id";

fn grants(tx: &ReadTx<'_>, rest: &str, value: impl ToSql) -> Result<Vec<Grant>, ironclaw_state::Error> {
    let read = |row: &Row<'_>| {
        Ok(Grant {
            agent: row.get("agent_id")?,
            agent_name: row.get("agent_name")?,
            server: row.get("server")?,
            tools: stored_json(row, "tools")?,
        })
    };
    let mut statement = tx.db().prepare_cached(&format!("{GRANTS} {rest}"))?;
    let grants = statement.query_map([value], read)?.collect::<rusqlite::Result<_>>()?;
    Ok(grants)
}

/// What an agent has, by server.
pub fn grants_of(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<Grant>, ironclaw_state::Error> {
    grants(tx, "WHERE agent_id = ?1 ORDER BY server", agent)
}

/// Who has tools of a server, by the agent's name.
pub fn holders(tx: &ReadTx<'_>, server: &str) -> Result<Vec<Grant>, ironclaw_state::Error> {
    grants(tx, "WHERE server = ?1 ORDER BY agents.name", server)
}

/// Puts a server into the catalogue, or another in the place of the one of its name; what its agents have ends with what it was
/// given for. Gives how many agents lose something.
///
/// # Errors
/// Refuses one server too many.
pub fn register(tx: &mut WriteTx<'_>, approved: &Approved, wanted: &McpRegister) -> Result<usize, Denied> {
    let was = find(tx, &wanted.name)?;
    let count: i64 = tx.db().query_row("SELECT count(*) FROM mcp_servers", [], |row| row.get(0))?;
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
    tx.db().execute(
        "INSERT INTO mcp_servers (name, url, tools, headers, made_at) VALUES (?1,?2,?3,?4,?5) ON CONFLICT (name) \
         DO UPDATE SET url = excluded.url, tools = excluded.tools, headers = excluded.headers, made_at = excluded.made_at",
        params![
            wanted.name,
            wanted.url,
            canonical::to_string(&wanted.tools),
            canonical::to_string(&wanted.headers),
            now
        ],
    )?;
    let before = was.map(|was| canonical::to_string(&was.described())).unwrap_or_default();
    approved_entry(LedgerEvent::McpRegistered, approved)
        .with("server", wanted.name.clone())
        .with("before", Digest::of(before.as_bytes()).to_string())
        .with("after", Digest::of(&canonical::to_vec(wanted)).to_string())
        .append(tx)?;
    Ok(losing)
}

/// Says which tools of a server an agent has from now on; none takes its access away.
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
        let sql = "DELETE FROM mcp_grants WHERE agent_id = ?1 AND server = ?2";
        tx.db().execute(sql, params![agent, server])?;
    } else {
        tx.db().execute(
            "INSERT INTO mcp_grants (agent_id, server, tools) VALUES (?1,?2,?3) \
             ON CONFLICT (agent_id, server) DO UPDATE SET tools = excluded.tools",
            params![agent, server, after],
        )?;
    }
    changed_entry(LedgerEvent::McpGranted, approved, agent, before.as_bytes(), after.as_bytes())
        .with("server", server.to_owned())
        .append(tx)?;
    Ok(())
}
