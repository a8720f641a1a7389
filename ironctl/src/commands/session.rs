//! `ironctl session`: lists, shows, exports, cancels, stops, releases and removes sessions.
//!
//! Never erases a conversation without a confirmation. See [`crate::commands::status`] for the jail of each session.

mod transcript;

use super::status;
use crate::at::At;
use crate::failure::Error;
use crate::output::Output;
use crate::{clock, jail};
use clap::Subcommand;
use ironclaw_contract::operator::{Session, TranscriptItem, routes};
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;

/// The verbs of `ironctl session`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List sessions; members see their own
    #[command(after_help = "Example:\n  ironctl session list\n  ironctl session list --person Bob")]
    List {
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
    /// Remove a session and erase its content
    #[command(after_help = "Example:\n  ironctl session remove ses_01J9ZQ4W0V2M6N8P0R2T4V6X8Z --yes")]
    Remove {
        /// Id of the session
        session: String,
        /// Remove it without a confirmation
        #[arg(long)]
        yes: bool,
    },
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::List { person } => {
            let sessions = client.query(routes::SESSIONS, [], json!({ "person": person })).await?;
            let none = "no sessions; start one with `ironctl chat AGENT`";
            at.out.list(sessions, none, ["SESSION", "PERSON", "AGENT", "THREAD", "STATE", "LAST USE"], row)
        }
        Action::Show { session, last } => {
            let found = client.call(routes::SESSION, [&session]).await?;
            let transcript = client.query(routes::TRANSCRIPT, [&session], json!({ "last": last })).await?.items;
            at.out.json(&Shown { session: &found, transcript: &transcript })?;
            show(at.out, found)?;
            transcript::print(at.out, &transcript)
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
        Action::Remove { session, yes } => {
            at.out.confirm(&format!("remove {session} and erase its content"), yes)?;
            client.send(routes::REMOVE_SESSION, [&session]).await?;
            at.out.result(&json!({ "removed": session }), format!("removed {session}"))
        }
    }
}

fn row(session: Session) -> [String; 6] {
    let Session { status, person_name, thread, last_active_at, .. } = session;
    let (state, last_use) = (status::state(&status), clock::date_and_time(&last_active_at));
    [status.id.to_string(), person_name.unwrap_or_default(), status.agent, thread, state, last_use]
}

/// The JSON of a session.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    session: &'a Session,
    transcript: &'a [TranscriptItem],
}

fn show(out: Output, session: Session) -> Result<(), Error> {
    let status = session.status;
    let mut rows = vec![
        ["person".to_owned(), session.person_name.unwrap_or_default()],
        ["agent".to_owned(), status.agent],
        ["thread".to_owned(), session.thread],
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
