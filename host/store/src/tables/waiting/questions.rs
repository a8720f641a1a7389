//! Questions of agents to people. Tables: `waiting`.

use super::{Status, WaitingId};
use crate::rows::rows;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, CallId, MessageId, PersonId, QuestionId, SessionId, TurnId};
use ironclaw_judge::provenance::Labels;
use ironclaw_judge::{Classes, Principal};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;
use serde::{Deserialize, Serialize};

/// What only a question has.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Own {
    /// The kind of principal of the turn.
    pub principal_kind: Principal,
    /// The classes of the turn that asked.
    pub scope: Classes,
}

rows! {
    #[derive(Debug, Clone)]
    pub struct Row in waiting {
        pub id: QuestionId,
        pub tool: String = "subject",
        pub session: SessionId = "session_id",
        /// The agent that asks.
        pub agent: AgentId = "agent_id",
        /// The turn that asked.
        pub turn: TurnId = "turn_id",
        /// The call that asked.
        pub call: CallId = "call_id",
        /// The newest message of that turn.
        pub asked_for: MessageId = "message_id",
        /// The message whose task it is.
        pub root: MessageId,
        pub principal: PersonId,
        /// Digest of tool and arguments.
        pub digest: Digest,
        /// The labels of the output that asks.
        pub labels: Labels as json,
        pub own: Own as json,
        /// The encrypted question and options.
        pub text: Vec<u8> = "sealed",
        pub generation: u64,
        pub status: Status,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Milliseconds since the epoch.
        pub expires_at: i64,
        /// Milliseconds since the epoch; `None` once it ended.
        pub ends_at: Option<i64>,
        /// Milliseconds since the epoch; `None` after the reminder.
        pub remind_at: Option<i64>,
        /// Number of its ledger entry.
        pub asked_seq: u64,
        /// The message with the answer.
        pub answer: Option<MessageId>,
    }
}

pub fn insert(tx: &mut WriteTx<'_>, new: &Row) -> Result<(), Error> {
    new.insert(tx)
}

pub fn find(tx: &ReadTx<'_>, id: impl Into<WaitingId>) -> Result<Option<Row>, Error> {
    tx.find("SELECT * FROM waiting WHERE id = ?1", [id.into()], Row::read)
}

/// Returns the newest question of an equal call for the same message.
pub fn equal(tx: &ReadTx<'_>, session: SessionId, message: MessageId, digest: Digest) -> Result<Option<Row>, Error> {
    let sql = "SELECT * FROM waiting WHERE session_id = ?1 AND message_id = ?2 AND digest = ?3 AND kind = 'qst' \
               ORDER BY ordinal DESC LIMIT 1";
    tx.find(sql, params![session, message, digest], Row::read)
}

/// Returns the questions of a session that wait, oldest first.
pub fn pending_in_session(tx: &ReadTx<'_>, session: SessionId) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM waiting WHERE session_id = ?1 AND status = 'pending' AND kind = 'qst' ORDER BY ordinal";
    tx.list(sql, [session], Row::read)
}

/// Records the message that answers a question.
pub fn set_answer(tx: &mut WriteTx<'_>, id: QuestionId, answer: MessageId) -> Result<(), Error> {
    tx.execute("UPDATE waiting SET answer = ?2 WHERE id = ?1", params![id, answer]).map(drop)
}
