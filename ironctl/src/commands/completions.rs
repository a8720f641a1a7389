//! `ironctl completions`: a completion script for a shell.
//!
//! Never writes it anywhere: the operator knows where their shell looks. See `main`, where the command line is defined.

use super::At;
use crate::failure::Error;
use clap::CommandFactory;
use clap_complete::Shell;

/// Options of `ironctl completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl completions bash > ~/.local/share/bash-completion/completions/ironctl")]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub fn run(at: &At, args: &Args) -> Result<(), Error> {
    // Built in memory, because the generator panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "ironctl", &mut script);
    at.out.raw(&script)
}
