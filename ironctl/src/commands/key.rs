//! `ironctl key`: replaces the master key and the caller's token by fresh ones.
//!
//! Never sees the master key: `ironclaw-host` does that, while no host runs. See [`crate::commands::token`].

use super::{At, token};
use crate::failure::Error;
use crate::sibling::Offline;
use clap::Subcommand;
use std::path::PathBuf;

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Replace a key by a fresh one
    #[command(subcommand, after_help = "Example:\n  ironctl key rotate token")]
    Rotate(Rotate),
}

/// Which key.
#[derive(Debug, Subcommand)]
pub enum Rotate {
    /// The master key, while no host runs: everything under it is brought under a fresh one
    #[command(
        after_help = "Example:\n  ironctl key rotate master --yes\n  ironctl key rotate master --keep-old /media/safe/master.key.2026 --yes\n  ironctl key rotate master --to /etc/ironclaw/master.key.next --yes"
    )]
    Master {
        /// Where the new key goes; needed when the old one is not the home's own file
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        /// Keep a copy of the old key: backups from before open with nothing else
        #[arg(long, value_name = "FILE")]
        keep_old: Option<PathBuf>,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
    /// The token that this command speaks with
    #[command(after_help = "Example:\n  ironctl key rotate token")]
    Token,
}

/// Does it.
pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::Rotate(Rotate::Token) => token::tell(at.out, &at.client()?.rotate_token("current").await?),
        Action::Rotate(Rotate::Master { to, keep_old, yes }) => {
            let lost = if keep_old.is_some() { "" } else { " and forget the old one, which alone opens older backups" };
            at.out.confirm(&format!("bring {} under a fresh master key{lost}", at.home.path().display()), yes)?;
            let mut offline = Offline::host(&["key", "rotate-master"])?;
            for (word, path) in [("--to", to), ("--keep-old", keep_old)] {
                if let Some(path) = path {
                    offline = offline.arg(word).arg(path);
                }
            }
            offline.at(&at.home).json(at.out.is_json()).pass()
        }
    }
}
