//! `ironctl reject`: rejects or withdraws one call, question or change, with a reason for the requester.
//!
//! Never shows the page. See [`crate::commands::inbox`].

use super::waiting;
use crate::at::At;
use crate::failure::Error;
use ironclaw_operator::{Decision, WaitingId};

/// Options of `ironctl reject`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl reject req_01j9zq4w0v2m6n8p0r2t4v6x8z\n  ironctl reject chg_01j9zq4w0v2m6n8p0r2t4v6x8z --reason unwanted"
)]
pub struct Args {
    /// Id of the call's approval request (req_…), of the question (qst_…) or of the change (chg_…)
    id: WaitingId,
    /// Reason for the requester
    #[arg(long, default_value = "")]
    reason: String,
}

pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    let decided = waiting::decide(&at.client()?, args.id, Decision::Reject(args.reason)).await?;
    at.out.json(&decided)?;
    waiting::outcome(at.out, &decided)
}
