//! `ironctl why`: explains what became of a message.
//!
//! Never guesses: every line is an entry of the host's ledger. See [`crate::commands::audit`] for the ledger itself.

use super::At;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_contract::operator::Why;

/// The host's word for the newest message of the caller.
pub const LAST: &str = "last";

/// Options of `ironctl why`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl why\n  ironctl why msg_01J9ZQ4W0V2M6N8P0R2T4V6X8Z")]
pub struct Args {
    /// Id of the message [default: your last one]
    message_id: Option<String>,
}

/// Prints the stages of a message and what they add up to.
pub async fn run(at: &At, args: &Args) -> Result<(), Error> {
    let id = args.message_id.as_deref().unwrap_or(LAST);
    let why = at.client()?.why(id).await?;
    at.out.json(&why)?;
    print(at.out, why)
}

/// Prints the table of stages with the summary below it.
pub fn print(out: Output, why: Why) -> Result<(), Error> {
    let message = &why.message;
    out.line(format!("{} in {}: {}", message.message_id, message.session_id, message.status))?;
    let rows =
        why.stages.into_iter().map(|stage| [clock::time_of_day(&stage.at), stage.stage, stage.outcome, stage.reason]);
    out.table(["TIME", "STAGE", "OUTCOME", "REASON"], rows)?;
    for note in &why.progress {
        out.line(format!("the agent's process says: {note}"))?;
    }
    out.line(why.summary)
}
