//! `ironctl reject`: rejects one change, with a reason for the requester.
//!
//! Never shows the review page. See [`crate::commands::inbox`].

use super::{At, change};
use crate::failure::Error;

/// Options of `ironctl reject`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl reject chg_01j9zq4w0v2m6n8p0r2t4v6x8z --reason unwanted")]
pub struct Args {
    /// Id of the change
    id: String,
    /// Reason for the requester
    #[arg(long, default_value = "")]
    reason: String,
}

pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    let decided = at.client()?.reject(&args.id, args.reason).await?;
    at.out.json(&decided)?;
    change::outcome(at.out, &decided)
}
