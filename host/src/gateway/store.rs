//! The record of changes and approvals, with their bounds, digests and ledger entries.
//!
//! Never decides on a change and never applies one. See [`crate::gateway::decide`], and [`ironclaw_store::tables::changes`] for the rows.

mod approvals;
mod generation;
mod row;

pub use row::{concerned, proposed, rule};

pub use approvals::{add_approval, rewrap};
pub use generation::begin_generation;
pub use ironclaw_store::tables::changes::{
    ApprovalRow, Filter, Row, Status, approvals, find, find_similar, list, next_end, partially_approved, use_approval,
    void_approval, waiting,
};
pub use ironclaw_store::tables::facts::generation;

use super::{Checked, Origin, Proposed, Requester};
use crate::channels::notifications;
use crate::registry::policy::Policy;
use crate::registry::{self, Agent, Role, roles};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, ChangeId, PersonId, SessionId};
use ironclaw_contract::seam::change::{Change, Part, Schedule, Skill};
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::changes::{self, Ending, NewChange, Scope};
use ironclaw_store::times::HOUR_MS;
use serde_json::Value;

/// The bound on undecided changes of one agent.
pub const PENDING_OF_AGENT_MAX: i64 = 16;

/// The bound on undecided changes of one person.
pub const PENDING_OF_PERSON_MAX: i64 = 256;

/// The bound on undecided changes of one person who cannot decide on them.
pub const PENDING_OF_MEMBER_MAX: i64 = 16;

/// The bound on undecided changes of one host.
pub const PENDING_MAX: i64 = 1024;

/// The bound on changes that one query returns.
pub const AT_ONCE_MAX: usize = 64;

/// Returns the change of this id, unless it has ended.
pub fn active(tx: &ReadTx<'_>, id: ChangeId) -> Result<Option<Row>, ironclaw_state::Error> {
    Ok(find(tx, id)?.filter(|row| row.status.is_open() || row.status == Status::Approved))
}

/// Returns the change of this id.
///
/// # Errors
/// Refuses an id that no change has.
pub fn known(tx: &ReadTx<'_>, id: ChangeId) -> Result<Row, Denied> {
    find(tx, id)?.ok_or_else(|| unknown(id).into())
}

/// Returns the refusal of an id that no change has. It is the same for a change that a person may not see, so that ids cannot be probed.
pub fn unknown(id: ChangeId) -> Refusal {
    let refusal = Refusal::new(DenialCode::ChangeUnknown, format!("there is no change {id}"));
    refusal.hint("`ironctl change list` shows the changes that wait")
}

/// Returns the next approved change of each agent, and that of the host, oldest first; those that fetch software have an order of their own.
pub fn next_approved(tx: &ReadTx<'_>) -> Result<Vec<Row>, ironclaw_state::Error> {
    changes::approved(tx, AT_ONCE_MAX)
}

/// The result of a submission.
#[derive(Debug, Clone)]
pub struct Submitted {
    pub id: ChangeId,
    /// True if the same request already waits.
    pub again: bool,
    /// The stale change for the same request that this submission withdrew; the caller notifies its requester.
    pub superseded: Option<Box<Row>>,
}

/// Returns a schedule without the time of its request.
fn untimed(schedule: &Schedule) -> Change {
    Change::Schedule(Schedule { from: None, ..schedule.clone() })
}

/// Returns the digest of a request. It leaves out the time, so the same request made twice is one change. The request of another requester
/// is another one, with its own reason and decision.
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
    let payload = match change {
        // The host completes a schedule with the time of its request.
        Change::Schedule(schedule) => untimed(schedule).payload(),
        Change::Skills(skill) => {
            let part = |part: &Part| match part.change() {
                Change::Schedule(schedule) => Part::new(untimed(schedule)).unwrap_or_else(|| part.clone()),
                _ => part.clone(),
            };
            Change::Skills(Skill { parts: skill.parts.iter().map(part).collect(), ..skill.clone() }).payload()
        }
        other => other.payload(),
    };
    let request = serde_json::json!([canonical::RECIPE, change.kind(), agent, requester, principal, session, payload]);
    Digest::of(&canonical::to_vec(&request))
}

/// Records a checked proposal; from then on it waits for a decision.
///
/// # Errors
/// Refuses the proposal if too many changes of the requester, or of the host, wait already.
pub fn propose(tx: &mut WriteTx<'_>, policy: &Policy, checked: Checked) -> Result<Submitted, Denied> {
    record(tx, policy, checked, true)
}

/// Records a checked proposal that the same transaction decides. It never waits, so the bounds on waiting changes do not apply.
///
/// # Errors
/// As [`propose`].
pub fn propose_at_once(tx: &mut WriteTx<'_>, policy: &Policy, checked: Checked) -> Result<Submitted, Denied> {
    record(tx, policy, checked, false)
}

fn record(tx: &mut WriteTx<'_>, policy: &Policy, checked: Checked, waits: bool) -> Result<Submitted, Denied> {
    let Checked { proposed, standing } = &checked;
    let from = RequestedBy::read(tx, proposed)?;
    let digest = digest_of(proposed.agent, &proposed.change, &from.requester, from.principal, from.origin);
    let same = changes::pending_of_digest(tx, digest)?;
    let superseded = match same {
        Some(same) if same.before == standing.before && same.facts == standing.facts && same.expires_at > tx.wall() => {
            return Ok(Submitted { id: same.id, again: true, superseded: None });
        }
        // A stale change can only be withdrawn, because its page is no longer true.
        Some(same) => {
            let outcome =
                "the present setting differs from the time of the request, and the same change was requested again";
            Some(Box::new(end(tx, &same, Status::Withdrawn, None, outcome)?))
        }
        None => None,
    };
    if waits && let Some(refusal) = too_many(tx, &from)? {
        return Err(refusal.into());
    }
    let id = insert(tx, policy, &checked, &from, digest)?;
    let seq = append_proposed(tx, id, &checked, from, digest)?;
    changes::set_asked_seq(tx, id, seq)?;
    Ok(Submitted { id, again: false, superseded })
}

/// The requester, in the form of the row of a change.
struct RequestedBy<'a> {
    requester: String,
    principal: PersonId,
    origin: Option<&'a Origin>,
    /// The bound on their waiting changes.
    pending_max: i64,
}

impl<'a> RequestedBy<'a> {
    fn read(tx: &ReadTx<'_>, proposed: &'a Proposed) -> Result<Self, ironclaw_state::Error> {
        let (requester, principal, origin, pending_max) = match &proposed.requester {
            Requester::Agent { principal, origin } => {
                let agent = proposed
                    .agent
                    .ok_or_else(|| ironclaw_state::Error::Stored("a request of an agent without its id".to_owned()))?;
                (agent.to_string(), *principal, Some(origin), PENDING_OF_AGENT_MAX)
            }
            Requester::Person(person) => (person.to_string(), *person, None, pending_max(tx, *person, proposed.agent)?),
        };
        Ok(Self { requester, principal, origin, pending_max })
    }
}

/// Returns the bound on the waiting changes of a person, by their role on the host or with the agent.
fn pending_max(tx: &ReadTx<'_>, person: PersonId, agent: Option<AgentId>) -> Result<i64, ironclaw_state::Error> {
    let own = agent.map(|agent| roles::role_of(tx, agent, person)).transpose()?.flatten();
    let role = registry::person_by_id(tx, person)?.map(|person| roles::larger(person.role, own));
    Ok(if role.is_some_and(|role| role.covers(Role::Admin)) { PENDING_OF_PERSON_MAX } else { PENDING_OF_MEMBER_MAX })
}

/// Returns the refusal of one more change, if too many changes of the requester or of the host wait.
fn too_many(tx: &ReadTx<'_>, from: &RequestedBy<'_>) -> Result<Option<Refusal>, ironclaw_state::Error> {
    let of_requester = changes::pending_count_of(tx, &from.requester)?;
    let of_all = changes::pending_count(tx)?;
    let remedy = "decide on some of them, or withdraw your own: `ironctl inbox`";
    let (bound, ends_at) = match (of_requester >= from.pending_max, of_all >= PENDING_MAX) {
        (true, _) => {
            let name = "changes of one requester wait for a decision";
            (Bound::new(name, from.pending_max, of_requester, remedy), changes::next_end_of(tx, &from.requester)?)
        }
        (false, true) => {
            let bound = Bound::new("changes of this host wait for a decision", PENDING_MAX, of_all, remedy);
            (bound, changes::next_end(tx)?)
        }
        (false, false) => return Ok(None),
    };
    let ends_at = ends_at.map(ironclaw_ledger::rfc3339);
    Ok(Some(Refusal::over(DenialCode::ChangesTooMany, Bound { ends_at, ..bound })))
}

/// Inserts the row of a change, without the number of its entry in the ledger.
fn insert(
    tx: &mut WriteTx<'_>,
    policy: &Policy,
    Checked { proposed, standing }: &Checked,
    from: &RequestedBy<'_>,
    digest: Digest,
) -> Result<ChangeId, ironclaw_state::Error> {
    let rule = policy.rule(proposed.change.kind());
    let now = tx.wall();
    let expires_at = now + i64::from(rule.expires_hours) * HOUR_MS;
    let new = NewChange {
        id: ChangeId::new(),
        agent: proposed.agent,
        requester: &from.requester,
        principal: from.principal,
        origin: from.origin,
        change: &proposed.change,
        before: &standing.before,
        facts: &standing.facts,
        digest,
        labels: proposed.labels,
        reason: &proposed.reason,
        generation: generation(tx)?,
        expires_at,
        remind_at: notifications::remind_at(now, expires_at),
    };
    changes::insert(tx, &new)?;
    Ok(new.id)
}

/// Appends the ledger entry of a proposed change, and returns its number.
fn append_proposed(
    tx: &mut WriteTx<'_>,
    id: ChangeId,
    Checked { proposed, standing }: &Checked,
    from: RequestedBy<'_>,
    digest: Digest,
) -> Result<u64, ironclaw_state::Error> {
    let mut entry = Entry::new(LedgerEvent::ChangeProposed)
        .with("change", id)
        .with("kind", proposed.change.kind().name())
        .with("digest", digest)
        .with("before_digest", Digest::of(&canonical::to_vec(&standing.before)))
        .with("requester", from.requester)
        .with("principal", from.principal);
    if let Some(agent) = proposed.agent {
        entry = entry.with("agent", agent);
    }
    if let Some(origin) = from.origin {
        entry = entry.session(origin.session).turn(origin.turn).with("call", origin.call);
    }
    entry.append(tx)
}

/// Ends a change that is pending, approved or unknown, makes its unused approvals void, and returns the ended change.
///
/// # Errors
/// Fails if the change has already ended: the caller reads the change in the same transaction before it ends it.
pub fn end(
    tx: &mut WriteTx<'_>,
    row: &Row,
    status: Status,
    by: Option<PersonId>,
    outcome: &str,
) -> Result<Row, ironclaw_state::Error> {
    let now = tx.now();
    let (decided, applied) = (by.map(|_| now), (status == Status::Applied).then_some(now));
    let ending = Ending { status, decided_by: by, decided_at: decided, applied_at: applied, outcome };
    if !changes::end(tx, row.id, &ending)? {
        return Err(ironclaw_state::Error::Stored(format!(
            "{} has already ended, and cannot become {}",
            row.id,
            status.name()
        )));
    }
    changes::void_approvals(tx, row.id)?;
    notifications::withdraw(tx, row.id)?;
    let (entry, word) = match status {
        Status::Applied => (Entry::new(LedgerEvent::ChangeApplied), ""),
        Status::Rejected => (Entry::new(LedgerEvent::ChangeRejected), "a person rejected it"),
        Status::Expired => (Entry::new(LedgerEvent::ChangeExpired), "no decision in time"),
        Status::Withdrawn => (Entry::new(LedgerEvent::ChangeWithdrawn), "it can no longer be decided"),
        Status::Failed => (Entry::new(LedgerEvent::ChangeFailed), "it could not be applied"),
        Status::Pending | Status::Approved | Status::Unknown => {
            return Err(ironclaw_state::Error::Stored(format!(
                "{}: {} is no final status of a change",
                row.id,
                status.name()
            )));
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

/// Records that a change has enough approvals.
pub fn set_approved(
    tx: &mut WriteTx<'_>,
    row: &Row,
    by: PersonId,
    shown: &Digest,
) -> Result<(), ironclaw_state::Error> {
    changes::mark_approved(tx, row.id, by, shown)?;
    notifications::withdraw(tx, row.id)?;
    Entry::new(LedgerEvent::ChangeApproved)
        .with("change", row.id)
        .with("kind", row.kind.name())
        .with("shown", *shown)
        .append(tx)?;
    Ok(())
}

/// Returns undecided changes that have expired.
pub fn expired(tx: &ReadTx<'_>) -> Result<Vec<Row>, ironclaw_state::Error> {
    changes::expired(tx, tx.expiry_time(), AT_ONCE_MAX)
}

/// Erases the changes that a conversation requested, with their text. The ledger keeps the requests and outcomes as digests.
pub fn erase_of_session(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), ironclaw_state::Error> {
    erase(tx, Scope::Session(session), "the conversation was removed", None)
}

/// Erases the changes that concern an agent or that it requested, except for the change that removes it.
pub fn erase_of_agent(tx: &mut WriteTx<'_>, agent: AgentId, by: ChangeId) -> Result<(), ironclaw_state::Error> {
    erase(tx, Scope::Agent(agent), "the agent was removed", Some(by))
}

/// Withdraws the open changes on behalf of a person who is removed, and returns the ended changes. The caller notifies their requesters.
pub fn withdraw_of_person(
    tx: &mut WriteTx<'_>,
    person: PersonId,
    by: PersonId,
) -> Result<Vec<Row>, ironclaw_state::Error> {
    let active = changes::active_of(tx, Scope::Person(person), None)?;
    active.iter().map(|row| end(tx, row, Status::Withdrawn, Some(by), "the requester was removed")).collect()
}

fn erase(tx: &mut WriteTx<'_>, of: Scope, why: &str, but: Option<ChangeId>) -> Result<(), ironclaw_state::Error> {
    for row in changes::active_of(tx, of, but)? {
        end(tx, &row, Status::Withdrawn, None, why)?;
    }
    changes::delete_of(tx, of, but)
}

/// Returns the agent of a change from the record.
pub fn agent_of(tx: &ReadTx<'_>, row: &Row) -> Result<Option<Agent>, ironclaw_state::Error> {
    match row.agent {
        Some(agent) => registry::agent_by_id(tx, agent),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::checks::tests::on_record;
    use ironclaw_contract::seam::change::ChangeKind;
    use serde_json::json;

    #[test]
    fn agent_has_a_bound_on_its_waiting_changes_of_its_own() {
        on_record(|tx, scene| {
            let policy = Policy::default();
            let ask = |tx: &mut WriteTx<'_>, by_agent: bool, number: i64| {
                let payload = json!({ "instructions": format!("number {number}") });
                let proposed = match by_agent {
                    true => scene.by_clerk(ChangeKind::Persona, payload),
                    false => scene.by_owner(ChangeKind::Persona, payload),
                };
                let checked = scene.looked(tx, proposed)?;
                propose(tx, &policy, checked).map(drop).map_err(Denied::refusal)
            };
            for number in 0..PENDING_OF_AGENT_MAX {
                ask(tx, true, number).expect("within the bound");
            }
            let refusal = ask(tx, true, PENDING_OF_AGENT_MAX).expect_err("one more");
            assert_eq!(refusal.code, DenialCode::ChangesTooMany);
            ask(tx, false, -1).expect("its person may still ask");
        });
    }
}
