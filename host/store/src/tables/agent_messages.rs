//! Messages between agents, the tokens of their chains, and the sends of the last minute. Tables: `agent_messages`, `agent_sends`,
//! `chain_tokens`.

use crate::rows::rows;
use ironclaw_contract::ids::{AgentId, CallId, DeliveryId, MessageId, SessionId, TurnId};
use ironclaw_judge::Principal;
use ironclaw_state::{Error, ReadTx, WriteTx, stored_text};
use rusqlite::params;

ironclaw_contract::words! {
    /// The kind of a message between agents.
    pub enum AgentMessageKind {
        /// A call of an agent made it.
        Request = "request",
        /// It is the answer to a request.
        Answer = "answer",
    }
}

ironclaw_contract::stored_as_text!(AgentMessageKind);

rows! {
    /// The origin of a message between agents.
    #[derive(Debug, Clone)]
    pub struct AgentMessage in agent_messages {
        pub message: MessageId = "message_id",
        pub kind: AgentMessageKind,
        /// The agent that wrote it.
        pub source_agent: AgentId,
        pub source_session: SessionId,
        /// The message at which the turn worked that sent the request; of an answer, the turn that asked.
        pub source_message: MessageId,
        /// The number of agents that it passed through.
        pub hop: u32,
        /// The message of the person or the schedule at the start of the chain.
        pub chain: MessageId,
        /// Of an answer: the delivery that is received when a turn takes the message.
        pub delivery: Option<DeliveryId>,
    }
}

/// Inserts the origin of a message that was just recorded.
pub fn insert(tx: &mut WriteTx<'_>, new: &AgentMessage) -> Result<(), Error> {
    new.insert(tx)
}

/// Returns the origin of a message of an agent; `None` for any other message.
pub fn find(tx: &ReadTx<'_>, message: MessageId) -> Result<Option<AgentMessage>, Error> {
    tx.find("SELECT * FROM agent_messages WHERE message_id = ?1", [message], AgentMessage::read)
}

/// Returns the requests in a session that wait for a turn, oldest first.
pub fn waiting_requests_of(tx: &ReadTx<'_>, session: SessionId) -> Result<Vec<AgentMessage>, Error> {
    // `waits = 1` is redundant, but it is the condition of the index.
    let sql = "SELECT agent_messages.* FROM messages JOIN agent_messages ON message_id = messages.id \
               WHERE session_id = ?1 AND waits = 1 AND status = 'queued' \
               AND agent_messages.kind = 'request' ORDER BY seq";
    tx.list(sql, [session], AgentMessage::read)
}

/// Returns the requests in a session without an answer, oldest first.
pub fn unanswered_of(tx: &ReadTx<'_>, session: SessionId) -> Result<Vec<AgentMessage>, Error> {
    let sql = "SELECT agent_messages.* FROM messages JOIN agent_messages ON message_id = messages.id \
               WHERE session_id = ?1 AND agent_messages.kind = 'request' AND answered = 0 ORDER BY seq";
    tx.list(sql, [session], AgentMessage::read)
}

pub fn mark_answered(tx: &mut WriteTx<'_>, request: MessageId) -> Result<(), Error> {
    tx.execute("UPDATE agent_messages SET answered = 1 WHERE message_id = ?1", [request]).map(drop)
}

/// Returns the kind of principal of a message.
pub fn principal_of(tx: &ReadTx<'_>, message: MessageId) -> Result<Option<Principal>, Error> {
    let sql = "SELECT principal_kind FROM messages WHERE id = ?1";
    tx.find(sql, [message], |row| stored_text(row, "principal_kind"))
}

/// Returns the deliveries of the answers in a session that no turn took.
pub fn untaken_answers_of(tx: &ReadTx<'_>, session: SessionId) -> Result<Vec<DeliveryId>, Error> {
    let sql = "SELECT delivery FROM messages JOIN agent_messages ON message_id = messages.id \
               WHERE session_id = ?1 AND waits = 1 AND status = 'queued' AND delivery IS NOT NULL ORDER BY seq";
    tx.list(sql, [session], |row| row.get("delivery"))
}

rows! {
    /// A message of a chain, for a person.
    #[derive(Debug, Clone)]
    pub struct Link {
        pub session: SessionId = "session_id",
        /// The name of the agent of that session; empty if it was removed.
        pub agent: String,
        pub message: MessageId,
        /// The number of agents that it passed through.
        pub hop: u32,
    }
}

/// Returns the messages of a chain in order; none if no agent sent a message in it.
pub fn chain(tx: &ReadTx<'_>, chain: MessageId) -> Result<Vec<Link>, Error> {
    let sql = "SELECT messages.id AS message, session_id, coalesce(agents.name, '') AS agent, coalesce(hop, 0) AS hop \
               FROM messages LEFT JOIN agent_messages ON message_id = messages.id \
               JOIN sessions ON sessions.id = session_id LEFT JOIN agents ON agents.id = sessions.agent_id \
               WHERE messages.id IN (SELECT message_id FROM agent_messages WHERE chain = ?1 UNION SELECT ?1) \
               AND EXISTS (SELECT 1 FROM agent_messages WHERE chain = ?1) ORDER BY hop, received_at, messages.id";
    tx.list(sql, [chain], Link::read)
}

/// Returns the chain of a turn that a message of an agent opened.
pub fn chain_of_turn(tx: &ReadTx<'_>, turn: TurnId) -> Result<Option<MessageId>, Error> {
    let sql = "SELECT chain FROM messages JOIN agent_messages ON message_id = coalesce(root, messages.id) \
               WHERE messages.id IN (SELECT value FROM turns, json_each(message_ids) WHERE turns.id = ?1) AND turn_id = ?1 LIMIT 1";
    tx.find(sql, [turn], |row| row.get("chain"))
}

/// Returns the tokens of the turns that the messages of a chain opened.
pub fn tokens_of(tx: &ReadTx<'_>, chain: MessageId) -> Result<u64, Error> {
    let found = tx.find("SELECT tokens FROM chain_tokens WHERE chain = ?1", [chain], |row| row.get(0))?;
    Ok(found.unwrap_or_default())
}

/// Adds tokens to the chain of a turn, or takes them back; does nothing for a turn that no message of an agent opened.
pub fn add_tokens(tx: &mut WriteTx<'_>, turn: TurnId, tokens: i64) -> Result<(), Error> {
    let Some(chain) = chain_of_turn(tx, turn)? else { return Ok(()) };
    let sql = "INSERT INTO chain_tokens (chain, tokens) SELECT id, max(?2, 0) FROM messages WHERE id = ?1 \
               ON CONFLICT (chain) DO UPDATE SET tokens = max(tokens + ?2, 0)";
    tx.execute(sql, params![chain, tokens]).map(drop)
}

/// Returns the number of messages that an agent sent since this time, milliseconds since the epoch.
pub fn sends_since(tx: &ReadTx<'_>, agent: AgentId, since: i64) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM agent_sends WHERE agent_id = ?1 AND sent_at > ?2 AND sent_at <= ?3";
    tx.get(sql, params![agent, since, tx.wall()], |row| row.get(0))
}

/// Returns the time of the first message that an agent sent since this time, milliseconds since the epoch.
pub fn first_send_since(tx: &ReadTx<'_>, agent: AgentId, since: i64) -> Result<Option<i64>, Error> {
    let sql = "SELECT min(sent_at) FROM agent_sends WHERE agent_id = ?1 AND sent_at > ?2";
    tx.get(sql, params![agent, since], |row| row.get(0))
}

/// Records a send of an agent, and forgets its sends up to `until`.
pub fn add_send(tx: &mut WriteTx<'_>, agent: AgentId, call: CallId, at: i64, until: i64) -> Result<(), Error> {
    tx.execute("DELETE FROM agent_sends WHERE agent_id = ?1 AND sent_at <= ?2", params![agent, until])?;
    tx.execute("INSERT INTO agent_sends (call_id, agent_id, sent_at) VALUES (?1,?2,?3)", params![call, agent, at])
        .map(drop)
}
