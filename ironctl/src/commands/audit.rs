//! `ironctl audit`: reads and verifies the ledger, also while no host runs.
//! Never opens the ledger itself: `ironclaw-host audit` does.
//! Next: `commands::why` for one message.

use super::At;
use crate::failure::Error;
use crate::sibling::Offline;
use clap::Subcommand;

/// What to do with the ledger.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Show the newest entries
    #[command(after_help = "Example:\n  ironctl audit tail -n 20")]
    Tail {
        /// How many
        #[arg(short, default_value_t = 20, value_name = "N")]
        n: u32,
    },
    /// Verify the whole chain; names the first bad entry
    #[command(after_help = "Example:\n  ironctl audit verify")]
    Verify,
    /// Print every entry, one JSON object a line
    #[command(after_help = "Example:\n  ironctl audit export > ledger.ndjson")]
    Export,
}

/// Lets the host's binary do it, and ends as it does.
pub fn run(at: &At, action: &Action) -> Result<(), Error> {
    let offline = match action {
        Action::Tail { n } => Offline::host(&["audit", "tail", "-n"])?.arg(n.to_string()),
        Action::Verify => Offline::host(&["audit", "verify"])?,
        Action::Export => Offline::host(&["audit", "export"])?,
    };
    offline.at(&at.home).json(at.out.is_json()).pass()
}
