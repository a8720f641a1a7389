//! The counts of a report: calls by class, rule and code, and requests by status and time.
//!
//! Pure, but for the query of the requests. See [`recent`] for that of the calls.

use crate::turns::calls::{CallState, Runs};
use ironclaw_judge::{Class, Principal};
use ironclaw_operator::{
    ClassCount, CodeCount, DenialCode, ReportedCalls, ReportedRequests, RuleCount, StatusCount, UnaskedRule,
    WaitingStatus,
};
use ironclaw_state::ReadTx;
use ironclaw_store::tables::turns::recent::{AlikeCalls, Turns};
use ironclaw_store::tables::waiting::requests::{self, Reported};
use std::collections::HashMap;

/// Returns the requests since the begin of turns, of the same person and agent.
pub fn reported(tx: &ReadTx<'_>, turns: &Turns) -> Result<Vec<Reported>, ironclaw_state::Error> {
    requests::reported_since(tx, turns.since, turns.whose)
}

/// Counts calls. Each one is unasked, asked, refused or not made.
pub fn calls(alike: &[AlikeCalls]) -> ReportedCalls {
    let mut counted = ReportedCalls::default();
    let (mut classes, mut rules) = (HashMap::<Class, u64>::new(), HashMap::<UnaskedRule, u64>::new());
    let mut refused = HashMap::<Option<DenialCode>, u64>::new();
    for calls in alike {
        counted.total += calls.count;
        if let Some(class) = calls.class {
            *classes.entry(class).or_default() += calls.count;
        }
        match calls.state {
            CallState::Refused => *refused.entry(calls.code).or_default() += calls.count,
            _ if calls.is_asked => counted.asked += calls.count,
            CallState::Permitted | CallState::Void => counted.not_made += calls.count,
            CallState::Asked => counted.asked += calls.count,
            CallState::Running | CallState::Done | CallState::Failed | CallState::Queued | CallState::Unknown => {
                *rules.entry(rule(calls)).or_default() += calls.count;
            }
        }
    }
    counted.classes = classes.into_iter().map(|(class, calls)| ClassCount { class, calls }).collect();
    counted.classes.sort_by_key(|counted| counted.class as usize);
    counted.unasked = rules.into_iter().map(|(rule, calls)| RuleCount { rule, calls }).collect();
    counted.unasked.sort_by_key(|counted| (u64::MAX - counted.calls, counted.rule as usize));
    counted.refused = refused.into_iter().map(|(code, calls)| CodeCount { code, calls }).collect();
    counted.refused.sort_by_key(|counted| (u64::MAX - counted.calls, counted.code.map_or("", DenialCode::name)));
    counted
}

/// Returns the rule that let calls run without a question.
fn rule(calls: &AlikeCalls) -> UnaskedRule {
    match calls.runs {
        Some(Runs::Local | Runs::Host) => return UnaskedRule::Contained,
        Some(Runs::Row) => return UnaskedRule::Action,
        Some(Runs::Await) | None => {}
    }
    let reads = calls.class == Some(Class::Read);
    match calls.principal {
        _ if calls.is_allowed => UnaskedRule::Allowance,
        _ if calls.is_covered => UnaskedRule::Flow,
        _ if calls.is_lifted => UnaskedRule::Mode,
        Principal::Schedule if !reads => UnaskedRule::Schedule,
        Principal::Agent => UnaskedRule::Group,
        _ if calls.takes_typed => UnaskedRule::Typed,
        _ if calls.takes_returned => UnaskedRule::Returned,
        _ if reads => UnaskedRule::Read,
        Principal::Person | Principal::Guest | Principal::Schedule | Principal::Unsigned => UnaskedRule::Scope,
    }
}

/// Counts requests, and the time to the decisions of people.
pub fn requests(all: &[Reported]) -> ReportedRequests {
    let (mut tasks, mut statuses) = (HashMap::new(), HashMap::<WaitingStatus, u64>::new());
    for request in all {
        *tasks.entry(request.root).or_insert(0_u64) += 1;
        *statuses.entry(request.status).or_default() += 1;
    }
    let statuses: Vec<StatusCount> = WaitingStatus::ALL
        .into_iter()
        .filter_map(|status| Some(StatusCount { status, requests: *statuses.get(&status)? }))
        .collect();
    // A withdrawal by its person is no decision on the request.
    let decided = all.iter().filter(|request| request.status != WaitingStatus::Withdrawn);
    let mut times: Vec<u64> = decided
        .filter_map(|request| u64::try_from(request.decided_at?.saturating_sub(request.created_at).max(0)).ok())
        .collect();
    times.sort_unstable();
    ReportedRequests {
        total: all.len() as u64,
        tasks: tasks.len() as u64,
        task_max: tasks.into_values().max().unwrap_or(0),
        statuses,
        decided: times.len() as u64,
        median_ms: share(&times, 50),
        ninetieth_ms: share(&times, 90),
    }
}

/// Returns the least of these sorted times that at least so many of a hundred do not exceed.
fn share(sorted: &[u64], percent: usize) -> Option<u64> {
    let place = (sorted.len() * percent).div_ceil(100);
    sorted.get(place.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests;
