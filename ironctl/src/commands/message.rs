//! `ironctl message`: has a message answered after all.
//! Never sends words again that the host has already: it names the message, and the host has its body.
//! Next: `commands::chat`, which waits for answers, and `commands::why`.

use super::At;
use super::chat::{self, duration};
use crate::failure::Error;
use clap::Subcommand;
use std::time::Duration;

/// What to do with messages.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Have a message answered that got a notice of the host in place of an answer
    #[command(
        after_help = "Example:\n  ironctl message retry last\n  ironctl message retry msg_01J9ZQ4W0V2M6N8P0R2T4V6X8Z --wait 2m"
    )]
    Retry {
        /// Id of the message, or `last` for your newest
        message: String,
        /// How long to wait for the answer, e.g. 90s or 2m
        #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = duration)]
        wait: Duration,
    },
}

/// Does it.
pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::Retry { message, wait } => {
            let client = at.client()?;
            let recorded = client.retry(&message).await?;
            chat::show_answer(at.out, &client, &recorded, wait).await
        }
    }
}
