//! The bounds on approval requests. Each counts those of one agent on behalf of one person: no agent floods a person, and no person uses up
//! an agent for others.
//!
//! What a person approved does not count. A reset takes every earlier request out of the counts.

use super::ask::Needing;
use super::reasons::is_for_grant;
use crate::gateway::waiting::Gateway;
use crate::gateway::waiting::Status;
use crate::registry::live_settings::ApprovalConfig;
use crate::registry::{self, Agent, Person, Role};
use ironclaw_contract::ids::PersonId;
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use ironclaw_store::tables::waiting::requests::{self, Counted};
use ironclaw_store::times::DAY_MS;
use std::collections::BTreeSet;

/// Returns the bound that keeps an agent from asking once more on behalf of this person; `None` if there is room.
pub(super) fn reached(
    tx: &ReadTx<'_>,
    needing: &Needing<'_>,
    person: &Person,
    config: &ApprovalConfig,
) -> Result<Option<Bound>, ironclaw_state::Error> {
    let (agent, since) = (needing.agent, tx.wall() - DAY_MS);
    let waiting = requests::counted_waiting(tx, agent.id, person.id)?;
    let of_day = requests::counted_since(tx, agent.id, person.id, since)?;
    let is_for_grant = needing.reasons.iter().any(|reason| is_for_grant(reason.code));
    let of_pair = format!("agent {} for {}", agent.name, person.name);
    Ok(waiting_bound(&waiting, is_for_grant, &of_pair, config)
        .or_else(|| Some(rejections(&of_day, &needing.calling.call.tool, &of_pair, config)).filter(Bound::is_reached))
        .or_else(|| Some(without_yes(&of_day, &of_pair, config)).filter(Bound::is_reached))
        .map(|bound| with_reset(bound, agent)))
}

/// Returns the bounds on requests of which most is used.
pub fn near(tx: &ReadTx<'_>, config: &ApprovalConfig) -> Result<Vec<Bound>, ironclaw_state::Error> {
    let since = tx.wall() - DAY_MS;
    let mut near = Vec::new();
    for requests::Pair { agent, person } in requests::counted_pairs(tx, since)? {
        let Some(agent) = registry::agent_by_id(tx, agent)? else { continue };
        let of_pair = format!("agent {} for {}", agent.name, registry::person_name(tx, person)?);
        let waiting = requests::counted_waiting(tx, agent.id, person)?.len();
        let bound = Bound::new(
            format!("requests of {of_pair} wait"),
            config.requests_waiting_max,
            waiting,
            "decide on them: `ironctl inbox`",
        );
        let of_day = requests::counted_since(tx, agent.id, person, since)?;
        let tools: BTreeSet<&str> = of_day.iter().map(|row| row.tool.as_str()).collect();
        let mut bounds = vec![bound.setting("approval.requests_waiting_max"), without_yes(&of_day, &of_pair, config)];
        bounds.extend(tools.into_iter().map(|tool| rejections(&of_day, tool, &of_pair, config)));
        near.extend(bounds.into_iter().filter(Bound::is_near).map(|bound| with_reset(bound, &agent)));
    }
    Ok(near)
}

/// Returns the bound on the requests that wait.
fn waiting_bound(waiting: &[Counted], is_for_grant: bool, of_pair: &str, config: &ApprovalConfig) -> Option<Bound> {
    let ends = |rows: &[&Counted], max: u32| {
        let mut ends: Vec<i64> = rows.iter().map(|row| row.expires_at).collect();
        ends.sort_unstable();
        ends_at(&ends, max)
    };
    let all: Vec<&Counted> = waiting.iter().collect();
    let max = config.requests_waiting_max;
    if all.len() >= max as usize {
        let bound =
            Bound::new(format!("requests of {of_pair} wait"), max, all.len(), "decide on them: `ironctl inbox`");
        let bound = Bound { ends_at: ends(&all, max), ..bound };
        return Some(bound.setting("approval.requests_waiting_max"));
    }
    let ungranted: Vec<&Counted> = all.into_iter().filter(|row| needs_grant(row)).collect();
    let max = config.requests_without_grant_max;
    if !is_for_grant || ungranted.len() < max as usize {
        return None;
    }
    let name = format!("requests of {of_pair} wait that no grant of the agent covers");
    let bound = Bound::new(name, max, ungranted.len(), "decide on it: `ironctl inbox`");
    let bound = Bound { ends_at: ends(&ungranted, max), ..bound };
    Some(bound.setting("approval.requests_without_grant_max"))
}

fn needs_grant(row: &Counted) -> bool {
    row.own.reasons.iter().any(|reason| is_for_grant(reason.code))
}

/// Returns the bound on rejections of one tool since its last approval: an agent that varies a rejected call does not go on for ever.
fn rejections(of_day: &[Counted], tool: &str, of_pair: &str, config: &ApprovalConfig) -> Bound {
    let of_tool = of_day.iter().rev().filter(|row| row.tool == tool);
    let in_a_row = of_tool.take_while(|row| !is_approved(row.status)).filter(|row| row.status == Status::Rejected);
    let mut times: Vec<i64> = in_a_row.map(|row| row.created_at + DAY_MS).collect();
    times.reverse();
    let max = config.rejected_in_a_row_max;
    let name = format!("calls of {tool} by {of_pair} were rejected in a row");
    let bound = Bound::new(name, max, times.len(), "do it yourself, or go on without it");
    let bound = Bound { ends_at: ends_at(&times, max), ..bound };
    bound.setting("approval.rejected_in_a_row_max")
}

/// Returns the bound on the requests of a day that got no yes.
fn without_yes(of_day: &[Counted], of_pair: &str, config: &ApprovalConfig) -> Bound {
    let counts = |row: &&Counted| matches!(row.status, Status::Pending | Status::Expired | Status::Rejected);
    let times: Vec<i64> = of_day.iter().filter(counts).map(|row| row.created_at + DAY_MS).collect();
    let max = config.requests_unapproved_per_day;
    let name = format!("requests of {of_pair} in 24 hours got no yes");
    let bound = Bound::new(name, max, times.len(), "decide on those that wait: `ironctl inbox`");
    let bound = Bound { ends_at: ends_at(&times, max), ..bound };
    bound.setting("approval.requests_unapproved_per_day")
}

/// Returns the time at which fewer than `max` of these are left, of the times at which each one leaves, in order.
fn ends_at(ends: &[i64], max: u32) -> Option<String> {
    ends.get(ends.len().checked_sub(max as usize)?).map(|at| ironclaw_ledger::rfc3339(*at))
}

fn with_reset(bound: Bound, agent: &Agent) -> Bound {
    let remedy = format!("{}; or begin the count anew: `ironctl inbox --reset {}`", bound.remedy, agent.name);
    Bound { remedy, ..bound }
}

/// Returns whether people approved the call of a request.
const fn is_approved(status: Status) -> bool {
    match status {
        Status::Approved | Status::Running | Status::Done | Status::Failed | Status::Queued | Status::Unknown => true,
        Status::Pending | Status::Doubtful | Status::Rejected | Status::Expired | Status::Withdrawn => false,
    }
}

impl Gateway {
    /// Takes every request of an agent so far out of the counts: those on behalf of one person, or of all people. Returns their number.
    ///
    /// # Errors
    /// Refuses a member who names another person, or all people.
    pub async fn reset(&self, by: &Person, agent: &Agent, person: Option<PersonId>) -> Result<u64, Denied<Error>> {
        let (by, agent) = (by.id, agent.id);
        let reset = self.record.state.decide(move |tx| {
            let Some(by) = registry::person_by_id(tx, by)? else {
                return Err(Refusal::new(DenialCode::PersonUnknown, "the person no longer exists").into());
            };
            if !by.role.covers(Role::Admin) && person != Some(by.id) {
                let refusal =
                    Refusal::new(DenialCode::RoleTooLow, "a member resets the bounds of their own requests only");
                return Err(refusal.hint("owners and admins reset those of others").into());
            }
            let count = requests::reset_counts(tx, agent, person)?;
            let entry =
                Entry::new(LedgerEvent::RequestCountsReset).with("agent", agent).with("by", by.id).with("count", count);
            match person {
                Some(person) => entry.with("person", person).append(tx)?,
                None => entry.append(tx)?,
            };
            Ok::<_, Denied<Error>>(count)
        });
        reset.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_judge::{Class, Classes};
    use ironclaw_store::tables::waiting::requests::{Own, StoredReason};

    fn row(status: Status, tool: &str, hour: i64) -> Counted {
        let created_at = hour * 3_600_000;
        let own = Own { class: Class::Send, scope: Classes::NONE, reasons: Vec::new(), origins: Vec::new() };
        Counted { status, tool: tool.to_owned(), created_at, expires_at: created_at + DAY_MS, own }
    }

    #[test]
    fn only_what_got_no_yes_counts_against_a_day() {
        let config = ApprovalConfig { requests_unapproved_per_day: 3, ..ApprovalConfig::default() };
        use Status::{Approved, Done, Expired, Failed, Pending, Queued, Rejected, Running, Unknown, Withdrawn};
        for (statuses, is_reached) in [
            (vec![Done; 50], false),
            (vec![Approved, Running, Failed, Queued, Unknown, Withdrawn], false),
            (vec![Pending, Expired], false),
            (vec![Done, Pending, Expired, Rejected], true),
        ] {
            let rows: Vec<Counted> = statuses.iter().zip(1..).map(|(status, hour)| row(*status, "t", hour)).collect();
            let bound = without_yes(&rows, "agent a for ada", &config);
            assert_eq!(bound.is_reached(), is_reached, "{statuses:?}");
            if is_reached {
                // The first that counts is of hour 2, and leaves a day later.
                assert_eq!((bound.count, bound.max), (3, 3));
                assert_eq!(bound.ends_at, Some(ironclaw_ledger::rfc3339(2 * 3_600_000 + DAY_MS)));
            }
        }
    }

    #[test]
    fn rejections_in_a_row_are_those_of_one_tool() {
        use Status::{Done, Expired, Rejected};
        let config = ApprovalConfig { rejected_in_a_row_max: 2, ..ApprovalConfig::default() };
        for (rows, is_reached) in [
            (vec![(Rejected, "t"), (Rejected, "t")], true),
            (vec![(Rejected, "t"), (Expired, "t"), (Done, "u"), (Rejected, "t")], true),
            (vec![(Rejected, "t"), (Done, "t"), (Rejected, "t")], false),
            (vec![(Rejected, "t"), (Rejected, "u")], false),
        ] {
            let counted: Vec<Counted> = rows.iter().map(|(status, tool)| row(*status, tool, 1)).collect();
            let bound = rejections(&counted, "t", "agent a for ada", &config);
            assert_eq!(bound.is_reached(), is_reached, "{rows:?}");
        }
    }

    #[test]
    fn waiting_bound_ends_with_the_request_that_expires_first() {
        let config = ApprovalConfig { requests_waiting_max: 2, ..ApprovalConfig::default() };
        let rows = [row(Status::Pending, "t", 3), row(Status::Pending, "u", 1)];
        let bound = waiting_bound(&rows, false, "agent a for ada", &config).expect("reached");
        assert_eq!(bound.ends_at, Some(ironclaw_ledger::rfc3339(3_600_000 + DAY_MS)));
        assert_eq!(waiting_bound(&rows[..1], false, "agent a for ada", &config), None);
        let mut needing = row(Status::Pending, "t", 3);
        let reason = StoredReason { code: DenialCode::EgressNewHost, by_policy: true, arguments: Vec::new() };
        needing.own.reasons.push(reason);
        let rows = [needing];
        assert_eq!(waiting_bound(&rows, false, "agent a for ada", &config), None);
        let bound = waiting_bound(&rows, true, "agent a for ada", &config).expect("reached");
        assert_eq!(bound.setting.as_deref(), Some("approval.requests_without_grant_max"));
    }
}
