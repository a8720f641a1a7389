//! The record of proposed changes, with their bounds, digests and ledger entries.
//!
//! Never decides on a change and never applies one. See [`crate::gateway::decide`], and [`ironclaw_store::tables::waiting`] for the rows.

use crate::channels::notifications;
use crate::gateway::waiting::{self, Ending, Gateway, Status, Waiting};
use crate::gateway::{Checked, Proposed, Requester, checks, kinds};
use crate::registry::policy::Policy;
use crate::registry::{self, Role, roles};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, ChangeId, PersonId};
use ironclaw_contract::seam::change::{Change, ChangeKind, Part, Schedule, Skill};
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::waiting::changes::{self, Own, Pending};
use ironclaw_store::tables::{facts, messages, waiting as table};
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

/// The result of a submission.
#[derive(Debug, Clone, Copy)]
pub struct Submitted {
    pub id: ChangeId,
    /// True if the same request already waits.
    pub again: bool,
}

impl Gateway {
    /// Checks a proposal and records it; from then on it waits for a decision.
    ///
    /// # Errors
    /// Refuses a proposal that fails a check, and one more than the bounds admit. Records the refusal in the ledger.
    pub(crate) fn propose(&self, tx: &mut WriteTx<'_>, proposed: Proposed) -> Result<Submitted, Denied<Error>> {
        let (kind, requester) = (proposed.change.kind(), proposed.requester.clone());
        let settings = self.now();
        let recorded = checks::check(tx, &settings.host_policy, proposed).and_then(|checked| {
            kinds::schedule::check_rights(tx, &settings.policy, &checked.proposed)?;
            Ok(checked)
        });
        let recorded = recorded.map_err(Denied::widen).and_then(|checked| record(tx, self, checked, true));
        let submitted =
            recorded.map_err(|denied| denied.noted(|refusal| Ok(note_refusal(tx, kind, &requester, refusal)?)))?;
        if !submitted.again {
            waiting::asked(tx, self, submitted.id.into())?;
        }
        Ok(submitted)
    }
}

/// Records in the ledger that a proposal was refused.
pub(super) fn note_refusal(
    tx: &mut WriteTx<'_>,
    kind: ChangeKind,
    requester: &Requester,
    refusal: &Refusal,
) -> Result<(), ironclaw_state::Error> {
    let entry = Entry::new(LedgerEvent::ChangeRefused).with("kind", kind.name()).with("code", refusal.code);
    match requester {
        Requester::Agent { origin, .. } => entry.session(origin.session).turn(origin.turn).append(tx)?,
        Requester::Person(person) => entry.with("by", *person).append(tx)?,
    };
    Ok(())
}

/// Records a checked proposal. With `waits`, too many others that wait leave no room for it; without it the same transaction decides.
pub(super) fn record(
    tx: &mut WriteTx<'_>,
    all: &Gateway,
    checked: Checked,
    waits: bool,
) -> Result<Submitted, Denied<Error>> {
    let Checked { proposed, standing } = &checked;
    let digest = request_digest(proposed);
    if let Some(same) = changes::pending_with_digest(tx, digest)? {
        let is_current = same.own.before == standing.before && same.own.facts == standing.facts;
        if is_current && same.expires_at > tx.wall() {
            return Ok(Submitted { id: same.id, again: true });
        }
        // A stale change can only be withdrawn, because its page is no longer true.
        let outcome =
            "the present setting differs from the time of the request, and the same change was requested again";
        let ending = Ending { status: Status::Withdrawn, by: None, outcome };
        waiting::end_active(tx, all, same.id.into(), &ending)?;
    }
    if waits && let Some(refusal) = too_many(tx, proposed)? {
        return Err(refusal.into());
    }
    let id = insert(tx, &all.now().policy, &checked, digest)?;
    let seq = append_proposed(tx, id, &checked, digest)?;
    table::set_asked_seq(tx, id.into(), seq)?;
    Ok(Submitted { id, again: false })
}

/// Returns the bound on the waiting changes of a person, by their role on the host or with the agent.
fn pending_max(tx: &ReadTx<'_>, person: PersonId, agent: Option<AgentId>) -> Result<i64, ironclaw_state::Error> {
    let own = agent.map(|agent| roles::role_of(tx, agent, person)).transpose()?.flatten();
    let role = registry::person_by_id(tx, person)?.map(|person| roles::larger(person.role, own));
    Ok(if role.is_some_and(|role| role.covers(Role::Admin)) { PENDING_OF_PERSON_MAX } else { PENDING_OF_MEMBER_MAX })
}

/// Returns the refusal of one more change, if too many changes of the requester or of the host wait.
fn too_many(tx: &ReadTx<'_>, proposed: &Proposed) -> Result<Option<Refusal>, ironclaw_state::Error> {
    let max = match &proposed.requester {
        Requester::Agent { .. } => PENDING_OF_AGENT_MAX,
        Requester::Person(person) => pending_max(tx, *person, proposed.agent)?,
    };
    let own = changes::pending_for_requester(tx, &proposed.requester, proposed.agent)?;
    let bounds = [
        ("changes of one requester wait for a decision", max, own),
        ("changes of this host wait for a decision", PENDING_MAX, changes::pending(tx)?),
    ];
    let reached = bounds.into_iter().find(|(_, max, pending)| pending.count >= *max);
    Ok(reached.map(|(name, max, Pending { count, ends_at })| {
        let remedy = "decide on some of them, or withdraw your own: `ironctl inbox`";
        let ends_at = ends_at.map(ironclaw_ledger::rfc3339);
        Refusal::over(DenialCode::ChangesTooMany, Bound { ends_at, ..Bound::new(name, max, count, remedy) })
    }))
}

/// Inserts the row of a change, without the number of its entry in the ledger.
fn insert(
    tx: &mut WriteTx<'_>,
    policy: &Policy,
    Checked { proposed, standing }: &Checked,
    digest: Digest,
) -> Result<ChangeId, ironclaw_state::Error> {
    let (now, rule) = (tx.wall(), policy.rule(proposed.change.kind()));
    let expires_at = now + i64::from(rule.expires_hours) * HOUR_MS;
    let origin = proposed.requester.origin();
    let message = origin.and_then(|origin| origin.message);
    let own = Own {
        payload: proposed.change.payload(),
        before: standing.before.clone(),
        facts: standing.facts.clone(),
        reason: proposed.reason.clone(),
    };
    let id = ChangeId::new();
    let new = Waiting {
        subject: proposed.change.kind().name().to_owned(),
        agent: proposed.agent,
        session: origin.map(|origin| origin.session),
        turn: origin.map(|origin| origin.turn),
        call: origin.map(|origin| origin.call),
        message,
        root: message.map(|message| messages::root_of(tx, message)).transpose()?,
        digest,
        labels: proposed.labels,
        own: canonical::to_string(&own),
        generation: facts::generation(tx)?,
        remind_at: Some(notifications::remind_at(now, expires_at)),
        ..Waiting::pending(id, proposed.requester.principal(), now, expires_at)
    };
    table::insert(tx, &new)?;
    Ok(id)
}

/// Appends the ledger entry of a proposed change, and returns its number.
fn append_proposed(
    tx: &mut WriteTx<'_>,
    id: ChangeId,
    Checked { proposed, standing }: &Checked,
    digest: Digest,
) -> Result<u64, ironclaw_state::Error> {
    let mut entry = Entry::new(LedgerEvent::ChangeProposed)
        .with("change", id)
        .with("kind", proposed.change.kind().name())
        .with("digest", digest)
        .with("before_digest", Digest::of(&canonical::to_vec(&standing.before)))
        .with("requester", requester_id(proposed))
        .with("principal", proposed.requester.principal());
    if let Some(agent) = proposed.agent {
        entry = entry.with("agent", agent);
    }
    if let Some(origin) = proposed.requester.origin() {
        entry = entry.session(origin.session).turn(origin.turn).with("call", origin.call);
    }
    entry.append(tx)
}

/// Returns a schedule without the time of its request.
fn untimed(schedule: &Schedule) -> Change {
    Change::Schedule(Schedule { from: None, ..schedule.clone() })
}

/// Returns the digest of a request. It leaves out the time, so the same request made twice is one change. The request of another requester
/// is another one, with its own reason and decision.
fn request_digest(proposed: &Proposed) -> Digest {
    let Proposed { agent, change, requester, .. } = proposed;
    let none = || Value::from("");
    let agent = agent.map_or_else(none, Value::from);
    let session = requester.origin().map_or_else(none, |origin| origin.session.into());
    let (asker, principal) = (requester_id(proposed), requester.principal());
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
    let request = serde_json::json!([canonical::RECIPE, change.kind(), agent, asker, principal, session, payload]);
    Digest::of(&canonical::to_vec(&request))
}

/// Returns the id of the agent or the person that makes a request.
fn requester_id(Proposed { agent, requester, .. }: &Proposed) -> String {
    match (requester, agent) {
        (Requester::Agent { .. }, Some(agent)) => agent.to_string(),
        (Requester::Agent { principal, .. } | Requester::Person(principal), _) => principal.to_string(),
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
                if let Some(refusal) = too_many(tx, &checked.proposed).expect("read") {
                    return Err(refusal);
                }
                let digest = request_digest(&checked.proposed);
                insert(tx, &policy, &checked, digest).expect("recorded");
                Ok::<_, Refusal>(())
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
