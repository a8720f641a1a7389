//! `ironctl reject`: rejects one change or one call, or cancels one question, with a reason for the requester.
//!
//! Never shows the page. See [`crate::commands::inbox`].

use super::decidable::Decidable;
use super::question::QUESTION_PREFIX;
use crate::at::At;
use crate::failure::Error;
use ironclaw_operator::{Rejection, routes};

/// Options of `ironctl reject`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl reject req_01j9zq4w0v2m6n8p0r2t4v6x8z\n  ironctl reject chg_01j9zq4w0v2m6n8p0r2t4v6x8z --reason unwanted"
)]
pub struct Args {
    /// Id of the call's approval request (req_…), of the change (chg_…) or of the question (qst_…)
    id: String,
    /// Reason for the requester
    #[arg(long, default_value = "")]
    reason: String,
}

pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    if args.id.starts_with(QUESTION_PREFIX) {
        let cancelled =
            at.client()?.post(routes::REJECT_QUESTION, [&args.id], &Rejection { reason: args.reason }).await?;
        return at.out.result(&cancelled, format!("{} is {}", cancelled.id, cancelled.status));
    }
    let decided = Decidable::reject(&at.client()?, &args.id, args.reason).await?;
    at.out.json(&decided)?;
    decided.outcome(at.out)
}
