//! `ironctl message`: retries a message that got no answer.
//!
//! Never sends the text again, because the host has it. See [`crate::commands::chat`], which waits for answers, and
//! [`crate::commands::delivery`] for answers that did not arrive.

use super::chat::{self, duration};
use super::delivery;
use crate::at::At;
use crate::failure::Error;
use clap::Subcommand;
use ironclaw_operator::{DenialCode, routes};
use std::time::Duration;

/// The code of the host for a message of another person.
const NOT_YOURS: &str = DenialCode::MessageUnknown.name();

/// The verbs of `ironctl message`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Retry a message that got a notice of the host in place of an answer
    #[command(
        after_help = "Example:\n  ironctl message retry last\n  ironctl message retry msg_01J9ZQ4W0V2M6N8P0R2T4V6X8Z --wait 2m"
    )]
    Retry {
        /// Id of the message, or `last` for your newest
        message: String,
        /// Time to wait for the answer, e.g. 90s or 2m
        #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = duration)]
        wait: Duration,
    },
    /// The former name of `delivery`
    #[command(hide = true, subcommand, after_help = "Example:\n  ironctl delivery list")]
    Dead(delivery::Action),
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::Retry { message, wait } => {
            let client = at.client()?;
            let recorded = client.call(routes::RETRY_MESSAGE, [&message]).await?;
            // An operator may retry the message of another person but does not see its answer.
            if let Err(Error::Refused(refused)) = client.call(routes::MESSAGE, [&recorded.message_id]).await
                && refused.error.code == NOT_YOURS
            {
                at.out.json(&recorded)?;
                return at.out.line(format!("{} is queued again; its sender gets the answer", recorded.message_id));
            }
            chat::show_answer(at.out, &client, &recorded, wait, None).await
        }
        Action::Dead(action) => delivery::run(at, action).await,
    }
}
