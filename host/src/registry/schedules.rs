//! Schedules of agents: their rows, times and states, each change with its ledger entry.
//!
//! Never runs one and never decides who may have one. See `crate::runtime::schedules` for the runs, `gateway::kinds` for the changes, and
//! [`ironclaw_calendar`] for the times.

pub mod catch_up;
pub mod flows;
pub mod names;
pub mod next_time;

use super::{Agent, Identity, Person, Role, person_by_id};
use ironclaw_calendar::{Kind, Recurrence, Series, Zone};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, PersonId, ScheduleId};
use ironclaw_contract::seam::change::{self, ReplyTo, RunContext};
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent};
use ironclaw_state::{Error, ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::facts;
use ironclaw_store::tables::schedules as table;
use ironclaw_store::tables::sessions::{Origin, ScheduleRuns};
use ironclaw_text::excerpt::quoted;
use serde_json::Value;
use std::fmt::Display;

pub use ironclaw_store::tables::schedules::{
    Occurrence, OccurrenceState, Schedule, State, added_by_change, all, failing, find, last_settled, list_for_creator,
    occurrence_for_message, occurrences_of, paused,
};

const OF_PERSON_MAX: u64 = 1000;

/// The reason of a schedule that its agent paused. The agent may resume only such a schedule.
pub const PAUSED_BY_AGENT: &str = "agent";

/// The reason of a schedule that a person paused.
pub const PAUSED_BY_PERSON: &str = "person";

/// The reason of the schedules of a record that was put back to an earlier state.
pub const RESTORED: &str = "restored";

/// The origin of a command about a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Person(PersonId),
    /// The agent of the schedule.
    Agent(AgentId),
    Host,
}

impl By {
    fn value(self) -> Value {
        match self {
            Self::Person(person) => person.into(),
            Self::Agent(agent) => agent.into(),
            Self::Host => "host".into(),
        }
    }
}

/// Returns the times of a schedule.
///
/// # Errors
/// Fails if the row has a recurrence or a zone that this version does not write.
pub fn series(row: &Schedule) -> Result<Series, Error> {
    let read = || {
        let kind: Kind = row.kind.parse()?;
        let (recurrence, zone) = (Recurrence::parse(kind, &row.recurrence)?, Zone::parse(&row.zone)?);
        Ok(Series { recurrence, zone, anchor: row.anchor })
    };
    read().map_err(|error: ironclaw_calendar::CalendarError| Error::Stored(format!("{}: {error}", row.id)))
}

/// Returns the settings of a schedule in the shape of the payload of a change.
pub fn payload(row: &Schedule) -> change::Schedule {
    let of_kind = |kind: Kind| (row.kind == kind.as_str()).then(|| row.recurrence.clone());
    let thread = Some(row.thread_id.clone()).filter(|thread| !thread.is_empty());
    change::Schedule {
        id: Some(row.id),
        name: Some(row.name.clone()),
        prompt: Some(row.prompt.clone()),
        cron: of_kind(Kind::Cron),
        every: of_kind(Kind::Every),
        at: of_kind(Kind::At),
        zone: Some(row.zone.clone()),
        catch_up: Some(row.catch_up),
        may: Some(row.may.clone()),
        flows: Some(row.flows.clone()),
        context: Some(row.context),
        reply_to: Some(ReplyTo { channel: row.channel.clone(), address: row.platform_id.clone(), thread }),
        from: Some(ironclaw_ledger::rfc3339(row.anchor)),
        creator: Some(row.creator),
        written_by: Some(row.written_by),
    }
}

/// Returns the conversation of the replies as people write it.
pub fn reply_to(row: &Schedule) -> String {
    match row.thread_id.as_str() {
        "" => format!("{}:{}", row.channel, row.platform_id),
        thread => format!("{}:{}#{thread}", row.channel, row.platform_id),
    }
}

/// Returns the schedule of this id, if the person may see it: its creator, and owners and admins of the host.
///
/// # Errors
/// Refuses an unknown schedule. The refusal is the same for a schedule of another person, so that ids cannot be probed.
pub fn known(tx: &ReadTx<'_>, by: &Person, id: ScheduleId) -> Result<Schedule, Denied> {
    let found = find(tx, id)?.filter(|row| row.creator == by.id || by.role.covers(Role::Admin));
    found.ok_or_else(|| unknown(id).into())
}

/// Returns the refusal of an id that no schedule has.
pub fn unknown(id: impl Display) -> Refusal {
    let refusal = Refusal::new(DenialCode::ScheduleUnknown, format!("there is no schedule {}", quoted(id)));
    refusal.hint("`ironctl schedule list` lists the schedules")
}

/// Refuses more schedules than a person may have, before a change adds this number.
pub fn check_room(tx: &ReadTx<'_>, creator: PersonId, added: u64) -> Result<(), Denied> {
    let bound = bound(tx, creator)?;
    if bound.count + added <= OF_PERSON_MAX {
        return Ok(());
    }
    Err(Refusal::over(DenialCode::ScheduleTooMany, bound).into())
}

/// Returns the bound on the schedules of a person, with their count.
pub fn bound(tx: &ReadTx<'_>, creator: PersonId) -> Result<Bound, ironclaw_state::Error> {
    let held = table::count_of_creator(tx, creator)?;
    let remedy = "remove some: `ironctl schedule list`, `ironctl schedule remove SCHEDULE`";
    Ok(Bound::new("schedules of one person", OF_PERSON_MAX, held, remedy))
}

/// Returns the digest of the settings of a schedule, for the ledger.
pub fn digest(row: &Schedule) -> Digest {
    Digest::of(&canonical::to_vec(&payload(row)))
}

/// Pauses an active schedule.
///
/// # Errors
/// Refuses a schedule that is not active.
pub fn pause(tx: &mut WriteTx<'_>, row: &Schedule, by: By, reason: &str) -> Result<(), Denied> {
    if row.state != State::Active {
        return Err(wrong_state(row, "it is not active").into());
    }
    table::set_state(tx, row.id, State::Paused, Some(reason), None)?;
    entry(LedgerEvent::SchedulePaused, row, by).reason(reason).append(tx)?;
    Ok(())
}

/// Resumes a paused schedule. Its next time is the first one after now: no passed time runs.
///
/// # Errors
/// Refuses a schedule that is not paused, or that has no further time.
pub fn resume(tx: &mut WriteTx<'_>, row: &Schedule, by: By) -> Result<i64, Denied> {
    if row.state != State::Paused {
        return Err(wrong_state(row, "it is not paused").into());
    }
    let Some(next) = next_time::first_free(tx, row, &series(row)?, tx.wall())? else {
        return Err(wrong_state(row, "its time has passed").into());
    };
    table::set_state(tx, row.id, State::Active, None, Some(next))?;
    let attended = facts::schedules_attended(tx)?;
    table::set_attended_at(tx, row.id, attended)?;
    entry(LedgerEvent::ScheduleResumed, row, by).append(tx)?;
    Ok(next)
}

/// Removes a schedule. Its prompt is erased, and its history stays.
///
/// # Errors
/// Refuses a schedule that was removed already.
pub fn remove(tx: &mut WriteTx<'_>, row: &Schedule, by: By) -> Result<(), Denied> {
    if row.state == State::Removed {
        return Err(wrong_state(row, "it is removed").into());
    }
    table::set_state(tx, row.id, State::Removed, None, None)?;
    entry(LedgerEvent::ScheduleRemoved, row, by).append(tx)?;
    Ok(())
}

/// Returns the refusal of a command that needs another state.
pub fn wrong_state(row: &Schedule, why: &str) -> Refusal {
    let refusal = Refusal::new(DenialCode::ScheduleState, format!("schedule {}: {why}", row.id));
    refusal.hint(format!("`ironctl schedule show {}` shows its state", row.id))
}

fn entry(event: LedgerEvent, row: &Schedule, by: By) -> Entry {
    Entry::new(event).with("schedule", row.id).with("agent", row.agent).with("by", by.value())
}

/// Returns the identity of the creator that a run of the schedule has on the channel of its replies.
pub fn identity(tx: &ReadTx<'_>, row: &Schedule) -> Result<Option<Identity>, Error> {
    let own = ironclaw_store::tables::people::identities_of(tx, row.creator)?;
    let on_channel = || own.iter().filter(|identity| identity.channel == row.channel);
    let same = on_channel().find(|identity| identity.sender == row.platform_id);
    Ok(same.or_else(|| on_channel().next()).cloned())
}

/// Returns the origin of the session of the runs of a schedule. Its replies go to the address of the origin.
pub fn origin(row: &Schedule) -> Origin {
    let runs = match row.context {
        RunContext::Fresh => ScheduleRuns::Fresh,
        RunContext::Continue => ScheduleRuns::Continued(row.id),
    };
    let origin = Origin::from_sender(row.channel.clone(), row.platform_id.clone(), row.thread_id.clone());
    Origin { runs, ..origin }
}

/// Returns the reason of a schedule that the host paused.
pub fn paused_by_host(row: &Schedule) -> Option<&str> {
    let reason = row.reason.as_deref().filter(|reason| ![PAUSED_BY_AGENT, PAUSED_BY_PERSON].contains(reason));
    reason.filter(|_| row.state == State::Paused)
}

/// Returns whether the agent of a schedule asked for it.
pub fn is_by_agent(row: &Schedule) -> bool {
    row.written_by == change::WrittenBy::Model
}

/// Returns a schedule of an agent that it asked for on behalf of a person.
///
/// # Errors
/// Refuses any other schedule.
pub fn find_asked_for(tx: &ReadTx<'_>, agent: &Agent, person: PersonId, id: ScheduleId) -> Result<Schedule, Denied> {
    let is_own = |row: &Schedule| row.agent == agent.id && row.creator == person && is_by_agent(row);
    let found = find(tx, id)?.filter(|row| is_own(row) && row.state != State::Removed);
    found.ok_or_else(|| unknown(id).into())
}

/// Returns the creator, unless the person was removed.
pub fn creator(tx: &ReadTx<'_>, row: &Schedule) -> Result<Option<Person>, Error> {
    person_by_id(tx, row.creator)
}
