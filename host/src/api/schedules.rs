//! Schedules over the API: the list, the history, the next times, and commands that start, pause, resume or remove one.
//!
//! Adds and changes none: that is a change of kind `schedule`. See [`crate::runtime::schedules`] for the runs.

use super::agents;
use super::handler::{Answer, Api, Caller, Reply};
use crate::registry::schedules::catch_up::LATE_MS;
use crate::registry::schedules::{self, By, Schedule as Row, flows, names, next_time};
use crate::registry::{self, Person};
use crate::runtime::schedules::{self as runs, Context, attendance, refused_now, run_by_hand};
use axum::Json;
use axum::extract::{Path, Query};
use ironclaw_calendar::Series;
use ironclaw_contract::ids::{AgentId, MessageId};
use ironclaw_operator::{DryRun, NextRun, Occurrence, OccurrenceOf, ScheduleFlow, ScheduleView};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied};
use ironclaw_store::tables::facts;
use ironclaw_store::tables::schedules::due;
use serde::Deserialize;

/// Times of a dry run.
const NEXT_MAX: usize = 10;

const DAY_MS: i64 = 24 * 3_600_000;

/// Occurrences in one answer.
const HISTORY_MAX: usize = 1000;

/// Query of `GET /v1/schedules`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ListQuery {
    /// An agent by name or id; only its schedules.
    #[serde(default)]
    agent: Option<String>,
}

/// `GET /v1/schedules?agent=A`: the caller's schedules; for an owner or admin everyone's.
pub async fn list(Caller { api, person, .. }: Caller, Query(query): Query<ListQuery>) -> Reply<Vec<ScheduleView>> {
    let agent: Option<AgentId> = match query.agent {
        Some(agent) => Some(agents::find(&api, &person, agent).await?.id),
        None => None,
    };
    let found = api.state().read(move |tx| {
        let all = schedules::all(tx)?.into_iter();
        let is_seen = |row: &Row| row.creator == person.id || person.role.covers(registry::Role::Admin);
        let seen = all.filter(|row| is_seen(row) && agent.is_none_or(|agent| agent == row.agent));
        seen.map(|row| view(tx, &person, &row)).collect::<Result<Vec<_>, _>>()
    });
    Ok(Json(found.await.map_err(|error: ironclaw_state::Error| Answer::from(error))?))
}

/// `GET /v1/schedules/{id}`
pub async fn show(Caller { api, person, .. }: Caller, Path(named): Path<String>) -> Reply<ScheduleView> {
    let found = api.state().read(move |tx| {
        let row = names::known(tx, &person, &named)?;
        Ok::<_, Denied<Error>>(view(tx, &person, &row)?)
    });
    Ok(Json(found.await?))
}

/// `GET /v1/schedules/{id}/occurrences`: oldest first.
pub async fn history(Caller { api, person, .. }: Caller, Path(named): Path<String>) -> Reply<Vec<Occurrence>> {
    let found = api.state().read(move |tx| {
        let row = names::known(tx, &person, &named)?;
        let series = schedules::series(&row)?;
        let all = schedules::occurrences_of(tx, row.id, HISTORY_MAX)?;
        let shown = all.iter().map(|found| occurrence(tx, &series, found)).collect::<Result<Vec<_>, _>>()?;
        Ok::<_, Denied<Error>>(shown)
    });
    Ok(Json(found.await?))
}

/// `GET /v1/schedules/{id}/next`: the next times, and what a run may do. Starts nothing.
pub async fn next(Caller { api, person, .. }: Caller, Path(named): Path<String>) -> Reply<DryRun> {
    let own = api.clone();
    let found = api.state().read(move |tx| {
        let row = names::known(tx, &person, &named)?;
        let series = schedules::series(&row)?;
        let settings = own.inbound.settings.now();
        let refused = refused_now(tx, &context(&own, &settings), &row)?;
        let after = next_time::shown(tx, &row, &series)?.map_or_else(|| tx.wall(), |due| due - 1);
        let next = series.due_between(after, i64::MAX, NEXT_MAX);
        let run = |due: &i64| NextRun { due: ironclaw_ledger::rfc3339(*due), local: series.zone.local(*due) };
        Ok::<_, Denied<Error>>(DryRun {
            id: row.id,
            next: next.iter().map(run).collect(),
            may: row.may.clone(),
            flows: shown_flows(tx, &row)?,
            reply_to: schedules::reply_to(&row),
            remedy: refused.map(|refused| runs::remedy_for(tx, &person, &row, refused.reason)).transpose()?,
            refused: refused.map(|refused| refused.reason.to_owned()),
        })
    });
    Ok(Json(found.await?))
}

/// `POST /v1/schedules/{id}/run`: starts a run now, on behalf of the creator.
pub async fn run(Caller { api, person, .. }: Caller, Path(named): Path<String>) -> Reply<Occurrence> {
    let own = api.clone();
    let started = api.state().decide(move |tx| {
        let row = names::known(tx, &person, &named)?;
        let id = row.id;
        let settings = own.inbound.settings.now();
        let (due, session) = run_by_hand(tx, &context(&own, &settings), &row, person.id)?;
        let all = schedules::occurrences_of(tx, id, HISTORY_MAX)?;
        let found = all.iter().find(|found| found.due == due);
        let found = found.ok_or_else(|| ironclaw_state::Error::Stored(format!("{id} has no run of {due}")))?;
        Ok::<_, Denied<Error>>((occurrence(tx, &schedules::series(&row)?, found)?, session))
    });
    let (shown, session) = started.await?;
    if let Some(session) = session {
        api.inbound.wake.wake(session);
    }
    Ok(Json(shown))
}

/// `POST /v1/schedules/{id}/pause`
pub async fn pause(Caller { api, person, .. }: Caller, Path(named): Path<String>) -> Reply<ScheduleView> {
    changed(&api, person, named, |tx, row, by| schedules::pause(tx, row, by, schedules::PAUSED_BY_PERSON)).await
}

/// `POST /v1/schedules/{id}/resume`: its next time is the first one after now. Refused while no run may start.
pub async fn resume(Caller { api, person, .. }: Caller, Path(named): Path<String>) -> Reply<ScheduleView> {
    let (own, by) = (api.clone(), person.clone());
    let resume = move |tx: &mut WriteTx<'_>, row: &Row, _: By| {
        let settings = own.inbound.settings.now();
        runs::resume(tx, &context(&own, &settings), row, &by).map(drop)
    };
    changed(&api, person, named, resume).await
}

/// `DELETE /v1/schedules/{id}`: its history stays.
pub async fn remove(Caller { api, person, .. }: Caller, Path(named): Path<String>) -> Reply<ScheduleView> {
    changed(&api, person, named, schedules::remove).await
}

/// Changes the state of a schedule, and returns it.
async fn changed(
    api: &Api,
    person: Person,
    named: String,
    change: impl FnOnce(&mut WriteTx<'_>, &Row, By) -> Result<(), Denied> + Send + 'static,
) -> Reply<ScheduleView> {
    let changed = api.state().decide(move |tx| {
        let row = names::known(tx, &person, &named)?;
        change(tx, &row, By::Person(person.id))?;
        let row = schedules::known(tx, &person, row.id)?;
        Ok::<_, Denied<Error>>(view(tx, &person, &row)?)
    });
    Ok(Json(changed.await?))
}

/// Returns a warning if late times of schedules wait, because the clock is far ahead of the last time that a host ran.
pub(super) async fn waiting_for_the_clock(api: &Api) -> Result<Option<String>, Answer> {
    let look = api.state().read(|tx| {
        let (now, attended) = (tx.wall(), facts::schedules_attended(tx)?);
        let stopped = attended.filter(|attended| !attendance::is_trusted_stop(*attended, now));
        let waits = stopped.is_some() && !due(tx, now - LATE_MS, 1)?.is_empty();
        Ok::<_, ironclaw_state::Error>(stopped.filter(|_| waits).map(|attended| (now - attended) / DAY_MS))
    });
    let days = look.await.map_err(Answer::from)?;
    Ok(days.map(|days| {
        format!(
            "this machine's clock is {days} days ahead of the last time that this host ran: late times of schedules run \
             once it has been steady for an hour; if it is wrong, set it"
        )
    }))
}

fn context<'a>(api: &'a Api, settings: &'a crate::registry::live_settings::LiveSettings) -> Context<'a> {
    Context {
        record: &api.record,
        settings,
        sessions_max: api.inbound.sessions_max,
        is_stopped: api.stops.latch.is_shut(),
    }
}

pub(super) fn view(tx: &ReadTx<'_>, person: &Person, row: &Row) -> Result<ScheduleView, ironclaw_state::Error> {
    let series = schedules::series(row)?;
    let next = next_time::shown(tx, row, &series)?;
    let agent = registry::agent_name(tx, row.agent)?;
    Ok(ScheduleView {
        id: row.id,
        name: row.name.clone(),
        agent,
        creator: registry::person_name(tx, row.creator)?,
        prompt: row.prompt.clone(),
        written_by: row.written_by,
        recurrence: format!("{} {}", row.kind, row.recurrence),
        zone: row.zone.clone(),
        catch_up: row.catch_up,
        may: row.may.clone(),
        flows: shown_flows(tx, row)?,
        context: row.context,
        reply_to: schedules::reply_to(row),
        state: row.state,
        reason: row.reason.clone(),
        remedy: schedules::paused_by_host(row).map(|reason| runs::remedy_for(tx, person, row, reason)).transpose()?,
        last: schedules::last_settled(tx, row.id)?.map(|last| occurrence(tx, &series, &last)).transpose()?,
        next: next.map(ironclaw_ledger::rfc3339),
        next_local: next.map(|due| series.zone.local(due)),
        failing_since: row.failing_since.map(ironclaw_ledger::rfc3339),
        change: row.change,
        created_at: ironclaw_ledger::rfc3339(row.created_at),
    })
}

/// Returns the line of the status about schedules that fail or that the host paused.
pub(super) async fn troubled(api: &Api) -> Result<Option<String>, Answer> {
    let look = api.state().read(|tx| {
        let failing = schedules::failing(tx)?;
        let failing: Vec<&str> = failing.iter().map(|row| row.name.as_str()).collect();
        let paused = |row: &Row| schedules::paused_by_host(row).map(|reason| format!("{} ({reason})", row.name));
        let paused: Vec<String> = schedules::paused(tx)?.iter().filter_map(paused).collect();
        Ok::<_, ironclaw_state::Error>(trouble(&failing, &paused))
    });
    look.await.map_err(Answer::from)
}

/// Returns the words about failing and paused schedules, with the first names of each.
fn trouble(failing: &[&str], paused: &[String]) -> Option<String> {
    let failing = match failing {
        [] => None,
        [one] => Some(format!("schedule {one} fails")),
        [first, ..] => Some(format!("{} schedules fail, among them {first}", failing.len())),
    };
    let paused = match paused {
        [] => None,
        [one] => Some(format!("the host paused schedule {one}")),
        [first, ..] => Some(format!("the host paused {} schedules, among them {first}", paused.len())),
    };
    let words: Vec<String> = [failing, paused].into_iter().flatten().collect();
    (!words.is_empty()).then(|| format!("{}: `ironctl schedule list`", words.join("; ")))
}

fn shown_flows(tx: &ReadTx<'_>, row: &Row) -> Result<Vec<ScheduleFlow>, ironclaw_state::Error> {
    let shown = row.flows.iter().map(|flow| {
        let lost = flows::lost(tx, row.agent, row.creator, flow)?;
        Ok(ScheduleFlow {
            tool: flow.tool.clone().unwrap_or_default(),
            to: flow.to.clone(),
            recipient: flow.recipient.clone().unwrap_or_default(),
            from: flow.from.iter().map(|source| source.directory.clone()).collect(),
            lost: lost.map(|lost| lost.name().to_owned()),
        })
    });
    shown.collect()
}

fn occurrence(
    tx: &ReadTx<'_>,
    series: &Series,
    found: &schedules::Occurrence,
) -> Result<Occurrence, ironclaw_state::Error> {
    let by = found.by.map(|by| registry::person_name(tx, by)).transpose()?;
    Ok(Occurrence {
        due: ironclaw_ledger::rfc3339(found.due),
        due_local: series.zone.local(found.due),
        state: found.state,
        reason: found.reason.clone(),
        message: found.message,
        receipt: found.receipt.map(|receipt| receipt.to_string()),
        count: found.count,
        by,
    })
}

/// Returns the occurrence that sent a message.
pub(super) fn occurrence_for_message(
    tx: &ReadTx<'_>,
    message: MessageId,
) -> Result<Option<OccurrenceOf>, ironclaw_state::Error> {
    let found = schedules::occurrence_for_message(tx, message)?;
    Ok(found.map(|found| OccurrenceOf {
        schedule: found.schedule,
        due: ironclaw_ledger::rfc3339(found.due),
        state: found.state,
        reason: found.reason,
    }))
}
