//! `ironctl completions`: prints a completion script for a shell.
//!
//! Never writes a file: the place depends on the shell. See [`crate::commands`] for the command line.

use super::At;
use crate::failure::Error;
use clap::CommandFactory;
use clap_complete::Shell;

/// Options of `ironctl completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl completions bash > ~/.local/share/bash-completion/completions/ironctl")]
pub struct Args {
    /// Name of the shell
    shell: Shell,
}

/// Prints the script.
pub fn run(at: &At, args: &Args) -> Result<(), Error> {
    // Generated in memory, because the generator panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "ironctl", &mut script);
    at.out.raw(&script)
}
