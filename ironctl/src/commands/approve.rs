//! `ironctl approve`: approves one change by the digest of its review page.
//!
//! Never approves a page with a wrong digest. On a terminal it shows the page and asks. See [`crate::commands::review`],
//! [`crate::commands::inbox`] for all waiting changes, [`crate::commands::change`] to show one.

use super::review::{self, Choice};
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
    /// Digest of the review page that you have read; the host refuses another [default: print the page and approve it]
    #[arg(long, value_name = "DIGEST")]
    shown: Option<Digest>,
    /// Print the review page and approve it without a question, as without a terminal
    #[arg(long)]
    yes: bool,
}

pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    let client = at.client()?;
    let decided = match args.shown {
        Some(digest) => client.approve(&args.id, digest).await?,
        None => {
            let waiting = client.change(&args.id, Duration::ZERO).await?;
            let asks = !args.yes && change::is_open(&waiting) && review::is_possible(at.out);
            match asks {
                true => ask(at, &client, &waiting).await?,
                false => change::approve_printed(at.out, &client, &waiting).await?,
            }
        }
    };
    let decided = change::settled(&client, decided).await?;
    at.out.json(&decided)?;
    change::outcome(at.out, &decided)
}

/// Shows a change and applies the decision of the person.
async fn ask(at: &At, client: &Client, waiting: &Change) -> Result<Change, Error> {
    match review::ask(at.out, waiting, false, 0)? {
        Choice::Approve(shown) => client.approve(&waiting.id.to_string(), shown).await,
        Choice::Reject(reason) => client.reject(&waiting.id.to_string(), reason).await,
        Choice::Skip | Choice::Quit => Err(Error::failed("not_confirmed", format!("{} was not decided", waiting.id))),
    }
}
