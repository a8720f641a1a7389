//! `ironctl approve`: approves one change or one call by the digest of its page.
//!
//! Never approves a page with a wrong digest. On a terminal it shows the page and asks. See [`crate::commands::review`], and
//! [`crate::commands::inbox`] for everything that waits.

use super::decidable::Decidable;
use super::question::QUESTION_PREFIX;
use super::review::{self, Choice, Words};
use crate::at::At;
use crate::client::Client;
use crate::failure::Error;
use ironclaw_operator::Digest;

/// Options of `ironctl approve`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl approve req_01j9zq4w0v2m6n8p0r2t4v6x8z\n  ironctl approve chg_01j9zq4w0v2m6n8p0r2t4v6x8z"
)]
pub struct Args {
    /// Id of the call's approval request (req_…) or of the change (chg_…)
    id: String,
    /// Digest of the page that you have read; the host refuses another [default: print the page and approve it]
    #[arg(long, alias = "shown", value_name = "DIGEST")]
    digest: Option<Digest>,
    /// Print the page and approve it without a question, as without a terminal
    #[arg(long)]
    yes: bool,
}

pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    if args.id.starts_with(QUESTION_PREFIX) {
        let message = format!("{} is a question, which is answered and not approved", args.id);
        return Err(Error::usage(message, "answer it: ironctl answer ID TEXT"));
    }
    let client = at.client()?;
    let decided = match args.digest {
        Some(digest) => Decidable::approve(&client, &args.id, digest).await?,
        None => {
            let waiting = Decidable::read(&client, &args.id).await?;
            if !waiting.is_open() {
                // The host refuses it in its words; a page that no longer counts would hide them.
                let refused = Decidable::approve(&client, &args.id, waiting.digest()).await?;
                return refused.outcome(at.out);
            }
            match !args.yes && review::is_possible(at.out) {
                true => ask(at, &client, &args.id, &waiting).await?,
                false => Decidable::approve(&client, &args.id, waiting.print_whole(at.out)?).await?,
            }
        }
    };
    let decided = decided.settled(&client).await?;
    at.out.json(&decided)?;
    decided.outcome(at.out)
}

/// Shows a change or a call and applies the decision of the person.
async fn ask(at: &At, client: &Client, id: &str, waiting: &Decidable) -> Result<Decidable, Error> {
    match waiting.ask(at.out, client, Words::One, 0).await? {
        Choice::Approve(shown) => Decidable::approve(client, id, shown).await,
        Choice::Reject(reason) => Decidable::reject(client, id, reason).await,
        Choice::Skip | Choice::Quit => Err(Error::failed("not_confirmed", format!("{id} was not decided"))),
    }
}
