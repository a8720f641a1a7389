//! Turns and their calls. Tables: `turns`, `calls`, `call_inputs`.

mod call;
mod inputs;
pub mod recent;

pub use call::{CallOutcome, CallRow, CallState, Runs};
pub use inputs::{UsedHandle, UsedOf, insert_input, used_handles};

use super::sessions;
use crate::rows::rows;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, CallId, ItemId, PersonId, SessionId, TurnId};
use ironclaw_judge::{Class, Classes, Principal};
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::{Row, params};
use serde_json::json;
use std::collections::HashSet;

rows! {
    #[derive(Debug, Clone)]
    pub struct Turn {
        pub id: TurnId,
        /// Its number among all turns.
        pub ordinal: i64,
        pub session: SessionId = "session_id",
        /// The id of its principal.
        pub principal: String,
        pub principal_kind: Principal as word,
        /// True if it is open.
        pub open: bool as is_open,
        /// Requests to the model so far.
        pub model_calls: u32,
        /// Tool calls so far.
        pub tool_calls: u32,
        /// Bytes of results so far.
        pub result_bytes: u64,
        /// The classes that its request asked for.
        pub scope: Classes as text,
        /// Milliseconds that it waited for people.
        pub waited_ms: i64,
    }
}

impl Turn {
    /// Returns the person on whose behalf it works, for each kind of principal.
    ///
    /// # Errors
    /// When its row names no person.
    pub fn person(&self) -> Result<PersonId, Error> {
        let error = |_| Error::Stored(format!("{}: its person", self.id));
        self.principal.parse().map_err(error)
    }
}

/// Returns the tools of the calls of an agent that were not refused since a time.
pub fn tools_used_since(tx: &ReadTx<'_>, agent: AgentId, since: i64) -> Result<HashSet<String>, Error> {
    let sql = "SELECT DISTINCT calls.tool FROM calls JOIN turns ON turns.id = calls.turn_id \
               JOIN sessions ON sessions.id = calls.session_id \
               WHERE sessions.agent_id = ?1 AND turns.opened_at >= ?2 AND calls.state <> 'refused'";
    let tools: Vec<String> = tx.list(sql, params![agent, since], |row| row.get(0))?;
    Ok(tools.into_iter().collect())
}

fn is_open(row: &Row<'_>) -> rusqlite::Result<bool> {
    Ok(row.get_ref("state")?.as_str()? == "open")
}

rows! {
    /// The reason why a turn has no output of a model.
    #[derive(Debug, Clone)]
    pub struct Failure {
        /// The code of the failure, one word.
        pub code: String = "failure",
        /// A sentence of the host for the person.
        pub words: String = "failure_words",
    }
}

/// Inserts a turn of `principal` that opens now.
///
/// # Errors
/// When the session has an open turn.
pub fn insert(
    tx: &mut WriteTx<'_>,
    id: TurnId,
    session: SessionId,
    principal: &str,
    kind: Principal,
    scope: Classes,
    deadline: i64,
) -> Result<(), Error> {
    let opened_at = tx.wall();
    tx.execute(
        "INSERT INTO turns (id, session_id, principal, scope, state, opened_at, deadline, model_calls, tool_calls, result_bytes, \
         principal_kind, first_seq) VALUES (?1,?2,?3,?6,'open',?4,?5,0,0,0,?7,(SELECT last_seq FROM sessions WHERE id = ?2))",
        params![id, session, principal, opened_at, deadline, scope.to_string(), kind.name()],
    )?;
    sessions::open_turn(tx, session, id)
}

ironclaw_contract::words! {
    /// The end of a turn; the ledger has its word as the reason.
    pub enum TurnEnd {
        /// A reply answers its messages.
        Replied = "replied",
        /// Its sandbox ended it without a reply.
        Ended = "ended",
        /// Its time was over.
        Deadline = "deadline",
        /// Its person cancelled it.
        Cancelled = "cancelled",
        /// Its session was parked or quarantined.
        Halted = "halted",
        WorkspaceBytes = "workspace_bytes",
        WorkspaceFiles = "workspace_files",
        WorkspaceUnreadable = "workspace_unreadable",
        /// The emergency stop.
        Stopped = "everything was stopped",
        PutToSleep = "put to sleep",
        Shortage = "the machine was short of something",
        HostEnded = "the host ended",
        SandboxEnded = "its sandbox went away",
        /// Its message has no attempt left, and the host ended the last one.
        GivenUpAfterHost = "given up: the host ended",
        /// Its message has no attempt left, and its sandbox ended the last one.
        GivenUpAfterSandbox = "given up: its sandbox went away",
    }
}

ironclaw_contract::stored_as_text!(TurnEnd);

/// Marks an open turn as closed, and returns whether it was open.
pub fn close(tx: &mut WriteTx<'_>, id: TurnId, end: TurnEnd) -> Result<bool, Error> {
    let now = tx.now();
    let sql = "UPDATE turns SET state = 'closed', closed_at = ?2, outcome = ?3, \
               last_seq = (SELECT last_seq FROM sessions WHERE sessions.id = session_id) WHERE id = ?1 AND state = 'open' \
               RETURNING session_id";
    let Some(session) = tx.returning(sql, params![id, now, end], |row| row.get(0))? else { return Ok(false) };
    sessions::close_turn(tx, session)?;
    Ok(true)
}

pub fn open_of(tx: &ReadTx<'_>, session: SessionId) -> Result<Option<Turn>, Error> {
    let sql = "SELECT turns.* FROM sessions JOIN turns ON turns.ordinal = sessions.open_turn WHERE sessions.id = ?1";
    tx.find(sql, [session], Turn::read)
}

pub fn every_open(tx: &ReadTx<'_>) -> Result<Vec<Turn>, Error> {
    let sql = "SELECT turns.* FROM sessions JOIN turns ON turns.ordinal = open_turn WHERE open_turn IS NOT NULL";
    tx.list(sql, [], Turn::read)
}

pub fn find(tx: &ReadTx<'_>, id: TurnId) -> Result<Option<Turn>, Error> {
    tx.find("SELECT * FROM turns WHERE id = ?1", [id], Turn::read)
}

/// Returns those of these turns that work for this principal.
pub fn working_for(tx: &ReadTx<'_>, turns: &HashSet<TurnId>, principal: &str) -> Result<HashSet<TurnId>, Error> {
    let sql = "SELECT id FROM turns WHERE id IN (SELECT value FROM json_each(?1)) AND principal = ?2";
    tx.list(sql, params![json!(turns).to_string(), principal], |row| row.get("id"))
}

/// Returns the number of a turn among all turns.
pub fn ordinal(tx: &ReadTx<'_>, id: TurnId) -> Result<Option<i64>, Error> {
    tx.find("SELECT ordinal FROM turns WHERE id = ?1", [id], |row| row.get(0))
}

/// Returns the time when the turn of this ordinal was opened.
pub fn opened_at(tx: &ReadTx<'_>, ordinal: i64) -> Result<Option<i64>, Error> {
    tx.find("SELECT opened_at FROM turns WHERE ordinal = ?1", [ordinal], |row| row.get(0))
}

/// Counts a request to the model before it is sent, because a failed request may cost just as much.
pub fn count_model_call(tx: &mut WriteTx<'_>, turn: TurnId) -> Result<(), Error> {
    tx.execute("UPDATE turns SET model_calls = model_calls + 1 WHERE id = ?1", [turn]).map(drop)
}

/// Counts the calls of an output.
pub fn count_tool_calls(tx: &mut WriteTx<'_>, turn: TurnId, calls: usize) -> Result<(), Error> {
    tx.execute("UPDATE turns SET tool_calls = tool_calls + ?2 WHERE id = ?1", params![turn, calls as i64]).map(drop)
}

/// Counts the bytes of a result.
pub fn count_result(tx: &mut WriteTx<'_>, turn: TurnId, bytes: usize) -> Result<(), Error> {
    tx.execute("UPDATE turns SET result_bytes = result_bytes + ?2 WHERE id = ?1", params![turn, bytes as i64]).map(drop)
}

/// Records why a turn has no output of a model: a code, and a sentence of the host for the person.
pub fn record_model_failure(tx: &mut WriteTx<'_>, turn: TurnId, code: &'static str, words: &str) -> Result<(), Error> {
    let sql = "UPDATE turns SET failure = ?2, failure_words = ?3 WHERE id = ?1";
    tx.execute(sql, params![turn, code, words]).map(drop)
}

/// Deletes the recorded failure of a turn, because a later request had an output.
pub fn clear_failure(tx: &mut WriteTx<'_>, turn: TurnId) -> Result<(), Error> {
    let sql = "UPDATE turns SET failure = NULL, failure_words = NULL WHERE id = ?1 AND failure IS NOT NULL";
    tx.execute(sql, [turn]).map(drop)
}

/// Returns the reason why the last request of a turn to a model had no output, in the host's words; `None` if it had one.
pub fn failure(tx: &ReadTx<'_>, turn: TurnId) -> Result<Option<String>, Error> {
    Ok(tx.find("SELECT failure_words FROM turns WHERE id = ?1", [turn], |row| row.get(0))?.flatten())
}

/// Returns the end of a closed turn.
pub fn end_of(tx: &ReadTx<'_>, turn: TurnId) -> Result<Option<TurnEnd>, Error> {
    Ok(tx.find("SELECT outcome FROM turns WHERE id = ?1", [turn], |row| row.get(0))?.flatten())
}

/// Returns the code and the sentence of the recorded failure of a turn.
pub fn coded_failure(tx: &ReadTx<'_>, turn: TurnId) -> Result<Option<Failure>, Error> {
    let sql =
        "SELECT failure, failure_words FROM turns WHERE id = ?1 AND failure IS NOT NULL AND failure_words IS NOT NULL";
    tx.find(sql, [turn], Failure::read)
}

/// Returns whether the last request of a turn to a model failed.
pub fn has_failed(tx: &ReadTx<'_>, turn: TurnId) -> Result<bool, Error> {
    let failed = tx.find("SELECT failure IS NOT NULL FROM turns WHERE id = ?1", [turn], |row| row.get(0))?;
    Ok(failed.unwrap_or(false))
}

rows! {
    /// The judgement of a call, as recorded.
    #[derive(Debug, Clone)]
    pub struct CallJudgement {
        /// Its class; `None` for a refused call.
        pub class: Option<Class> as class_of_call,
        /// The code of a refused call; `None` also for a code of an earlier version.
        pub code: Option<DenialCode> as code_of_call,
        /// The answers of the stages.
        pub stages: String,
        /// The bound that is reached, canonical JSON.
        pub bound: Option<String>,
    }
}

fn class_of_call(row: &Row<'_>) -> rusqlite::Result<Option<Class>> {
    Ok(row.get_ref("class")?.as_str()?.parse().ok())
}

fn code_of_call(row: &Row<'_>) -> rusqlite::Result<Option<DenialCode>> {
    Ok(row.get_ref("code")?.as_str()?.parse().ok())
}

/// Keeps a use of an allowance for a permitted call.
pub fn promise(tx: &mut WriteTx<'_>, call: CallId, allowance: i64) -> Result<(), Error> {
    tx.execute("UPDATE calls SET allowance = ?2 WHERE id = ?1", params![call, allowance]).map(drop)
}

/// Returns the recorded judgement of a call.
pub fn judgement_of(tx: &ReadTx<'_>, id: CallId) -> Result<Option<CallJudgement>, Error> {
    tx.find("SELECT class, code, stages, bound FROM calls WHERE id = ?1", [id], CallJudgement::read)
}

/// A judged call to insert.
#[derive(Debug, Clone, Copy)]
pub struct NewCall<'a> {
    pub id: CallId,
    pub session: SessionId,
    pub turn: TurnId,
    /// The output that names it.
    pub output: ItemId,
    /// Its position among the calls of that output.
    pub position: usize,
    pub tool: &'a str,
    /// Its class; `None` for a refused call.
    pub class: Option<Class>,
    /// The place where it runs; `None` for a refused call.
    pub runs: Option<Runs>,
    /// Digest of its arguments.
    pub digest: Digest,
    /// `Permitted` or `Refused`.
    pub state: CallState,
    /// The code of a refused call.
    pub code: Option<DenialCode>,
    /// The answers of the stages of its judgement.
    pub stages: &'a str,
    /// The bound that is reached, of a refused call.
    pub bound: Option<&'a Bound>,
}

/// Inserts a judged call.
pub fn insert_call(tx: &mut WriteTx<'_>, new: &NewCall<'_>) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO calls (id, session_id, turn_id, output_item, position, tool, class, runs, digest, state, code, stages, \
         bound) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)",
        params![
            new.id,
            new.session,
            new.turn,
            new.output,
            new.position as i64,
            new.tool,
            new.class.map_or("", Class::name),
            new.runs.map_or("", Runs::name),
            new.digest,
            new.state,
            new.code.map_or("", DenialCode::name),
            new.stages,
            new.bound.map(canonical::to_string)
        ],
    )?;
    Ok(())
}

pub fn find_call(tx: &ReadTx<'_>, id: CallId) -> Result<Option<CallRow>, Error> {
    tx.find("SELECT * FROM calls WHERE id = ?1", [id], CallRow::read)
}

/// Returns the call of a session with this result: an item of the turn, or the message of a late call.
pub fn find_call_by_result(tx: &ReadTx<'_>, session: SessionId, result: ItemId) -> Result<Option<CallRow>, Error> {
    let sql = "SELECT * FROM calls WHERE session_id = ?1 AND result_item = ?2";
    tx.find(sql, params![session, result], CallRow::read)
}

/// Returns the calls of a session in outputs that are numbered up to `upto`, the newest first, at most `limit`.
pub fn calls_in_session(tx: &ReadTx<'_>, session: SessionId, upto: u64, limit: usize) -> Result<Vec<CallRow>, Error> {
    let sql = "SELECT c.* FROM calls c JOIN items i ON i.id = c.output_item \
               WHERE c.session_id = ?1 AND i.seq <= ?2 ORDER BY i.seq DESC LIMIT ?3";
    tx.list(sql, params![session, upto as i64, limit as i64], CallRow::read)
}

/// Returns the calls of a tool in a session that are done, at most `limit`.
pub fn done_calls(tx: &ReadTx<'_>, session: SessionId, tool: &str, limit: usize) -> Result<Vec<CallRow>, Error> {
    let sql = "SELECT * FROM calls WHERE session_id = ?1 AND tool = ?2 AND state = 'done' ORDER BY rowid DESC LIMIT ?3";
    tx.list(sql, params![session, tool, limit as i64], CallRow::read)
}

/// Sets the one result of a permitted call, with its outcome.
///
/// Returns false and changes nothing if the call already has a result or is no longer permitted.
pub fn settle_call(tx: &mut WriteTx<'_>, id: CallId, result: ItemId, outcome: CallOutcome) -> Result<bool, Error> {
    let sql = "UPDATE calls SET state = ?3, result_item = ?2 WHERE id = ?1 AND state IN ('permitted', 'running') AND result_item IS NULL";
    Ok(tx.execute(sql, params![id, result, outcome.state()])? == 1)
}

/// Marks a permitted or approved call as running, and returns whether it was one. A call runs once.
pub fn start_call(tx: &mut WriteTx<'_>, id: CallId) -> Result<bool, Error> {
    let sql = "UPDATE calls SET state = 'running' WHERE id = ?1 AND state IN ('permitted', 'asked') AND runs = 'await'";
    Ok(tx.execute(sql, [id])? == 1)
}

/// Records the result of a call that still waits for people: the text that it waits.
pub fn set_pending_result(tx: &mut WriteTx<'_>, id: CallId, result: ItemId) -> Result<(), Error> {
    let sql = "UPDATE calls SET result_item = ?2 WHERE id = ?1 AND state = 'asked' AND result_item IS NULL";
    tx.execute(sql, params![id, result]).map(drop)
}

/// Ends a call that people approved and that its model makes again. Returns whether it waited.
pub fn release_call(tx: &mut WriteTx<'_>, id: CallId) -> Result<bool, Error> {
    Ok(tx.execute("UPDATE calls SET state = 'void' WHERE id = ?1 AND state = 'asked'", [id])? == 1)
}

/// Ends a call that ran after its turn, and returns whether it was running.
pub fn end_late_call(tx: &mut WriteTx<'_>, id: CallId, state: CallState) -> Result<bool, Error> {
    Ok(tx.execute("UPDATE calls SET state = ?2 WHERE id = ?1 AND state = 'running'", params![id, state])? == 1)
}

/// Sets the result of a late call, which said that it waits, to the message with its outcome, or that of a lost call to the attempts of a
/// server.
pub fn set_late_result(tx: &mut WriteTx<'_>, id: CallId, message: ItemId) -> Result<(), Error> {
    tx.execute("UPDATE calls SET result_item = ?2 WHERE id = ?1", params![id, message]).map(drop)
}

/// Adds to the milliseconds that a turn waited for people, and moves its deadline.
pub fn add_wait(tx: &mut WriteTx<'_>, turn: TurnId, ms: i64) -> Result<(), Error> {
    tx.execute(
        "UPDATE turns SET waited_ms = waited_ms + ?2, deadline = deadline + ?2 WHERE id = ?1",
        params![turn, ms],
    )?;
    Ok(())
}

/// Returns the calls of a turn with their judgements, in their order.
pub fn calls_of(tx: &ReadTx<'_>, turn: TurnId) -> Result<Vec<(CallRow, CallJudgement)>, Error> {
    let sql =
        "SELECT c.* FROM calls c JOIN items i ON i.id = c.output_item WHERE c.turn_id = ?1 ORDER BY i.seq, c.position";
    tx.list(sql, [turn], |row| {
        let judgement = CallJudgement::read(row)?;
        Ok((CallRow::read(row)?, judgement))
    })
}

/// Returns whether an equal call with an effect outside may have happened in another turn since the messages of this call's turn were
/// sent. If the record no longer has them, the message counts that its approval request names, and without it every turn.
pub fn may_have_happened(tx: &ReadTx<'_>, call: &CallRow) -> Result<bool, Error> {
    // Turns from before the numbers have the one at their end.
    let sql = "SELECT EXISTS (SELECT 1 FROM calls c JOIN turns t ON t.id = c.turn_id \
               WHERE c.session_id = ?1 AND c.digest = ?2 AND c.turn_id <> ?3 AND c.runs = 'await' AND c.class <> 'read' \
               AND c.state IN ('running', 'unknown', 'done', 'failed', 'queued') \
               AND coalesce(t.first_seq, t.last_seq) >= coalesce(\
               (SELECT min(m.seq) FROM messages m \
               WHERE m.session_id = ?1 AND m.id IN (SELECT value FROM turns, json_each(message_ids) WHERE turns.id = ?3)), \
               (SELECT min(m.seq) FROM waiting w JOIN messages m ON m.id = w.root WHERE m.session_id = ?1 AND w.call_id = ?4), \
               0))";
    tx.get(sql, params![call.session, call.digest, call.turn, call.id], |row| row.get(0))
}

/// Marks a call as refused with a code, because it was judged again before it ran. The end of its request may have refused it already.
pub fn refuse_call(
    tx: &mut WriteTx<'_>,
    id: CallId,
    code: DenialCode,
    stages: &str,
    item: ItemId,
) -> Result<(), Error> {
    let sql = "UPDATE calls SET state = 'refused', code = ?2, stages = ?3, result_item = ?4 WHERE id = ?1 AND state IN ('permitted', 'asked', 'refused')";
    tx.execute(sql, params![id, code.name(), stages, item]).map(drop)
}

/// Marks a call that has not begun as refused with a code, before it has the text of its refusal. Returns whether it was one.
pub fn refuse_before_result(tx: &mut WriteTx<'_>, id: CallId, code: DenialCode) -> Result<bool, Error> {
    let sql = "UPDATE calls SET state = 'refused', code = ?2 WHERE id = ?1 AND state IN ('permitted', 'asked')";
    Ok(tx.execute(sql, params![id, code.name()])? == 1)
}

/// Marks a call that waited for people as refused with a code, if no open turn waits for it: the turn refuses such a call itself.
///
/// Returns whether it was one.
pub fn refuse_late_call(tx: &mut WriteTx<'_>, id: CallId, code: DenialCode) -> Result<bool, Error> {
    let sql = "UPDATE calls SET state = 'refused', code = ?2 WHERE id = ?1 AND state = 'asked' \
               AND (result_item IS NOT NULL OR EXISTS (SELECT 1 FROM turns WHERE turns.id = turn_id AND turns.state = 'closed'))";
    Ok(tx.execute(sql, params![id, code.name()])? == 1)
}

/// Records the sealed refusal of a refused call.
pub fn set_call_refusal(tx: &mut WriteTx<'_>, id: CallId, result: ItemId) -> Result<(), Error> {
    tx.execute("UPDATE calls SET result_item = ?2 WHERE id = ?1 AND state = 'refused'", params![id, result]).map(drop)
}

/// Ends the calls of a turn without a result: calls that run in the sandbox get the state `local`, and calls that were running become
/// `unknown`. The host records the start of every other call, so those that have not begun become `void`. Returns those that were
/// running.
pub fn end_calls(tx: &mut WriteTx<'_>, turn: TurnId, local: CallState) -> Result<Vec<CallRow>, Error> {
    let running = tx.list("SELECT * FROM calls WHERE turn_id = ?1 AND state = 'running'", [turn], CallRow::read)?;
    tx.execute(
        "UPDATE calls SET state = CASE WHEN state = 'running' THEN 'unknown' WHEN runs = 'local' THEN ?2 ELSE 'void' END \
         WHERE turn_id = ?1 AND state IN ('permitted', 'running')",
        params![turn, local],
    )?;
    Ok(running)
}

/// Returns the id of the session's open turn.
pub fn open_id(tx: &ReadTx<'_>, session: SessionId) -> Result<Option<TurnId>, Error> {
    let sql = "SELECT turns.id FROM sessions JOIN turns ON turns.ordinal = open_turn WHERE sessions.id = ?1";
    tx.find(sql, [session], |row| row.get(0))
}

/// Returns the sessions with an ended call of one of these tools.
pub fn sessions_with_ended_calls(tx: &ReadTx<'_>, tools: &[&str]) -> Result<Vec<SessionId>, Error> {
    let sql = "SELECT id FROM sessions WHERE state <> 'removed' AND EXISTS (SELECT 1 FROM calls WHERE session_id = sessions.id \
               AND state IN ('done', 'failed') AND tool IN (SELECT value FROM json_each(?1)))";
    tx.list(sql, [ironclaw_contract::canonical::to_string(&tools)], |row| row.get(0))
}

/// Returns the number of open turns.
pub fn open_count(tx: &ReadTx<'_>) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM sessions WHERE open_turn IS NOT NULL";
    tx.get(sql, [], |row| row.get(0))
}

/// Returns the ordinals of at most `most` closed turns that no row refers to, as a JSON array, or `None` if there are none. The newest
/// turn stays, because the next turn is numbered after it.
pub fn forgettable(tx: &ReadTx<'_>, most: i64) -> Result<Option<String>, Error> {
    let sql = "SELECT nullif(json_group_array(key), '[]') FROM \
               (SELECT t.ordinal AS key FROM sessions s JOIN turns t ON t.session_id = s.id \
               WHERE s.pruned_seq >= t.last_seq AND s.pruned_seq > 0 AND t.state = 'closed' \
               AND t.ordinal < (SELECT max(ordinal) FROM turns) \
               AND NOT EXISTS (SELECT 1 FROM json_each(t.message_ids) JOIN messages ON messages.id = value WHERE turn_id = t.id) \
               AND NOT EXISTS (SELECT 1 FROM json_each(t.delivery_ids) JOIN deliveries ON deliveries.id = value) \
               AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.turn_id = t.id) LIMIT ?1)";
    tx.get(sql, [most], |row| row.get(0))
}

/// Deletes the turns among these ordinals, a JSON array, that no message refers to. Returns the number of deleted turns.
pub fn forget(tx: &mut WriteTx<'_>, keys: &str) -> Result<usize, Error> {
    let sql = "DELETE FROM turns WHERE ordinal IN (SELECT value FROM json_each(?1)) \
               AND NOT EXISTS (SELECT 1 FROM json_each(message_ids) JOIN messages ON messages.id = value WHERE turn_id = turns.id)";
    tx.execute(sql, [keys])
}

pub fn delete_of(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), Error> {
    tx.execute("DELETE FROM turns WHERE session_id = ?1", [session])?;
    sessions::close_turn(tx, session)
}

/// Deletes the session's calls that are part of an output numbered up to `upto`.
pub fn delete_calls_upto(tx: &mut WriteTx<'_>, session: SessionId, upto: i64) -> Result<(), Error> {
    let sql = "DELETE FROM calls WHERE session_id = ?1 AND output_item IN (SELECT id FROM items WHERE session_id = ?1 AND seq <= ?2)";
    tx.execute(sql, params![session, upto]).map(drop)
}

pub fn delete_calls_of(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), Error> {
    tx.execute("DELETE FROM calls WHERE session_id = ?1", [session]).map(drop)
}
