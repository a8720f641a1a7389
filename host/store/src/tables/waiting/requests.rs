//! Approval requests: calls that wait or waited for people. Tables: `waiting`.

use super::{Status, WaitingId};
use crate::rows::rows;
use crate::tables::turns::CallOutcome;
use crate::tables::turns::recent::Whose;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, CallId, ItemId, MessageId, PersonId, RequestId, SessionId, TurnId};
use ironclaw_judge::call::Reason;
use ironclaw_judge::inputs::ArgumentOrigin;
use ironclaw_judge::provenance::Labels;
use ironclaw_judge::{Class, Classes};
use ironclaw_operator::{Decider, DenialCode, RequestReason};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;
use serde::{Deserialize, Serialize};

/// A reason why a call needs people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredReason {
    /// The code of the stage that found it.
    pub code: DenialCode,
    /// True if people with the roles of the policy remove it, and false if the person of the turn does.
    pub by_policy: bool,
    /// The arguments that it concerns.
    pub arguments: Vec<String>,
}

impl From<&Reason> for StoredReason {
    fn from(reason: &Reason) -> Self {
        let by_policy = reason.decider() == Decider::Policy;
        Self { code: reason.code, by_policy, arguments: reason.arguments.clone() }
    }
}

impl StoredReason {
    /// Returns whether this approved reason covers a reason of a later judgement.
    pub fn covers(&self, reason: &Reason) -> bool {
        self.code == reason.code && reason.arguments.iter().all(|argument| self.arguments.contains(argument))
    }

    /// Returns the view for the API.
    pub fn view(&self) -> RequestReason {
        RequestReason {
            reason: self.code,
            meaning: self.code.meaning().to_owned(),
            decider: if self.by_policy { Decider::Policy } else { Decider::Principal },
            arguments: self.arguments.clone(),
        }
    }
}

/// What only a call has.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Own {
    pub class: Class,
    /// The classes that the turn asked for.
    pub scope: Classes,
    pub reasons: Vec<StoredReason>,
    /// The sources of the values that leave.
    pub origins: Vec<ArgumentOrigin>,
}

rows! {
    /// The row of an approval request.
    #[derive(Debug, Clone)]
    pub struct Row in waiting {
        pub id: RequestId,
        pub tool: String = "subject",
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
        /// Digest of tool and arguments.
        pub digest: Digest,
        pub arguments: Vec<u8> = "sealed",
        /// The labels of the output.
        pub labels: Labels as json,
        pub own: Own as json,
        /// The generation of the record.
        pub generation: u64,
        pub status: Status,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Milliseconds since the epoch: the end of the request, or once it is approved, of its approvals.
        pub expires_at: i64,
        /// Milliseconds since the epoch; `None` once its call runs, or it ended.
        pub ends_at: Option<i64>,
        /// The time at which people are told that it expires soon, milliseconds since the epoch; `None` once they were told.
        pub remind_at: Option<i64>,
        /// The number of its ledger entry.
        pub asked_seq: u64,
        /// The person who decided last.
        pub decided_by: Option<PersonId>,
        /// The outcome in words.
        pub outcome: Option<String>,
    }

    /// A request as the bounds count it.
    #[derive(Debug, Clone)]
    pub struct Counted {
        pub status: Status,
        pub tool: String = "subject",
        pub own: Own as json,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Milliseconds since the epoch.
        pub expires_at: i64,
    }

    /// A request as a report counts it.
    #[derive(Debug, Clone)]
    pub struct Reported {
        pub status: Status,
        /// The message whose task it is.
        pub root: MessageId,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Milliseconds since the epoch: the last decision of a person.
        pub decided_at: Option<i64>,
    }

    /// An agent and the person that it works for.
    #[derive(Debug, Clone)]
    pub struct Pair {
        pub agent: AgentId = "agent_id",
        pub person: PersonId = "principal",
    }
}

impl Row {
    /// Returns its id among everything that waits.
    pub const fn waiting_id(&self) -> WaitingId {
        WaitingId::Call(self.id)
    }
}

impl From<CallOutcome> for Status {
    fn from(outcome: CallOutcome) -> Self {
        match outcome {
            CallOutcome::Done => Self::Done,
            CallOutcome::Failed => Self::Failed,
            CallOutcome::Queued => Self::Queued,
            CallOutcome::Unknown => Self::Unknown,
        }
    }
}

/// Inserts an approval request.
pub fn insert(tx: &mut WriteTx<'_>, new: &Row) -> Result<(), Error> {
    new.insert(tx)
}

pub fn find(tx: &ReadTx<'_>, id: impl Into<WaitingId>) -> Result<Option<Row>, Error> {
    tx.find("SELECT * FROM waiting WHERE id = ?1", [id.into()], Row::read)
}

/// Returns the newest request that this call made.
pub fn find_by_call(tx: &ReadTx<'_>, call: CallId) -> Result<Option<Row>, Error> {
    let sql = "SELECT * FROM waiting WHERE call_id = ?1 AND kind = 'req' ORDER BY ordinal DESC LIMIT 1";
    tx.find(sql, [call], Row::read)
}

/// Returns the newest request for an equal call of the same task.
pub fn equal(tx: &ReadTx<'_>, session: SessionId, root: MessageId, digest: Digest) -> Result<Option<Row>, Error> {
    let sql = "SELECT * FROM waiting WHERE session_id = ?1 AND root = ?2 AND digest = ?3 AND kind = 'req' \
               ORDER BY ordinal DESC LIMIT 1";
    tx.find(sql, params![session, root, digest], Row::read)
}

/// Returns the requests that the calls of one output made, in their order.
pub fn list_for_output(tx: &ReadTx<'_>, session: SessionId, output: ItemId) -> Result<Vec<RequestId>, Error> {
    let sql =
        "SELECT id FROM waiting WHERE session_id = ?1 AND output_item = ?2 AND kind = 'req' ORDER BY waiting.ordinal";
    tx.list(sql, params![session, output], |row| row.get(0))
}

/// Returns the requests of a turn, in their order.
pub fn list_for_turn(tx: &ReadTx<'_>, session: SessionId, turn: TurnId) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM waiting WHERE session_id = ?1 AND turn_id = ?2 AND kind = 'req' ORDER BY waiting.ordinal";
    tx.list(sql, params![session, turn], Row::read)
}

/// Returns the requests for calls of a tool by an agent on behalf of a person, in their order.
pub fn list_for_person(tx: &ReadTx<'_>, person: PersonId, agent: AgentId, tool: &str) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM waiting WHERE principal = ?1 AND agent_id = ?2 AND subject = ?3 AND kind = 'req' ORDER BY ordinal";
    tx.list(sql, params![person, agent, tool], Row::read)
}

/// Returns the pending and approved requests whose task began with a message of this sender.
pub fn open_of_sender(tx: &ReadTx<'_>, channel: &str, sender: &str) -> Result<Vec<Row>, Error> {
    // The task of an agent's message began with the message at the start of its chain.
    let sql = "SELECT waiting.* FROM waiting LEFT JOIN agent_messages ON agent_messages.message_id = waiting.root \
               JOIN messages ON messages.id = coalesce(agent_messages.chain, waiting.root) \
               WHERE waiting.status IN ('pending','approved') AND waiting.kind = 'req' AND messages.channel = ?1 \
               AND messages.sender = ?2 ORDER BY waiting.ordinal";
    tx.list(sql, [channel, sender], Row::read)
}

/// Returns the newest requests that their own person approved and whose call has its outcome.
pub fn approved_by_own_person(tx: &ReadTx<'_>, person: PersonId, limit: usize) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM waiting WHERE principal = ?1 AND decided_by = ?1 AND status IN ('done','failed','queued') \
               AND kind = 'req' ORDER BY ordinal DESC LIMIT ?2";
    tx.list(sql, params![person, limit as i64], Row::read)
}

/// Returns the pending requests of an agent on behalf of a person, without those before a reset.
pub fn counted_waiting(tx: &ReadTx<'_>, agent: AgentId, person: PersonId) -> Result<Vec<Counted>, Error> {
    let sql = "SELECT * FROM waiting WHERE status = 'pending' AND agent_id = ?1 AND principal = ?2 AND counts = 1 AND kind = 'req'";
    tx.list(sql, params![agent, person], Counted::read)
}

/// Returns the requests of an agent on behalf of a person since a time, without those before a reset, oldest first.
pub fn counted_since(tx: &ReadTx<'_>, agent: AgentId, person: PersonId, since: i64) -> Result<Vec<Counted>, Error> {
    let sql = "SELECT * FROM waiting WHERE principal = ?2 AND created_at >= ?3 AND agent_id = ?1 AND counts = 1 AND kind = 'req' \
               ORDER BY created_at";
    tx.list(sql, params![agent, person, since], Counted::read)
}

/// Returns the agents and people with requests that may count against a bound: those that wait, and those since a time.
pub fn counted_pairs(tx: &ReadTx<'_>, since: i64) -> Result<Vec<Pair>, Error> {
    let sql = "SELECT agent_id, principal FROM waiting WHERE counts = 1 AND status = 'pending' AND kind = 'req' \
               UNION SELECT agent_id, principal FROM waiting WHERE counts = 1 AND created_at >= ?1 AND kind = 'req'";
    tx.list(sql, [since], Pair::read)
}

/// The requests since `?1`, of the person `?2` and the agent `?3`; null for all. Their numbers follow their times, so the older ones are not read.
const SINCE: &str = "FROM waiting WHERE kind = 'req' AND created_at >= ?1 AND (?2 IS NULL OR principal = ?2) \
                     AND (?3 IS NULL OR agent_id = ?3) AND ordinal > \
                     coalesce((SELECT ordinal FROM waiting WHERE kind = 'req' AND created_at < ?1 ORDER BY ordinal DESC LIMIT 1), 0)";

/// Returns the requests since a time, in their order.
pub fn reported_since(tx: &ReadTx<'_>, since: i64, whose: Whose) -> Result<Vec<Reported>, Error> {
    let sql = format!("SELECT status, root, created_at, decided_at {SINCE} ORDER BY ordinal");
    tx.list(&sql, params![since, whose.person, whose.agent], Reported::read)
}

/// Returns the newest of these requests, the newest first.
pub fn newest_since(tx: &ReadTx<'_>, since: i64, whose: Whose, limit: usize) -> Result<Vec<Row>, Error> {
    let sql = format!("SELECT * {SINCE} ORDER BY ordinal DESC LIMIT ?4");
    tx.list(&sql, params![since, whose.person, whose.agent, limit as i64], Row::read)
}

/// Takes the requests of an agent out of the counts, on behalf of one person or of all; returns the number of those that counted
/// against a bound. Approved requests count against none.
pub fn reset_counts(tx: &mut WriteTx<'_>, agent: AgentId, person: Option<PersonId>) -> Result<u64, Error> {
    let sql = "UPDATE waiting SET counts = 0 WHERE agent_id = ?1 AND counts = 1 AND kind = 'req' \
               AND status IN ('pending','rejected','expired') AND (?2 IS NULL OR principal = ?2)";
    Ok(tx.execute(sql, params![agent, person])? as u64)
}

/// Moves a pending or approved request to a later try at the same call.
pub fn move_to(tx: &mut WriteTx<'_>, id: RequestId, turn: TurnId, call: CallId, output: ItemId) -> Result<(), Error> {
    let sql = "UPDATE waiting SET turn_id = ?2, call_id = ?3, output_item = ?4 WHERE id = ?1";
    tx.execute(sql, params![id, turn, call, output]).map(drop)
}

/// Marks an approved request as running.
pub fn mark_running(tx: &mut WriteTx<'_>, id: RequestId) -> Result<(), Error> {
    let sql = "UPDATE waiting SET status = 'running', ends_at = NULL WHERE id = ?1 AND status = 'approved'";
    tx.execute(sql, [id]).map(drop)
}

/// Sets the outcome of a request whose call ran.
pub fn finish(tx: &mut WriteTx<'_>, call: CallId, outcome: CallOutcome) -> Result<(), Error> {
    let now = tx.now();
    let sql = "UPDATE waiting SET status = ?2, ended_at = ?3 WHERE call_id = ?1 AND status = 'running'";
    tx.execute(sql, params![call, Status::from(outcome), now]).map(drop)
}

/// Marks the requests of a turn as unknown whose calls had begun where the output is judged, and have no result.
pub fn lose_unreported(tx: &mut WriteTx<'_>, turn: TurnId) -> Result<(), Error> {
    let now = tx.now();
    let sql = "UPDATE waiting SET status = 'unknown', ended_at = ?2 WHERE turn_id = ?1 AND status = 'running' \
               AND call_id IN (SELECT id FROM calls WHERE turn_id = ?1 AND runs <> 'await' AND result_item IS NULL)";
    tx.execute(sql, params![turn, now]).map(drop)
}

/// Returns whether an approved call of a message's task is about to run or runs in a session that has no open turn for it.
pub fn is_any_due(tx: &ReadTx<'_>, session: SessionId, root: MessageId) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM waiting JOIN turns ON turns.id = waiting.turn_id WHERE waiting.session_id = ?1 \
               AND waiting.root = ?2 AND waiting.status IN ('approved','running') AND waiting.kind = 'req' AND turns.state = 'closed' \
               AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.id = waiting.call_id AND calls.state = 'void'))";
    tx.get(sql, params![session, root], |row| row.get(0))
}

/// Returns the requests of a message's task, in their order.
pub fn list_for_task(tx: &ReadTx<'_>, session: SessionId, root: MessageId) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM waiting WHERE session_id = ?1 AND root = ?2 AND kind = 'req' ORDER BY ordinal";
    tx.list(sql, params![session, root], Row::read)
}

/// Returns the approved requests whose calls have not begun, at most `limit`, oldest first.
pub fn approved(tx: &ReadTx<'_>, limit: usize) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM waiting WHERE kind = 'req' AND status = 'approved' ORDER BY ordinal LIMIT ?1";
    tx.list(sql, [limit as i64], Row::read)
}

/// Returns the approved requests of a session whose calls have not begun, in their order.
pub fn approved_in_session(tx: &ReadTx<'_>, session: SessionId) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM waiting WHERE session_id = ?1 AND status = 'approved' AND kind = 'req' ORDER BY ordinal";
    tx.list(sql, [session], Row::read)
}

/// Returns the requests whose calls run, or were running at the end of the host.
pub fn running(tx: &ReadTx<'_>) -> Result<Vec<Row>, Error> {
    tx.list("SELECT * FROM waiting WHERE kind = 'req' AND status = 'running' ORDER BY ordinal", [], Row::read)
}
