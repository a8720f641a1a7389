//! The schedules of an agent.

use super::approved_entry;
use crate::gateway::decide::proof::Approved;
use crate::registry::schedules::{Schedule, digest};
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{Error, WriteTx};
use ironclaw_store::tables::schedules as table;

/// Adds a schedule with its first time.
pub fn add(tx: &mut WriteTx<'_>, approved: &Approved, new: &Schedule) -> Result<(), Error> {
    table::insert(tx, new)?;
    approved_entry(LedgerEvent::ScheduleAdded, approved)
        .with("schedule", new.id)
        .with("agent", new.agent)
        .with("creator", new.creator)
        .with("digest", digest(new))
        .append(tx)?;
    Ok(())
}

/// Replaces the settings of a schedule, with its next time.
pub fn replace(tx: &mut WriteTx<'_>, approved: &Approved, was: &Schedule, new: &Schedule) -> Result<(), Error> {
    table::update(tx, new)?;
    approved_entry(LedgerEvent::ScheduleChanged, approved)
        .with("schedule", new.id)
        .with("agent", new.agent)
        .with("before", digest(was))
        .with("after", digest(new))
        .append(tx)?;
    Ok(())
}
