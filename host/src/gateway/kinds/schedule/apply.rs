//! Adds a schedule or changes one. The next time is the first one after now, so no passed time runs.

use super::super::kind::{Apply, Prepared, concerned, gone, incomplete};
use super::{recurrence_text, series};
use crate::gateway::decide::proof::Approved;
use crate::gateway::writers;
use crate::registry::Agent;
use crate::registry::schedules::{self, State, names};
use ironclaw_contract::ids::ScheduleId;
use ironclaw_contract::seam::change::{RunContext, Schedule};
use ironclaw_operator::DenialCode;
use ironclaw_state::WriteTx;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::facts;

impl Apply for Schedule {
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let agent = concerned(tx, approved)?;
        match self.id {
            None => add(tx, approved, &agent, self),
            Some(id) => change(tx, approved, &agent, id, self),
        }
    }
}

fn add(tx: &mut WriteTx<'_>, approved: &Approved, agent: &Agent, wanted: &Schedule) -> Result<String, Denied> {
    let mut new = row(tx, approved, agent, wanted)?;
    schedules::check_room(tx, new.creator, 1)?;
    // Another schedule may have got the name since the request.
    new.name = names::free_now(tx, agent.id, new.creator, &new.name)?;
    writers::schedules::add(tx, approved, &new)?;
    Ok(format!("agent {} has the schedule {}", agent.name, new.id))
}

fn change(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: &Agent,
    id: ScheduleId,
    wanted: &Schedule,
) -> Result<String, Denied> {
    let found = schedules::find(tx, id)?.filter(|row| row.agent == agent.id && row.state != State::Removed);
    let was = found.ok_or_else(|| gone(format!("schedule {id}")))?;
    let new = row(tx, approved, agent, wanted)?;
    let is_paused = was.state == State::Paused;
    let new = schedules::Schedule {
        id,
        name: wanted.name.clone().unwrap_or_else(|| was.name.clone()),
        change: was.change,
        state: if is_paused { State::Paused } else { State::Active },
        reason: was.reason.clone().filter(|_| is_paused),
        next_due: new.next_due.filter(|_| !is_paused),
        failing_since: was.failing_since,
        created_at: was.created_at,
        ..new
    };
    writers::schedules::replace(tx, approved, &was, &new)?;
    Ok(format!("schedule {id} of agent {} changed", agent.name))
}

/// Returns the row of a new, active schedule.
fn row(tx: &WriteTx<'_>, approved: &Approved, agent: &Agent, wanted: &Schedule) -> Result<schedules::Schedule, Denied> {
    let series = series(wanted).ok_or_else(incomplete)?;
    let (kind, recurrence) = recurrence_text(wanted).ok_or_else(incomplete)?;
    let Schedule { name, prompt, zone, catch_up, may, flows, context, .. } = wanted.clone();
    let Schedule { reply_to, creator, written_by, .. } = wanted.clone();
    let (prompt, reply_to) = (prompt.ok_or_else(incomplete)?, reply_to.ok_or_else(incomplete)?);
    let now = tx.wall();
    let Some(next) = series.next_after(now) else {
        return Err(Refusal::new(DenialCode::ChangeOutdated, "the time of the schedule has passed").into());
    };
    Ok(schedules::Schedule {
        id: ScheduleId::new(),
        // A change of an earlier version has no name, flow or context.
        name: name.unwrap_or_else(|| names::from_words(&prompt)),
        agent: agent.id,
        creator: creator.ok_or_else(incomplete)?,
        change: approved.id(),
        prompt,
        written_by: written_by.ok_or_else(incomplete)?,
        kind: kind.as_str().to_owned(),
        recurrence: recurrence.to_owned(),
        zone: zone.ok_or_else(incomplete)?,
        anchor: series.anchor,
        catch_up: catch_up.ok_or_else(incomplete)?,
        may: may.ok_or_else(incomplete)?,
        flows: flows.unwrap_or_default(),
        context: context.unwrap_or(RunContext::Fresh),
        channel: reply_to.channel,
        platform_id: reply_to.address,
        thread_id: reply_to.thread.unwrap_or_default(),
        state: State::Active,
        reason: None,
        next_due: Some(next),
        attended_at: facts::schedules_attended(tx)?,
        failing_since: None,
        created_at: now,
    })
}
