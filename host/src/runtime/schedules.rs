//! The runs of schedules: each time that has come becomes an occurrence, and its prompt a message to the agent.
//!
//! A time is consumed, its occurrence recorded, the next time set and the message recorded in one transaction, so no time runs twice and
//! none is lost. A run never has more than its approved list and never more than its creator: see [`crate::gateway::kinds::lost_right`]. See
//! [`worker`] for the loop, [`outcome`] for the end of a run, and [`crate::registry::schedules`] for the rows.

pub mod attendance;
pub mod outcome;
mod remedy;
mod start;
pub mod worker;

use crate::channels::notifications::{self, About, Notification};
use crate::registry::Person;
use crate::registry::live_settings::LiveSettings;
use crate::registry::schedules::catch_up::{self, Fate, Moment};
use crate::registry::schedules::{self, OccurrenceState, Schedule, State, next_time};
use ironclaw_contract::ids::{PersonId, ScheduleId, SessionId};
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{Error, ReadTx, WriteTx};
use ironclaw_store::record::Record;
use ironclaw_store::tables::schedules::{self as table, NewOccurrence};
use std::collections::BTreeSet;

pub use remedy::{remedy, remedy_for};
pub use start::{Refused, refused_now};

/// Occurrences of one schedule that its history keeps.
const KEPT_MAX: usize = 1000;

/// What a run needs.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub record: &'a Record,
    /// Have the policy and the quotas.
    pub settings: &'a LiveSettings,
    /// The bound on the number of sessions.
    pub sessions_max: u32,
    /// True during an emergency stop.
    pub is_stopped: bool,
}

/// Consumes the times of a schedule for a host that starts at `now`, in milliseconds since the epoch, after a stop. See [`consume_due`].
///
/// # Errors
/// As [`consume_due`].
pub fn consume_due_at(
    tx: &mut WriteTx<'_>,
    context: &Context<'_>,
    id: ScheduleId,
    now: i64,
) -> Result<Option<SessionId>, ironclaw_store::error::Error> {
    consume_due(tx, context, id, &Moment::first(now))
}

/// Consumes the times of a schedule that have come. Returns the session to wake, if a run was started.
///
/// # Errors
/// Errors of the host. A refused run is an occurrence and no error.
pub fn consume_due(
    tx: &mut WriteTx<'_>,
    context: &Context<'_>,
    id: ScheduleId,
    moment: &Moment,
) -> Result<Option<SessionId>, ironclaw_store::error::Error> {
    let Some(row) = schedules::find(tx, id)?.filter(|row| row.state == State::Active) else { return Ok(None) };
    if row.next_due.is_none_or(|due| due > moment.now) {
        return Ok(None);
    }
    let series = schedules::series(&row)?;
    // If the rules of its zone changed, the recorded time may be no time of the schedule.
    let next = match next_time::expected(tx, &row, &series, moment.now, moment.attended)? {
        Some(first) if first <= moment.now => {
            let own = Moment { attended: next_time::attended(&row, moment.attended), ..*moment };
            let plan = catch_up::plan(&series, first, &own, row.catch_up);
            let is_busy = is_busy(tx, id)?;
            for (due, fate) in plan.come {
                // A late time starts after the run of the time before it; a time that is due now starts at once.
                let overlaps = fate == Fate::Runs && is_busy && !moment.is_late(due);
                let fate = if overlaps { Fate::Skipped { reason: catch_up::OVERLAPS, count: 1 } } else { fate };
                consume(tx, &row, due, fate)?;
            }
            match plan.next {
                Some(next) if next > moment.now => next_time::first_free(tx, &row, &series, next - 1)?,
                left => left,
            }
        }
        next => next,
    };
    let state = if next.is_some() { State::Active } else { State::Ended };
    table::set_state(tx, id, state, None, next)?;
    table::delete_old(tx, id, KEPT_MAX)?;
    start_next(tx, context, id)
}

/// Records a time that has come.
fn consume(tx: &mut WriteTx<'_>, row: &Schedule, due: i64, fate: Fate) -> Result<(), Error> {
    let (state, reason, count) = match fate {
        Fate::Runs => (OccurrenceState::Scheduled, None, 1),
        Fate::Skipped { reason, count } => (OccurrenceState::Skipped, Some(reason), count),
    };
    if state == OccurrenceState::Scheduled {
        // A clock that was ahead missed it.
        table::forget_missed_at(tx, row.id, due)?;
    }
    let new = NewOccurrence { schedule: row.id, due, state, reason, count, by: None };
    // A time that has a row already is consumed.
    let inserted = table::insert_occurrence(tx, new)?;
    if let (Some(_), Some(reason)) = (inserted, reason) {
        record_skipped(tx, row, due, count, reason)?;
    }
    Ok(())
}

/// Starts the oldest occurrence of a schedule that waits, unless another one runs. Returns the session to wake.
///
/// # Errors
/// Errors of the host.
pub fn start_next(
    tx: &mut WriteTx<'_>,
    context: &Context<'_>,
    id: ScheduleId,
) -> Result<Option<SessionId>, ironclaw_store::error::Error> {
    while !is_running(tx, id)? {
        let Some(row) = schedules::find(tx, id)? else { return Ok(None) };
        let waiting = table::open_of(tx, id)?.into_iter().find(|open| open.state == OccurrenceState::Scheduled);
        let Some(waiting) = waiting else { return Ok(None) };
        if matches!(row.state, State::Paused | State::Removed) {
            outcome::settle(tx, &row, &waiting, OccurrenceState::Skipped, Some(row.state.name()), None)?;
            continue;
        }
        if let Some(session) = start::start(tx, context, &row, &waiting)? {
            return Ok(Some(session));
        }
    }
    Ok(None)
}

/// Starts a run by hand. It counts as a time of now, and moves no other time.
///
/// # Errors
/// Refuses a removed schedule, and one that runs already.
pub fn run_by_hand(
    tx: &mut WriteTx<'_>,
    context: &Context<'_>,
    row: &Schedule,
    by: PersonId,
) -> Result<(i64, Option<SessionId>), ironclaw_store::refusal::Denied<ironclaw_store::error::Error>> {
    if row.state == State::Removed {
        return Err(schedules::wrong_state(row, "it is removed").into());
    }
    if is_busy(tx, row.id)? {
        return Err(schedules::wrong_state(row, "an earlier occurrence still runs").into());
    }
    let mut due = tx.wall();
    loop {
        let new = NewOccurrence {
            schedule: row.id,
            due,
            state: OccurrenceState::Scheduled,
            reason: None,
            count: 1,
            by: Some(by),
        };
        match table::insert_occurrence(tx, new)? {
            Some(_) => break,
            None => due += 1,
        }
    }
    let waiting = table::open_of(tx, row.id)?;
    let session = match waiting.iter().find(|open| open.due == due) {
        Some(waiting) => start::start(tx, context, row, waiting)?,
        None => None,
    };
    Ok((due, session))
}

/// Resumes a paused schedule for a person.
///
/// # Errors
/// Refuses as [`schedules::resume`] does, and while no run of the schedule may start until a person acts.
pub fn resume(
    tx: &mut WriteTx<'_>,
    context: &Context<'_>,
    row: &Schedule,
    by: &Person,
) -> Result<i64, ironclaw_store::refusal::Denied> {
    let refused = refused_now(tx, context, row)?.filter(|refused| refused.pauses && row.state == State::Paused);
    match refused {
        Some(Refused { reason, .. }) => {
            let refusal = schedules::wrong_state(row, &format!("no run of it may start: {reason}"));
            Err(refusal.hint(remedy_for(tx, by, row, reason)?).into())
        }
        None => schedules::resume(tx, row, schedules::By::Person(by.id)),
    }
}

/// Pauses every active schedule of a record that was put back to an earlier state, and marks its open occurrences as unknown.
pub fn pause_restored(tx: &mut WriteTx<'_>) -> Result<usize, Error> {
    for open in table::open(tx)? {
        if let Some(row) = schedules::find(tx, open.schedule)? {
            outcome::settle(tx, &row, &open, OccurrenceState::Unknown, Some(schedules::RESTORED), None)?;
        }
    }
    let active = table::active(tx)?;
    let mut creators = BTreeSet::new();
    for id in &active {
        let Some(row) = schedules::find(tx, *id)? else { continue };
        pause(tx, &row, schedules::RESTORED)?;
        creators.extend(schedules::creator(tx, &row)?.map(|creator| creator.id));
    }
    let now = tx.wall();
    for creator in creators {
        notifications::add(tx, creator, Notification::new(About::SchedulesPaused, "schedules"), now)?;
    }
    Ok(active.len())
}

/// Pauses a schedule by the host.
fn pause(tx: &mut WriteTx<'_>, row: &Schedule, reason: &str) -> Result<(), Error> {
    match schedules::pause(tx, row, schedules::By::Host, reason) {
        Ok(()) | Err(ironclaw_store::refusal::Denied::Refused(_)) => Ok(()),
        Err(ironclaw_store::refusal::Denied::Failed(error)) => Err(error),
    }
}

fn record_skipped(tx: &mut WriteTx<'_>, row: &Schedule, due: i64, count: u64, reason: &str) -> Result<(), Error> {
    Entry::new(LedgerEvent::ScheduleSkipped)
        .with("schedule", row.id)
        .with("due", ironclaw_ledger::rfc3339(due))
        .with("count", count)
        .reason(reason)
        .append(tx)?;
    Ok(())
}

/// Returns whether an occurrence of the schedule waits or its agent still works on one.
fn is_busy(tx: &ReadTx<'_>, id: ScheduleId) -> Result<bool, Error> {
    let waits = table::open_of(tx, id)?.iter().any(|open| open.state == OccurrenceState::Scheduled);
    Ok(waits || is_running(tx, id)?)
}

/// Returns whether the agent still works on an occurrence. A reply on its way to its receipt does not count.
fn is_running(tx: &ReadTx<'_>, id: ScheduleId) -> Result<bool, Error> {
    for open in table::open_of(tx, id)? {
        if let Some(message) = open.message
            && crate::channels::inbound::inbox::find(tx, message)?.is_some_and(|message| message.waits_for_an_answer())
        {
            return Ok(true);
        }
    }
    Ok(false)
}
