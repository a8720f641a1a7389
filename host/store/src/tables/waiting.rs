//! What waits for people, whatever its kind. Tables: `waiting`.
//!
//! [`changes`], [`requests`] and [`questions`] have what only one kind has, in the same table.

pub mod changes;
pub mod questions;
pub mod requests;

use crate::rows::rows;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, CallId, MessageId, PersonId, SessionId, TurnId};
use ironclaw_judge::provenance::Labels;
use ironclaw_operator::{Face, WaitingKind};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::{ToSql, params, params_from_iter};

pub use ironclaw_operator::{WaitingId, WaitingStatus as Status};

rows! {
    /// What every kind has.
    #[derive(Debug, Clone)]
    pub struct Waiting in waiting {
        pub id: WaitingId,
        /// The tool of a call or a question, and the kind of a change.
        pub subject: String,
        pub status: Status,
        /// The agent that asked, or that a change of a person concerns.
        pub agent: Option<AgentId> = "agent_id",
        /// The person on whose behalf.
        pub principal: PersonId,
        /// The session of the agent that asked; `None` if a person asked.
        pub session: Option<SessionId> = "session_id",
        /// The newest turn that asked.
        pub turn: Option<TurnId> = "turn_id",
        /// Its call.
        pub call: Option<CallId> = "call_id",
        /// The message of that turn.
        pub message: Option<MessageId> = "message_id",
        /// The message whose task it is.
        pub root: Option<MessageId>,
        /// Digest of what is asked for.
        pub digest: Digest,
        /// The labels of the output that asked.
        pub labels: Labels as json,
        /// What only its kind has, as canonical JSON.
        pub own: String,
        /// The generation of the record that it belongs to.
        pub generation: u64,
        /// The places in which people were told, with blanks between.
        pub told: String,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Milliseconds since the epoch: the end without a decision, or once a call is approved, of its approvals.
        pub expires_at: i64,
        /// When the host ends it, milliseconds since the epoch; `None`: it does not.
        pub ends_at: Option<i64>,
        /// When people are told that it ends soon, milliseconds since the epoch; `None` once they were told.
        pub remind_at: Option<i64>,
        /// Number of its ledger entry.
        pub asked_seq: u64,
        /// Digest of the page of the last yes.
        pub shown: Option<Digest>,
        /// The last person who decided or answered.
        pub decided_by: Option<PersonId>,
        /// Milliseconds since the epoch.
        pub decided_at: Option<i64>,
        /// Milliseconds since the epoch; `None` before its end.
        pub ended_at: Option<i64>,
        /// A sentence about the outcome, or the reason of a rejection.
        pub outcome: Option<String>,
    }
}

impl Waiting {
    /// Returns what waits for people from `created_at` until `expires_at`, both in milliseconds since the epoch. It comes from no session,
    /// and no person has decided on it.
    pub fn pending(id: impl Into<WaitingId>, principal: PersonId, created_at: i64, expires_at: i64) -> Self {
        Self {
            id: id.into(),
            subject: String::new(),
            status: Status::Pending,
            agent: None,
            principal,
            session: None,
            turn: None,
            call: None,
            message: None,
            root: None,
            digest: Digest::of(b""),
            labels: Labels::NONE,
            own: String::new(),
            generation: 0,
            told: String::new(),
            created_at,
            expires_at,
            ends_at: Some(expires_at),
            remind_at: None,
            asked_seq: 0,
            shown: None,
            decided_by: None,
            decided_at: None,
            ended_at: None,
            outcome: None,
        }
    }
}

/// Inserts what waits from now on.
pub fn insert(tx: &mut WriteTx<'_>, new: &Waiting) -> Result<(), Error> {
    new.insert(tx)
}

/// What a list has.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub statuses: Vec<Status>,
    /// The kind, or all.
    pub kind: Option<WaitingKind>,
    /// The agent, or all.
    pub agent: Option<AgentId>,
    /// The principal, or all.
    pub principal: Option<PersonId>,
    /// The largest number for each status.
    pub limit: usize,
}

/// How something ends that waits, or that people approved.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    pub status: Status,
    /// The person who decided, if the end is a decision.
    pub by: Option<DecidedBy>,
    /// A sentence about the outcome, or the reason of a rejection.
    pub outcome: &'a str,
}

/// The person of a decision, and the face on which they made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecidedBy {
    pub person: PersonId,
    pub face: Face,
}

/// A set of what waits: that of a conversation, of an agent or of a person.
#[derive(Debug, Clone, Copy)]
pub enum Scope {
    /// What was asked in this conversation.
    Session(SessionId),
    /// What this agent asked, or what concerns it.
    Agent(AgentId),
    /// What waits on behalf of this person.
    Person(PersonId),
}

impl Scope {
    const fn column(&self) -> &'static str {
        match self {
            Self::Session(_) => "session_id",
            Self::Agent(_) => "agent_id",
            Self::Person(_) => "principal",
        }
    }

    const fn id(&self) -> &dyn ToSql {
        match self {
            Self::Session(id) => id,
            Self::Agent(id) => id,
            Self::Person(id) => id,
        }
    }
}

pub fn find(tx: &ReadTx<'_>, id: WaitingId) -> Result<Option<Waiting>, Error> {
    tx.find("SELECT * FROM waiting WHERE id = ?1", [id], Waiting::read)
}

/// Returns the number of those of a kind that wait for people.
pub fn open_count(tx: &ReadTx<'_>, kind: WaitingKind) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM waiting WHERE status IN ('pending','doubtful') AND kind = ?1";
    tx.get(sql, [kind.prefix()], |row| row.get(0))
}

/// Returns for each status at most the limit of the filter: of those that wait the ones that end soonest, the soonest first, and of the
/// others the newest, the newest first.
pub fn list(tx: &ReadTx<'_>, filter: &Filter) -> Result<Vec<Waiting>, Error> {
    let (kind, limit) = (filter.kind.map(WaitingKind::prefix), filter.limit as i64);
    let kind = kind.as_ref().map(|kind| ("kind", kind as &dyn ToSql));
    let agent = filter.agent.as_ref().map(|id| ("agent_id", id as &dyn ToSql));
    let principal = filter.principal.as_ref().map(|id| ("principal", id as &dyn ToSql));
    let mut all = Vec::new();
    for status in &filter.statuses {
        let mut sql = "SELECT * FROM waiting WHERE status = ?".to_owned();
        let mut values: Vec<&dyn ToSql> = vec![status];
        for (column, value) in [kind, agent, principal].into_iter().flatten() {
            sql += &format!(" AND {column} = ?");
            values.push(value);
        }
        sql +=
            if status.is_open() { " ORDER BY expires_at, ordinal LIMIT ?" } else { " ORDER BY ordinal DESC LIMIT ?" };
        values.push(&limit);
        all.extend(tx.list::<_, Vec<Waiting>>(&sql, params_from_iter(values), Waiting::read)?);
    }
    Ok(all)
}

/// Returns at most `limit` of those whose time ended at `at` or before, earliest first.
pub fn ended(tx: &ReadTx<'_>, at: i64, limit: usize) -> Result<Vec<Waiting>, Error> {
    let sql = "SELECT * FROM waiting WHERE ends_at <= ?1 ORDER BY ends_at LIMIT ?2";
    tx.list(sql, params![at, limit as i64], Waiting::read)
}

/// Returns the next end, milliseconds since the epoch.
pub fn next_end(tx: &ReadTx<'_>) -> Result<Option<i64>, Error> {
    tx.get("SELECT min(ends_at) FROM waiting WHERE ends_at IS NOT NULL", [], |row| row.get(0))
}

/// Returns at most `limit` of those whose people are told at `at` or before that they end soon, earliest first.
pub fn to_remind(tx: &ReadTx<'_>, at: i64, limit: usize) -> Result<Vec<Waiting>, Error> {
    let sql = "SELECT * FROM waiting WHERE remind_at <= ?1 ORDER BY remind_at LIMIT ?2";
    tx.list(sql, params![at, limit as i64], Waiting::read)
}

/// Returns the next time at which people are told that something ends soon, milliseconds since the epoch.
pub fn next_reminder(tx: &ReadTx<'_>) -> Result<Option<i64>, Error> {
    tx.get("SELECT min(remind_at) FROM waiting WHERE remind_at IS NOT NULL", [], |row| row.get(0))
}

/// Records that people were told that it ends soon.
pub fn mark_reminded(tx: &mut WriteTx<'_>, id: WaitingId) -> Result<(), Error> {
    tx.execute("UPDATE waiting SET remind_at = NULL WHERE id = ?1", [id]).map(drop)
}

/// Sets the number of its ledger entry.
pub fn set_asked_seq(tx: &mut WriteTx<'_>, id: WaitingId, seq: u64) -> Result<(), Error> {
    tx.execute("UPDATE waiting SET asked_seq = ?2 WHERE id = ?1", params![id, seq as i64]).map(drop)
}

/// Adds a place in which people were told.
pub fn record_notified(tx: &mut WriteTx<'_>, id: WaitingId, place: &str) -> Result<(), Error> {
    let sql = "UPDATE waiting SET told = trim(told || ' ' || ?2) WHERE id = ?1 AND instr(' ' || told || ' ', ' ' || ?2 || ' ') = 0";
    tx.execute(sql, params![id, place]).map(drop)
}

/// Marks what waits as approved. `by` is the last approver, `shown` the digest of the page that this person read, and `until` the end of the
/// approvals in milliseconds since the epoch; without it they do not end.
pub fn mark_approved(
    tx: &mut WriteTx<'_>,
    id: WaitingId,
    by: PersonId,
    shown: &Digest,
    until: Option<i64>,
) -> Result<(), Error> {
    let now = tx.now();
    let sql = "UPDATE waiting SET status = 'approved', shown = ?2, decided_by = ?3, decided_at = ?4, ends_at = ?5, \
               expires_at = coalesce(?5, expires_at), remind_at = NULL WHERE id = ?1 AND status IN ('pending','doubtful')";
    tx.execute(sql, params![id, shown, by, now, until]).map(drop)
}

/// Ends what waits or is approved, and returns whether it did.
pub fn end(tx: &mut WriteTx<'_>, id: WaitingId, ending: &Ending<'_>) -> Result<bool, Error> {
    let now = tx.now();
    let sql = "UPDATE waiting SET status = ?2, decided_by = coalesce(?3, decided_by), decided_at = iif(?3 IS NULL, decided_at, ?4), \
               ended_at = ?4, outcome = ?5, ends_at = NULL, remind_at = NULL \
               WHERE id = ?1 AND status IN ('pending','doubtful','approved')";
    let Ending { status, by, outcome } = ending;
    let by = by.map(|by| by.person);
    Ok(tx.execute(sql, params![id, status, by, now, outcome])? == 1)
}

/// Marks what waits or is approved as doubtful in this generation of the record, so that a person checks it.
pub fn mark_doubtful(tx: &mut WriteTx<'_>, id: WaitingId, generation: u64, outcome: &str) -> Result<(), Error> {
    let sql = "UPDATE waiting SET status = 'doubtful', generation = ?2, outcome = ?3, shown = NULL, decided_by = NULL, decided_at = NULL, \
               ends_at = NULL, remind_at = NULL WHERE id = ?1";
    tx.execute(sql, params![id, generation as i64, outcome]).map(drop)
}

/// Returns those that wait or are approved, oldest first.
pub fn every_active(tx: &ReadTx<'_>) -> Result<Vec<Waiting>, Error> {
    let sql = "SELECT * FROM waiting WHERE status IN ('pending','doubtful','approved') ORDER BY ordinal";
    tx.list(sql, [], Waiting::read)
}

/// Returns those of a conversation, agent or person that wait or are approved, oldest first.
pub fn active(tx: &ReadTx<'_>, scope: Scope) -> Result<Vec<Waiting>, Error> {
    let column = scope.column();
    let sql = format!(
        "SELECT * FROM waiting WHERE {column} = ?1 AND status IN ('pending','doubtful','approved') ORDER BY ordinal"
    );
    tx.list(&sql, [scope.id()], Waiting::read)
}

/// Deletes those of a conversation, agent or person with their approvals, except for `but`, and returns their ids.
pub fn delete(tx: &mut WriteTx<'_>, scope: Scope, but: Option<WaitingId>) -> Result<Vec<WaitingId>, Error> {
    let column = scope.column();
    let which = format!("FROM waiting WHERE {column} = ?1 AND id IS NOT ?2");
    let ids = tx.list(&format!("SELECT id {which}"), params![scope.id(), but], |row| row.get(0))?;
    tx.execute(&format!("DELETE FROM approvals WHERE subject IN (SELECT id {which})"), params![scope.id(), but])?;
    tx.execute(&format!("DELETE {which}"), params![scope.id(), but])?;
    Ok(ids)
}
