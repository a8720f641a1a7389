//! `ironctl reject`: rejects one change or one call, with a reason for the requester.
//!
//! Never shows the page. See [`crate::commands::inbox`].

use super::At;
use super::decidable::Decidable;
use crate::failure::Error;

/// Options of `ironctl reject`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl reject req_01j9zq4w0v2m6n8p0r2t4v6x8z\n  ironctl reject chg_01j9zq4w0v2m6n8p0r2t4v6x8z --reason unwanted"
)]
pub struct Args {
    /// Id of the call's approval request (req_…) or of the change (chg_…)
    id: String,
    /// Reason for the requester
    #[arg(long, default_value = "")]
    reason: String,
}

pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    let decided = Decidable::reject(&at.client()?, &args.id, args.reason).await?;
    at.out.json(&decided)?;
    decided.outcome(at.out)
}
