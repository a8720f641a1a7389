//! `ironctl status`: shows the host, its sessions, and the jail of each.
//!
//! Prints warnings first. See [`crate::jail`] for the report on a process, [`crate::commands::session`] for one session.

use super::waiting::words::count;
use super::{inbox, mcp};
use crate::at::At;
use crate::failure::Error;
use crate::output::Output;
use crate::output::table::Columns;
use crate::{clock, jail};
use ironclaw_operator::{SessionPhase, SessionStatus, Status, routes};

/// Prints the status as tables, or as JSON.
pub async fn run(at: &At) -> Result<(), Error> {
    let status = at.client()?.call(routes::STATUS, []).await?;
    at.out.json(&status)?;
    if let Some(stopped) = &status.stopped {
        let since = clock::date_and_time(&stopped.since);
        at.out.line(format!("EVERYTHING IS STOPPED since {since} by {}, until `ironctl resume`", stopped.by))?;
    }
    for warning in &status.host.warnings {
        at.out.line(format!("warning: {warning}"))?;
    }
    for bound in &status.bounds {
        at.out.line(format!("near a bound: {bound}; {}", bound.advice()))?;
    }
    if let Some(count) = count(status.waiting.iter().map(|of| (of.kind, of.count))) {
        at.out.line(format!("{count}: ironctl inbox"))?;
    }
    if !at.out.is_json() {
        if status.replies_unread > 0 {
            inbox::print_unread(at.out, &at.client()?).await?;
        }
        servers(at).await?;
    }
    host(at.out, &status)?;
    let (asleep, others): (Vec<_>, Vec<_>) = status.sessions.iter().partition(|session| is_at_rest(session));
    if !others.is_empty() {
        sessions(at.out, others.into_iter())?;
    }
    match (asleep.len(), status.sessions.len()) {
        (_, 0) => at.out.line("no sessions; start one with `ironctl chat AGENT`"),
        (0, _) => Ok(()),
        (1, _) => at.out.line("1 session sleeps: ironctl session list"),
        (asleep, _) => at.out.line(format!("{asleep} sessions sleep: ironctl session list")),
    }
}

/// Prints a line about each MCP server that needs the operator.
async fn servers(at: &At) -> Result<(), Error> {
    match at.client()?.call(routes::MCP_SERVERS, []).await {
        Ok(servers) => servers.iter().filter_map(mcp::attention_with_repair).try_for_each(|line| at.out.line(line)),
        Err(error) => at.out.line(format!("warning: cannot list the MCP servers: {error}")),
    }
}

fn host(out: Output, status: &Status) -> Result<(), Error> {
    let host = &status.host;
    let slots = &status.places;
    let zone = match &host.zone_doubt {
        Some(_) => format!("{} (not clear)", host.zone),
        None => host.zone.clone(),
    };
    let rows = [
        ["version".to_owned(), host.version.clone()],
        ["process".to_owned(), format!("{} (launcher {})", host.pid, host.launcher_pid)],
        ["home".to_owned(), host.home.clone()],
        ["running since".to_owned(), clock::date_and_time(&host.started_at)],
        [
            "sessions awake".to_owned(),
            format!("{} of at most {}, {} waiting for a slot", slots.awake, slots.awake_max, slots.waiting),
        ],
        ["ledger entries".to_owned(), host.ledger_entries.to_string()],
        ["time zone".to_owned(), zone],
        ["fingerprint".to_owned(), host.fingerprint.clone()],
    ];
    out.table(["HOST", ""], rows.into_iter().filter(|[_, value]| !value.is_empty()))
}

/// Returns whether a session sleeps and nothing waits in it.
fn is_at_rest(session: &SessionStatus) -> bool {
    session.state == SessionPhase::Asleep && session.waiting == 0
}

/// Prints a table of sessions.
fn sessions<'a>(out: Output, sessions: impl Iterator<Item = &'a SessionStatus>) -> Result<(), Error> {
    let rows = sessions.map(|session| {
        [
            session.id.to_string(),
            session.agent.clone(),
            state(session),
            session.mode.to_string(),
            session.waiting.to_string(),
            session.pid.map(|pid| pid.to_string()).unwrap_or_default(),
            session.jail.as_ref().map(jail::summary).unwrap_or_default(),
        ]
    });
    let columns = Columns::new(["SESSION", "AGENT", "STATE", "MODE", "WAITING", "PID", "JAIL"]);
    out.table(columns.with_least(&["MODE", "WAITING"]), rows)
}

/// Returns the state of a session, with its reason if it has one.
pub fn state(session: &SessionStatus) -> String {
    match &session.reason {
        Some(reason) => format!("{}: {reason}", session.state),
        None => session.state.to_string(),
    }
}
