//! Changes that wait or waited for people. Tables: `waiting`.

use super::{Status, WaitingId};
use crate::rows::rows;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, CallId, ChangeId, MessageId, PersonId, SessionId, TurnId};
use ironclaw_contract::seam::change::{Change, ChangeKind, Payload};
use ironclaw_judge::provenance::Labels;
use ironclaw_state::{Error, ReadTx, stored_json};
use rusqlite::{Row as SqlRow, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The agent or the person that proposes a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requester {
    /// An agent, in a turn on behalf of a person.
    Agent {
        principal: PersonId,
        /// The call that proposed it.
        origin: Origin,
    },
    /// A person with a role.
    Person(PersonId),
}

impl Requester {
    /// Returns the person on whose behalf it is proposed.
    pub const fn principal(&self) -> PersonId {
        match self {
            Self::Agent { principal, .. } => *principal,
            Self::Person(person) => *person,
        }
    }

    /// Returns the call that proposed it, if an agent did.
    pub const fn origin(&self) -> Option<&Origin> {
        match self {
            Self::Agent { origin, .. } => Some(origin),
            Self::Person(_) => None,
        }
    }
}

/// The call with which an agent proposed a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub session: SessionId,
    pub turn: TurnId,
    /// The first message that the turn answers.
    pub message: Option<MessageId>,
    pub call: CallId,
}

/// What only a change has.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Own {
    /// The new values, completed by the checks.
    pub payload: Payload,
    /// The value of the same setting at the time of the proposal.
    pub before: Value,
    /// The meaning of the names in it at the time of the proposal.
    pub facts: Value,
    /// The reason, in the words of the requester.
    pub reason: String,
}

rows! {
    #[derive(Debug, Clone)]
    pub struct Row {
        pub id: ChangeId,
        pub kind: ChangeKind = "subject",
        /// The agent that it concerns.
        pub agent: Option<AgentId> = "agent_id",
        /// The agent or the person that proposed it.
        pub requester: Requester as requester,
        pub change: Change as change,
        pub own: Own as json,
        /// The labels of the output that proposed it.
        pub labels: Labels as json,
        /// The generation of the record that it belongs to.
        pub generation: u64,
        /// Number of the ledger entry for the proposal.
        pub asked_seq: u64,
        pub status: Status,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Milliseconds since the epoch.
        pub expires_at: i64,
        /// The last person who decided.
        pub decided_by: Option<PersonId>,
        /// A sentence about the outcome.
        pub outcome: Option<String>,
    }
}

fn requester(row: &SqlRow<'_>) -> rusqlite::Result<Requester> {
    let principal = row.get("principal")?;
    let Some(session) = row.get("session_id")? else { return Ok(Requester::Person(principal)) };
    let origin =
        Origin { session, turn: row.get("turn_id")?, message: row.get("message_id")?, call: row.get("call_id")? };
    Ok(Requester::Agent { principal, origin })
}

fn change(row: &SqlRow<'_>) -> rusqlite::Result<Change> {
    let own: Own = stored_json(row, "own")?;
    Change::parse(row.get("subject")?, &own.payload).map_err(|_| ironclaw_state::bad("own"))
}

pub fn find(tx: &ReadTx<'_>, id: impl Into<WaitingId>) -> Result<Option<Row>, Error> {
    tx.find("SELECT * FROM waiting WHERE id = ?1", [id.into()], Row::read)
}

/// Returns the change of this digest that waits.
pub fn pending_with_digest(tx: &ReadTx<'_>, digest: Digest) -> Result<Option<Row>, Error> {
    let sql = "SELECT * FROM waiting WHERE digest = ?1 AND status = 'pending' AND kind = 'chg'";
    tx.find(sql, [digest], Row::read)
}

/// Returns the time of the newest applied change of this kind for an agent, milliseconds since the epoch.
pub fn newest_applied(tx: &ReadTx<'_>, agent: AgentId, kind: ChangeKind) -> Result<Option<i64>, Error> {
    let sql =
        "SELECT max(ended_at) FROM waiting WHERE agent_id = ?1 AND status = 'done' AND subject = ?2 AND kind = 'chg'";
    tx.get(sql, params![agent, kind], |row| row.get(0))
}

rows! {
    /// The changes that wait, and the earliest of their ends.
    #[derive(Debug, Clone)]
    pub struct Pending {
        pub count: i64,
        /// Milliseconds since the epoch.
        pub ends_at: Option<i64>,
    }
}

/// Returns the changes of the host that wait.
pub fn pending(tx: &ReadTx<'_>) -> Result<Pending, Error> {
    let sql =
        "SELECT count(*) AS count, min(ends_at) AS ends_at FROM waiting WHERE status = 'pending' AND kind = 'chg'";
    tx.get(sql, [], Pending::read)
}

/// Returns the changes of a requester that wait; `agent` is the agent of the request.
pub fn pending_for_requester(tx: &ReadTx<'_>, requester: &Requester, agent: Option<AgentId>) -> Result<Pending, Error> {
    let sql = "SELECT count(*) AS count, min(ends_at) AS ends_at FROM waiting WHERE status = 'pending' AND kind = 'chg' \
               AND CASE WHEN ?1 IS NULL THEN session_id IS NULL AND principal = ?2 ELSE session_id IS NOT NULL AND agent_id = ?1 END";
    let agent = agent.filter(|_| requester.origin().is_some());
    tx.get(sql, params![agent, requester.principal()], Pending::read)
}

/// Returns at most `limit` approved changes, oldest first: the oldest one of each agent and of the host, and after all of these the
/// oldest one of each that fetches software, as `gateway::kinds::fetches` says.
pub fn approved(tx: &ReadTx<'_>, limit: usize) -> Result<Vec<Row>, Error> {
    let sql = "WITH next AS (SELECT ordinal, agent_id, subject = 'packages' OR (subject = 'mcp_register' AND \
               json_type(own, '$.payload.packages') IS NOT NULL) AS fetches FROM waiting WHERE status = 'approved' AND kind = 'chg') \
               SELECT waiting.* FROM waiting JOIN next USING (ordinal) WHERE ordinal IN \
               (SELECT min(ordinal) FROM next GROUP BY agent_id, fetches) ORDER BY fetches, ordinal LIMIT ?1";
    tx.list(sql, [limit as i64], Row::read)
}

/// Returns the other changes of this kind and agent that wait, oldest first.
pub fn find_similar(tx: &ReadTx<'_>, other: &Row) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM waiting WHERE agent_id IS ?1 AND status IN ('pending','doubtful') AND subject = ?2 AND kind = 'chg' \
               AND id <> ?3 ORDER BY ordinal";
    tx.list(sql, params![other.agent, other.kind, other.id], Row::read)
}

/// Returns the number of changes that a person asked for, or that were asked for on their behalf, or that they decided.
pub fn count_for_person(tx: &ReadTx<'_>, person: PersonId) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM waiting WHERE kind = 'chg' AND (principal = ?1 OR decided_by = ?1)";
    tx.get(sql, [person], |row| row.get(0))
}

impl Row {
    /// Returns its id among everything that waits.
    pub const fn waiting_id(&self) -> WaitingId {
        WaitingId::Change(self.id)
    }
}
