//! `ironctl session`: lists, shows, stops, releases and removes sessions.
//! Never erases a conversation without asking.
//! Next: `commands::status`, whose table it shares.

use super::{At, status};
use crate::failure::Error;
use crate::output::Output;
use crate::{clock, jail};
use clap::Subcommand;
use ironclaw_contract::operator::Session;
use serde_json::json;

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List the sessions
    #[command(after_help = "Example:\n  ironctl session list")]
    List,
    /// Show one session and what the kernel says about its processes
    #[command(after_help = "Example:\n  ironctl session show ses_01J9ZQ4W0V2M6N8P0R2T4V6X8Z")]
    Show {
        /// Id
        session: String,
    },
    /// Put a session to sleep; its next message wakes it
    #[command(after_help = "Example:\n  ironctl session stop ses_01J9ZQ4W0V2M6N8P0R2T4V6X8Z")]
    Stop {
        /// Id
        session: String,
    },
    /// Let a parked or quarantined session go on
    #[command(after_help = "Example:\n  ironctl session release ses_01J9ZQ4W0V2M6N8P0R2T4V6X8Z")]
    Release {
        /// Id
        session: String,
    },
    /// Remove a session and erase what it holds
    #[command(after_help = "Example:\n  ironctl session remove ses_01J9ZQ4W0V2M6N8P0R2T4V6X8Z --yes")]
    Remove {
        /// Id
        session: String,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
}

/// Does it.
pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::List => {
            let sessions = client.sessions().await?;
            at.out.json(&sessions)?;
            if sessions.is_empty() {
                return at.out.line("no sessions; start one with `ironctl chat AGENT`");
            }
            status::sessions(at.out, sessions.iter().map(|session| &session.status))
        }
        Action::Show { session } => {
            let session = client.session(&session).await?;
            at.out.json(&session)?;
            show(at.out, session)
        }
        Action::Stop { session } => {
            client.stop_session(&session).await?;
            at.out.json(&json!({ "stopped": session }))?;
            at.out.line(format!("stopped {session}"))
        }
        Action::Release { session } => {
            client.release_session(&session).await?;
            at.out.json(&json!({ "released": session }))?;
            at.out.line(format!("released {session}"))
        }
        Action::Remove { session, yes } => {
            at.out.confirm(&format!("remove {session} and erase what it holds"), yes)?;
            client.remove_session(&session).await?;
            at.out.json(&json!({ "removed": session }))?;
            at.out.line(format!("removed {session}"))
        }
    }
}

fn show(out: Output, session: Session) -> Result<(), Error> {
    let status = session.status;
    let mut rows = vec![
        ["agent".to_owned(), status.agent],
        ["state".to_owned(), status.state],
        ["reason".to_owned(), status.reason.unwrap_or_default()],
        ["mode".to_owned(), status.mode],
        ["origin".to_owned(), status.origin],
        ["waiting messages".to_owned(), status.waiting.to_string()],
        ["sealed items".to_owned(), session.items.to_string()],
        ["open turn".to_owned(), session.turn_id.unwrap_or_default()],
        ["failures in a row".to_owned(), session.failures.to_string()],
        ["made".to_owned(), clock::date_and_time(&session.created_at)],
        ["last active".to_owned(), clock::date_and_time(&session.last_active_at)],
    ];
    rows.retain(|[_, found]| !found.is_empty());
    out.table(["SESSION", status.id.as_str()], rows)?;
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
