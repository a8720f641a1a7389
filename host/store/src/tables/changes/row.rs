//! A row of the table `changes`, and its requester.
//!
//! Never writes a row and never decides about one. See [`crate::tables::changes`] and `gateway::store`.

use crate::rows::rows;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, CallId, ChangeId, MessageId, PersonId, SessionId, TurnId};
use ironclaw_contract::seam::change::{Change, ChangeKind, Payload};
use ironclaw_judge::provenance::Labels;
use ironclaw_state::stored_json;
use rusqlite::Row as SqlRow;
use serde_json::Value;

pub use ironclaw_operator::ChangeStatus as Status;

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

/// The call with which an agent proposed a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub session: SessionId,
    pub turn: TurnId,
    /// The first message that the turn answers.
    pub message: Option<MessageId>,
    pub call: CallId,
}

rows! {
    #[derive(Debug, Clone)]
    pub struct Row {
        pub id: ChangeId,
        pub kind: ChangeKind,
        /// The agent that it concerns.
        pub agent: Option<AgentId> = "agent_id",
        /// The agent or the person that proposed it.
        pub requester: Requester as requester,
        pub change: Change as change,
        /// The value of the same setting at the time of the proposal.
        pub before: Value as json,
        /// The meaning of the names in it at the time of the proposal.
        pub facts: Value as json,
        /// The reason, in the words of the requester.
        pub reason: String,
        /// The labels of the output that proposed it.
        pub labels: Labels as json,
        /// The generation of the record that it belongs to.
        pub generation: u64,
        /// Number of the ledger entry for the proposal.
        pub asked_seq: u64,
        pub status: Status,
        /// Digest of the review page that the deciding person read.
        pub shown: Option<Digest>,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Milliseconds since the epoch.
        pub expires_at: i64,
        /// The last person who decided.
        pub decided_by: Option<PersonId>,
        /// Milliseconds since the epoch.
        pub decided_at: Option<i64>,
        /// Milliseconds since the epoch.
        pub applied_at: Option<i64>,
        /// A sentence about the outcome.
        pub outcome: Option<String>,
    }
}

impl Row {
    /// Returns the person on whose behalf it was proposed.
    pub const fn principal(&self) -> PersonId {
        match &self.requester {
            Requester::Agent { principal, .. } => *principal,
            Requester::Person(person) => *person,
        }
    }

    /// Returns the conversation in which it was proposed.
    pub const fn session(&self) -> Option<SessionId> {
        match &self.requester {
            Requester::Agent { origin, .. } => Some(origin.session),
            Requester::Person(_) => None,
        }
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
    let payload: Payload = stored_json(row, "payload")?;
    Change::parse(row.get("kind")?, &payload).map_err(|_| ironclaw_state::bad("payload"))
}
