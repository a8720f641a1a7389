//! `ironctl config`: checks the settings of the host.
//!
//! Never reads them itself: `ironclaw-host` does, with the code of its start. See `config.toml` in the home.

use super::At;
use crate::failure::Error;
use crate::host_binary::Offline;
use clap::Subcommand;

/// The verbs of `ironctl config`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Check that a host would start with the settings
    #[command(after_help = "Example:\n  ironctl config check")]
    Check,
}

/// Runs the check by the host's binary, and passes on its exit code.
pub fn run(at: &At, action: &Action) -> Result<(), Error> {
    match action {
        Action::Check => Offline::host(&["config", "check"])?.at(&at.home).json(at.out.is_json()).pass(),
    }
}
