//! Questions of agents to people. Tables: `questions`.

use crate::rows::rows;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, CallId, MessageId, PersonId, QuestionId, SessionId, TurnId};
use ironclaw_judge::provenance::Labels;
use ironclaw_judge::{Classes, Principal};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;

pub use ironclaw_operator::QuestionStatus as Status;

rows! {
    #[derive(Debug, Clone)]
    pub struct Row in questions {
        pub id: QuestionId,
        pub session: SessionId = "session_id",
        /// The agent that asks.
        pub agent: AgentId = "agent_id",
        /// The turn that asked.
        pub turn: TurnId = "turn_id",
        /// The call that asked.
        pub call: CallId = "call_id",
        /// The newest message of that turn.
        pub asked_for: MessageId,
        /// The message whose task it is.
        pub root: MessageId,
        pub principal: PersonId,
        /// The kind of principal of the turn.
        pub principal_kind: Principal as word,
        /// The classes of the turn that asked.
        pub scope: Classes as text,
        /// Digest of tool and arguments.
        pub digest: Digest,
        /// The encrypted question and options.
        pub sealed_text: Vec<u8> = "body",
        /// The labels of the output that asks.
        pub labels: Labels as json,
        pub status: Status,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Milliseconds since the epoch; `None` after the reminder.
        pub remind_at: Option<i64>,
        /// Milliseconds since the epoch.
        pub expires_at: i64,
        pub answer: Option<MessageId>,
        /// The person who answered or cancelled it.
        pub ended_by: Option<PersonId>,
        /// Milliseconds since the epoch; `None` while it waits.
        pub ended_at: Option<i64>,
        /// The reason of its end without an answer.
        pub outcome: Option<String>,
    }
}

pub fn insert(tx: &mut WriteTx<'_>, new: &Row) -> Result<(), Error> {
    new.insert(tx)
}

pub fn find(tx: &ReadTx<'_>, id: QuestionId) -> Result<Option<Row>, Error> {
    tx.find("SELECT * FROM questions WHERE id = ?1", [id], Row::read)
}

/// Returns the newest question of an equal call for the same message.
pub fn equal(tx: &ReadTx<'_>, session: SessionId, message: MessageId, digest: Digest) -> Result<Option<Row>, Error> {
    let sql = "SELECT * FROM questions WHERE session_id = ?1 AND asked_for = ?2 AND digest = ?3 \
               ORDER BY ordinal DESC LIMIT 1";
    tx.find(sql, params![session, message, digest], Row::read)
}

/// Returns at most `limit` questions of each of these statuses: first the waiting ones that end soonest, the soonest first, and then the
/// newest others, the newest first.
pub fn list(tx: &ReadTx<'_>, statuses: &[Status], limit: usize) -> Result<Vec<Row>, Error> {
    let mut waiting = Vec::new();
    if statuses.contains(&Status::Waiting) {
        let sql = "SELECT * FROM questions WHERE status = 'waiting' ORDER BY expires_at, ordinal LIMIT ?1";
        waiting = tx.list(sql, [limit as i64], Row::read)?;
    }
    let mut ended: Vec<Row> = Vec::new();
    for status in statuses.iter().filter(|status| **status != Status::Waiting) {
        let sql = "SELECT * FROM questions WHERE status = ?1 ORDER BY ordinal DESC LIMIT ?2";
        ended.extend(tx.list::<_, Vec<_>>(sql, params![status, limit as i64], Row::read)?);
    }
    ended.sort_by_key(|row| std::cmp::Reverse((row.created_at, row.id)));
    waiting.append(&mut ended);
    Ok(waiting)
}

/// Returns the questions of a session that wait, oldest first.
pub fn waiting_of_session(tx: &ReadTx<'_>, session: SessionId) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM questions WHERE session_id = ?1 AND status = 'waiting' ORDER BY ordinal";
    tx.list(sql, [session], Row::read)
}

/// Returns the questions to a person that wait, oldest first.
pub fn waiting_of_person(tx: &ReadTx<'_>, person: PersonId) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM questions WHERE principal = ?1 AND status = 'waiting' ORDER BY ordinal";
    tx.list(sql, [person], Row::read)
}

/// Returns the number of questions that wait.
pub fn waiting_count(tx: &ReadTx<'_>) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM questions WHERE status = 'waiting'";
    tx.get(sql, [], |row| row.get(0))
}

/// Returns every question that waits, oldest first.
pub fn every_waiting(tx: &ReadTx<'_>) -> Result<Vec<Row>, Error> {
    tx.list("SELECT * FROM questions WHERE status = 'waiting' ORDER BY ordinal", [], Row::read)
}

/// Returns the waiting questions whose time ended at `at` or before.
pub fn ended(tx: &ReadTx<'_>, at: i64, limit: usize) -> Result<Vec<Row>, Error> {
    let sql =
        "SELECT * FROM questions WHERE status = 'waiting' AND expires_at <= ?1 ORDER BY expires_at, ordinal LIMIT ?2";
    tx.list(sql, params![at, limit as i64], Row::read)
}

/// Returns the waiting questions whose reminder was due at `at` or before.
pub fn to_remind(tx: &ReadTx<'_>, at: i64, limit: usize) -> Result<Vec<Row>, Error> {
    let sql =
        "SELECT * FROM questions WHERE status = 'waiting' AND remind_at <= ?1 ORDER BY remind_at, ordinal LIMIT ?2";
    tx.list(sql, params![at, limit as i64], Row::read)
}

/// Returns the next end or reminder of a waiting question, milliseconds since the epoch.
pub fn next_due(tx: &ReadTx<'_>) -> Result<Option<i64>, Error> {
    let sql = "SELECT min(min(expires_at, coalesce(remind_at, expires_at))) FROM questions WHERE status = 'waiting'";
    tx.get(sql, [], |row| row.get(0))
}

/// Notes that the person of a question was reminded.
pub fn set_reminded(tx: &mut WriteTx<'_>, id: QuestionId) -> Result<(), Error> {
    tx.execute("UPDATE questions SET remind_at = NULL WHERE id = ?1", [id]).map(drop)
}

/// Marks a waiting question as answered by a message, and returns whether it waited.
pub fn mark_answered(tx: &mut WriteTx<'_>, id: QuestionId, by: PersonId, answer: MessageId) -> Result<bool, Error> {
    let now = tx.now();
    let sql = "UPDATE questions SET status = 'answered', remind_at = NULL, ended_by = ?2, ended_at = ?3, answer = ?4 \
               WHERE id = ?1 AND status = 'waiting'";
    Ok(tx.execute(sql, params![id, by, now, answer])? == 1)
}

/// Ends a question that waits, or whose answer is unknown, and returns whether it did.
pub fn end(
    tx: &mut WriteTx<'_>,
    id: QuestionId,
    status: Status,
    by: Option<PersonId>,
    outcome: &str,
) -> Result<bool, Error> {
    let now = tx.now();
    let sql = "UPDATE questions SET status = ?2, remind_at = NULL, ended_by = ?3, ended_at = ?4, outcome = ?5 \
               WHERE id = ?1 AND status IN ('waiting','unknown')";
    Ok(tx.execute(sql, params![id, status, by, now, outcome])? == 1)
}

/// Deletes the questions of a session, and returns their ids.
pub fn delete_of_session(tx: &mut WriteTx<'_>, session: SessionId) -> Result<Vec<QuestionId>, Error> {
    let ids = tx.list("SELECT id FROM questions WHERE session_id = ?1", [session], |row| row.get(0))?;
    tx.execute("DELETE FROM questions WHERE session_id = ?1", [session])?;
    Ok(ids)
}
