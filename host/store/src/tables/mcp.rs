//! MCP servers with their grants and logins. Tables: `mcp_servers`, `mcp_grants`, `mcp_logins`.

pub mod listing;

use crate::rows::rows;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_contract::seam::change::McpRegister;
use ironclaw_judge::manifest::server::Tools;
use ironclaw_state::{Error, ReadTx, WriteTx};
use listing::Listing;
use rusqlite::{Row, ToSql, params};
use std::collections::BTreeMap;
use std::net::IpAddr;

pub use ironclaw_operator::McpServerState as ServerState;

rows! {
    /// An MCP server of the catalogue. A listing is the text of a [`Listing`].
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Server {
        /// The change that registered it.
        pub described: McpRegister as json,
        /// The layer with its packages.
        pub layer: Option<Digest>,
        /// Milliseconds since the epoch.
        pub made_at: i64,
        /// Its last listing, with the time in milliseconds since the epoch.
        pub seen: Option<(String, i64)> as seen,
        /// The listing that people confirmed, with the time in milliseconds since the epoch.
        pub confirmed: Option<(String, i64)> as confirmed,
        /// The confirmed manifests in TOML; `None`: the strictest for every tool.
        pub manifest: Option<String>,
        /// The addresses of the local network that people read with it.
        pub addresses: Vec<IpAddr> as json,
        /// The person who calls text of a tool theirs, by the name of the tool on the server.
        pub mine: BTreeMap<String, PersonId> as json,
    }

    /// The tools of an MCP server that an agent may call.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Grant {
        pub agent: AgentId = "agent_id",
        pub agent_name: String,
        /// Name of the server.
        pub server: String,
        /// Names of the tools, sorted.
        pub tools: Vec<String> as json,
    }
}

impl Server {
    pub fn name(&self) -> &str {
        &self.described.name
    }

    /// Returns its place for people: its URL, or its command.
    pub fn place(&self) -> String {
        self.described.url.clone().unwrap_or_else(|| self.described.command.join(" "))
    }

    /// Returns its last listing.
    pub fn seen(&self) -> Result<Option<Listing>, ironclaw_state::Error> {
        self.seen.as_ref().map(|(text, _)| Listing::read(text)).transpose()
    }

    /// Returns the listing that people confirmed.
    pub fn confirmed(&self) -> Result<Option<Listing>, ironclaw_state::Error> {
        self.confirmed.as_ref().map(|(text, _)| Listing::read(text)).transpose()
    }

    /// Returns its state by its listings.
    pub fn state(seen: Option<&Listing>, confirmed: Option<&Listing>) -> ServerState {
        match (seen, confirmed) {
            (None, _) => ServerState::New,
            (Some(_), None) => ServerState::Proposed,
            (Some(seen), Some(confirmed)) if seen.has_tools_of(confirmed) => ServerState::Confirmed,
            (Some(_), Some(_)) => ServerState::Changed,
        }
    }

    /// Returns the tools of the confirmed listing, with the strictest manifests.
    pub fn confirmed_tools(&self) -> Result<Tools, ironclaw_state::Error> {
        Ok(self.confirmed()?.map(|listing| listing.strictest(self.name())).unwrap_or_default())
    }
}

fn seen(row: &Row<'_>) -> rusqlite::Result<Option<(String, i64)>> {
    Ok(row.get::<_, Option<String>>("seen")?.zip(row.get("seen_at")?))
}

fn confirmed(row: &Row<'_>) -> rusqlite::Result<Option<(String, i64)>> {
    Ok(row.get::<_, Option<String>>("confirmed")?.zip(row.get("confirmed_at")?))
}

/// Returns every MCP server, by name.
pub fn servers(tx: &ReadTx<'_>) -> Result<Vec<Server>, Error> {
    tx.list("SELECT * FROM mcp_servers ORDER BY name", [], Server::read)
}

/// Returns the MCP server of exactly this name.
pub fn server(tx: &ReadTx<'_>, name: &str) -> Result<Option<Server>, Error> {
    tx.find("SELECT * FROM mcp_servers WHERE name = ?1", [name], Server::read)
}

/// Returns the number of MCP servers.
pub fn count_servers(tx: &ReadTx<'_>) -> Result<i64, Error> {
    tx.get("SELECT count(*) FROM mcp_servers", [], |row| row.get(0))
}

/// Returns every layer with the name of its MCP server.
pub fn layers(tx: &ReadTx<'_>) -> Result<Vec<(String, Digest)>, Error> {
    let sql = "SELECT name, layer FROM mcp_servers WHERE layer IS NOT NULL ORDER BY name";
    tx.list(sql, [], |row| Ok((row.get("name")?, row.get("layer")?)))
}

/// Inserts an MCP server with the layer of its packages, or replaces the one of the same name. A replaced one has no listing.
pub fn put_server(
    tx: &mut WriteTx<'_>,
    server: &McpRegister,
    layer: Option<&Digest>,
    made_at: i64,
) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO mcp_servers (name, described, layer, made_at) VALUES (?1,?2,?3,?4) ON CONFLICT (name) DO UPDATE SET \
         described = excluded.described, layer = excluded.layer, made_at = excluded.made_at, seen = NULL, seen_at = NULL, \
         confirmed = NULL, manifest = NULL, confirmed_at = NULL, mine = '{}'",
        params![server.name, canonical::to_string(&server), layer, made_at],
    )?;
    Ok(())
}

/// Sets the addresses of the local network that people read with an MCP server.
pub fn set_addresses(tx: &mut WriteTx<'_>, name: &str, addresses: &[IpAddr]) -> Result<(), Error> {
    let addresses = canonical::to_string(&addresses);
    tx.execute("UPDATE mcp_servers SET addresses = ?2 WHERE name = ?1", params![name, addresses]).map(drop)
}

/// Sets the last listing of an MCP server.
pub fn set_seen(tx: &mut WriteTx<'_>, name: &str, listing: &str, at: i64) -> Result<(), Error> {
    tx.execute("UPDATE mcp_servers SET seen = ?2, seen_at = ?3 WHERE name = ?1", params![name, listing, at]).map(drop)
}

/// Sets the confirmed listing of an MCP server to its last one, with its manifests and the persons of its tools.
pub fn confirm_server(
    tx: &mut WriteTx<'_>,
    name: &str,
    manifest: Option<&str>,
    mine: &BTreeMap<String, PersonId>,
    at: i64,
) -> Result<(), Error> {
    tx.execute(
        "UPDATE mcp_servers SET confirmed = seen, manifest = ?2, confirmed_at = ?3, mine = ?4 WHERE name = ?1",
        params![name, manifest, at, canonical::to_string(mine)],
    )?;
    Ok(())
}

/// Deletes an MCP server with all grants of it.
pub fn delete_server(tx: &mut WriteTx<'_>, name: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM mcp_servers WHERE name = ?1", [name]).map(drop)
}

const GRANTS: &str = "SELECT agent_id, agents.name AS agent_name, server, tools FROM mcp_grants \
                      JOIN agents ON agent_id = agents.id";

fn grants(tx: &ReadTx<'_>, rest: &str, value: impl ToSql) -> Result<Vec<Grant>, Error> {
    tx.list(&format!("{GRANTS} {rest}"), [value], Grant::read)
}

/// Returns the grants of an agent, by server.
pub fn grants_of(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<Grant>, Error> {
    grants(tx, "WHERE agent_id = ?1 ORDER BY server", agent)
}

/// Returns the grants of an MCP server, by the agent's name.
pub fn holders(tx: &ReadTx<'_>, server: &str) -> Result<Vec<Grant>, Error> {
    grants(tx, "WHERE server = ?1 ORDER BY agents.name", server)
}

/// Inserts or replaces the grant of an MCP server's tools to an agent.
pub fn put_grant(tx: &mut WriteTx<'_>, agent: AgentId, server: &str, tools: &[String]) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO mcp_grants (agent_id, server, tools) VALUES (?1,?2,?3) \
         ON CONFLICT (agent_id, server) DO UPDATE SET tools = excluded.tools",
        params![agent, server, canonical::to_string(&tools)],
    )?;
    Ok(())
}

/// Deletes the grant of an MCP server to an agent.
pub fn delete_grant(tx: &mut WriteTx<'_>, agent: AgentId, server: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM mcp_grants WHERE agent_id = ?1 AND server = ?2", params![agent, server]).map(drop)
}

rows! {
    /// The login at an MCP server. All times are in milliseconds since the epoch.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Login {
        /// Name of the server.
        pub server: String,
        /// The tokens, wrapped by the master key; `None` after the end of the login.
        pub wrapped: Option<Vec<u8>>,
        /// The reason of the end.
        pub reason: Option<String>,
        /// The time at which a person logged in; a renewal keeps it.
        pub begun_at: i64,
        /// The time of the tokens.
        pub made_at: i64,
        /// The end of the access token; `None` if the issuer names none.
        pub expires_at: Option<i64>,
        /// The time to renew the tokens.
        pub renew_at: Option<i64>,
    }
}

/// Returns every login, by server.
pub fn logins(tx: &ReadTx<'_>) -> Result<Vec<Login>, Error> {
    tx.list("SELECT * FROM mcp_logins ORDER BY server", [], Login::read)
}

/// Returns the login at a server.
pub fn login(tx: &ReadTx<'_>, server: &str) -> Result<Option<Login>, Error> {
    tx.find("SELECT * FROM mcp_logins WHERE server = ?1", [server], Login::read)
}

/// Inserts or replaces the login at a server.
pub fn put_login(tx: &mut WriteTx<'_>, login: &Login) -> Result<(), Error> {
    let Login { server, wrapped, reason, begun_at, made_at, expires_at, renew_at } = login;
    tx.execute(
        "INSERT OR REPLACE INTO mcp_logins (server, wrapped, reason, begun_at, made_at, expires_at, renew_at) \
         VALUES (?1,?2,?3,?4,?5,?6,?7)",
        params![server, wrapped, reason, begun_at, made_at, expires_at, renew_at],
    )?;
    Ok(())
}

/// Deletes the login at a server.
pub fn delete_login(tx: &mut WriteTx<'_>, server: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM mcp_logins WHERE server = ?1", [server]).map(drop)
}

/// Ends that people call answers of servers theirs. Returns the number of servers.
pub fn end_declared_answers(tx: &mut WriteTx<'_>) -> Result<usize, Error> {
    tx.execute("UPDATE mcp_servers SET mine = '{}' WHERE mine <> '{}'", [])
}
