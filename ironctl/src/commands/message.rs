//! `ironctl message`: has a message answered after all, and looks after answers that did not arrive.
//!
//! Never sends words again that the host has already, and no answer by itself: a person who looked says so. See
//! [`crate::commands::chat`], which waits for answers, [`crate::commands::why`], and [`crate::commands::channel`] for the way
//! that answers take.

use super::At;
use super::chat::{self, duration};
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use clap::Subcommand;
use ironclaw_contract::operator::{DeadLetter, DenialCode};
use std::time::Duration;

/// The host's code for a message of another person.
const NOT_YOURS: &str = DenialCode::MessageUnknown.name();

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
    /// The former name of `delivery`
    #[command(hide = true, subcommand, after_help = "Example:\n  ironctl delivery list")]
    Dead(Dead),
}

/// What to do with answers that did not arrive.
#[derive(Debug, Subcommand)]
pub enum Dead {
    /// List them; an operator sees everybody's
    #[command(after_help = "Example:\n  ironctl delivery list")]
    List,
    /// Send one again, although it may have arrived
    #[command(after_help = "Example:\n  ironctl delivery retry dlv_01J9ZQ4W0V2M6N8P0R2T4V6X8Z")]
    Retry {
        /// Its id, dlv_…, or that of the message, msg_…
        id: String,
    },
    /// Let one go
    #[command(after_help = "Example:\n  ironctl delivery drop dlv_01J9ZQ4W0V2M6N8P0R2T4V6X8Z")]
    Drop {
        /// Its id, dlv_…, or that of the message, msg_…
        id: String,
    },
}

/// Does it.
pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::Retry { message, wait } => {
            let client = at.client()?;
            let recorded = client.retry(&message).await?;
            // The operator of the host may have it answered and reads nothing of it.
            if let Err(Error::Refused(refused)) = client.message(recorded.message_id, Duration::ZERO).await
                && refused.error.code == NOT_YOURS
            {
                at.out.json(&recorded)?;
                return at.out.line(format!("{} is queued again; its person gets the answer", recorded.message_id));
            }
            chat::show_answer(at.out, &client, &recorded, wait).await
        }
        Action::Dead(action) => dead(at, action).await,
    }
}

async fn dead(at: &At, action: Dead) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Dead::List => {
            let letters = client.dead_letters().await?;
            at.out.json(&letters)?;
            if letters.is_empty() {
                return at.out.line("every answer arrived");
            }
            table(at.out, letters)
        }
        Dead::Retry { id } => {
            let done = client.retry_dead(&id).await?;
            at.out.json(&done)?;
            at.out.line(format!("{} is sent again", done.delivery_id))
        }
        Dead::Drop { id } => {
            let done = client.drop_dead(&id).await?;
            at.out.json(&done)?;
            at.out.line(format!("let {} go", done.delivery_id))
        }
    }
}

fn table(out: Output, letters: Vec<DeadLetter>) -> Result<(), Error> {
    let rows = letters.into_iter().map(|letter| {
        [
            letter.delivery_id.to_string(),
            letter.channel,
            letter.recipient,
            letter.receipt,
            letter.attempts.to_string(),
            letter.reason,
            clock::date_and_time(&letter.settled_at),
        ]
    });
    out.table(["DELIVERY", "CHANNEL", "FOR", "RECEIPT", "ATTEMPTS", "WHY", "GIVEN UP"], rows)
}
