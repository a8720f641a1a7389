//! The daemon and its sessions, as the kernel and the record report them.
//!
//! Shows observed state, never an intention. See `ironclaw_jail::inspect`.

use super::handler::{Answer, Api, Caller, Reply};
use super::{models, schedules, small_contexts, usage};
use crate::channels::inbound::inbox;
use crate::channels::outbound::journal;
use crate::gateway::requests;
use crate::gateway::waiting;
use crate::registry::{self, Person};
use crate::runtime::command::{ActorView, Phase};
use crate::sessions::store::{self, Origin, OriginKind, ScheduleRuns, SessionState};
use crate::turns::items;
use axum::Json;
use axum::extract::State;
use ironclaw_contract::ids::SessionId;
use ironclaw_contract::seam::change::GuardMode;
use ironclaw_jail::launcher::Process;
use ironclaw_jail::shortage::Shortage;
use ironclaw_ledger::chain;
use ironclaw_operator::{
    Bound, DamagedSkill, HostStatus, JailReport, LoweredGuard, ReaderStatus, Session, SessionPhase, SessionStatus,
    SlotCounts, Status, Stopped, Stopping, WaitingCount, WaitingKind,
};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::tables::destinations::AGENT;
use ironclaw_store::tables::{deliveries, turns};

/// Milliseconds by which the record may be ahead of the machine's clock without a warning.
const AHEAD_MS_MAX: i64 = 60_000;

/// `GET /v1/status`
pub async fn status(Caller { api, person, .. }: Caller) -> Reply<Status> {
    let sessions = sessions(&api).await?;
    let entries = api.record.state.read(chain::next_seq).await?;
    let mut warnings = shortage_warnings(&api);
    let agents = api.record.state.read(|tx| Ok::<_, Error>(registry::agents(tx)?)).await?;
    let lowered: Vec<_> =
        agents.into_iter().filter_map(|agent| Some((registry::mode_warning(agent.mode)?, lowered(&agent)))).collect();
    for (warning, LoweredGuard { agent, mode }) in &lowered {
        warnings.push(format!("agent {agent} runs in mode {mode}: {warning}"));
    }
    warnings.extend(schedules::waiting_for_the_clock(&api).await?);
    warnings.extend(schedules::troubled(&api).await?);
    warnings.extend(usage::reached(&api).await?);
    warnings.extend(usage::unpriced(&api).await?);
    warnings.extend(models::broken(&api));
    let small_contexts = small_contexts::all(&api, &mut warnings).await?;
    let damaged_skills = api.skills.damaged().await?;
    for DamagedSkill { name, version, agents } in &damaged_skills {
        let agents = agents.join(", ");
        warnings.push(format!(
            "skill {name} {version} is damaged, so no session of {agents} starts: `ironctl skill show {name} --version {version}` \
             fetches it again"
        ));
    }
    warnings.dedup();
    warnings.extend(lost_warning(api.record.state.read(journal::lost_count).await?));
    let waiting = api.record.state.read(waiting_counts).await?;
    api.read_replies.record().await?;
    let (stopped, bounds) = (stopped(&api).await?, near_bounds(&api, person.clone()).await?);
    let (replies_unread, without_place) = api.record.state.read(move |tx| told(tx, &person)).await?;
    let (room, zone) = (api.sessions.occupancy(), api.gateway.now().host_policy.zone.clone());
    Ok(Json(Status {
        host: HostStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            home: api.about.home.path().display().to_string(),
            started_at: ironclaw_ledger::rfc3339(api.about.started_at),
            fingerprint: ironclaw_contract::seam::fingerprint(),
            launcher_pid: api.about.launcher_pid,
            ledger_entries: entries,
            warnings,
            zone: zone.zone.name().to_owned(),
            zone_doubt: zone.doubt,
        },
        sessions: sessions.into_iter().map(|session| session.status).collect(),
        stopped,
        places: SlotCounts { awake: room.awake as u64, awake_max: room.awake_max as u64, waiting: room.waiting as u64 },
        waiting,
        replies_unread,
        without_place,
        bounds,
        lowered: lowered.into_iter().map(|(_, guard)| guard).collect(),
        damaged_skills,
        small_contexts,
    }))
}

/// Returns the numbers of those that wait for people.
fn waiting_counts(tx: &ReadTx<'_>) -> Result<Vec<WaitingCount>, ironclaw_state::Error> {
    let counts = WaitingKind::ALL.map(|kind| Ok(WaitingCount { kind, count: waiting::open_count(tx, kind)? }));
    let counts = counts.into_iter().collect::<Result<Vec<_>, ironclaw_state::Error>>()?;
    Ok(counts.into_iter().filter(|of| of.count > 0).collect())
}

/// Returns the bounds that are near: on the requests of all people, and on the schedules and allowances of this one.
async fn near_bounds(api: &Api, person: Person) -> Result<Vec<Bound>, Answer> {
    let settings = api.gateway.now();
    let near = api.record.state.read(move |tx| {
        let mut all = requests::bounds::near(tx, &settings.approval)?;
        let held = [registry::schedules::bound(tx, person.id)?, requests::allowance::bound(tx, &person)?];
        all.extend(held.into_iter().filter(Bound::is_near));
        Ok::<_, ironclaw_state::Error>(all)
    });
    Ok(near.await?)
}

/// Returns the warning about answers that did not arrive.
fn lost_warning(lost: u64) -> Option<String> {
    match lost {
        0 => None,
        1 => Some("1 answer did not arrive, or may not have: `ironctl delivery list`".to_owned()),
        lost => Some(format!("{lost} answers did not arrive, or may not have: `ironctl delivery list`")),
    }
}

/// Returns the emergency stop, if one is on.
async fn stopped(api: &Api) -> Result<Option<Stopped>, Answer> {
    let stopped = api.stops.stopped().await?;
    Ok(stopped.map(|stopped| Stopped { since: ironclaw_ledger::rfc3339(stopped.at), by: stopped.by }))
}

/// Returns the number of unread replies to a person, and the names of the people who have no place to be told.
fn told(tx: &ReadTx<'_>, person: &Person) -> Result<(u64, Vec<String>), ironclaw_state::Error> {
    let unread = deliveries::unseen_by_session(tx, person.id)?.iter().map(|unseen| unseen.count).sum();
    let places = registry::places::places(tx)?;
    let has_none = |person: &Person| !places.iter().any(|(of, _)| *of == person.id);
    let without = registry::people(tx)?.into_iter().filter(has_none).map(|person| person.name).collect();
    Ok((unread, without))
}

fn lowered(agent: &registry::Agent) -> LoweredGuard {
    LoweredGuard { agent: agent.name.clone(), mode: agent.mode }
}

/// Returns the warnings of the start, one for each resource that the host lacks, and one for a record that cannot be written.
fn shortage_warnings(api: &Api) -> Vec<String> {
    let mut said = api.about.warnings.clone();
    said.extend(api.about.head_publisher.warnings());
    said.extend(api.gateway.now().host_policy.zone.warning());
    if api.record.state.metrics().failing_commits() > 0 {
        said.push(format!("the record cannot be written: {}", Error::UNWRITTEN_HINT));
    }
    let ahead_ms = api.record.state.ahead_ms();
    if ahead_ms > AHEAD_MS_MAX {
        said.push(format!(
            "this machine's clock was ahead earlier, or is behind now: ledger times stay {} s ahead of it until it catches up; \
             schedules, days, ceilings and expiry use the machine's clock",
            ahead_ms / 1000
        ));
    }
    if let Some(shortage) = api.sessions.shortage() {
        said.push(format!("work waits, and continues by itself once there is room; {}", shortage_text(shortage)));
    }
    said
}

/// `POST /v1/stop`
pub async fn stop(State(api): State<Api>) -> Reply<Stopping> {
    // Open requests are answered and further ones find no server, while the sessions end.
    api.about.shutdown.finish();
    Ok(Json(Stopping { stopping: true }))
}

/// Returns every session, with the kernel's report of the awake ones.
pub async fn sessions(api: &Api) -> Result<Vec<Session>, Error> {
    let rows = api
        .record
        .state
        .read(|tx| store::all(tx)?.into_iter().map(|row| described(tx, row)).collect::<Result<Vec<_>, Error>>())
        .await?;
    Ok(rows.into_iter().map(|row| with_kernel(api, row)).collect())
}

/// Returns one session as the record has it.
pub fn described(tx: &ReadTx<'_>, row: store::Session) -> Result<Session, Error> {
    let agent = registry::agent_by_id(tx, row.agent)?;
    let turn_id = turns::open_id(tx, row.id)?;
    let person_name = row.person.map(|person| registry::person_name(tx, person)).transpose()?;
    let state = match row.standing {
        SessionState::Active | SessionState::Removed => SessionPhase::Asleep,
        SessionState::Parked => SessionPhase::Parked,
        SessionState::Quarantined => SessionPhase::Quarantined,
    };
    Ok(Session {
        status: SessionStatus {
            id: row.id,
            agent: registry::name_or_id(agent.as_ref().map(|agent| agent.name.clone()), row.agent),
            state,
            reason: row.reason,
            mode: agent.map_or(GuardMode::Enforce, |agent| agent.mode),
            origin: origin(&row.origin),
            waiting: inbox::waiting_count(tx, row.id)?,
            pid: None,
            jail: None,
            reader: None,
        },
        person: row.person,
        person_name,
        asked_by: asked_by(tx, &row.origin)?,
        title: None,
        channel: row.origin.channel,
        thread: match row.origin.runs {
            ScheduleRuns::None => row.origin.thread_id,
            ScheduleRuns::Fresh | ScheduleRuns::Continued(_) => RUNS.to_owned(),
        },
        created_at: ironclaw_ledger::rfc3339(row.created_at),
        last_active_at: ironclaw_ledger::rfc3339(row.last_active_at),
        last_used_ms: row.last_active_at,
        items: items::count(tx, row.id)?,
        turn_id,
        failures: row.failures,
    })
}

/// The words for the thread of a session of schedules: no thread has such a name.
const RUNS: &str = "(schedules)";

/// Returns the name of the agent whose messages a session gets, if it is one.
fn asked_by(tx: &ReadTx<'_>, origin: &Origin) -> Result<Option<String>, Error> {
    if origin.channel != AGENT {
        return Ok(None);
    }
    let asking = origin.platform_id.parse::<SessionId>().ok();
    let Some(asking) = asking.map(|id| store::find(tx, id)).transpose()?.flatten() else {
        return Ok(Some("a removed agent".to_owned()));
    };
    let agent = registry::agent_by_id(tx, asking.agent)?;
    Ok(Some(registry::name_or_id(agent.map(|agent| agent.name), asking.agent)))
}

fn origin(origin: &Origin) -> String {
    let thread = if origin.thread_id.is_empty() { String::new() } else { format!("#{}", origin.thread_id) };
    let address = format!("{}:{}{thread}", origin.channel, origin.platform_id);
    match origin.kind {
        OriginKind::Sender if origin.runs != ScheduleRuns::None => format!("{address} {RUNS}"),
        OriginKind::Sender => address,
        OriginKind::Guest => format!("{address} (guest)"),
        OriginKind::Group => format!("{address} (group)"),
        OriginKind::Agent => "all channels (shared)".to_owned(),
    }
}

/// Adds the present report of the kernel.
pub fn with_kernel(api: &Api, mut session: Session) -> Session {
    let Some(shown) = api.sessions.shown(session.status.id) else { return session };
    let ActorView { phase, sandbox, reader, progress: _, shortage } = shown;
    let state = match phase {
        Phase::Asleep => match shortage {
            // A state of the session itself is more precise.
            Some(shortage) if session.status.state == SessionPhase::Asleep => {
                session.status.reason = Some(shortage_text(shortage));
                SessionPhase::Waiting
            }
            _ => return session,
        },
        Phase::Waiting => {
            session.status.reason = queue_position(api, session.status.id);
            SessionPhase::Waiting
        }
        Phase::Starting => SessionPhase::Starting,
        Phase::Awake => SessionPhase::Awake,
        Phase::Stopping => SessionPhase::Stopping,
    };
    session.status.state = state;
    session.status.pid = sandbox.map(|process| process.pid);
    session.status.jail = sandbox.and_then(report);
    session.status.reader =
        reader.and_then(|process| report(process).map(|jail| ReaderStatus { pid: process.pid, jail }));
    session
}

/// Returns the shortage that a session waits for, in words.
fn shortage_text(shortage: Shortage) -> String {
    format!("{}: {}", shortage.words(), shortage.remedy())
}

/// Returns the position of a session that waits for a slot, in words: `for a slot (3rd; 50 of 50 are taken)`.
pub fn queue_position(api: &Api, session: SessionId) -> Option<String> {
    let (place, room) = (api.sessions.queue_position(session)?, api.sessions.occupancy());
    let ending = match (place % 10, place % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    Some(format!("for a slot ({place}{ending}; {} of {} are taken)", room.awake, room.awake_max))
}

fn report(process: Process) -> Option<JailReport> {
    // It may have ended a moment ago.
    process.report().ok()
}
