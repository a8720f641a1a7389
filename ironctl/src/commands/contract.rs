//! `ironctl contract`: shows the fingerprint of the frozen contract between host and sandbox.
//!
//! Never computes the fingerprint, because `ironctl` does not link the code behind it. See [`crate::commands::doctor`], which
//! compares both sides.

use crate::at::At;
use crate::failure::Error;
use crate::host_binary::{self, Offline};
use clap::Subcommand;
use serde_json::json;

/// The verbs of `ironctl contract`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Print the fingerprint that host and sandbox must share
    #[command(after_help = "Example:\n  ironctl contract fingerprint")]
    Fingerprint,
}

pub fn run(at: &At, action: &Action) -> Result<(), Error> {
    match action {
        Action::Fingerprint => {
            let fingerprint = host_fingerprint()?;
            at.out.result(&json!({ "fingerprint": fingerprint }), fingerprint)
        }
    }
}

/// Returns the fingerprint that `ironclaw-host` was built with.
pub fn host_fingerprint() -> Result<String, Error> {
    printed(Offline::host(&["fingerprint"])?)
}

/// Returns the fingerprint that `ironclaw-sandbox` was built with.
pub fn sandbox_fingerprint() -> Result<String, Error> {
    printed(Offline::program(host_binary::SANDBOX, &["--fingerprint"])?)
}

fn printed(command: Offline) -> Result<String, Error> {
    let output = command.capture()?;
    host_binary::pass_on(output.status)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
