//! The rows of changes and of what people said about them. A row first, then the asking, the deciding and the doing.
//!
//! Never decides anything and never applies anything. Next: `gateway::decide`.

mod approvals;
mod generation;
mod row;

pub use approvals::{Given, approvals, consume, give, rewrap, void, void_one};
pub use generation::{begin_generation, generation};
pub use row::{Row, Status};

use super::kinds::FETCHING;
use super::policy::Policy;
use super::{Checked, Origin, Proposed, Requester};
use crate::refusal::{Denied, Refusal};
use crate::registry::{self, Agent};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, ChangeId, PersonId, SessionId};
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_contract::seam::change::Change;
use ironclaw_ledger::Entry;
use ironclaw_state::{ReadTx, WriteTx};
use row::row;
use rusqlite::{OptionalExtension, Row as SqlRow, ToSql, params, params_from_iter};
use serde_json::Value;

/// Undecided changes of one agent.
pub const PENDING_OF_AGENT_MAX: i64 = 16;

/// Undecided changes of one person.
pub const PENDING_OF_PERSON_MAX: i64 = 256;

/// Undecided changes of one host.
pub const PENDING_MAX: i64 = 1024;

/// Changes that are looked at in one go.
pub const AT_ONCE_MAX: usize = 64;

/// The change of this id.
pub fn find(tx: &ReadTx<'_>, id: ChangeId) -> Result<Option<Row>, ironclaw_state::Error> {
    let sql = "SELECT * FROM changes WHERE id = ?1";
    Ok(tx.db().prepare_cached(sql)?.query_row([id], row).optional()?)
}

/// The change of this id, unless it is at an end.
pub fn active(tx: &ReadTx<'_>, id: ChangeId) -> Result<Option<Row>, ironclaw_state::Error> {
    Ok(find(tx, id)?.filter(|row| row.status.is_open() || row.status == Status::Approved))
}

/// Returns the change of this id.
///
/// # Errors
/// Refuses an id that no change has.
pub fn known(tx: &ReadTx<'_>, id: ChangeId) -> Result<Row, Denied> {
    find(tx, id)?.ok_or_else(|| {
        let refusal = Refusal::new(DenialCode::ChangeUnknown, format!("there is no change {id}"));
        refusal.hint("`ironctl change list` shows what waits").into()
    })
}

/// Which changes are wanted.
#[derive(Debug, Clone)]
pub struct Filter {
    /// Those that stand so.
    pub statuses: Vec<Status>,
    /// Of this agent.
    pub agent: Option<AgentId>,
    /// On behalf of this person.
    pub principal: Option<PersonId>,
    /// So many at most.
    pub limit: usize,
}

/// Those that this version reads. One that it does not must not stand in the way of the others; it is named in the log.
fn readable<T>(rows: impl Iterator<Item = rusqlite::Result<T>>) -> rusqlite::Result<Vec<T>> {
    let mut read = Vec::new();
    for row in rows {
        match row {
            Ok(row) => read.push(row),
            Err(error @ rusqlite::Error::FromSqlConversionFailure(..)) => {
                tracing::error!(%error, "a change in the record is not what this version writes, and is left alone");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// Changes, newest first.
pub fn list(tx: &ReadTx<'_>, filter: &Filter) -> Result<Vec<Row>, ironclaw_state::Error> {
    let agent = filter.agent.as_ref().map(|id| ("agent_id", id as &dyn ToSql));
    let principal = filter.principal.as_ref().map(|id| ("principal", id as &dyn ToSql));
    let mut found = Vec::new();
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
        let mut statement = tx.db().prepare_cached(&sql)?;
        found.append(&mut readable(statement.query_map(params_from_iter(values), numbered)?)?);
    }
    found.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
    found.truncate(filter.limit);
    Ok(found.into_iter().map(|(_, row)| row).collect())
}

fn numbered(found: &SqlRow<'_>) -> rusqlite::Result<(i64, Row)> {
    Ok((found.get("ordinal")?, row(found)?))
}

/// How many changes wait for a person.
pub fn waiting(tx: &ReadTx<'_>) -> Result<u64, ironclaw_state::Error> {
    let sql = "SELECT count(*) FROM changes WHERE status IN ('pending','unknown')";
    Ok(tx.db().prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0))? as u64)
}

/// The approved change of each agent that is to be applied next, and that of the host; oldest first.
pub fn approved(tx: &ReadTx<'_>) -> Result<Vec<Row>, ironclaw_state::Error> {
    let sql = "SELECT * FROM changes WHERE ordinal IN \
               (SELECT min(ordinal) FROM changes WHERE status = 'approved' GROUP BY agent_id, kind = ?2) \
               ORDER BY kind = ?2, ordinal LIMIT ?1";
    let mut statement = tx.db().prepare_cached(sql)?;
    let given = params![AT_ONCE_MAX as i64, FETCHING.name()];
    Ok(readable(statement.query_map(given, row)?)?)
}

/// What was submitted.
#[derive(Debug, Clone)]
pub struct Submitted {
    /// The change.
    pub id: ChangeId,
    /// Whether the same was asked for before and still waits.
    pub again: bool,
    /// One for the same that was withdrawn by this, because what it would alter is not as it was: whoever asked is told.
    pub superseded: Option<Box<Row>>,
}

/// Names who wants what set for whom: two requests for the same by the same are one. Another's is another, with a reason and an
/// answer of its own.
fn digest_of(
    agent: Option<AgentId>,
    change: &Change,
    requester: &str,
    principal: PersonId,
    origin: Option<&Origin>,
) -> Digest {
    let none = || Value::from("");
    let agent = agent.map_or_else(none, Value::from);
    let session = origin.map_or_else(none, |origin| origin.session.into());
    let wish =
        serde_json::json!([canonical::RECIPE, change.kind(), agent, requester, principal, session, change.payload()]);
    Digest::of(&canonical::to_vec(&wish))
}

/// Writes a checked proposal down; from then on it waits for people.
///
/// # Errors
/// Refuses one more from a requester of whom too many wait already.
pub fn propose(tx: &mut WriteTx<'_>, policy: &Policy, checked: Checked) -> Result<Submitted, Denied> {
    write_down(tx, policy, checked, true)
}

/// The same for one that is decided in the same transaction: it waits for nobody, so no bound of what waits holds for it.
///
/// # Errors
/// As [`propose`].
pub fn propose_at_once(tx: &mut WriteTx<'_>, policy: &Policy, checked: Checked) -> Result<Submitted, Denied> {
    write_down(tx, policy, checked, false)
}

fn write_down(tx: &mut WriteTx<'_>, policy: &Policy, checked: Checked, waits: bool) -> Result<Submitted, Denied> {
    let Checked { proposed, standing } = &checked;
    let asking = Asking::of(proposed)?;
    let digest = digest_of(proposed.agent, &proposed.change, &asking.requester, asking.principal, asking.origin);
    let same = "SELECT * FROM changes WHERE digest = ?1 AND status = 'pending'";
    let same = tx.db().prepare_cached(same)?.query_row([digest], row).optional()?;
    let superseded = match same {
        Some(same) if same.before == standing.before && same.facts == standing.facts && same.expires_at > tx.wall() => {
            return Ok(Submitted { id: same.id, again: true, superseded: None });
        }
        // It could be withdrawn only: what it shows is not true any more.
        Some(same) => {
            let outcome = "what it would alter is not as it was; the same was asked for again";
            Some(Box::new(end(tx, &same, Status::Withdrawn, None, outcome)?))
        }
        None => None,
    };
    if waits && let Some(refusal) = too_many(tx, &asking)? {
        return Err(refusal.into());
    }
    let id = insert(tx, policy, &checked, &asking, digest)?;
    let asked = append_proposed(tx, id, &checked, asking, digest)?;
    let sql = "UPDATE changes SET asked_seq = ?2 WHERE id = ?1";
    tx.db().prepare_cached(sql)?.execute(params![id, asked as i64])?;
    Ok(Submitted { id, again: false, superseded })
}

/// Who asks, as the row of a change names them.
struct Asking<'a> {
    requester: String,
    principal: PersonId,
    origin: Option<&'a Origin>,
    /// How many of their changes may wait.
    pending_max: i64,
}

impl<'a> Asking<'a> {
    fn of(proposed: &'a Proposed) -> Result<Self, ironclaw_state::Error> {
        let (requester, principal, origin, pending_max) = match &proposed.requester {
            Requester::Agent { principal, origin } => {
                let agent = proposed
                    .agent
                    .ok_or_else(|| ironclaw_state::Error::Stored("an agent asked that is none".to_owned()))?;
                (agent.to_string(), *principal, Some(origin), PENDING_OF_AGENT_MAX)
            }
            Requester::Person(person) => (person.to_string(), *person, None, PENDING_OF_PERSON_MAX),
        };
        Ok(Self { requester, principal, origin, pending_max })
    }
}

/// Refuses one more change from a requester of whom, or on a host where, too many wait.
fn too_many(tx: &ReadTx<'_>, asking: &Asking<'_>) -> Result<Option<Refusal>, ironclaw_state::Error> {
    let count = |sql: &str, by: &[&str]| -> rusqlite::Result<i64> {
        tx.db().prepare_cached(sql)?.query_row(params_from_iter(by), |row| row.get(0))
    };
    let of_requester =
        count("SELECT count(*) FROM changes WHERE status = 'pending' AND requester = ?1", &[&asking.requester])?;
    let of_all = count("SELECT count(*) FROM changes WHERE status = 'pending'", &[])?;
    let refusal = || {
        let message = format!("{of_requester} requests wait for a decision already");
        Refusal::new(DenialCode::ChangesTooMany, message).hint("decide about those first: `ironctl inbox`")
    };
    Ok((of_requester >= asking.pending_max || of_all >= PENDING_MAX).then(refusal))
}

/// Inserts the row of a change, without the number of its entry in the ledger.
fn insert(
    tx: &ReadTx<'_>,
    policy: &Policy,
    Checked { proposed, standing }: &Checked,
    asking: &Asking<'_>,
    digest: Digest,
) -> Result<ChangeId, ironclaw_state::Error> {
    let kind = proposed.change.kind();
    let (id, now, generation) = (ChangeId::new(), tx.now(), generation(tx)?);
    let expires_at = tx.wall() + i64::from(policy.rule(kind).expires_hours) * 3_600_000;
    tx.db()
        .prepare_cached(
            "INSERT INTO changes (id, kind, agent_id, requester, principal, session_id, turn_id, message_id, call_id, payload, before, \
             facts, digest, labels, reason, generation, status, created_at, expires_at) \
             VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,'pending',?17,?18)",
        )?
        .execute(params![
            id,
            kind.name(),
            proposed.agent,
            asking.requester,
            asking.principal,
            asking.origin.map(|origin| origin.session),
            asking.origin.map(|origin| origin.turn),
            asking.origin.and_then(|origin| origin.message),
            asking.origin.map(|origin| origin.call),
            canonical::to_string(&proposed.change.payload()),
            canonical::to_string(&standing.before),
            canonical::to_string(&standing.facts),
            digest,
            canonical::to_string(&proposed.labels),
            proposed.reason,
            generation as i64,
            now,
            expires_at
        ])?;
    Ok(id)
}

/// Appends the entry of a change that was asked for, and returns its number.
fn append_proposed(
    tx: &mut WriteTx<'_>,
    id: ChangeId,
    Checked { proposed, standing }: &Checked,
    asking: Asking<'_>,
    digest: Digest,
) -> Result<u64, ironclaw_state::Error> {
    let mut entry = Entry::new(LedgerEvent::ChangeProposed)
        .with("change", id)
        .with("kind", proposed.change.kind().name())
        .with("digest", digest)
        .with("before_digest", Digest::of(&canonical::to_vec(&standing.before)))
        .with("requester", asking.requester)
        .with("principal", asking.principal);
    if let Some(agent) = proposed.agent {
        entry = entry.with("agent", agent);
    }
    if let Some(origin) = asking.origin {
        entry = entry.session(origin.session).turn(origin.turn).with("call", origin.call);
    }
    entry.append(tx)
}

/// Moves a change that waits, is approved or is unknown to its end, and gives it as it stands then; its approvals are worth nothing
/// any more, unless they are used.
///
/// # Errors
/// When it is at an end already: whoever ends a change has looked at it in the same transaction.
pub fn end(
    tx: &mut WriteTx<'_>,
    row: &Row,
    status: Status,
    by: Option<PersonId>,
    outcome: &str,
) -> Result<Row, ironclaw_state::Error> {
    let now = tx.now();
    let (decided, applied) = (by.map(|_| now), (status == Status::Applied).then_some(now));
    let sql = "UPDATE changes SET status = ?2, decided_by = coalesce(?3, decided_by), decided_at = coalesce(?4, decided_at), \
               applied_at = ?5, outcome = ?6 WHERE id = ?1 AND status IN ('pending','approved','unknown')";
    let ended = tx.db().prepare_cached(sql)?.execute(params![row.id, status.name(), by, decided, applied, outcome])?;
    if ended == 0 {
        return Err(ironclaw_state::Error::Stored(format!(
            "{} is at an end already, and is not {}",
            row.id,
            status.name()
        )));
    }
    void(tx, row.id)?;
    let (entry, word) = match status {
        Status::Applied => (Entry::new(LedgerEvent::ChangeApplied), ""),
        Status::Rejected => (Entry::new(LedgerEvent::ChangeRejected), "a person said no"),
        Status::Expired => (Entry::new(LedgerEvent::ChangeExpired), "nobody decided in time"),
        Status::Withdrawn => (Entry::new(LedgerEvent::ChangeWithdrawn), "it cannot be decided any more"),
        Status::Failed => (Entry::new(LedgerEvent::ChangeFailed), "it could not be done"),
        Status::Pending | Status::Approved | Status::Unknown => {
            return Err(ironclaw_state::Error::Stored(format!("{}: {} is no end of a change", row.id, status.name())));
        }
    };
    let mut entry = entry.with("change", row.id).with("kind", row.kind.name());
    if let Requester::Agent { origin, .. } = &row.requester {
        entry = entry.session(origin.session).turn(origin.turn);
    }
    if let Some(by) = by {
        entry = entry.with("by", by);
    }
    if !word.is_empty() {
        entry = entry.reason(word);
    }
    entry.append(tx)?;
    Ok(Row {
        status,
        decided_by: by.or(row.decided_by),
        decided_at: decided.or(row.decided_at),
        applied_at: applied,
        outcome: Some(outcome.to_owned()),
        ..row.clone()
    })
}

/// Notes that enough people approved.
pub fn set_approved(
    tx: &mut WriteTx<'_>,
    row: &Row,
    by: PersonId,
    shown: &Digest,
) -> Result<(), ironclaw_state::Error> {
    let sql = "UPDATE changes SET status = 'approved', shown = ?2, decided_by = ?3, decided_at = ?4 WHERE id = ?1";
    tx.db().prepare_cached(sql)?.execute(params![row.id, shown, by, tx.now()])?;
    Entry::new(LedgerEvent::ChangeApproved)
        .with("change", row.id)
        .with("kind", row.kind.name())
        .with("shown", *shown)
        .append(tx)?;
    Ok(())
}

/// Undecided changes whose time is over.
pub fn expired(tx: &ReadTx<'_>) -> Result<Vec<Row>, ironclaw_state::Error> {
    let sql = "SELECT * FROM changes WHERE status = 'pending' AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2";
    let mut statement = tx.db().prepare_cached(sql)?;
    Ok(readable(statement.query_map([tx.wall(), AT_ONCE_MAX as i64], row)?)?)
}

/// Undecided changes of the same kind that concern the same agent.
pub fn find_similar(tx: &ReadTx<'_>, other: &Row) -> Result<Vec<Row>, ironclaw_state::Error> {
    let sql = "SELECT * FROM changes WHERE agent_id IS ?1 AND status = ?2 AND kind = ?3 AND id <> ?4 ORDER BY ordinal";
    let mut statement = tx.db().prepare_cached(sql)?;
    let mut found = Vec::new();
    for status in [Status::Pending, Status::Unknown] {
        let values = params![other.agent, status.name(), other.kind.name(), other.id];
        found.extend(readable(statement.query_map(values, row)?)?);
    }
    Ok(found)
}

/// Undecided changes that somebody approved.
pub fn partially_approved(tx: &ReadTx<'_>) -> Result<Vec<Row>, ironclaw_state::Error> {
    let sql = "SELECT * FROM changes WHERE status = 'pending' AND id IN (SELECT change_id FROM approvals WHERE state = 'live')";
    let mut statement = tx.db().prepare_cached(sql)?;
    Ok(readable(statement.query_map([], row)?)?)
}

/// When the next undecided change is over, milliseconds since the epoch.
pub fn next_end(tx: &ReadTx<'_>) -> Result<Option<i64>, ironclaw_state::Error> {
    let sql = "SELECT min(expires_at) FROM changes WHERE status = 'pending'";
    Ok(tx.db().prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Erases what a conversation asked for, with its words: what it was and what became of it stays in the ledger, as digests.
pub fn erase_of_session(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), ironclaw_state::Error> {
    erase(tx, "session_id", &session, "the conversation was removed", None)
}

/// Erases what was asked for an agent, or by it, but for the change that removes it.
pub fn erase_of_agent(tx: &mut WriteTx<'_>, agent: AgentId, by: ChangeId) -> Result<(), ironclaw_state::Error> {
    erase(tx, "agent_id", &agent, "the agent was removed", Some(by))
}

fn erase(
    tx: &mut WriteTx<'_>,
    column: &str,
    of: &dyn ToSql,
    why: &str,
    but: Option<ChangeId>,
) -> Result<(), ironclaw_state::Error> {
    let open = format!(
        "SELECT * FROM changes WHERE {column} = ?1 AND id IS NOT ?2 AND status IN ('pending','approved','unknown')"
    );
    let mut statement = tx.db().prepare_cached(&open)?;
    let rows: Vec<Row> = readable(statement.query_map(params![of, but], row)?)?;
    drop(statement);
    for row in rows {
        end(tx, &row, Status::Withdrawn, None, why)?;
    }
    let db = tx.db();
    db.execute(
        &format!(
            "DELETE FROM approvals WHERE change_id IN (SELECT id FROM changes WHERE {column} = ?1 AND id IS NOT ?2)"
        ),
        params![of, but],
    )?;
    db.execute(&format!("DELETE FROM changes WHERE {column} = ?1 AND id IS NOT ?2"), params![of, but])?;
    Ok(())
}

/// The agent that a change concerns, as it is now.
pub fn agent_of(tx: &ReadTx<'_>, row: &Row) -> Result<Option<Agent>, ironclaw_state::Error> {
    match row.agent {
        Some(agent) => registry::agent_by_id(tx, agent),
        None => Ok(None),
    }
}
