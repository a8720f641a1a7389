//! The kind `schedule`: a prompt that an agent gets at given times, and what its runs may do.
//!
//! An agent proposes it with `schedule_task`. Its list of calls is the only authority of a run: see [`crate::turns::calls`].

mod apply;
mod asked;
mod check;
mod flows;
mod page;
mod rights;
mod words;

pub(in crate::gateway) use rights::check as check_rights;
pub use rights::lost;

use super::kind::{Properties, Scope};
use ironclaw_calendar::{CalendarError, Kind, Recurrence, Series, Zone};
use ironclaw_contract::seam::change::Schedule;
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::Agent, restarts_sessions: false };

/// The tools that the prompt names and the agent does not have, among the facts.
const LACKING: &str = "lacking";

/// The classes that the prompt asks for in words that no scope needs, among the facts.
const BESIDE: &str = "beside";

/// Returns the recurrence of a payload with its kind and text; `None` if the payload has none.
fn recurrence_text(schedule: &Schedule) -> Option<(Kind, &str)> {
    [(Kind::Cron, &schedule.cron), (Kind::Every, &schedule.every), (Kind::At, &schedule.at)]
        .into_iter()
        .find_map(|(kind, text)| Some((kind, text.as_deref()?)))
}

/// Returns the times of a completed payload; `None` for any other payload.
fn series(schedule: &Schedule) -> Option<Series> {
    let (kind, text) = recurrence_text(schedule)?;
    let recurrence = Recurrence::parse(kind, text).ok()?;
    let zone = Zone::parse(schedule.zone.as_deref()?).ok()?;
    Some(Series { recurrence, zone, anchor: from(schedule)? })
}

/// Returns the time from which periods count, milliseconds since the epoch.
fn from(schedule: &Schedule) -> Option<i64> {
    let from: jiff::Timestamp = schedule.from.as_deref()?.parse().ok()?;
    Some(from.as_millisecond())
}

fn malformed(error: &CalendarError) -> Refusal {
    Refusal::new(DenialCode::ScheduleMalformed, error.to_string())
}
