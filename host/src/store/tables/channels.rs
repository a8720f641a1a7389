//! Channels with their wirings and waiting senders, and MCP servers with their grants and logins. Tables: `channels`, `wirings`,
//! `waiting_senders`, `mcp_servers`, `mcp_grants`, `mcp_logins`.

use crate::store::rows::rows;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::operator::ChannelKind;
use ironclaw_contract::seam::change::{Engage, Ignored, McpRegister, Senders, Sharing, UnknownSenders};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::{Row, ToSql, params};

/// The messages of a channel that open a turn of its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hears {
    All,
    /// The messages that match this regular expression.
    Pattern(String),
    /// The messages that mention the agent.
    Mention,
    /// The messages that mention the agent, and later ones of a thread in which it was mentioned.
    MentionSticky,
}

impl Hears {
    /// Returns its name in the contract.
    pub const fn engage(&self) -> Engage {
        match self {
            Self::All => Engage::All,
            Self::Pattern(_) => Engage::Pattern,
            Self::Mention => Engage::Mention,
            Self::MentionSticky => Engage::MentionSticky,
        }
    }

    /// Returns the pattern, if there is one.
    pub fn pattern(&self) -> Option<&str> {
        match self {
            Self::All | Self::Mention | Self::MentionSticky => None,
            Self::Pattern(pattern) => Some(pattern),
        }
    }
}

/// The rules of the connection between a channel and its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The messages that open a turn.
    pub hears: Hears,
    /// The senders whose messages may open a turn.
    pub from: Senders,
    /// The treatment of senders who are linked to no person.
    pub unknown: UnknownSenders,
    /// The treatment of messages that open no turn.
    pub ignored: Ignored,
    /// The way in which people share sessions.
    pub sharing: Sharing,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            hears: Hears::All,
            from: Senders::Known,
            unknown: UnknownSenders::Strict,
            ignored: Ignored::Accumulate,
            sharing: Sharing::Thread,
        }
    }
}

rows! {
    /// A channel's row, with its agent.
    #[derive(Debug, Clone)]
    pub struct Channel {
        /// Its name, the first part of every identity on it.
        pub name: String,
        /// Distinguishes this channel from earlier channels of the same name.
        pub generation: i64,
        pub kind: ChannelKind,
        /// The URL for replies.
        pub url: String,
        /// True if it shows a repeated delivery only once.
        pub idempotent: bool,
        /// The agent that receives its messages.
        pub agent: Option<AgentId> = "agent_id",
        /// The rules of that connection.
        pub rules: Rules as rules,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Its signing secret, wrapped by the master key.
        pub(crate) wrapped: Vec<u8>,
    }
}

/// The columns of a new channel.
#[derive(Debug)]
pub struct NewChannel<'a> {
    pub name: &'a str,
    pub kind: ChannelKind,
    /// The URL for replies.
    pub url: &'a str,
    /// True if it shows a repeated delivery only once.
    pub idempotent: bool,
    /// Its signing secret, wrapped by the master key.
    pub wrapped: &'a [u8],
    /// Milliseconds since the epoch.
    pub created_at: i64,
}

const CHANNELS: &str = "SELECT channels.*, agent_id, engage, pattern, senders, unknown, ignored, sharing FROM channels \
                        LEFT JOIN wirings ON channel = name";

/// Reads the rules of the connection; the default without one. A row with `pattern` but without a pattern is an error, and never means
/// all messages.
fn rules(row: &Row<'_>) -> rusqlite::Result<Rules> {
    let hears = match row.get("engage")? {
        None => return Ok(Rules::default()),
        Some(Engage::All) => Hears::All,
        Some(Engage::Pattern) => Hears::Pattern(row.get("pattern")?),
        Some(Engage::Mention) => Hears::Mention,
        Some(Engage::MentionSticky) => Hears::MentionSticky,
        Some(Engage::None) => return Err(rusqlite::Error::InvalidColumnName("engage".to_owned())),
    };
    let (from, unknown) = (row.get("senders")?, row.get("unknown")?);
    Ok(Rules { hears, from, unknown, ignored: row.get("ignored")?, sharing: row.get("sharing")? })
}

/// Returns every channel, by name.
pub fn all(tx: &ReadTx<'_>) -> Result<Vec<Channel>, Error> {
    tx.list(&format!("{CHANNELS} ORDER BY name"), [], Channel::read)
}

/// Returns the channels of an agent, by name.
pub fn heard_by(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<Channel>, Error> {
    tx.list(&format!("{CHANNELS} WHERE agent_id = ?1 ORDER BY name"), [agent], Channel::read)
}

/// Returns the channel of exactly this name.
pub fn find(tx: &ReadTx<'_>, name: &str) -> Result<Option<Channel>, Error> {
    tx.find(&format!("{CHANNELS} WHERE name = ?1"), [name], Channel::read)
}

/// Inserts a channel without an agent.
pub fn insert(tx: &mut WriteTx<'_>, new: &NewChannel<'_>) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO channels (name, kind, url, idempotent, wrapped, created_at) VALUES (?1,?2,?3,?4,?5,?6)",
        params![new.name, new.kind, new.url, new.idempotent, new.wrapped, new.created_at],
    )?;
    Ok(())
}

/// Deletes a channel with its secret and its wiring.
pub fn delete(tx: &mut WriteTx<'_>, name: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM channels WHERE name = ?1", [name]).map(drop)
}

/// Replaces the wrapped secret of a channel.
pub fn set_wrapped(tx: &mut WriteTx<'_>, name: &str, wrapped: &[u8]) -> Result<(), Error> {
    tx.execute("UPDATE channels SET wrapped = ?2 WHERE name = ?1", params![name, wrapped]).map(drop)
}

/// Connects an agent to a channel, and replaces its earlier agent.
pub fn connect(tx: &mut WriteTx<'_>, channel: &str, agent: AgentId, rules: &Rules) -> Result<(), Error> {
    let Rules { hears, from, unknown, ignored, sharing } = rules;
    tx.execute(
        "INSERT OR REPLACE INTO wirings (channel, agent_id, engage, pattern, senders, unknown, ignored, sharing) \
         VALUES (?1,?2,?3,?4,?5,?6,?7,?8)",
        params![channel, agent, hears.engage(), hears.pattern(), from, unknown, ignored, sharing],
    )?;
    Ok(())
}

/// Disconnects an agent from a channel, if it is the channel's agent.
pub fn disconnect(tx: &mut WriteTx<'_>, channel: &str, agent: AgentId) -> Result<(), Error> {
    tx.execute("DELETE FROM wirings WHERE channel = ?1 AND agent_id = ?2", params![channel, agent]).map(drop)
}

rows! {
    /// A sender who is linked to no person and waits for one.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct WaitingSender {
        /// The sender's id on the channel.
        pub sender: String,
        /// Milliseconds since the epoch.
        pub since: i64,
    }
}

/// Returns the senders who wait for a person on a channel, oldest first.
pub fn waiting_senders(tx: &ReadTx<'_>, channel: &str) -> Result<Vec<WaitingSender>, Error> {
    let sql = "SELECT sender, since FROM waiting_senders WHERE channel = ?1 ORDER BY since, sender";
    tx.list(sql, [channel], WaitingSender::read)
}

/// Inserts a sender who waits for a person on a channel.
pub fn insert_waiting_sender(tx: &mut WriteTx<'_>, channel: &str, sender: &str, since: i64) -> Result<(), Error> {
    let sql = "INSERT INTO waiting_senders (channel, sender, since) VALUES (?1,?2,?3)";
    tx.execute(sql, params![channel, sender, since]).map(drop)
}

/// Deletes a sender who waited for a person. Returns false if it did not wait.
pub fn delete_waiting_sender(tx: &mut WriteTx<'_>, channel: &str, sender: &str) -> Result<bool, Error> {
    Ok(tx.execute("DELETE FROM waiting_senders WHERE channel = ?1 AND sender = ?2", [channel, sender])? > 0)
}

/// Deletes the senders who have waited for a person since before this time.
pub fn delete_waiting_senders_before(tx: &mut WriteTx<'_>, since: i64) -> Result<(), Error> {
    tx.execute("DELETE FROM waiting_senders WHERE since < ?1", [since]).map(drop)
}

rows! {
    /// An MCP server of the catalogue. A listing is the text of `registry::mcp::Listing`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct McpServer {
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
    }

    /// The tools of an MCP server that an agent may call.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct McpGrant {
        pub agent: AgentId = "agent_id",
        pub agent_name: String,
        /// Name of the server.
        pub server: String,
        /// Names of the tools, sorted.
        pub tools: Vec<String> as json,
    }
}

fn seen(row: &Row<'_>) -> rusqlite::Result<Option<(String, i64)>> {
    Ok(row.get::<_, Option<String>>("seen")?.zip(row.get("seen_at")?))
}

fn confirmed(row: &Row<'_>) -> rusqlite::Result<Option<(String, i64)>> {
    Ok(row.get::<_, Option<String>>("confirmed")?.zip(row.get("confirmed_at")?))
}

/// Returns every MCP server, by name.
pub fn servers(tx: &ReadTx<'_>) -> Result<Vec<McpServer>, Error> {
    tx.list("SELECT * FROM mcp_servers ORDER BY name", [], McpServer::read)
}

/// Returns the MCP server of exactly this name.
pub fn server(tx: &ReadTx<'_>, name: &str) -> Result<Option<McpServer>, Error> {
    tx.find("SELECT * FROM mcp_servers WHERE name = ?1", [name], McpServer::read)
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
         confirmed = NULL, manifest = NULL, confirmed_at = NULL",
        params![server.name, canonical::to_string(&server), layer, made_at],
    )?;
    Ok(())
}

/// Sets the last listing of an MCP server.
pub fn set_seen(tx: &mut WriteTx<'_>, name: &str, listing: &str, at: i64) -> Result<(), Error> {
    tx.execute("UPDATE mcp_servers SET seen = ?2, seen_at = ?3 WHERE name = ?1", params![name, listing, at]).map(drop)
}

/// Sets the confirmed listing of an MCP server to its last one, with its manifests.
pub fn confirm_server(tx: &mut WriteTx<'_>, name: &str, manifest: Option<&str>, at: i64) -> Result<(), Error> {
    tx.execute(
        "UPDATE mcp_servers SET confirmed = seen, manifest = ?2, confirmed_at = ?3 WHERE name = ?1",
        params![name, manifest, at],
    )?;
    Ok(())
}

/// Deletes an MCP server with all grants of it.
pub fn delete_server(tx: &mut WriteTx<'_>, name: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM mcp_servers WHERE name = ?1", [name]).map(drop)
}

const GRANTS: &str = "SELECT agent_id, agents.name AS agent_name, server, tools FROM mcp_grants \
                      JOIN agents ON agent_id = agents.id";

fn grants(tx: &ReadTx<'_>, rest: &str, value: impl ToSql) -> Result<Vec<McpGrant>, Error> {
    tx.list(&format!("{GRANTS} {rest}"), [value], McpGrant::read)
}

/// Returns the grants of an agent, by server.
pub fn grants_of(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<McpGrant>, Error> {
    grants(tx, "WHERE agent_id = ?1 ORDER BY server", agent)
}

/// Returns the grants of an MCP server, by the agent's name.
pub fn holders(tx: &ReadTx<'_>, server: &str) -> Result<Vec<McpGrant>, Error> {
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
    pub struct McpLogin {
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
pub fn logins(tx: &ReadTx<'_>) -> Result<Vec<McpLogin>, Error> {
    tx.list("SELECT * FROM mcp_logins ORDER BY server", [], McpLogin::read)
}

/// Returns the login at a server.
pub fn login(tx: &ReadTx<'_>, server: &str) -> Result<Option<McpLogin>, Error> {
    tx.find("SELECT * FROM mcp_logins WHERE server = ?1", [server], McpLogin::read)
}

/// Inserts or replaces the login at a server.
pub fn put_login(tx: &mut WriteTx<'_>, login: &McpLogin) -> Result<(), Error> {
    let McpLogin { server, wrapped, reason, begun_at, made_at, expires_at, renew_at } = login;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::record;

    #[test]
    fn fresh_record_takes_a_channel_of_each_kind() {
        record::in_a_new_one(|tx, _| {
            for kind in ChannelKind::ALL {
                let (name, url) = (kind.name(), "https://example.org/");
                let new = NewChannel { name, kind: *kind, url, idempotent: false, wrapped: b"wrapped", created_at: 1 };
                insert(tx, &new).unwrap_or_else(|error| {
                    panic!("{kind}: {error}; see the guide in host/state/src/migrations.rs");
                });
                let found = find(tx, name).expect("read").expect("there");
                assert_eq!(found.kind, *kind);
            }
        });
    }
}
