//! `ironctl key`: rotates the master key and the token of the caller.
//!
//! Never reads the master key: `ironclaw-host` rotates it, while no host runs. See [`crate::commands::token`].

use super::token;
use crate::at::At;
use crate::failure::Error;
use crate::host_binary::Offline;
use clap::Subcommand;
use ironclaw_operator::routes;
use std::path::PathBuf;

/// The verbs of `ironctl key`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Replace a key by a new one
    #[command(subcommand, after_help = "Example:\n  ironctl key rotate token")]
    Rotate(Rotate),
}

/// The keys of `ironctl key rotate`.
#[derive(Debug, Subcommand)]
pub enum Rotate {
    /// Rotate the master key: encrypt the home under a new key, while no host runs
    #[command(
        after_help = "Example:\n  ironctl key rotate master --yes\n  ironctl key rotate master --keep-old /media/safe/master.key.2026 --yes\n  ironctl key rotate master --to /etc/ironclaw/master.key.next --yes"
    )]
    Master {
        /// File for the new key; required if the old key is not the file of the home
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        /// File for a copy of the old key, which older backups need
        #[arg(long, value_name = "FILE")]
        keep_old: Option<PathBuf>,
        /// Rotate without a confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Rotate the token that this command uses
    #[command(after_help = "Example:\n  ironctl key rotate token")]
    Token,
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::Rotate(Rotate::Token) => {
            token::print_issued(at.out, &at.client()?.call(routes::ROTATE_TOKEN, [&"current"]).await?)
        }
        Action::Rotate(Rotate::Master { to, keep_old, yes }) => {
            let lost = if keep_old.is_some() { "" } else { " and delete the old key, which older backups need" };
            at.out.confirm(&format!("encrypt {} under a new master key{lost}", at.home.path().display()), yes)?;
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
