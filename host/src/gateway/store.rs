//! Writes changes and what people said about them, with their bounds, digests and entries in the ledger.
//!
//! Never decides about a change and never applies one. Next: `gateway::decide`, and `tables::changes` for the rows.

mod approvals;
mod generation;
mod row;

pub use crate::tables::changes::{
    ApprovalRow, Filter, Row, Status, approvals, find, find_similar, list, next_end, partially_approved, use_approval,
    void_approval, waiting,
};
pub use crate::tables::facts::generation;
pub use approvals::{give, rewrap};
pub use generation::begin_generation;

use super::kinds::FETCHING;
use super::policy::Policy;
use super::{Checked, Origin, Proposed, Requester};
use crate::refusal::{Denied, Refusal};
use crate::registry::{self, Agent};
use crate::tables::changes::{self, Ending, NewChange, Scope};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, ChangeId, PersonId, SessionId};
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_contract::seam::change::Change;
use ironclaw_ledger::Entry;
use ironclaw_state::{ReadTx, WriteTx};
use serde_json::Value;

/// Undecided changes of one agent.
pub const PENDING_OF_AGENT_MAX: i64 = 16;

/// Undecided changes of one person.
pub const PENDING_OF_PERSON_MAX: i64 = 256;

/// Undecided changes of one host.
pub const PENDING_MAX: i64 = 1024;

/// Changes that are looked at in one go.
pub const AT_ONCE_MAX: usize = 64;

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

/// The approved change of each agent that is to be applied next, and that of the host; oldest first.
pub fn approved(tx: &ReadTx<'_>) -> Result<Vec<Row>, ironclaw_state::Error> {
    changes::approved(tx, FETCHING, AT_ONCE_MAX)
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
    let same = changes::pending_of_digest(tx, digest)?;
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
    changes::set_asked_seq(tx, id, asked)?;
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
    let of_requester = changes::pending_count_of(tx, &asking.requester)?;
    let of_all = changes::pending_count(tx)?;
    let refusal = || {
        let message = format!("{of_requester} requests wait for a decision already");
        Refusal::new(DenialCode::ChangesTooMany, message).hint("decide about those first: `ironctl inbox`")
    };
    Ok((of_requester >= asking.pending_max || of_all >= PENDING_MAX).then(refusal))
}

/// Inserts the row of a change, without the number of its entry in the ledger.
fn insert(
    tx: &mut WriteTx<'_>,
    policy: &Policy,
    Checked { proposed, standing }: &Checked,
    asking: &Asking<'_>,
    digest: Digest,
) -> Result<ChangeId, ironclaw_state::Error> {
    let rule = policy.rule(proposed.change.kind());
    let new = NewChange {
        id: ChangeId::new(),
        agent: proposed.agent,
        requester: &asking.requester,
        principal: asking.principal,
        origin: asking.origin,
        change: &proposed.change,
        before: &standing.before,
        facts: &standing.facts,
        digest,
        labels: &proposed.labels,
        reason: &proposed.reason,
        generation: generation(tx)?,
        expires_at: tx.wall() + i64::from(rule.expires_hours) * 3_600_000,
    };
    changes::insert(tx, &new)?;
    Ok(new.id)
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
    let ending = Ending { status, decided_by: by, decided_at: decided, applied_at: applied, outcome };
    if !changes::end(tx, row.id, &ending)? {
        return Err(ironclaw_state::Error::Stored(format!(
            "{} is at an end already, and is not {}",
            row.id,
            status.name()
        )));
    }
    changes::void_approvals(tx, row.id)?;
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
    changes::mark_approved(tx, row.id, by, shown)?;
    Entry::new(LedgerEvent::ChangeApproved)
        .with("change", row.id)
        .with("kind", row.kind.name())
        .with("shown", *shown)
        .append(tx)?;
    Ok(())
}

/// Undecided changes whose time is over.
pub fn expired(tx: &ReadTx<'_>) -> Result<Vec<Row>, ironclaw_state::Error> {
    changes::expired(tx, tx.wall(), AT_ONCE_MAX)
}

/// Erases what a conversation asked for, with its words: what it was and what became of it stays in the ledger, as digests.
pub fn erase_of_session(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), ironclaw_state::Error> {
    erase(tx, Scope::Session(session), "the conversation was removed", None)
}

/// Erases what was asked for an agent, or by it, but for the change that removes it.
pub fn erase_of_agent(tx: &mut WriteTx<'_>, agent: AgentId, by: ChangeId) -> Result<(), ironclaw_state::Error> {
    erase(tx, Scope::Agent(agent), "the agent was removed", Some(by))
}

fn erase(tx: &mut WriteTx<'_>, of: Scope, why: &str, but: Option<ChangeId>) -> Result<(), ironclaw_state::Error> {
    for row in changes::active_of(tx, of, but)? {
        end(tx, &row, Status::Withdrawn, None, why)?;
    }
    changes::delete_of(tx, of, but)
}

/// The agent that a change concerns, as it is now.
pub fn agent_of(tx: &ReadTx<'_>, row: &Row) -> Result<Option<Agent>, ironclaw_state::Error> {
    match row.agent {
        Some(agent) => registry::agent_by_id(tx, agent),
        None => Ok(None),
    }
}
