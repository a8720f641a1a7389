//! `ironctl approve`: says yes to one change, to exactly the text that is shown with it.
//! Never approves a text that is not what its digest says.
//! Next: `commands::inbox` for the same on a terminal, `commands::change` to look first.

use super::{At, change};
use crate::failure::Error;
use ironclaw_contract::operator::Digest;
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
}

/// Does it.
pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    let client = at.client()?;
    let shown = match args.shown {
        Some(digest) => digest,
        None => {
            let waiting = client.change(&args.id, Duration::ZERO).await?;
            let digest = change::verified(&waiting)?;
            at.out.exact(&waiting.shown)?;
            at.out.line("")?;
            digest
        }
    };
    let decided = client.approve(&args.id, shown).await?;
    let decided = change::settled(&client, decided).await?;
    at.out.json(&decided)?;
    change::outcome(at.out, &decided)
}
