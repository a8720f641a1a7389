//! A row of the changes, and who asked for it.
//!
//! Never writes one, and decides nothing. Next: `tables::changes`, `gateway::store`.

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, CallId, ChangeId, MessageId, PersonId, SessionId, TurnId};
use ironclaw_contract::seam::change::{Change, ChangeKind, Payload};
use ironclaw_contract::seam::seal::Label;
use ironclaw_state::stored_json;
use rusqlite::Row as SqlRow;
use serde_json::Value;

/// Who asks for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requester {
    /// An agent, in a turn on behalf of a person.
    Agent {
        /// The person.
        principal: PersonId,
        /// Where it asked.
        origin: Origin,
    },
    /// A person with a role.
    Person(PersonId),
}

/// Where an agent asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The conversation.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The first message that the turn answers.
    pub message: Option<MessageId>,
    /// The recorded call.
    pub call: CallId,
}

/// The status of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It waits for people.
    Pending,
    /// Enough people approved; it is about to be applied.
    Approved,
    /// It is done.
    Applied,
    /// A person said no.
    Rejected,
    /// No person decided in time.
    Expired,
    /// It cannot be decided any more: what it would alter is not as it was, or its requester is gone.
    Withdrawn,
    /// It was approved and could not be done; nothing was changed, unless the outcome says that conversations are erased.
    Failed,
    /// It was open in a record that was put back: a person has to look.
    Unknown,
}

impl Status {
    /// Every one of them.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Approved,
        Self::Applied,
        Self::Rejected,
        Self::Expired,
        Self::Withdrawn,
        Self::Failed,
        Self::Unknown,
    ];

    /// Returns its name, as stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Applied => "applied",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    /// Returns whether a person can still decide about it.
    pub const fn is_open(self) -> bool {
        match self {
            Self::Pending | Self::Unknown => true,
            Self::Approved | Self::Applied | Self::Rejected | Self::Expired | Self::Withdrawn | Self::Failed => false,
        }
    }
}

impl std::str::FromStr for Status {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|status| status.name() == text).ok_or_else(|| {
            let shown: String = text.chars().take(32).collect();
            let known: Vec<&str> = Self::ALL.iter().map(|status| status.name()).collect();
            format!("unknown status {shown:?}: expected one of {}", known.join(", "))
        })
    }
}

ironclaw_state::stored_by_name!(Status);

/// A change's row.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its id.
    pub id: ChangeId,
    /// What would change.
    pub kind: ChangeKind,
    /// The agent that it concerns.
    pub agent: Option<AgentId>,
    /// Who asked.
    pub requester: Requester,
    /// The change itself.
    pub change: Change,
    /// The same setting as it was then.
    pub before: Value,
    /// What the names in it meant then.
    pub facts: Value,
    /// Why, in the words of the requester.
    pub reason: String,
    /// The labels of the output that asked for it.
    pub labels: Vec<Label>,
    /// The generation of the record that it belongs to.
    pub generation: u64,
    /// Number of the entry of the ledger with which it was asked for.
    pub asked_seq: u64,
    /// Its status.
    pub status: Status,
    /// Digest of what the person who decided was shown.
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
    /// What came of it.
    pub outcome: Option<String>,
}

impl Row {
    /// Returns the person on whose behalf it was asked for.
    pub const fn principal(&self) -> PersonId {
        match &self.requester {
            Requester::Agent { principal, .. } => *principal,
            Requester::Person(person) => *person,
        }
    }

    /// Returns the conversation in which it was asked for.
    pub const fn session(&self) -> Option<SessionId> {
        match &self.requester {
            Requester::Agent { origin, .. } => Some(origin.session),
            Requester::Person(_) => None,
        }
    }
}

/// Reads a row of the table.
pub(super) fn row(row: &SqlRow<'_>) -> rusqlite::Result<Row> {
    let kind: ChangeKind = row.get("kind")?;
    let payload: Payload = stored_json(row, "payload")?;
    let principal: PersonId = row.get("principal")?;
    let session: Option<SessionId> = row.get("session_id")?;
    let requester = match session {
        None => Requester::Person(principal),
        Some(session) => {
            let origin = Origin {
                session,
                turn: row.get("turn_id")?,
                message: row.get("message_id")?,
                call: row.get("call_id")?,
            };
            Requester::Agent { principal, origin }
        }
    };
    Ok(Row {
        id: row.get("id")?,
        kind,
        agent: row.get("agent_id")?,
        requester,
        change: Change::parse(kind, &payload).map_err(|_| ironclaw_state::bad("payload"))?,
        before: stored_json(row, "before")?,
        facts: stored_json(row, "facts")?,
        reason: row.get("reason")?,
        labels: stored_json(row, "labels")?,
        generation: row.get::<_, i64>("generation")? as u64,
        asked_seq: row.get::<_, i64>("asked_seq")? as u64,
        status: row.get("status")?,
        shown: row.get("shown")?,
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
        decided_by: row.get("decided_by")?,
        decided_at: row.get("decided_at")?,
        applied_at: row.get("applied_at")?,
        outcome: row.get("outcome")?,
    })
}
