//! The next time of a schedule, computed again: the clock may have been ahead, and the rules of a zone may have changed.
//!
//! A time that has a row never comes again, except for one that was only missed. See `crate::runtime::schedules::worker`, which calls it
//! at a start, once an hour, and after the clock was set back.

use super::catch_up::Moment;
use super::{Schedule, State, find, series};
use ironclaw_calendar::Series;
use ironclaw_contract::ids::ScheduleId;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{Error, ReadTx, WriteTx};
use ironclaw_store::tables::facts;
use ironclaw_store::tables::schedules as table;

/// The host records the time up to which it dealt with schedules once in this time, in milliseconds.
pub const ATTENDED_RECORDED_EVERY_MS: i64 = 600_000;

/// Returns the first time of a schedule after an instant that has no row.
pub fn first_free(tx: &ReadTx<'_>, row: &Schedule, series: &Series, after: i64) -> Result<Option<i64>, Error> {
    let mut next = series.next_after(after.max(row.anchor));
    while let Some(due) = next {
        if !table::is_taken(tx, row.id, due)? {
            break;
        }
        next = series.next_after(due);
    }
    Ok(next)
}

/// Returns the next time of an active schedule by the present clock and the present rules of its zone, for a list.
pub fn shown(tx: &ReadTx<'_>, row: &Schedule, series: &Series) -> Result<Option<i64>, Error> {
    let now = tx.wall();
    match row.next_due {
        Some(_) => expected(tx, row, series, now, facts::schedules_attended(tx)?.unwrap_or(now)),
        None => Ok(None),
    }
}

/// Returns the next time that a schedule should have. Each time up to `attended` was dealt with.
pub fn expected(
    tx: &ReadTx<'_>,
    row: &Schedule,
    series: &Series,
    now: i64,
    attended: i64,
) -> Result<Option<i64>, Error> {
    match row.next_due {
        Some(held) if series.has(held) && held <= now => Ok(Some(held)),
        // By other rules of the zone, its time may have come while the host was stopped.
        Some(held) if !series.has(held) => first_free(tx, row, series, now.min(attended).min(held - 1)),
        Some(_) | None => first_free(tx, row, series, now),
    }
}

/// Returns the time up to which the host dealt with this schedule, of the time up to which it dealt with schedules. A schedule whose next
/// time was counted after the clock was set back has its own times up to there.
pub fn attended(row: &Schedule, attended: i64) -> i64 {
    let is_newer = |at: i64| attended.saturating_sub(at) > ATTENDED_RECORDED_EVERY_MS;
    if row.attended_at.is_none_or(is_newer) { attended } else { i64::MIN }
}

/// Returns whether [`correct`] would change something.
pub fn is_wrong(tx: &ReadTx<'_>, row: &Schedule, moment: &Moment) -> Result<bool, Error> {
    let series = series(row)?;
    Ok(expected(tx, row, &series, moment.now, moment.attended)? != row.next_due
        || table::has_missed_after(tx, row.id, moment.now.max(moment.attended))?)
}

/// Computes the next time again, and forgets times that were missed only by a clock that was ahead. A schedule whose single time was
/// missed only by that clock is active again.
pub fn correct(tx: &mut WriteTx<'_>, id: ScheduleId, moment: &Moment) -> Result<(), Error> {
    let found = find(tx, id)?.filter(|row| matches!(row.state, State::Active | State::Ended));
    let Some(row) = found else { return Ok(()) };
    let series = series(&row)?;
    let until = moment.now.max(moment.attended);
    if table::has_missed_after(tx, id, until)? {
        table::forget_missed_after(tx, id, until)?;
        if let Some(joined) = table::joined_until(tx, id, until)? {
            let count = series.count_between(joined.due - 1, until).clamp(1, joined.count);
            table::set_count(tx, joined.ordinal, count)?;
        }
    }
    let next = expected(tx, &row, &series, moment.now, moment.attended)?;
    if next == row.next_due {
        return Ok(());
    }
    let state = if next.is_some() { State::Active } else { State::Ended };
    table::set_state(tx, id, state, None, next)?;
    let entry = Entry::new(LedgerEvent::ScheduleRetimed).with("schedule", id);
    match next {
        Some(next) => entry.with("next", ironclaw_ledger::rfc3339(next)).append(tx)?,
        None => entry.append(tx)?,
    };
    Ok(())
}
