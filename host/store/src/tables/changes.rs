//! Changes. Tables: `changes`.

mod row;

pub use super::requests::{
    ApprovalRow, approvals, insert_approval, live_tokens, set_token, use_approval, void_all_approvals, void_approval,
    void_approvals,
};
pub use row::{Origin, Requester, Row, Status};

use super::requests;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, ChangeId, PersonId, SessionId};
use ironclaw_contract::seam::change::{Change, ChangeKind};
use ironclaw_judge::provenance::Labels;
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::{Params, ToSql, params, params_from_iter};
use serde_json::Value;

#[derive(Debug, Clone)]
pub struct Filter {
    pub statuses: Vec<Status>,
    /// The agent, or all.
    pub agent: Option<AgentId>,
    /// The principal, or all.
    pub principal: Option<PersonId>,
    /// The largest number of changes.
    pub limit: usize,
}

/// A change to insert.
#[derive(Debug, Clone)]
pub struct NewChange<'a> {
    pub id: ChangeId,
    /// The agent that it concerns.
    pub agent: Option<AgentId>,
    /// The id of the requesting agent or person.
    pub requester: &'a str,
    /// The person on whose behalf it is proposed.
    pub principal: PersonId,
    /// The call that proposed it, if an agent did.
    pub origin: Option<&'a Origin>,
    pub change: &'a Change,
    /// The current value of the same setting.
    pub before: &'a Value,
    /// The current meaning of the names in it.
    pub facts: &'a Value,
    /// Digest of the requester and the request; a repeated request has the same digest.
    pub digest: Digest,
    /// The labels of the output that proposed it.
    pub labels: Labels,
    /// The reason, in the words of the requester.
    pub reason: &'a str,
    /// The generation of the record.
    pub generation: u64,
    /// Milliseconds since the epoch.
    pub expires_at: i64,
    /// The time at which people are told that it expires soon, milliseconds since the epoch.
    pub remind_at: i64,
}

#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    pub status: Status,
    /// The person who decided, if the end is a decision.
    pub decided_by: Option<PersonId>,
    /// The time of the decision in milliseconds since the epoch, if the end is a decision.
    pub decided_at: Option<i64>,
    /// Milliseconds since the epoch.
    pub applied_at: Option<i64>,
    /// A sentence about the outcome.
    pub outcome: &'a str,
}

/// A set of changes: those of a conversation, of an agent or of a person.
#[derive(Debug, Clone, Copy)]
pub enum Scope {
    /// The changes that were proposed in this conversation.
    Session(SessionId),
    /// The changes that concern this agent.
    Agent(AgentId),
    /// The changes on behalf of this person.
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

/// Skips a row that this version cannot read and writes a log line, so that the other rows are read.
fn readable<T>(read: rusqlite::Result<T>) -> rusqlite::Result<Option<T>> {
    match read {
        Ok(row) => Ok(Some(row)),
        Err(error @ rusqlite::Error::FromSqlConversionFailure(..)) => {
            tracing::error!(%error, "cannot read a change in the record; another version wrote it, and it is skipped");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn readable_rows(tx: &ReadTx<'_>, sql: &str, params: impl Params) -> Result<Vec<Row>, Error> {
    let found: Vec<Option<Row>> = tx.list(sql, params, |found| readable(Row::read(found)))?;
    Ok(found.into_iter().flatten().collect())
}

pub fn find(tx: &ReadTx<'_>, id: ChangeId) -> Result<Option<Row>, Error> {
    tx.find("SELECT * FROM changes WHERE id = ?1", [id], Row::read)
}

/// Returns the undecided change of this digest.
pub fn pending_of_digest(tx: &ReadTx<'_>, digest: Digest) -> Result<Option<Row>, Error> {
    tx.find("SELECT * FROM changes WHERE digest = ?1 AND status = 'pending'", [digest], Row::read)
}

/// Returns changes, newest first.
pub fn list(tx: &ReadTx<'_>, filter: &Filter) -> Result<Vec<Row>, Error> {
    let agent = filter.agent.as_ref().map(|id| ("agent_id", id as &dyn ToSql));
    let principal = filter.principal.as_ref().map(|id| ("principal", id as &dyn ToSql));
    let mut all = Vec::new();
    for status in &filter.statuses {
        let mut sql = "SELECT * FROM changes WHERE status = ?".to_owned();
        let status = status.name();
        let mut values: Vec<&dyn ToSql> = vec![&status];
        for (column, value) in agent.into_iter().chain(principal) {
            sql += &format!(" AND {column} = ?");
            values.push(value);
        }
        sql += " ORDER BY ordinal DESC LIMIT ?";
        let limit = filter.limit as i64;
        values.push(&limit);
        let found: Vec<Option<(i64, Row)>> = tx.list(&sql, params_from_iter(values), |found| {
            readable(found.get("ordinal").and_then(|ordinal| Ok((ordinal, Row::read(found)?))))
        })?;
        all.extend(found.into_iter().flatten());
    }
    all.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
    all.truncate(filter.limit);
    Ok(all.into_iter().map(|(_, row)| row).collect())
}

/// Returns the time of the newest applied change of this kind for an agent, milliseconds since the epoch.
pub fn newest_applied(tx: &ReadTx<'_>, agent: AgentId, kind: ChangeKind) -> Result<Option<i64>, Error> {
    let sql = "SELECT max(applied_at) FROM changes WHERE agent_id = ?1 AND status = 'applied' AND kind = ?2";
    tx.get(sql, params![agent, kind.name()], |row| row.get(0))
}

/// Returns the number of changes that wait for a person.
pub fn waiting(tx: &ReadTx<'_>) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM changes WHERE status IN ('pending','unknown')";
    tx.get(sql, [], |row| row.get(0))
}

/// Returns the number of undecided changes.
pub fn pending_count(tx: &ReadTx<'_>) -> Result<i64, Error> {
    tx.get("SELECT count(*) FROM changes WHERE status = 'pending'", [], |row| row.get(0))
}

/// Returns the number of undecided changes of the requester with this id.
pub fn pending_count_of(tx: &ReadTx<'_>, requester: &str) -> Result<i64, Error> {
    let sql = "SELECT count(*) FROM changes WHERE status = 'pending' AND requester = ?1";
    tx.get(sql, [requester], |row| row.get(0))
}

/// Returns the earliest expiry of an undecided change of the requester with this id, milliseconds since the epoch.
pub fn next_end_of(tx: &ReadTx<'_>, requester: &str) -> Result<Option<i64>, Error> {
    let sql = "SELECT min(expires_at) FROM changes WHERE status = 'pending' AND requester = ?1";
    tx.get(sql, [requester], |row| row.get(0))
}

/// Returns at most `limit` approved changes, oldest first: the oldest one of each agent and of the host, and after all of these the
/// oldest one of each that fetches software, as `gateway::kinds::fetches` says.
pub fn approved(tx: &ReadTx<'_>, limit: usize) -> Result<Vec<Row>, Error> {
    let sql = "WITH waiting AS (SELECT ordinal, agent_id, kind = 'packages' OR (kind = 'mcp_register' AND \
               json_type(payload, '$.packages') IS NOT NULL) AS fetches FROM changes WHERE status = 'approved') \
               SELECT changes.* FROM changes JOIN waiting USING (ordinal) WHERE ordinal IN \
               (SELECT min(ordinal) FROM waiting GROUP BY agent_id, fetches) ORDER BY fetches, ordinal LIMIT ?1";
    readable_rows(tx, sql, [limit as i64])
}

/// Returns at most `limit` undecided changes that expired at `at` or before, earliest expiry first.
pub fn expired(tx: &ReadTx<'_>, at: i64, limit: usize) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM changes WHERE status = 'pending' AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2";
    readable_rows(tx, sql, [at, limit as i64])
}

/// Returns the other changes of this kind and agent that wait for a person: first the pending ones, then the unknown ones, each
/// oldest first.
pub fn find_similar(tx: &ReadTx<'_>, other: &Row) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM changes WHERE agent_id IS ?1 AND status = ?2 AND kind = ?3 AND id <> ?4 ORDER BY ordinal";
    let mut found = Vec::new();
    for status in [Status::Pending, Status::Unknown] {
        found.extend(readable_rows(tx, sql, params![other.agent, status.name(), other.kind.name(), other.id])?);
    }
    Ok(found)
}

/// Returns the undecided changes with an unused approval.
pub fn partially_approved(tx: &ReadTx<'_>) -> Result<Vec<Row>, Error> {
    let sql =
        "SELECT * FROM changes WHERE status = 'pending' AND id IN (SELECT subject FROM approvals WHERE state = 'live')";
    readable_rows(tx, sql, [])
}

/// Returns the earliest expiry of an undecided change, milliseconds since the epoch.
pub fn next_end(tx: &ReadTx<'_>) -> Result<Option<i64>, Error> {
    tx.get("SELECT min(expires_at) FROM changes WHERE status = 'pending'", [], |row| row.get(0))
}

/// Returns the next time at which people are told that an undecided change expires soon, milliseconds since the epoch.
pub fn next_reminder(tx: &ReadTx<'_>) -> Result<Option<i64>, Error> {
    tx.get("SELECT min(remind_at) FROM changes WHERE remind_at IS NOT NULL", [], |row| row.get(0))
}

/// Returns at most `limit` undecided changes whose people are told at `at` or before that they expire soon, earliest first.
pub fn to_remind(tx: &ReadTx<'_>, at: i64, limit: usize) -> Result<Vec<Row>, Error> {
    let sql = "SELECT * FROM changes WHERE remind_at <= ?1 AND status = 'pending' ORDER BY remind_at LIMIT ?2";
    readable_rows(tx, sql, params![at, limit as i64])
}

/// Records that people were told that a change expires soon.
pub fn mark_reminded(tx: &mut WriteTx<'_>, id: ChangeId) -> Result<(), Error> {
    tx.execute("UPDATE changes SET remind_at = NULL WHERE id = ?1", [id]).map(drop)
}

/// Records the same for every change whose time is `at` or before.
pub fn mark_all_reminded(tx: &mut WriteTx<'_>, at: i64) -> Result<(), Error> {
    tx.execute("UPDATE changes SET remind_at = NULL WHERE remind_at <= ?1", [at]).map(drop)
}

/// Inserts an undecided change, without the number of its ledger entry.
pub fn insert(tx: &mut WriteTx<'_>, new: &NewChange<'_>) -> Result<(), Error> {
    let sql = "INSERT INTO changes (id, kind, agent_id, requester, principal, session_id, turn_id, message_id, call_id, payload, before, \
               facts, digest, labels, reason, generation, status, created_at, expires_at, remind_at) \
               VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,'pending',?17,?18,?19)";
    let now = tx.now();
    tx.execute(
        sql,
        params![
            new.id,
            new.change.kind().name(),
            new.agent,
            new.requester,
            new.principal,
            new.origin.map(|origin| origin.session),
            new.origin.map(|origin| origin.turn),
            new.origin.and_then(|origin| origin.message),
            new.origin.map(|origin| origin.call),
            canonical::to_string(&new.change.payload()),
            canonical::to_string(new.before),
            canonical::to_string(new.facts),
            new.digest,
            canonical::to_string(&new.labels),
            new.reason,
            new.generation as i64,
            now,
            new.expires_at,
            new.remind_at
        ],
    )?;
    Ok(())
}

/// Sets the number of the ledger entry for the proposal of a change.
pub fn set_asked_seq(tx: &mut WriteTx<'_>, id: ChangeId, seq: u64) -> Result<(), Error> {
    tx.execute("UPDATE changes SET asked_seq = ?2 WHERE id = ?1", params![id, seq as i64]).map(drop)
}

/// Marks a change as approved; `by` is the last approver, and `shown` the digest of the review page that this person read.
pub fn mark_approved(tx: &mut WriteTx<'_>, id: ChangeId, by: PersonId, shown: &Digest) -> Result<(), Error> {
    let now = tx.now();
    let sql = "UPDATE changes SET status = 'approved', shown = ?2, decided_by = ?3, decided_at = ?4, \
               remind_at = NULL WHERE id = ?1";
    tx.execute(sql, params![id, shown, by, now]).map(drop)
}

/// Marks a change as ended, and returns whether it was active before.
pub fn end(tx: &mut WriteTx<'_>, id: ChangeId, ending: &Ending<'_>) -> Result<bool, Error> {
    let sql = "UPDATE changes SET status = ?2, decided_by = coalesce(?3, decided_by), decided_at = coalesce(?4, decided_at), \
               applied_at = ?5, outcome = ?6, remind_at = NULL WHERE id = ?1 AND status IN ('pending','approved','unknown')";
    let Ending { status, decided_by, decided_at, applied_at, outcome } = ending;
    Ok(tx.execute(sql, params![id, status.name(), decided_by, decided_at, applied_at, outcome])? > 0)
}

/// Marks every undecided or approved change as unknown in this generation of the record, so that a person checks it. Returns the
/// number of these changes.
pub fn mark_unknown(tx: &mut WriteTx<'_>, generation: u64, outcome: &str) -> Result<usize, Error> {
    let sql = "UPDATE changes SET status = 'unknown', generation = ?1, outcome = ?2, shown = NULL, decided_by = NULL, decided_at = NULL, \
               remind_at = NULL WHERE status IN ('pending','approved')";
    tx.execute(sql, params![generation as i64, outcome])
}

/// Returns the active changes of a conversation, agent or person, except for `but`.
pub fn active_of(tx: &ReadTx<'_>, of: Scope, but: Option<ChangeId>) -> Result<Vec<Row>, Error> {
    let column = of.column();
    let sql = format!(
        "SELECT * FROM changes WHERE {column} = ?1 AND id IS NOT ?2 AND status IN ('pending','approved','unknown')"
    );
    readable_rows(tx, &sql, params![of.id(), but])
}

/// Returns the number of changes that a person asked for, or that were asked for on their behalf, or that they decided.
pub fn count_of_person(tx: &ReadTx<'_>, person: PersonId) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM changes WHERE principal = ?1 OR decided_by = ?1";
    tx.get(sql, [person], |row| row.get(0))
}

/// Deletes the changes of a conversation, agent or person with their approvals, except for `but`.
pub fn delete_of(tx: &mut WriteTx<'_>, of: Scope, but: Option<ChangeId>) -> Result<(), Error> {
    let column = of.column();
    let sql = format!("SELECT id FROM changes WHERE {column} = ?1 AND id IS NOT ?2");
    let ids: Vec<ChangeId> = tx.list(&sql, params![of.id(), but], |row| row.get(0))?;
    for id in ids {
        requests::delete_approvals(tx, id)?;
    }
    let sql = format!("DELETE FROM changes WHERE {column} = ?1 AND id IS NOT ?2");
    tx.execute(&sql, params![of.id(), but]).map(drop)
}
