//! Questions of agents to people. Tables: `waiting`.

use super::{Status, Waiting, WaitingId};
use crate::rows::rows;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, MessageId, PersonId, QuestionId, SessionId, TurnId};
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
    pub struct Row {
        pub id: QuestionId,
        /// The agent that asks, in this session and turn.
        pub agent: AgentId = "agent_id",
        pub session: SessionId = "session_id",
        pub turn: TurnId = "turn_id",
        /// The newest message of that turn, and the message whose task it is.
        pub asked_for: MessageId = "message_id",
        pub root: MessageId,
        pub principal: PersonId,
        /// The encrypted question and options.
        pub text: Vec<u8> = "sealed",
        /// Digest of tool and arguments.
        pub digest: Digest,
        /// The labels of the output that asks.
        pub labels: Labels as json,
        pub own: Own as json,
        /// The message with the answer.
        pub answer: Option<MessageId>,
        pub status: Status,
        /// Milliseconds since the epoch, as the next one.
        pub created_at: i64,
        pub expires_at: i64,
    }
}

/// Inserts a question with its encrypted text.
pub fn insert(tx: &mut WriteTx<'_>, new: &Waiting, text: &[u8]) -> Result<(), Error> {
    super::insert(tx, new)?;
    tx.execute("UPDATE waiting SET sealed = ?2 WHERE id = ?1", params![new.id, text]).map(drop)
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
