//! The changes that would have saved most requests of a time.
//!
//! Judges the call of each request again as the record has it, once with the present settings and once with each change. A change counts
//! only requests whose calls would have run without a question, and none that would have let a rejected call run. See [`candidates`].

use super::candidates::{self, Candidate};
use crate::calls::executor::{self, facts};
use crate::gateway::requests::allowance::{self, Calling};
use crate::gateway::requests::{self, is_for_grant};
use crate::gateway::waiting::{Gateway, Status};
use crate::registry::tools::{self, GIT_PUSH, OutsideTool};
use crate::registry::{self, Agent, mcp};
use crate::sessions::store as sessions;
use crate::turns::calls::{self, Judged, Judgement, ReadCall, TurnFacts};
use crate::turns::turn::{self, Turn};
use ironclaw_judge::{Class, Principal};
use ironclaw_ledger::rfc3339;
use ironclaw_operator::{DenialCode, LeftOutOfReport, ReportedChange, SavedRequest};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Denied;
use ironclaw_store::tables::turns::recent::Turns;
use ironclaw_store::tables::waiting::requests::{Row, newest_since};
use std::collections::{BTreeMap, BTreeSet};

/// The requests for which a change is sought, the newest.
const JUDGED_MAX: usize = 300;

/// The changes of a report.
const CHANGES_MAX: usize = 3;

/// The examples of a change.
const EXAMPLES_MAX: usize = 3;

/// The fewest requests that a change of a report saves: each change asks its person once.
const SAVED_MIN: usize = 2;

/// The changes of a report, and what it left out.
#[derive(Debug, Default)]
pub struct Savings {
    pub changes: Vec<ReportedChange>,
    pub left_out: Vec<(LeftOutOfReport, u64)>,
}

/// A call that was judged again, and asks with the present settings.
pub struct Asking {
    pub agent: Agent,
    pub turn: Turn,
    pub facts: TurnFacts,
    pub call: ReadCall,
    pub judged: Judged,
    pub class: Class,
    pub codes: Vec<DenialCode>,
}

impl Asking {
    /// Returns whether the call runs without a question with these facts in place of its own.
    pub fn runs_with(&self, facts: &TurnFacts) -> bool {
        self.runs(facts, self.call.clone())
    }

    /// Returns the same for a call that binds its values anew, because other fields may be control fields.
    pub fn runs_anew_with(&self, facts: &TurnFacts) -> bool {
        self.runs(facts, self.call.unbound())
    }

    fn runs(&self, facts: &TurnFacts, call: ReadCall) -> bool {
        matches!(calls::judge(&self.agent, facts, call, true).judgement, Judgement::Permitted { .. })
    }
}

/// What became of a request.
enum Again {
    Asks(Box<Asking>),
    LeftOut(LeftOutOfReport),
}

/// The requests that a change concerns.
struct Found {
    candidate: Candidate,
    /// Their places among all requests, the newest first.
    saves: Vec<usize>,
    permits_rejected: bool,
}

/// Finds the changes that would have saved most of the requests since the begin of turns, of the same person and agent, of which there are `total`.
pub fn find(tx: &ReadTx<'_>, all: &Gateway, turns: &Turns, total: u64) -> Result<Savings, Error> {
    let rows = newest_since(tx, turns.since, turns.whose, JUDGED_MAX)?;
    let mut left_out: BTreeMap<&str, (LeftOutOfReport, u64)> = BTreeMap::new();
    let mut leave = |part: LeftOutOfReport, count: u64| left_out.entry(part.name()).or_insert((part, 0)).1 += count;
    leave(LeftOutOfReport::Older, total.saturating_sub(rows.len() as u64));
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    let mut asking = BTreeSet::new();
    for (place, row) in rows.iter().enumerate() {
        let again = match judged_again(tx, all, row)? {
            Again::LeftOut(part) => {
                leave(part, 1);
                continue;
            }
            Again::Asks(again) => again,
        };
        asking.insert(place);
        for candidate in candidates::list(tx, all, row, &again)? {
            let new = || Found { candidate: candidate.clone(), saves: Vec::new(), permits_rejected: false };
            let one = found.entry(candidate.key()).or_insert_with(new);
            match row.status {
                Status::Rejected => one.permits_rejected = true,
                _ => one.saves.push(place),
            }
        }
    }
    let saved: BTreeSet<usize> = found.values().flat_map(|one| one.saves.iter().copied()).collect();
    leave(LeftOutOfReport::Unsaved, asking.difference(&saved).count() as u64);
    let (changes, refused) = best(tx, all, found.into_values().collect(), &rows)?;
    leave(LeftOutOfReport::PermitsRejected, refused);
    let order = |part: &LeftOutOfReport| LeftOutOfReport::ALL.iter().position(|one| one == part);
    let mut left_out: Vec<_> = left_out.into_values().collect();
    left_out.sort_by_key(|left| order(&left.0));
    Ok(Savings { changes, left_out })
}

/// Judges the call of a request again with the facts of its turn and the present settings.
fn judged_again(tx: &ReadTx<'_>, all: &Gateway, row: &Row) -> Result<Again, Error> {
    let always = row.own.reasons.iter().any(|reason| reason.by_policy && !is_for_grant(reason.code));
    if always || matches!(row.own.class, Class::Exec | Class::Trade) || row.tool == GIT_PUSH {
        return Ok(Again::LeftOut(LeftOutOfReport::AlwaysAsked));
    }
    match try_judged_again(tx, all, row) {
        Ok(Some(again)) => Ok(again),
        Ok(None) => Ok(Again::LeftOut(LeftOutOfReport::Lost)),
        Err(error) if error.is_damage() => Ok(Again::LeftOut(LeftOutOfReport::Lost)),
        Err(error) => Err(error),
    }
}

fn try_judged_again(tx: &ReadTx<'_>, all: &Gateway, row: &Row) -> Result<Option<Again>, Error> {
    let (Some(turn), Some(agent)) = (turn::find(tx, row.turn)?, registry::agent_by_id(tx, row.agent)?) else {
        return Ok(None);
    };
    let (Some(session), Some(call)) = (sessions::find(tx, row.session)?, calls::find(tx, row.call)?) else {
        return Ok(None);
    };
    let key = session.content_key(&all.record.wrapping)?;
    let call = executor::recorded(tx, &call, &key)?;
    let judging = facts::Judging { labels: call.labels, call: Some(row.call) };
    let mut facts = facts::for_turn(tx, &all.settings, &turn, &agent, judging, &key)?;
    if tools::outside(&row.tool).is_some_and(OutsideTool::reads_workspace) {
        facts.reads_workspace();
    }
    let call = ReadCall::recorded(call.value);
    let judged = calls::judge(&agent, &facts, call.clone(), true);
    Ok(Some(match &judged.judgement {
        Judgement::Permitted { .. } => Again::LeftOut(LeftOutOfReport::Settled),
        Judgement::Refused { .. } => Again::LeftOut(LeftOutOfReport::RefusedNow),
        Judgement::NeedsPerson { class, reasons, .. } => {
            let calling = Calling {
                person: row.principal,
                agent: agent.id,
                root: Some(row.root),
                call: &judged.call,
                arguments: &judged.arguments,
                is_plain_read: judged.by_stages.is_plain_read,
            };
            if turn.principal_kind == Principal::Person
                && allowance::usable(tx, &all.settings.now().policy, &calling, *class, reasons)?.is_some()
            {
                return Ok(Some(Again::LeftOut(LeftOutOfReport::Settled)));
            }
            let (class, codes) = (*class, reasons.iter().map(|reason| reason.code).collect());
            Again::Asks(Box::new(Asking { agent, turn, facts, call, judged, class, codes }))
        }
    }))
}

/// Takes the change that saves most requests, then the one that saves most of the rest, and so on. Returns them with the number of changes
/// that would have let a rejected call run.
fn best(
    tx: &ReadTx<'_>,
    all: &Gateway,
    mut found: Vec<Found>,
    rows: &[Row],
) -> Result<(Vec<ReportedChange>, u64), Error> {
    let (mut changes, mut saved, mut refused) = (Vec::new(), BTreeSet::new(), 0);
    found.retain(|one| one.saves.len() >= SAVED_MIN);
    while changes.len() < CHANGES_MAX {
        for one in &mut found {
            one.saves.retain(|place| !saved.contains(place));
        }
        found.retain(|one| one.saves.len() >= SAVED_MIN);
        found.sort_by_key(|one| (usize::MAX - one.count(), one.candidate.change as usize, one.candidate.key()));
        if found.is_empty() {
            break;
        }
        let one = found.remove(0);
        match is_possible(tx, all, &one)? {
            Possible::Yes => {}
            Possible::No => continue,
            Possible::PermitsRejected => {
                refused += 1;
                continue;
            }
        }
        let counted = &one.saves[..one.count()];
        saved.extend(counted.iter().copied());
        let rows: Vec<&Row> = counted.iter().filter_map(|place| rows.get(*place)).collect();
        let examples = rows.iter().take(EXAMPLES_MAX).map(|row| example(tx, all, row)).collect::<Result<_, _>>()?;
        changes.push(one.candidate.view(counted.len(), examples));
    }
    Ok((changes, refused))
}

impl Found {
    /// Returns the number of requests that it saves, within its own bound.
    fn count(&self) -> usize {
        self.saves.len().min(self.candidate.uses_max)
    }
}

/// Whether people can make a change by the rules of its kind.
enum Possible {
    Yes,
    No,
    PermitsRejected,
}

fn is_possible(tx: &ReadTx<'_>, all: &Gateway, found: &Found) -> Result<Possible, Error> {
    if found.permits_rejected {
        return Ok(Possible::PermitsRejected);
    }
    let Some((by, new)) = &found.candidate.allowance else { return Ok(Possible::Yes) };
    match allowance::compared(tx, &all.record, by, new) {
        Ok(Some(_)) => Ok(Possible::Yes),
        Ok(None) => Ok(Possible::No),
        Err(Denied::Refused(_)) => Ok(Possible::PermitsRejected),
        Err(Denied::Failed(error)) => Err(error),
    }
}

/// Returns a request with the effect of its call in words.
fn example(tx: &ReadTx<'_>, all: &Gateway, row: &Row) -> Result<SavedRequest, Error> {
    let arguments = requests::arguments(tx, &all.record, row)?;
    let terms = mcp::terms(tx, row.agent, &row.tool)?;
    let effect = requests::effect(&row.tool, terms.as_ref(), row.own.class, &arguments);
    Ok(SavedRequest { request: row.id, created_at: rfc3339(row.created_at), effect })
}
