//! `ironctl session remove`: erases one session, or those that were last used some days ago.
//!
//! Never erases a session that works or has a waiting message, unless it is named. See [`crate::commands::session`].

use super::agent_name;
use crate::at::At;
use crate::client::Client;
use crate::failure::Error;
use ironclaw_operator::{Session, SessionPhase, routes};
use serde_json::json;

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Options of `ironctl session remove`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl session remove ses_01J9ZQ4W0V2M6N8P0R2T4V6X8Z --yes\n  ironctl session remove --older-than 30d --agent assistant"
)]
pub struct Args {
    /// Id of the session
    #[arg(required_unless_present = "older_than", conflicts_with_all = ["older_than", "agent", "person"])]
    session: Option<String>,
    /// Remove every sleeping session that was last used before this time, e.g. 30d
    #[arg(long, value_name = "DAYS", value_parser = days)]
    older_than: Option<i64>,
    /// Name or id of an agent; only its sessions
    #[arg(long, requires = "older_than")]
    agent: Option<String>,
    /// Name or id of a person; only sessions that this person began
    #[arg(long, requires = "older_than")]
    person: Option<String>,
    /// Remove without a confirmation
    #[arg(long)]
    yes: bool,
}

pub async fn run(at: &At, client: &Client, args: Args) -> Result<(), Error> {
    let Args { session, older_than, agent, person, yes } = args;
    if let Some(session) = session {
        at.out.confirm(&format!("remove {session} and erase its content"), yes)?;
        client.send(routes::REMOVE_SESSION, [&session]).await?;
        return at.out.result(&json!({ "removed": session }), format!("removed {session}"));
    }
    let before = jiff::Timestamp::now().as_millisecond() - older_than.unwrap_or_default() * DAY_MS;
    let mut old: Vec<Session> = client.query(routes::SESSIONS, [], json!({ "person": person })).await?;
    let agent = agent_name(client, agent).await?;
    old.retain(|session| is_old(session, before) && agent.as_ref().is_none_or(|agent| *agent == session.status.agent));
    let count = old.len();
    if count == 0 {
        return at.out.result(&json!({ "removed": [] }), "no session is that old");
    }
    at.out.confirm(&format!("remove sessions and erase their content: {count}"), yes)?;
    let mut removed = Vec::new();
    for session in old {
        let id = session.status.id.to_string();
        match client.send(routes::REMOVE_SESSION, [&id]).await {
            Ok(_) => removed.push(id),
            // The others do not depend on it.
            Err(error @ Error::Refused(_)) => at.out.failure(&error),
            Err(error) => return Err(error),
        }
    }
    at.out.result(&json!({ "removed": removed }), format!("sessions removed: {} of {count}", removed.len()))?;
    match removed.len() == count {
        true => Ok(()),
        false => Err(Error::failed("session_not_removed", format!("sessions that stay: {}", count - removed.len()))),
    }
}

/// Returns whether a session sleeps, has nothing to do, and was last used before this time in milliseconds.
fn is_old(session: &Session, before: i64) -> bool {
    session.status.state == SessionPhase::Asleep && session.status.waiting == 0 && session.last_used_ms < before
}

fn days(text: &str) -> Result<i64, String> {
    let number = text.strip_suffix('d').unwrap_or(text);
    let days = number.parse::<i64>().ok().filter(|days| (1..=36_500).contains(days));
    days.ok_or_else(|| format!("{text} is not a number of days such as 30d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_whole_and_at_least_one() {
        assert_eq!((days("30d"), days("7")), (Ok(30), Ok(7)));
        for wrong in ["0", "-1d", "1h", "d", "", "1.5d", "99999999999999999999d"] {
            assert!(days(wrong).is_err(), "{wrong}");
        }
    }
}
