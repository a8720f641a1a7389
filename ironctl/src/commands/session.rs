//! `ironctl session`: lists, shows, exports, cancels, stops, releases and removes sessions.
//!
//! Never erases a conversation without a confirmation. See [`crate::commands::status`] for the jail of each session.

mod remove;
mod transcript;

use super::named_agent::NamedAgent;
use super::status;
use crate::at::At;
use crate::client::Client;
use crate::failure::Error;
use crate::output::Output;
use crate::output::table::Columns;
use crate::{clock, jail};
use clap::Subcommand;
use ironclaw_contract::ids::AgentId;
use ironclaw_operator::{Session, SessionReply, TranscriptItem, routes};
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;

/// The columns of the list.
const COLUMNS: Columns<'_, 8> =
    Columns::new(["SESSION", "AGENT", "CHANNEL", "TITLE", "PERSON", "THREAD", "STATE", "LAST USE"])
        .with_least(&["THREAD", "PERSON"]);

/// The verbs of `ironctl session`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List sessions, the last used one last; members see their own
    #[command(after_help = "Example:\n  ironctl session list\n  ironctl session list --person Bob --agent assistant")]
    List {
        #[command(flatten)]
        of: NamedAgent,
        /// Name or id of a person; only sessions that this person began
        #[arg(long)]
        person: Option<String>,
    },
    /// Show a session, the jails of its processes, and the end of the conversation
    #[command(after_help = "Example:\n  ironctl session show ses_01J9ZQ4W0V2M6N8P0R2T4V6X8Z --last 50")]
    Show {
        /// Id of the session
        session: String,
        /// Number of items of the conversation, at most 200
        #[arg(long, value_name = "N", default_value_t = 20)]
        last: usize,
    },
    /// Export the whole conversation from the record of the host
    #[command(after_help = "Example:\n  ironctl session export ses_01J9ZQ4W0V2M6N8P0R2T4V6X8Z --out talk.jsonl")]
    Export {
        /// Id of the session
        session: String,
        /// New file to write [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Form of the export
        #[arg(long, value_enum, default_value = "jsonl")]
        format: transcript::Format,
    },
    /// Cancel the running or next turn; its messages get a notice in place of an answer
    #[command(after_help = "Example:\n  ironctl session cancel ses_01J9ZQ4W0V2M6N8P0R2T4V6X8Z")]
    Cancel {
        /// Id of the session
        session: String,
    },
    /// Put a session to sleep; the next message wakes it
    #[command(after_help = "Example:\n  ironctl session stop ses_01J9ZQ4W0V2M6N8P0R2T4V6X8Z")]
    Stop {
        /// Id of the session
        session: String,
    },
    /// Release a parked or quarantined session
    #[command(after_help = "Example:\n  ironctl session release ses_01J9ZQ4W0V2M6N8P0R2T4V6X8Z")]
    Release {
        /// Id of the session
        session: String,
    },
    /// Remove a session and erase its content, or all without a use for some days
    Remove(remove::Args),
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::List { person, of } => {
            let agent = agent_name(&client, of.name()).await?;
            let mut sessions = client.query(routes::SESSIONS, [], json!({ "person": person })).await?;
            sessions.retain(|session| agent.as_ref().is_none_or(|agent| *agent == session.status.agent));
            // The newest is the nearest to the prompt.
            sessions.sort_by_key(|session| session.last_used_ms);
            at.out.list(sessions, "no sessions; start one with `ironctl chat AGENT`", COLUMNS, row)
        }
        Action::Show { session, last } => {
            let found = client.call(routes::SESSION, [&session]).await?;
            let transcript = client.query(routes::TRANSCRIPT, [&session], json!({ "last": last })).await?.items;
            let replies = client.query(routes::SESSION_REPLIES, [&session], json!({ "last": last })).await?.replies;
            at.out.json(&Shown { session: &found, transcript: &transcript, replies: &replies })?;
            show(at.out, found)?;
            transcript::print(at.out, &transcript, &replies)
        }
        Action::Export { session, out, format } => transcript::export(at, &client, &session, out, format).await,
        Action::Cancel { session } => {
            let cancelled = client.call(routes::CANCEL_TURN, [&session]).await?;
            at.out.json(&cancelled)?;
            let what = if cancelled.running { "the running turn" } else { "the next turn" };
            at.out.line(format!("cancelled {what} of {session} ({})", cancelled.turn_id))
        }
        Action::Stop { session } => {
            client.send(routes::STOP_SESSION, [&session]).await?;
            at.out.result(&json!({ "stopped": session }), format!("stopped {session}"))
        }
        Action::Release { session } => {
            client.send(routes::RELEASE_SESSION, [&session]).await?;
            at.out.result(&json!({ "released": session }), format!("released {session}"))
        }
        Action::Remove(args) => remove::run(at, &client, args).await,
    }
}

/// Returns the name of an agent that is named by its name or its id.
pub async fn agent_name(client: &Client, agent: Option<String>) -> Result<Option<String>, Error> {
    match agent {
        Some(id) if id.parse::<AgentId>().is_ok() => Ok(Some(client.call(routes::AGENT, [&id]).await?.name)),
        named => Ok(named),
    }
}

fn row(session: Session) -> [String; 8] {
    let (channel, thread, last_use) =
        (channel(&session), thread(&session), clock::to_the_minute(&session.last_active_at));
    let Session { status, person_name, title, .. } = session;
    let state = status::state(&status);
    [
        status.id.to_string(),
        status.agent,
        channel,
        title.unwrap_or_default(),
        person_name.unwrap_or_default(),
        thread,
        state,
        last_use,
    ]
}

/// Returns the channel of a session, or the agent whose messages it gets.
fn channel(session: &Session) -> String {
    match &session.asked_by {
        Some(agent) => format!("agent {agent}"),
        None => session.channel.clone(),
    }
}

/// Returns the thread of a session. That of another agent's messages is the id of a person.
fn thread(session: &Session) -> String {
    if session.asked_by.is_some() { String::new() } else { session.thread.clone() }
}

/// The JSON of a session.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    session: &'a Session,
    transcript: &'a [TranscriptItem],
    replies: &'a [SessionReply],
}

fn show(out: Output, session: Session) -> Result<(), Error> {
    let (channel, thread) = (channel(&session), thread(&session));
    let status = session.status;
    let mut rows = vec![
        ["title".to_owned(), session.title.unwrap_or_default()],
        ["person".to_owned(), session.person_name.unwrap_or_default()],
        ["agent".to_owned(), status.agent],
        ["channel".to_owned(), channel],
        ["thread".to_owned(), thread],
        ["state".to_owned(), status.state.to_string()],
        ["reason".to_owned(), status.reason.unwrap_or_default()],
        ["mode".to_owned(), status.mode.to_string()],
        ["origin".to_owned(), status.origin],
        ["waiting messages".to_owned(), status.waiting.to_string()],
        ["sealed items".to_owned(), session.items.to_string()],
        ["open turn".to_owned(), session.turn_id.map(|turn| turn.to_string()).unwrap_or_default()],
        ["failures in a row".to_owned(), session.failures.to_string()],
        ["created".to_owned(), clock::date_and_time(&session.created_at)],
        ["last active".to_owned(), clock::date_and_time(&session.last_active_at)],
    ];
    rows.retain(|[_, found]| !found.is_empty());
    out.table(["SESSION", &status.id.to_string()], rows)?;
    if let Some(report) = &status.jail {
        let pid = status.pid.map(|pid| format!("process {pid}")).unwrap_or_default();
        let mut rows = jail::rows(report);
        rows.push(["mounts".to_owned(), report.mounts.join("\n")]);
        out.table(["SANDBOX", pid.as_str()], rows)?;
    }
    if let Some(reader) = &status.reader {
        let pid = format!("process {}", reader.pid);
        out.table(["READER", pid.as_str()], jail::rows(&reader.jail))?;
    }
    Ok(())
}
