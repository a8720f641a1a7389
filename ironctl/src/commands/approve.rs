//! `ironctl approve`: says yes to one change, to exactly the text that is shown with it.
//!
//! Never approves a text that is not what its digest says. On a terminal it shows the text and asks. See
//! [`crate::commands::review`], [`crate::commands::inbox`] for everything that waits, [`crate::commands::change`] to look first.

use super::review::{self, Said};
use super::{At, change};
use crate::client::Client;
use crate::failure::Error;
use ironclaw_contract::operator::{Change, Digest};
use std::time::Duration;

/// Options of `ironctl approve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl approve chg_01j9zq4w0v2m6n8p0r2t4v6x8z")]
pub struct Args {
    /// Id of the change
    id: String,
    /// Digest of the text that you have seen; another one is refused [default: the text is printed, and is what you approve]
    #[arg(long, value_name = "DIGEST")]
    shown: Option<Digest>,
    /// Print the text and approve it without asking, as without a terminal
    #[arg(long)]
    yes: bool,
}

/// Does it.
pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    let client = at.client()?;
    let decided = match args.shown {
        Some(digest) => client.approve(&args.id, digest).await?,
        None => {
            let waiting = client.change(&args.id, Duration::ZERO).await?;
            let asks = !args.yes && change::is_open(&waiting) && review::is_possible(at.out);
            if asks { ask(at, &client, &waiting).await? } else { approve_printed(at, &client, &waiting).await? }
        }
    };
    let decided = change::settled(&client, decided).await?;
    at.out.json(&decided)?;
    change::outcome(at.out, &decided)
}

/// Shows the change and does what the person says.
async fn ask(at: &At, client: &Client, waiting: &Change) -> Result<Change, Error> {
    match review::ask(at.out, waiting, false)? {
        Said::Approve(shown) => client.approve(&waiting.id.to_string(), shown).await,
        Said::Reject(reason) => client.reject(&waiting.id.to_string(), reason).await,
        Said::Skip | Said::Quit => {
            Err(Error::failed("not_confirmed", format!("nothing was decided about {}", waiting.id)))
        }
    }
}

async fn approve_printed(at: &At, client: &Client, waiting: &Change) -> Result<Change, Error> {
    let digest = change::verified(waiting)?;
    at.out.exact(&waiting.shown)?;
    at.out.line("")?;
    client.approve(&waiting.id.to_string(), digest).await
}
