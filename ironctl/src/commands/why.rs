//! `ironctl why`: shows each step of a message, and the reason for its state.
//!
//! Never guesses: every line is an entry of the ledger. See [`crate::commands::audit`] for the ledger itself.

use super::At;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_contract::operator::Why;

/// The host's alias for the newest message of the caller.
pub const LAST: &str = "last";

/// Options of `ironctl why`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl why\n  ironctl why msg_01J9ZQ4W0V2M6N8P0R2T4V6X8Z")]
pub struct Args {
    /// Id of the message [default: your newest]
    message_id: Option<String>,
}

/// Prints the stages of a message and a summary.
pub async fn run(at: &At, args: &Args) -> Result<(), Error> {
    let id = args.message_id.as_deref().unwrap_or(LAST);
    let why = at.client()?.why(id).await?;
    at.out.json(&why)?;
    print(at.out, why)
}

/// Prints the stages as a table, then the notes of the agent's process and the summary.
pub fn print(out: Output, why: Why) -> Result<(), Error> {
    let message = &why.message;
    out.line(format!("{} in {}: {}", message.message_id, message.session_id, message.status))?;
    let rows =
        why.stages.into_iter().map(|stage| [clock::time_of_day(&stage.at), stage.stage, stage.outcome, stage.reason]);
    out.table(["TIME", "STAGE", "OUTCOME", "REASON"], rows)?;
    for note in &why.progress {
        out.line(format!("note of the agent's process: {note}"))?;
    }
    out.line(why.summary)
}
