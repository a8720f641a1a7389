//! The status: agents at work, incidents, schedules and usage, and the emergency stop.
//!
//! Shows to each role what the API shows to it, and decides nothing. See [`crate::api::status`], [`crate::api::stops`].

use super::fields::Posted;
use super::pages::{self, Frame, Notice, Room, page};
use super::visit::Visit;
use super::words;
use crate::api::answer::Refused;
use crate::api::handler::{Answer, Caller};
use crate::api::{configuration, health, schedules, sessions, status, stops, usage};
use crate::registry::Role;
use crate::upkeep::machine_checks;
use askama::Template;
use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use ironclaw_contract::ids::SessionId;
use ironclaw_operator::{Check, DenialCode, FindingLevel, SessionPhase};
use ironclaw_store::refusal::Refusal;
use serde::Deserialize;

/// The word that a person types to end a stop.
const RESUME: &str = "resume";

/// Rows of each table; `ironctl` shows all.
const ROWS_MAX: usize = 100;

struct AtWork {
    session: SessionId,
    agent: String,
    state: SessionPhase,
    person: String,
}

struct Scheduled {
    name: String,
    agent: String,
    state: String,
    next: String,
    last: String,
}

struct Used {
    agent: String,
    model: String,
    requests: u64,
    tokens: u64,
}

struct Found {
    level: FindingLevel,
    object: String,
    sentence: String,
}

#[derive(Template)]
#[template(path = "status.html")]
struct StatusPage {
    frame: Frame,
    stopped_by: Option<String>,
    may_resume: bool,
    /// Whether the host works on messages, in a sentence.
    ready: String,
    at_work: Vec<AtWork>,
    incidents: Vec<String>,
    schedules: Vec<Scheduled>,
    used: Vec<Used>,
    ceilings: Vec<String>,
    /// The checks of the machine, on request.
    checks: Option<Vec<Check>>,
    may_audit: bool,
    audit: Option<Vec<Found>>,
}

/// Query of `GET /status`.
#[derive(Debug, Default, Deserialize)]
pub struct StatusQuery {
    /// 1 for the audit of the configuration, too.
    #[serde(default)]
    audit: u8,
    /// 1 for the checks of the machine, too.
    #[serde(default)]
    checks: u8,
}

/// `GET /status`
pub async fn show(visit: Visit, Query(query): Query<StatusQuery>) -> Result<Response, Answer> {
    render(&visit, &query, None, StatusCode::OK).await
}

async fn render(
    visit: &Visit,
    query: &StatusQuery,
    notice: Option<Notice>,
    code: StatusCode,
) -> Result<Response, Answer> {
    let caller = &visit.caller;
    let role = caller.person.role;
    let is_admin = role.covers(Role::Admin);
    let incidents = match is_admin {
        true => status::status(caller.clone()).await?.0.host.warnings,
        false => Vec::new(),
    };
    let audit = match query.audit == 1 && role.covers(Role::Owner) {
        true => Some(audited(caller).await?),
        false => None,
    };
    let checks = match query.checks == 1 && is_admin {
        true => Some(checks(caller).await?),
        false => None,
    };
    let (used, ceilings) = used(caller).await?;
    let page_of = StatusPage {
        frame: Frame::new(visit, Some(Room::Status), words::STATUS).with(notice),
        stopped_by: caller.api.stops.stopped().await?.map(|stopped| stopped.by),
        may_resume: is_admin,
        ready: match health::readyz(State(caller.api.clone())).await {
            Ok(_) => words::READY.to_owned(),
            // The section above says it, with the way to end it.
            Err(_) if caller.api.stops.is_on() => words::STOPPED.to_owned(),
            Err(answer) => Refused::from(answer).message,
        },
        at_work: at_work(caller).await?,
        incidents,
        schedules: scheduled(caller).await?,
        used,
        ceilings,
        checks,
        may_audit: role.covers(Role::Owner),
        audit,
    };
    Ok(page(code, &page_of))
}

async fn at_work(caller: &Caller) -> Result<Vec<AtWork>, Answer> {
    let Json(found) = sessions::list(caller.clone(), Query(sessions::ListQuery::default())).await?;
    let busy = found.into_iter().filter(|of| of.status.state != SessionPhase::Asleep).take(ROWS_MAX);
    Ok(busy
        .map(|of| AtWork {
            session: of.status.id,
            agent: of.status.agent,
            state: of.status.state,
            person: of.person_name.unwrap_or_default(),
        })
        .collect())
}

async fn scheduled(caller: &Caller) -> Result<Vec<Scheduled>, Answer> {
    let Json(found) = schedules::list(caller.clone(), Query(schedules::ListQuery::default())).await?;
    let settings = caller.api.gateway.now();
    let zone = settings.host_policy.zone.zone.rules();
    let time = |at: &Option<String>| at.as_deref().map_or_else(String::new, |at| words::time(zone, at));
    Ok(found
        .into_iter()
        .take(ROWS_MAX)
        .map(|of| Scheduled {
            next: time(&of.next),
            last: of.last.map_or_else(String::new, |last| format!("{} {}", words::time(zone, &last.due), last.state)),
            state: of.reason.map_or_else(|| of.state.to_string(), |reason| format!("{}: {reason}", of.state)),
            name: of.name,
            agent: of.agent,
        })
        .collect())
}

async fn used(caller: &Caller) -> Result<(Vec<Used>, Vec<String>), Answer> {
    let Json(found) = usage::show(caller.clone(), Query(usage::UsageQuery::today())).await?;
    let mut used: Vec<Used> = Vec::new();
    for row in found.rows {
        let tokens = row.input_tokens + row.output_tokens;
        match used.iter_mut().find(|used| used.agent == row.agent && used.model == row.model) {
            Some(used) => (used.requests, used.tokens) = (used.requests + row.requests, used.tokens + tokens),
            None => used.push(Used { agent: row.agent, model: row.model, requests: row.requests, tokens }),
        }
    }
    used.truncate(ROWS_MAX);
    let ceilings = found.ceilings.iter().take(ROWS_MAX).map(|ceiling| {
        let of = ceiling.of.as_deref().unwrap_or(words::HOST);
        format!("{of}: {} of {} ({})", ceiling.used, ceiling.limit, ceiling.name)
    });
    Ok((used, ceilings.collect()))
}

/// Runs the checks of the machine. They take some seconds.
async fn checks(caller: &Caller) -> Result<Vec<Check>, Answer> {
    let api = caller.api.clone();
    let run = tokio::task::spawn_blocking(move || machine_checks::run(&api.about.home));
    let checked = run.await.map_err(|error| Answer::task_ended(&error))?;
    Ok(checked.map_err(|error| Answer::broken(&error))?.checks)
}

async fn audited(caller: &Caller) -> Result<Vec<Found>, Answer> {
    let Json(audit) = configuration::audit(State(caller.api.clone())).await?;
    let found = audit.findings.iter();
    Ok(found.map(|of| Found { level: of.level(), object: of.object(), sentence: of.sentence() }).collect())
}

/// `POST /status/stop`: ends the processes of every agent at once.
pub async fn stop(Posted { visit, .. }: Posted) -> Result<Response, Answer> {
    let _ = stops::panic(visit.caller).await?;
    Ok(pages::see_other("/status"))
}

/// `POST /status/resume`: lets agents run again, once the person has typed the word.
pub async fn resume(Posted { visit, fields }: Posted) -> Result<Response, Answer> {
    if !fields.get("typed").trim().eq_ignore_ascii_case(RESUME) {
        let refusal = Refusal::new(DenialCode::NotTyped, "nothing was resumed: the word `resume` was not typed");
        let refused = Refused::from(refusal.hint("type `resume` into the field"));
        return render(&visit, &StatusQuery::default(), Some(Notice::from(&refused)), refused.status).await;
    }
    let _ = stops::resume(visit.caller).await?;
    Ok(pages::see_other("/status"))
}
