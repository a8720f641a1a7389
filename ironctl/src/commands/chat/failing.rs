//! The schedules of the person with an agent that fail or that the host paused, beside the unread replies of a chat.
//!
//! Never asks and never changes one. See [`crate::commands::schedule`] for the words of a state.

use crate::client::Client;
use crate::commands::schedule;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_operator::routes;
use serde_json::json;

/// Prints a line for each of them, with the remedy or the command that shows its runs. Ignores a failed request, because the chat does not
/// need it.
pub async fn print(out: Output, client: &Client, agent: &str) -> Result<(), Error> {
    let Ok(all) = client.query(routes::SCHEDULES, [], json!({ "agent": agent })).await else { return Ok(()) };
    let mut failing = all.into_iter().filter(schedule::needs_person).peekable();
    if failing.peek().is_none() {
        return Ok(());
    }
    let Ok(me) = client.call(routes::WHOAMI, []).await else { return Ok(()) };
    for failing in failing.filter(|failing| failing.creator == me.name) {
        let (name, state) = (&failing.name, schedule::state_in_words(&failing));
        let next = failing.remedy.clone().unwrap_or_else(|| format!("ironctl schedule history {name}"));
        out.remark(format!("schedule {name} is {}: {next}", state.trim_start_matches("! ")))?;
    }
    Ok(())
}
