//! `ironctl answer`: answers one question of an agent by the number of an option or by a text.
//!
//! Never shows the question. See [`crate::commands::question`].

use super::chat::{self, duration};
use super::question;
use crate::at::At;
use crate::failure::Error;
use ironclaw_operator::routes;
use std::time::Duration;

/// Options of `ironctl answer`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl answer qst_01j9zq4w0v2m6n8p0r2t4v6x8z 2\n  ironctl answer qst_01j9zq4w0v2m6n8p0r2t4v6x8z staging --wait 2m\n  ironctl answer qst_01j9zq4w0v2m6n8p0r2t4v6x8z 42 --text"
)]
pub struct Args {
    /// Id of the question (qst_…)
    id: String,
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
    let found = client.call(routes::QUESTION, [&args.id]).await?;
    let answer = question::read(&found, &args.answer, args.text);
    let recorded = client.post(routes::ANSWER_QUESTION, [&args.id], &answer).await?;
    if let Some(wait) = args.wait {
        return chat::show_answer(at.out, &client, &recorded, wait, None).await;
    }
    at.out.json(&recorded)?;
    at.out.line(format!("answered {}; ironctl why {} shows what the agent does", args.id, recorded.message_id))
}
