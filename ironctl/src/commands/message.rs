//! `ironctl message`: looks after answers that did not arrive.
//! Never sends one again by itself: somebody who looked says so.
//! Next: `commands::why` for one message, `commands::channel` for the way that they took.

use super::At;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use clap::Subcommand;
use ironclaw_contract::operator::DeadLetter;

/// What to do with messages.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List, send again or drop answers that did not arrive
    #[command(subcommand, after_help = "Example:\n  ironctl message dead list")]
    Dead(Dead),
}

/// What to do with answers that did not arrive.
#[derive(Debug, Subcommand)]
pub enum Dead {
    /// List them; an operator sees everybody's
    #[command(after_help = "Example:\n  ironctl message dead list")]
    List,
    /// Send one again, although it may have arrived
    #[command(after_help = "Example:\n  ironctl message dead retry dlv_01J9ZQ4W0V2M6N8P0R2T4V6X8Z")]
    Retry {
        /// Its id, dlv_…, or that of the message, msg_…
        id: String,
    },
    /// Let one go
    #[command(after_help = "Example:\n  ironctl message dead drop dlv_01J9ZQ4W0V2M6N8P0R2T4V6X8Z")]
    Drop {
        /// Its id, dlv_…, or that of the message, msg_…
        id: String,
    },
}

/// Does it.
pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
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
            letter.delivery_id,
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
