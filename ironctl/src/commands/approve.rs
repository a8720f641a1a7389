//! `ironctl approve`: approves one call or one change by the digest of its page.
//!
//! Never approves a page with a wrong digest. On a terminal it shows the page and asks. See [`crate::commands::review`], and
//! [`crate::commands::inbox`] for everything that waits.

use super::review::{self, Choice, Subject, Words};
use super::waiting::{self, Asked, OUTCOME_TIMEOUT, together};
use crate::at::At;
use crate::client::Client;
use crate::failure::Error;
use ironclaw_operator::{Decision, Digest, Waiting, WaitingId, WaitingTogether, routes};

/// Options of `ironctl approve`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl approve req_01j9zq4w0v2m6n8p0r2t4v6x8z\n  ironctl approve chg_01j9zq4w0v2m6n8p0r2t4v6x8z\n  ironctl approve req_01j9zq4w0v2m6n8p0r2t4v6x8z --together"
)]
pub struct Args {
    /// Id of the call's approval request (req_…) or of the change (chg_…)
    id: WaitingId,
    /// Digest of the page that you have read; the host refuses another [default: print the page and approve it]
    #[arg(long, alias = "shown", value_name = "DIGEST")]
    digest: Option<Digest>,
    /// Decide on all calls of the same output that wait together with this one, by one page
    #[arg(long)]
    together: bool,
    /// Also permit the tools that the page names under UNTIL THE ANSWER, until the turn ends
    #[arg(long)]
    turn: bool,
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
    if args.together {
        return approve_together(at, &client, &args).await;
    }
    let decided = match args.digest {
        Some(digest) => waiting::decide(&client, args.id, approval(digest, &args)).await?,
        None => approve(at, &client, &waiting::read(&client, args.id).await?, &args).await?,
    };
    let decided = waiting::settled(&client, decided, OUTCOME_TIMEOUT).await?;
    at.out.json(&decided)?;
    waiting::outcome(at.out, &decided)
}

/// Returns the approval that the options ask for.
const fn approval(digest: Digest, args: &Args) -> Decision {
    match (args.turn, args.together) {
        (true, _) => Decision::ApproveUntilAnswer(digest),
        (false, true) => Decision::ApproveTogether(digest),
        (false, false) => Decision::Approve(digest),
    }
}

/// Approves the page: at a terminal after a question, elsewhere and with `yes` after it is printed.
async fn approve(at: &At, client: &Client, waiting: &Waiting, args: &Args) -> Result<Waiting, Error> {
    let id = waiting.entry.id;
    if !waiting.entry.status.is_open() {
        // The host refuses it in its words; a page that no longer counts would hide them.
        return waiting::decide(client, id, Decision::Approve(Digest::of(waiting.shown.as_bytes()))).await;
    }
    if args.yes || !review::is_possible(at.out) {
        let shown = review::print_whole(at.out, &waiting.into())?;
        return waiting::decide(client, id, approval(shown, args)).await;
    }
    match waiting::ask(at.out, client, waiting, Words::One, 0).await? {
        Asked::Decided(decided) => Ok(*decided),
        Asked::Edit | Asked::Left | Asked::Quit => Err(undecided(id)),
    }
}

/// Approves each call that waits together with one, by the page of all.
async fn approve_together(at: &At, client: &Client, args: &Args) -> Result<(), Error> {
    let page: WaitingTogether = client.call(routes::WAITING_TOGETHER, [&args.id]).await?;
    let subject = Subject::from(&page);
    let decision = match args.digest {
        Some(digest) => approval(digest, args),
        None if args.yes || !review::is_possible(at.out) => approval(review::print_whole(at.out, &subject)?, args),
        None => match review::ask(at.out, &subject, Words::One, 0).await? {
            Choice::Decide(decision) => decision,
            Choice::Each | Choice::Edit | Choice::Skip | Choice::Quit => return Err(undecided(args.id)),
        },
    };
    waiting::decide(client, args.id, decision).await?;
    let ended = together::settled(client, &page).await?;
    at.out.json(&ended)?;
    together::outcomes(at.out, &ended)
}

fn undecided(id: WaitingId) -> Error {
    Error::failed("not_confirmed", format!("{id} was not decided"))
}
