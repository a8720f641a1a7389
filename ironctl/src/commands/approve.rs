//! `ironctl approve`: approves one call or one change by the digest of its page.
//!
//! Never approves a page with a wrong digest. On a terminal it shows the page and asks. See [`crate::commands::review`], and
//! [`crate::commands::inbox`] for everything that waits.

use super::review::{self, Words};
use super::waiting::{self, Asked, OUTCOME_TIMEOUT};
use crate::at::At;
use crate::client::Client;
use crate::failure::Error;
use ironclaw_operator::{Decision, Digest, Waiting, WaitingId};

/// Options of `ironctl approve`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl approve req_01j9zq4w0v2m6n8p0r2t4v6x8z\n  ironctl approve chg_01j9zq4w0v2m6n8p0r2t4v6x8z"
)]
pub struct Args {
    /// Id of the call's approval request (req_…) or of the change (chg_…)
    id: WaitingId,
    /// Digest of the page that you have read; the host refuses another [default: print the page and approve it]
    #[arg(long, alias = "shown", value_name = "DIGEST")]
    digest: Option<Digest>,
    /// Print the page and approve it without a question, as without a terminal
    #[arg(long)]
    yes: bool,
}

pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    if let WaitingId::Question(id) = args.id {
        let message = format!("{id} is a question, which is answered and not approved");
        return Err(Error::usage(message, "answer it: ironctl answer ID TEXT"));
    }
    let client = at.client()?;
    let decided = match args.digest {
        Some(digest) => waiting::decide(&client, args.id, Decision::Approve(digest)).await?,
        None => approve(at, &client, &waiting::read(&client, args.id).await?, args.yes).await?,
    };
    let decided = waiting::settled(&client, decided, OUTCOME_TIMEOUT).await?;
    at.out.json(&decided)?;
    waiting::outcome(at.out, &decided)
}

/// Approves the page: at a terminal after a question, elsewhere and with `yes` after it is printed.
async fn approve(at: &At, client: &Client, waiting: &Waiting, yes: bool) -> Result<Waiting, Error> {
    let id = waiting.entry.id;
    if !waiting.entry.status.is_open() {
        // The host refuses it in its words; a page that no longer counts would hide them.
        return waiting::decide(client, id, Decision::Approve(Digest::of(waiting.shown.as_bytes()))).await;
    }
    if yes || !review::is_possible(at.out) {
        return waiting::approve_printed(at.out, client, waiting).await;
    }
    match waiting::ask(at.out, client, waiting, Words::One, 0).await? {
        Asked::Decided(decided) => Ok(*decided),
        Asked::Edit | Asked::Left | Asked::Quit => Err(Error::failed("not_confirmed", format!("{id} was not decided"))),
    }
}
