//! `ironctl config`: looks at the operator's settings.
//!
//! Never reads them itself: `ironclaw-host` does, with the code that a start uses. See `config.toml` in the home.

use super::At;
use crate::failure::Error;
use crate::sibling::Offline;
use clap::Subcommand;

/// What to do with the settings.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Say whether a host would start with them
    #[command(after_help = "Example:\n  ironctl config check")]
    Check,
}

/// Lets the host's binary do it, and ends as it does.
pub fn run(at: &At, action: &Action) -> Result<(), Error> {
    match action {
        Action::Check => Offline::host(&["config", "check"])?.at(&at.home).json(at.out.is_json()).pass(),
    }
}
