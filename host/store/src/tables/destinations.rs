//! The destinations of agents, and the addresses of replies. Tables: `destinations`.

use crate::rows::rows;
use ironclaw_contract::ids::{AgentId, MessageId, PersonId, SessionId, TurnId};
use ironclaw_contract::seam::change;
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::{Row, params};

pub use ironclaw_operator::DestinationState as State;

/// A destination of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    pub agent_name: String,
    /// The agent's name for it.
    pub name: String,
    /// The channel; [`AGENT`] for another agent.
    pub channel: String,
    /// The address on the channel; for another agent its id.
    pub address: String,
    /// The thread at the address; empty for none.
    pub thread: String,
    /// The person who was linked to the address when people approved it; `None` for another agent.
    pub person: Option<PersonId>,
    pub to_agent: Option<AgentId>,
    /// The name of the other agent; empty if it was removed.
    pub to_agent_name: String,
    /// Whether the agent may send there now.
    pub state: State,
}

impl Destination {
    /// Returns the identity at its address: `CHANNEL:ADDRESS`.
    pub fn recipient(&self) -> String {
        format!("{}:{}", self.channel, self.address)
    }

    pub fn payload(&self) -> change::Destination {
        if self.to_agent.is_some() {
            let agent = Some(self.to_agent_name.clone());
            let name = self.name.clone();
            return change::Destination { name, agent, remove: None, ..change::Destination::default() };
        }
        change::Destination {
            name: self.name.clone(),
            channel: Some(self.channel.clone()),
            address: Some(self.address.clone()),
            thread: Some(self.thread.clone()).filter(|thread| !thread.is_empty()),
            ..change::Destination::default()
        }
    }
}

/// The channel of messages between agents. No other channel can have this name.
pub const AGENT: &str = "agent";

/// A destination to insert.
#[derive(Debug, Clone, Copy)]
pub struct NewDestination<'a> {
    pub agent: AgentId,
    /// The agent's name for it.
    pub name: &'a str,
    pub channel: &'a str,
    /// The generation of the channel.
    pub generation: i64,
    /// The address on the channel.
    pub address: &'a str,
    /// The thread at the address; empty for none.
    pub thread: &'a str,
    /// The person who is linked to the address; `None` for another agent.
    pub person: Option<PersonId>,
    pub to_agent: Option<AgentId>,
}

const DESTINATIONS: &str = "SELECT destinations.*, agents.name AS agent_name, \
     coalesce((SELECT receiver.name FROM agents AS receiver WHERE receiver.id = to_agent), '') AS to_agent_name, \
     EXISTS (SELECT 1 FROM agent_group_members AS one JOIN agent_group_members AS other ON other.group_name = one.group_name \
       WHERE one.agent_id = destinations.agent_id AND other.agent_id = to_agent) AS has_group, \
     EXISTS (SELECT 1 FROM channels WHERE channels.name = destinations.channel \
       AND channels.generation = destinations.generation) AS has_channel, \
     EXISTS (SELECT 1 FROM identities WHERE identities.channel = destinations.channel \
       AND identities.sender = destinations.address AND identities.person_id = destinations.person_id) AS is_linked \
     FROM destinations JOIN agents ON agents.id = destinations.agent_id";

fn destination(row: &Row<'_>) -> rusqlite::Result<Destination> {
    let to_agent: Option<AgentId> = row.get("to_agent")?;
    let to_agent_name: String = row.get("to_agent_name")?;
    let state = match to_agent {
        Some(_) if to_agent_name.is_empty() => State::AgentGone,
        Some(_) if !row.get::<_, bool>("has_group")? => State::NoGroup,
        Some(_) => State::Active,
        None => match (row.get("has_channel")?, row.get("is_linked")?) {
            (false, _) => State::ChannelGone,
            (true, false) => State::Unlinked,
            (true, true) => State::Active,
        },
    };
    Ok(Destination {
        agent_name: row.get("agent_name")?,
        name: row.get("name")?,
        channel: row.get("channel")?,
        address: row.get("address")?,
        thread: row.get("thread")?,
        person: row.get::<_, String>("person_id")?.parse().ok(),
        to_agent,
        to_agent_name,
        state,
    })
}

/// Returns the destinations of an agent, by name.
pub fn list_for_agent(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<Destination>, Error> {
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
    let NewDestination { agent, name, channel, generation, address, thread, person, to_agent } = new;
    tx.execute(
        "INSERT INTO destinations (agent_id, name, channel, generation, address, thread, person_id, to_agent) \
         VALUES (?1,?2,?3,?4,?5,?6,coalesce(?7, ''),?8) \
         ON CONFLICT (agent_id, name) DO UPDATE SET channel = excluded.channel, generation = excluded.generation, \
         address = excluded.address, thread = excluded.thread, person_id = excluded.person_id, to_agent = excluded.to_agent",
        params![agent, name, channel, generation, address, thread, person, to_agent],
    )?;
    Ok(())
}

pub fn delete(tx: &mut WriteTx<'_>, agent: AgentId, name: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM destinations WHERE agent_id = ?1 AND name = ?2", params![agent, name]).map(drop)
}

rows! {
    /// The address for the reply to a message of a channel.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct ReplyAddress {
        pub channel: String,
        /// The sender of the message; empty for a reply to a group as a whole.
        pub sender: String,
        /// The group; empty outside of one.
        pub group: String = "group_id",
        /// The thread; empty for none.
        pub thread: String = "thread_id",
    }
}

/// Returns the address of the newest message of a turn that has one; a message that continues a task has that of the task.
pub fn reply_address_of_turn(tx: &ReadTx<'_>, turn: TurnId) -> Result<Option<ReplyAddress>, Error> {
    let sql = "SELECT first.channel, first.sender, first.group_id, first.thread_id FROM messages AS asking \
               JOIN messages AS first ON first.id = coalesce(asking.root, asking.id) \
               WHERE asking.id IN (SELECT value FROM turns, json_each(message_ids) WHERE turns.id = ?1) \
               AND asking.trigger = 1 AND first.thread_id IS NOT NULL ORDER BY asking.seq DESC LIMIT 1";
    tx.find(sql, [turn], ReplyAddress::read)
}

/// Returns the address for the reply to a message, if it has one.
pub fn reply_address_of_message(tx: &ReadTx<'_>, message: MessageId) -> Result<Option<ReplyAddress>, Error> {
    let sql = "SELECT channel, sender, group_id, thread_id FROM messages WHERE id = ?1 AND thread_id IS NOT NULL";
    tx.find(sql, [message], ReplyAddress::read)
}

/// Returns the channel and the sender of the newest message of a turn; for a message that continues a task, those of the task.
pub fn sender_of_turn(tx: &ReadTx<'_>, turn: TurnId) -> Result<Option<(String, String)>, Error> {
    let sql = "SELECT first.channel, first.sender FROM messages AS asking \
               JOIN messages AS first ON first.id = coalesce(asking.root, asking.id) \
               WHERE asking.id IN (SELECT value FROM turns, json_each(message_ids) WHERE turns.id = ?1) AND asking.turn_id = ?1 \
               AND asking.trigger = 1 AND first.channel <> 'host' ORDER BY asking.seq DESC LIMIT 1";
    tx.find(sql, [turn], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Returns the address of the newest message of a session that has one and asked for a turn.
pub fn reply_address_of_session(tx: &ReadTx<'_>, session: SessionId) -> Result<Option<ReplyAddress>, Error> {
    let sql = "SELECT channel, sender, group_id, thread_id FROM messages WHERE session_id = ?1 AND trigger = 1 \
               AND thread_id IS NOT NULL ORDER BY seq DESC LIMIT 1";
    tx.find(sql, [session], ReplyAddress::read)
}

/// Returns whether a message of this thread in the session mentioned the agent.
pub fn is_mentioned_in(tx: &ReadTx<'_>, session: SessionId, group: &str, thread: &str) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM messages WHERE session_id = ?1 AND group_id = ?2 AND thread_id = ?3 AND mentions = 1)";
    tx.get(sql, params![session, group, thread], |row| row.get(0))
}
