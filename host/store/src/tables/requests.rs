//! Approval requests of calls, and the approvals of requests and of changes. Tables: `requests`, `approvals`.

mod status;

pub use status::Status;

use super::turns::CallOutcome;
use crate::rows::rows;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, ApprovalId, CallId, ItemId, MessageId, PersonId, RequestId, SessionId, TurnId};
use ironclaw_judge::provenance::Labels;
use ironclaw_judge::{Class, Classes};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::{ToSql, params};

rows! {
    /// The row of an approval request.
    #[derive(Debug, Clone)]
    pub struct Row in requests {
        pub id: RequestId,
        /// The session of the call.
        pub session: SessionId = "session_id",
        /// The agent that calls.
        pub agent: AgentId = "agent_id",
        /// The newest turn that asked.
        pub turn: TurnId = "turn_id",
        /// The newest call that asked.
        pub call: CallId = "call_id",
        /// The output of that call.
        pub output: ItemId = "output_item",
        /// The message whose task it is.
        pub root: MessageId,
        /// The person of the turn.
        pub principal: PersonId,
        /// The classes that the turn asked for.
        pub scope: Classes as text,
        pub tool: String,
        pub class: Class,
        /// Digest of tool and arguments.
        pub digest: Digest,
        pub arguments: Vec<u8>,
        /// The labels of the output.
        pub labels: Labels as json,
        /// The reasons, canonical JSON.
        pub reasons: String,
        /// The sources of the values that leave, canonical JSON.
        pub origins: String,
        /// The generation of the record.
        pub generation: u64,
        pub status: Status,
        /// The places in which people were told, with blanks between.
        pub told: String,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Milliseconds since the epoch: the end of the request, or once it is approved, of its approvals.
        pub expires_at: i64,
        /// The time at which people are told that it expires soon, milliseconds since the epoch; `None` once they were told.
        pub remind_at: Option<i64>,
        /// The number of its ledger entry.
        pub asked_seq: u64,
        /// The person who decided last.
        pub decided_by: Option<PersonId>,
        /// The outcome in words.
        pub outcome: Option<String>,
    }
}

rows! {
    /// A request as the bounds count it.
    #[derive(Debug, Clone)]
    pub struct Counted {
        pub status: Status,
        pub tool: String,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Milliseconds since the epoch.
        pub expires_at: i64,
        /// The reasons, canonical JSON.
        pub reasons: String,
    }
}

rows! {
    /// An agent and the person that it works for.
    #[derive(Debug, Clone)]
    pub struct Pair {
        pub agent: AgentId = "agent_id",
        pub person: PersonId = "principal",
    }
}

/// Inserts an approval request.
pub fn insert(tx: &mut WriteTx<'_>, new: &Row) -> Result<(), Error> {
    new.insert(tx)
}

pub fn find(tx: &ReadTx<'_>, id: RequestId) -> Result<Option<Row>, Error> {
    tx.find("SELECT * FROM requests WHERE id = ?1", [id], Row::read)
}

/// Returns the newest request that this call made.
pub fn find_by_call(tx: &ReadTx<'_>, call: CallId) -> Result<Option<Row>, Error> {
    tx.find("SELECT * FROM requests WHERE call_id = ?1 ORDER BY ordinal DESC LIMIT 1", [call], Row::read)
}

/// Returns the newest request for an equal call of the same task.
pub fn equal(tx: &ReadTx<'_>, session: SessionId, root: MessageId, digest: Digest) -> Result<Option<Row>, Error> {
    let sql =
        "SELECT * FROM requests WHERE session_id = ?1 AND root = ?2 AND digest = ?3 ORDER BY ordinal DESC LIMIT 1";
    tx.find(sql, params![session, root, digest], Row::read)
}

/// Returns the requests that the calls of one output made, in their order.
pub fn list_for_output(tx: &ReadTx<'_>, session: SessionId, output: ItemId) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM requests WHERE session_id = ?1 AND output_item = ?2 ORDER BY ordinal";
    tx.list(sql, params![session, output], Row::read)
}

/// Returns at most `limit` requests of each of these statuses: first the pending ones that end soonest, the soonest first, and then the
/// newest others, the oldest first.
pub fn list(tx: &ReadTx<'_>, statuses: &[Status], limit: usize) -> Result<Vec<Row>, Error> {
    let mut waiting = Vec::new();
    if statuses.contains(&Status::Pending) {
        let sql = "SELECT * FROM requests WHERE status = 'pending' ORDER BY expires_at, ordinal LIMIT ?1";
        waiting = tx.list(sql, [limit as i64], Row::read)?;
    }
    let mut ended: Vec<Row> = Vec::new();
    for status in statuses.iter().filter(|status| **status != Status::Pending) {
        let sql = "SELECT * FROM requests WHERE status = ?1 ORDER BY ordinal DESC LIMIT ?2";
        ended.extend(tx.list::<_, Vec<_>>(sql, params![status, limit as i64], Row::read)?);
    }
    ended.sort_by_key(|row| (row.created_at, row.id));
    waiting.append(&mut ended);
    Ok(waiting)
}

/// Returns the requests of a turn, in their order.
pub fn list_for_turn(tx: &ReadTx<'_>, turn: TurnId) -> Result<Vec<Row>, Error> {
    tx.list("SELECT * FROM requests WHERE turn_id = ?1 ORDER BY ordinal", [turn], Row::read)
}

/// Returns the requests for calls of a tool by an agent on behalf of a person, in their order.
pub fn list_for_person(tx: &ReadTx<'_>, person: PersonId, agent: AgentId, tool: &str) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM requests WHERE principal = ?1 AND agent_id = ?2 AND tool = ?3 ORDER BY ordinal";
    tx.list(sql, params![person, agent, tool], Row::read)
}

/// Returns the pending and approved requests whose task began with a message of this sender.
pub fn open_of_sender(tx: &ReadTx<'_>, channel: &str, sender: &str) -> Result<Vec<Row>, Error> {
    // The task of an agent's message began with the message at the start of its chain.
    let sql = "SELECT requests.* FROM requests LEFT JOIN agent_messages ON message_id = requests.root \
               JOIN messages ON messages.id = coalesce(agent_messages.chain, requests.root) WHERE requests.status IN ('pending','approved') AND messages.channel = ?1 AND messages.sender = ?2 ORDER BY ordinal";
    tx.list(sql, [channel, sender], Row::read)
}

/// Returns the newest requests that their own person approved and whose call has its outcome.
pub fn approved_by_own_person(tx: &ReadTx<'_>, person: PersonId, limit: usize) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM requests WHERE principal = ?1 AND decided_by = ?1 AND status IN ('done','failed','queued') \
               ORDER BY ordinal DESC LIMIT ?2";
    tx.list(sql, params![person, limit as i64], Row::read)
}

/// Returns the pending and approved requests whose time ended at `at` or before, earliest first.
pub fn ended(tx: &ReadTx<'_>, at: i64, limit: usize) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM requests WHERE status IN ('pending','approved') AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2";
    tx.list(sql, params![at, limit as i64], Row::read)
}

/// Returns the next end of a pending or approved request, milliseconds since the epoch.
pub fn next_end(tx: &ReadTx<'_>) -> Result<Option<i64>, Error> {
    tx.get("SELECT min(expires_at) FROM requests WHERE status IN ('pending','approved')", [], |row| row.get(0))
}

/// Returns the next time at which people are told that a pending request expires soon, milliseconds since the epoch.
pub fn next_reminder(tx: &ReadTx<'_>) -> Result<Option<i64>, Error> {
    tx.get("SELECT min(remind_at) FROM requests WHERE remind_at IS NOT NULL", [], |row| row.get(0))
}

/// Returns at most `limit` requests whose people are told at `at` or before that they expire soon, earliest first.
pub fn to_remind(tx: &ReadTx<'_>, at: i64, limit: usize) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM requests WHERE remind_at <= ?1 ORDER BY remind_at LIMIT ?2";
    tx.list(sql, params![at, limit as i64], Row::read)
}

/// Records that people were told that a request expires soon.
pub fn mark_reminded(tx: &mut WriteTx<'_>, id: RequestId) -> Result<(), Error> {
    tx.execute("UPDATE requests SET remind_at = NULL WHERE id = ?1", [id]).map(drop)
}

/// Returns the pending requests of an agent on behalf of a person, without those before a reset.
pub fn counted_waiting(tx: &ReadTx<'_>, agent: AgentId, person: PersonId) -> Result<Vec<Counted>, Error> {
    let sql = "SELECT status, tool, created_at, expires_at, reasons FROM requests \
               WHERE status = 'pending' AND agent_id = ?1 AND principal = ?2 AND counts = 1";
    tx.list(sql, params![agent, person], Counted::read)
}

/// Returns the requests of an agent on behalf of a person since a time, without those before a reset, oldest first.
pub fn counted_since(tx: &ReadTx<'_>, agent: AgentId, person: PersonId, since: i64) -> Result<Vec<Counted>, Error> {
    let sql = "SELECT status, tool, created_at, expires_at, reasons FROM requests \
               WHERE principal = ?2 AND created_at >= ?3 AND agent_id = ?1 AND counts = 1 ORDER BY created_at";
    tx.list(sql, params![agent, person, since], Counted::read)
}

/// Returns the agents and people with requests that may count against a bound: those that wait, and those since a time.
pub fn counted_pairs(tx: &ReadTx<'_>, since: i64) -> Result<Vec<Pair>, Error> {
    let sql = "SELECT agent_id, principal FROM requests WHERE counts = 1 AND status = 'pending' \
               UNION SELECT agent_id, principal FROM requests WHERE counts = 1 AND created_at >= ?1";
    tx.list(sql, [since], Pair::read)
}

/// Takes the requests of an agent out of the counts, on behalf of one person or of all; returns the number of those that counted
/// against a bound. Approved requests count against none.
pub fn reset_counts(tx: &mut WriteTx<'_>, agent: AgentId, person: Option<PersonId>) -> Result<u64, Error> {
    let sql = "UPDATE requests SET counts = 0 WHERE agent_id = ?1 AND counts = 1 \
               AND status IN ('pending','rejected','expired') AND (?2 IS NULL OR principal = ?2)";
    Ok(tx.execute(sql, params![agent, person])? as u64)
}

/// Returns the number of pending requests.
pub fn pending_count(tx: &ReadTx<'_>) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM requests WHERE status = 'pending'";
    tx.get(sql, [], |row| row.get(0))
}

/// Moves a pending or approved request to a later try at the same call.
pub fn move_to(tx: &mut WriteTx<'_>, id: RequestId, turn: TurnId, call: CallId, output: ItemId) -> Result<(), Error> {
    let sql = "UPDATE requests SET turn_id = ?2, call_id = ?3, output_item = ?4 WHERE id = ?1";
    tx.execute(sql, params![id, turn, call, output]).map(drop)
}

/// Adds a place in which people were told of a request.
pub fn record_notified(tx: &mut WriteTx<'_>, row: &Row, place: &str) -> Result<(), Error> {
    let mut places: Vec<&str> = row.told.split_ascii_whitespace().collect();
    if places.contains(&place) {
        return Ok(());
    }
    places.push(place);
    tx.execute("UPDATE requests SET told = ?2 WHERE id = ?1", params![row.id, places.join(" ")]).map(drop)
}

/// Marks a pending request as approved; its approvals are valid until `until`.
pub fn mark_approved(tx: &mut WriteTx<'_>, id: RequestId, by: PersonId, until: i64) -> Result<(), Error> {
    let now = tx.now();
    let sql = "UPDATE requests SET status = 'approved', decided_by = ?2, decided_at = ?3, expires_at = ?4, \
               remind_at = NULL WHERE id = ?1 AND status = 'pending'";
    tx.execute(sql, params![id, by, now, until]).map(drop)
}

/// Marks an approved request as running.
pub fn mark_running(tx: &mut WriteTx<'_>, id: RequestId) -> Result<(), Error> {
    tx.execute("UPDATE requests SET status = 'running' WHERE id = ?1 AND status = 'approved'", [id]).map(drop)
}

/// Ends a request with a status and an outcome, and returns whether it was open.
pub fn end(
    tx: &mut WriteTx<'_>,
    id: RequestId,
    status: Status,
    by: Option<PersonId>,
    outcome: &str,
) -> Result<bool, Error> {
    let now = tx.now();
    let sql = "UPDATE requests SET status = ?2, decided_by = coalesce(?3, decided_by), decided_at = coalesce(decided_at, ?4), outcome = ?5, \
               remind_at = NULL WHERE id = ?1 AND status IN ('pending','approved')";
    Ok(tx.execute(sql, params![id, status, by, now, outcome])? == 1)
}

/// Sets the outcome of a request whose call ran.
pub fn finish(tx: &mut WriteTx<'_>, call: CallId, outcome: CallOutcome) -> Result<(), Error> {
    let sql = "UPDATE requests SET status = ?2 WHERE call_id = ?1 AND status = 'running'";
    tx.execute(sql, params![call, Status::from(outcome)]).map(drop)
}

/// Marks the requests of a turn as unknown whose calls had begun where the output is judged, and have no result.
pub fn lose_unreported(tx: &mut WriteTx<'_>, turn: TurnId) -> Result<(), Error> {
    let sql = "UPDATE requests SET status = 'unknown' WHERE turn_id = ?1 AND status = 'running' \
               AND call_id IN (SELECT id FROM calls WHERE turn_id = ?1 AND runs <> 'await' AND result_item IS NULL)";
    tx.execute(sql, [turn]).map(drop)
}

/// Returns whether an approved call of a message's task is about to run or runs in a session that has no open turn for it.
pub fn is_any_due(tx: &ReadTx<'_>, session: SessionId, root: MessageId) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM requests JOIN turns ON turns.id = requests.turn_id WHERE requests.session_id = ?1 \
               AND requests.root = ?2 AND requests.status IN ('approved','running') AND turns.state = 'closed' \
               AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.id = requests.call_id AND calls.state = 'void'))";
    tx.get(sql, params![session, root], |row| row.get(0))
}

/// Returns the requests of a message's task, in their order.
pub fn list_for_task(tx: &ReadTx<'_>, session: SessionId, root: MessageId) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM requests WHERE session_id = ?1 AND root = ?2 ORDER BY ordinal";
    tx.list(sql, params![session, root], Row::read)
}

/// Returns the approved requests of a session whose calls have not begun, in their order.
pub fn approved_of_session(tx: &ReadTx<'_>, session: SessionId) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM requests WHERE session_id = ?1 AND status = 'approved' ORDER BY ordinal";
    tx.list(sql, [session], Row::read)
}

/// Returns the requests whose calls run, or were running at the end of the host.
pub fn running(tx: &ReadTx<'_>) -> Result<Vec<Row>, Error> {
    tx.list("SELECT * FROM requests WHERE status = 'running' ORDER BY ordinal", [], Row::read)
}

/// Returns the open requests of the whole host.
pub fn every_open(tx: &ReadTx<'_>) -> Result<Vec<Row>, Error> {
    tx.list("SELECT * FROM requests WHERE status IN ('pending','approved') ORDER BY ordinal", [], Row::read)
}

/// Deletes the requests of a session with their approvals, and returns their ids.
pub fn delete_of_session(tx: &mut WriteTx<'_>, session: SessionId) -> Result<Vec<RequestId>, Error> {
    let ids = tx.list("SELECT id FROM requests WHERE session_id = ?1", [session], |row| row.get(0))?;
    let sql = "DELETE FROM approvals WHERE subject IN (SELECT id FROM requests WHERE session_id = ?1)";
    tx.execute(sql, [session])?;
    tx.execute("DELETE FROM requests WHERE session_id = ?1", [session])?;
    Ok(ids)
}

/// Deletes the approvals of a change or a request.
pub fn delete_approvals(tx: &mut WriteTx<'_>, subject: impl ToSql) -> Result<(), Error> {
    tx.execute("DELETE FROM approvals WHERE subject = ?1", [subject]).map(drop)
}

ironclaw_contract::words! {
    /// The state of an approval.
    pub enum ApprovalState {
        Live = "live",
        Used = "used",
        /// Its change or request ended, or its person lost the right to approve.
        Void = "void",
    }
}

ironclaw_contract::stored_as_text!(ApprovalState);

rows! {
    /// An approval of a change or a request.
    #[derive(Debug, Clone)]
    pub struct ApprovalRow {
        pub id: ApprovalId,
        /// The person who approved.
        pub person: PersonId = "person_id",
        /// The stored token, not verified yet.
        pub token: String,
        pub state: ApprovalState,
    }

    /// The token of an unused approval.
    #[derive(Debug, Clone)]
    pub struct LiveToken {
        pub id: ApprovalId,
        /// The stored token, not verified yet.
        pub token: String,
    }
}

/// Returns every approval of a change or a request, oldest first.
pub fn approvals(tx: &ReadTx<'_>, subject: impl ToSql) -> Result<Vec<ApprovalRow>, Error> {
    let sql = "SELECT * FROM approvals WHERE subject = ?1 ORDER BY given_at, id";
    tx.list(sql, [subject], ApprovalRow::read)
}

pub fn insert_approval(
    tx: &mut WriteTx<'_>,
    id: ApprovalId,
    subject: impl ToSql,
    person: PersonId,
    token: &str,
) -> Result<(), Error> {
    let now = tx.now();
    let sql = "INSERT INTO approvals (id, subject, person_id, token, state, given_at) VALUES (?1,?2,?3,?4,'live',?5)";
    tx.execute(sql, params![id, subject, person, token, now]).map(drop)
}

/// Marks an approval as used, and returns whether it was live before.
pub fn use_approval(tx: &mut WriteTx<'_>, approval: ApprovalId) -> Result<bool, Error> {
    let now = tx.now();
    let sql = "UPDATE approvals SET state = 'used', ended_at = ?2 WHERE id = ?1 AND state = 'live'";
    Ok(tx.execute(sql, params![approval, now])? == 1)
}

/// Voids an approval, unless it is used.
pub fn void_approval(tx: &mut WriteTx<'_>, approval: ApprovalId) -> Result<(), Error> {
    let now = tx.now();
    let sql = "UPDATE approvals SET state = 'void', ended_at = ?2 WHERE id = ?1 AND state = 'live'";
    tx.execute(sql, params![approval, now]).map(drop)
}

/// Voids every unused approval of a change or a request.
pub fn void_approvals(tx: &mut WriteTx<'_>, subject: impl ToSql) -> Result<(), Error> {
    let now = tx.now();
    let sql = "UPDATE approvals SET state = 'void', ended_at = ?2 WHERE subject = ?1 AND state = 'live'";
    tx.execute(sql, params![subject, now]).map(drop)
}

/// Voids every unused approval of the host.
pub fn void_all_approvals(tx: &mut WriteTx<'_>) -> Result<(), Error> {
    let now = tx.now();
    tx.execute("UPDATE approvals SET state = 'void', ended_at = ?1 WHERE state = 'live'", [now]).map(drop)
}

/// Returns the token of every unused approval.
pub fn live_tokens(tx: &ReadTx<'_>) -> Result<Vec<LiveToken>, Error> {
    let sql = "SELECT id, token FROM approvals WHERE state = 'live'";
    tx.list(sql, [], LiveToken::read)
}

pub fn set_token(tx: &mut WriteTx<'_>, approval: ApprovalId, token: &str) -> Result<(), Error> {
    tx.execute("UPDATE approvals SET token = ?2 WHERE id = ?1", params![approval, token]).map(drop)
}
