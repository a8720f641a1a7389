//! `ironctl why`: shows each step of a message or each stage of a call, and the reason for its state.
//!
//! Never guesses: every line is in the record. See [`crate::commands::audit`] for the ledger itself.

use super::At;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_contract::operator::{CallStage, Why};

/// The host's alias for the newest message of the caller.
pub const LAST: &str = "last";

/// The first characters of the id of a call.
const CALL_PREFIX: &str = "call_";

/// Options of `ironctl why`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl why\n  ironctl why msg_01J9ZQ4W0V2M6N8P0R2T4V6X8Z\n  ironctl why call_01J9ZQ4W0V2M6N8P0R2T4V6X8Z"
)]
pub struct Args {
    /// Id of the message or the call [default: your newest message]
    id: Option<String>,
}

/// Prints the stages of a message and a summary.
pub async fn run(at: &At, args: &Args) -> Result<(), Error> {
    let id = args.id.as_deref().unwrap_or(LAST);
    if id.starts_with(CALL_PREFIX) {
        return call(at, id).await;
    }
    let why = at.client()?.why(id).await?;
    at.out.json(&why)?;
    print(at.out, why)
}

async fn call(at: &At, id: &str) -> Result<(), Error> {
    let why = at.client()?.why_call(id).await?;
    at.out.json(&why)?;
    let class = why.class.map(|class| format!(" ({class})")).unwrap_or_default();
    at.out.line(format!("{}: {}{class} in {}: {}", why.call_id, why.tool, why.session_id, why.status))?;
    at.out.table(["STAGE", "ANSWER", "CODE", "MEANING"], stage_rows(why.stages))?;
    at.out.line(why.summary)
}

/// Returns the rows of a table of stages.
pub fn stage_rows(stages: Vec<CallStage>) -> impl Iterator<Item = [String; 4]> {
    let row = |stage: CallStage| {
        [stage.stage, stage.answer, stage.code.unwrap_or_default(), stage.meaning.unwrap_or_default()]
    };
    stages.into_iter().map(row)
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
