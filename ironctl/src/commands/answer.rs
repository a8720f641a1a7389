//! `ironctl answer`: answers one question of an agent by the number of an option or by a text.
//!
//! Never shows the question. See [`crate::commands::waiting::question`].

use super::chat::{self, duration};
use super::waiting::{self, question};
use crate::at::At;
use crate::failure::Error;
use ironclaw_operator::{Decision, WaitingId};
use std::time::Duration;

/// Options of `ironctl answer`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl answer qst_01j9zq4w0v2m6n8p0r2t4v6x8z 2\n  ironctl answer qst_01j9zq4w0v2m6n8p0r2t4v6x8z staging --wait 2m\n  ironctl answer qst_01j9zq4w0v2m6n8p0r2t4v6x8z 42 --text"
)]
pub struct Args {
    /// Id of the question (qst_…)
    id: WaitingId,
    /// Number of an option, or a text
    #[arg(value_name = "TEXT|NUMBER", allow_hyphen_values = true)]
    answer: String,
    /// Take a number as a text
    #[arg(long)]
    text: bool,
    /// Time to wait for what the agent says, e.g. 90s or 2m [default: do not wait]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    wait: Option<Duration>,
}

pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    let client = at.client()?;
    let waiting = waiting::read(&client, args.id).await?;
    let options = question::details(&waiting).map_or(0, |asked| asked.options.len());
    let answer = Decision::Answer(question::read(options, &args.answer, args.text));
    let answered = waiting::decide(&client, args.id, answer).await?;
    if let (Some(wait), Some(recorded)) = (args.wait, question::recorded(&answered)) {
        return chat::show_answer(at.out, &client, &recorded, wait, None).await;
    }
    at.out.json(&answered)?;
    waiting::outcome(at.out, &answered)
}
