//! The destinations of agents, and the copies of the files that agents send. Tables: `destinations`, `sent_files`. Reads `deliveries`.

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, CallId, ItemId, PersonId, SessionId};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::{Row, params};

/// The state of a destination: an approved address is usable while its channel and the person behind it are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The agent may send there.
    Active,
    /// The channel was removed.
    ChannelGone,
    /// The address is linked to another person, or to none.
    Unlinked,
}

impl State {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::ChannelGone => "channel_gone",
            Self::Unlinked => "unlinked",
        }
    }
}

/// A destination of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The name of the agent.
    pub agent_name: String,
    /// The agent's name for it.
    pub name: String,
    /// The channel.
    pub channel: String,
    /// The address on the channel.
    pub address: String,
    /// The thread at the address; empty for none.
    pub thread: String,
    /// The person who was linked to the address when people approved it.
    pub person: PersonId,
    /// Whether the agent may send there now.
    pub state: State,
}

/// A destination to insert.
#[derive(Debug, Clone, Copy)]
pub struct NewDestination<'a> {
    /// The agent.
    pub agent: AgentId,
    /// The agent's name for it.
    pub name: &'a str,
    /// The channel.
    pub channel: &'a str,
    /// The generation of the channel.
    pub generation: i64,
    /// The address on the channel.
    pub address: &'a str,
    /// The thread at the address; empty for none.
    pub thread: &'a str,
    /// The person who is linked to the address.
    pub person: PersonId,
}

const DESTINATIONS: &str = "SELECT destinations.*, agents.name AS agent_name, \
     EXISTS (SELECT 1 FROM channels WHERE channels.name = destinations.channel \
       AND channels.generation = destinations.generation) AS has_channel, \
     EXISTS (SELECT 1 FROM identities WHERE identities.channel = destinations.channel \
       AND identities.sender = destinations.address AND identities.person_id = destinations.person_id) AS is_linked \
     FROM destinations JOIN agents ON agents.id = destinations.agent_id";

fn destination(row: &Row<'_>) -> rusqlite::Result<Destination> {
    let state = match (row.get("has_channel")?, row.get("is_linked")?) {
        (false, _) => State::ChannelGone,
        (true, false) => State::Unlinked,
        (true, true) => State::Active,
    };
    Ok(Destination {
        agent_name: row.get("agent_name")?,
        name: row.get("name")?,
        channel: row.get("channel")?,
        address: row.get("address")?,
        thread: row.get("thread")?,
        person: row.get("person_id")?,
        state,
    })
}

/// Returns the destinations of an agent, by name.
pub fn of(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<Destination>, Error> {
    tx.list(
        &format!("{DESTINATIONS} WHERE destinations.agent_id = ?1 ORDER BY destinations.name"),
        [agent],
        destination,
    )
}

/// Returns the destinations of every agent, by agent and name.
pub fn all(tx: &ReadTx<'_>) -> Result<Vec<Destination>, Error> {
    tx.list(&format!("{DESTINATIONS} ORDER BY agents.name, destinations.name"), [], destination)
}

/// Returns whether an agent has a destination.
pub fn has_any(tx: &ReadTx<'_>, agent: AgentId) -> Result<bool, Error> {
    tx.get("SELECT EXISTS (SELECT 1 FROM destinations WHERE agent_id = ?1)", [agent], |row| row.get(0))
}

/// Inserts or replaces a destination.
pub fn put(tx: &mut WriteTx<'_>, new: NewDestination<'_>) -> Result<(), Error> {
    let NewDestination { agent, name, channel, generation, address, thread, person } = new;
    tx.execute(
        "INSERT INTO destinations (agent_id, name, channel, generation, address, thread, person_id) VALUES (?1,?2,?3,?4,?5,?6,?7) \
         ON CONFLICT (agent_id, name) DO UPDATE SET channel = excluded.channel, generation = excluded.generation, \
         address = excluded.address, thread = excluded.thread, person_id = excluded.person_id",
        params![agent, name, channel, generation, address, thread, person],
    )?;
    Ok(())
}

/// Deletes a destination.
pub fn delete(tx: &mut WriteTx<'_>, agent: AgentId, name: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM destinations WHERE agent_id = ?1 AND name = ?2", params![agent, name])?;
    Ok(())
}

/// The row of a copy, without its content.
#[derive(Debug, Clone)]
pub struct SentFileRow {
    /// The name under which the content is encrypted.
    pub item: ItemId,
    /// The name of the file.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Its size.
    pub bytes: u64,
    /// The digest of its content.
    pub digest: Digest,
}

fn sent_file(row: &Row<'_>) -> rusqlite::Result<SentFileRow> {
    Ok(SentFileRow {
        item: row.get("item")?,
        name: row.get("name")?,
        media_type: row.get("media_type")?,
        bytes: row.get::<_, i64>("bytes")?.unsigned_abs(),
        digest: row.get("digest")?,
    })
}

/// Inserts the copy of a call with its encrypted content.
pub fn insert_file(
    tx: &mut WriteTx<'_>,
    (call, session): (CallId, SessionId),
    new: &SentFileRow,
    content: &[u8],
) -> Result<(), Error> {
    let sql = "INSERT INTO sent_files (call_id, session_id, item, name, media_type, bytes, digest, content) \
               VALUES (?1,?2,?3,?4,?5,?6,?7,?8)";
    let bytes = i64::try_from(new.bytes).unwrap_or(i64::MAX);
    tx.execute(sql, params![call, session, new.item, new.name, new.media_type, bytes, new.digest, content])?;
    Ok(())
}

/// Returns the copy of a call.
pub fn find_file(tx: &ReadTx<'_>, call: CallId) -> Result<Option<SentFileRow>, Error> {
    let sql = "SELECT item, name, media_type, bytes, digest FROM sent_files WHERE call_id = ?1";
    tx.find(sql, [call], sent_file)
}

/// Returns the encrypted content of the copy of a call.
pub fn file_content(tx: &ReadTx<'_>, call: CallId) -> Result<Option<Vec<u8>>, Error> {
    tx.find("SELECT content FROM sent_files WHERE call_id = ?1", [call], |row| row.get("content"))
}

/// Returns the number of copies of a session whose delivery is not settled.
pub fn open_file_count(tx: &ReadTx<'_>, session: SessionId) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM sent_files WHERE session_id = ?1 AND NOT EXISTS (SELECT 1 FROM deliveries \
               WHERE deliveries.call_id = sent_files.call_id AND state IN ('received','dropped'))";
    Ok(tx.get(sql, [session], |row| row.get::<_, i64>(0))?.unsigned_abs())
}

/// Deletes the oldest copies of a session whose delivery is settled, until at most `kept` copies are left or none of them is settled.
pub fn delete_oldest_files(tx: &mut WriteTx<'_>, session: SessionId, kept: u64) -> Result<(), Error> {
    let sql = "DELETE FROM sent_files WHERE call_id IN (SELECT f.call_id FROM sent_files f \
               JOIN deliveries d ON d.call_id = f.call_id WHERE f.session_id = ?1 AND d.state IN ('received','dropped') \
               ORDER BY f.rowid LIMIT max(0, (SELECT count(*) FROM sent_files WHERE session_id = ?1) - ?2))";
    tx.execute(sql, params![session, i64::try_from(kept).unwrap_or(i64::MAX)])?;
    Ok(())
}

/// Deletes the copy of a call.
pub fn delete_file(tx: &mut WriteTx<'_>, call: CallId) -> Result<(), Error> {
    tx.execute("DELETE FROM sent_files WHERE call_id = ?1", [call])?;
    Ok(())
}
