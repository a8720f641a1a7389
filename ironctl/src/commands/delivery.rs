//! `ironctl delivery`: lists, retries and drops dead letters: answers that did not arrive, or may not have arrived.
//!
//! Never retries or drops without the request of a person. See [`crate::commands::channel`] for the channels, and
//! [`crate::commands::message`] for messages without an answer.

use crate::at::At;
use crate::clock;
use crate::failure::Error;
use clap::Subcommand;
use ironclaw_operator::{DeadLetter, routes};

/// The verbs of `ironctl delivery`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List answers that did not arrive; an operator sees those of every person
    #[command(after_help = "Example:\n  ironctl delivery list")]
    List,
    /// Send an answer again, although it may have arrived
    #[command(after_help = "Example:\n  ironctl delivery retry dlv_01J9ZQ4W0V2M6N8P0R2T4V6X8Z")]
    Retry {
        /// Id of the delivery (dlv_…) or of the message (msg_…)
        id: String,
    },
    /// Drop an answer: it is never sent again
    #[command(after_help = "Example:\n  ironctl delivery drop dlv_01J9ZQ4W0V2M6N8P0R2T4V6X8Z")]
    Drop {
        /// Id of the delivery (dlv_…) or of the message (msg_…)
        id: String,
    },
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::List => {
            let letters = client.call(routes::DEAD_LETTERS, []).await?;
            let header = ["DELIVERY", "CHANNEL", "FOR", "RECEIPT", "ATTEMPTS", "REASON", "SETTLED"];
            at.out.list(letters.letters, "every answer arrived", header, row)?;
            let rest = "there are more: retry or drop these, then run ironctl delivery list again";
            if letters.more { at.out.remark(rest) } else { Ok(()) }
        }
        Action::Retry { id } => {
            let done = client.call(routes::RETRY_DELIVERY, [&id]).await?;
            at.out.result(&done, format!("{} will be sent again", done.delivery_id))
        }
        Action::Drop { id } => {
            let done = client.call(routes::DROP_DELIVERY, [&id]).await?;
            at.out.result(&done, format!("dropped {}", done.delivery_id))
        }
    }
}

fn row(letter: DeadLetter) -> [String; 7] {
    let DeadLetter { delivery_id, channel, recipient, receipt, attempts, reason, settled_at, .. } = letter;
    let settled_at = clock::to_the_minute(&settled_at);
    [delivery_id.to_string(), channel, recipient, receipt.to_string(), attempts.to_string(), reason, settled_at]
}
