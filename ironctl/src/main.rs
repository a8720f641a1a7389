//! `ironctl`, the command line for the operator of an IronClaw host.
//!
//! Never opens a database and never decides: it sends requests to the host, or runs `ironclaw-host` offline. See
//! [`crate::commands`] for the commands, [`crate::client`] for the requests, [`crate::failure`] for the exit codes.

mod access;
mod at;
mod client;
mod clock;
mod commands;
mod failure;
mod home;
mod host_binary;
mod jail;
mod local_file;
mod new_file;
mod output;
mod own_command;
mod probe;
mod processes;
mod secret_input;
mod terminal_line;

use clap::Parser;
use clap::error::ErrorKind;
use commands::GLOBAL_OPTIONS;
use failure::Error;
use ironclaw_operator::exit;
use output::Output;
use std::path::PathBuf;
use std::process::ExitCode;

/// Operates an IronClaw host: agents that you do not have to trust.
#[derive(Debug, Parser)]
#[command(
    name = "ironctl",
    version,
    help_template = commands::help_template(),
    after_help = "Example:\n  ironctl quickstart"
)]
struct Cli {
    // Each text fits beside its option on 80 columns, so that the whole help fits on 24 lines.
    /// Home of the host
    #[arg(
        long,
        global = true,
        env = "IRONCLAW_HOME",
        hide_env_values = true,
        value_name = "DIR",
        help_heading = GLOBAL_OPTIONS
    )]
    home: Option<PathBuf>,

    /// Loopback URL of the host
    #[arg(
        long,
        global = true,
        env = "IRONCLAW_API",
        hide_env_values = true,
        value_name = "URL",
        help_heading = GLOBAL_OPTIONS
    )]
    api: Option<String>,

    /// File with the token
    #[arg(
        long,
        global = true,
        env = "IRONCLAW_TOKEN_FILE",
        hide_env_values = true,
        value_name = "FILE",
        help_heading = GLOBAL_OPTIONS
    )]
    token_file: Option<PathBuf>,

    /// Print JSON; failures are JSON on stderr
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS)]
    json: bool,

    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(print_usage(&error)),
    };
    let out = Output::new(cli.json);
    match run(cli, out) {
        Ok(()) => ExitCode::from(exit::DONE),
        Err(error) => {
            out.failure(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(cli: Cli, out: Output) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|cause| Error::failed("runtime", "cannot start").because(cause))?;
    let access = access::Access::new(cli.api, cli.token_file);
    let at = at::At { home: home::Home::resolve(cli.home)?, out, access };
    runtime.block_on(cli.command.run(&at))
}

/// Prints help and version to stdout, and the error of a wrong command line to stderr; returns the exit code.
fn print_usage(error: &clap::Error) -> u8 {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // A closed stdout is not an error of the command.
        let _ = error.print();
        return exit::DONE;
    }
    // The command line could not be parsed, so `--json` is only found in its words.
    if std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json") {
        let text = error.render().to_string();
        let message = match error.kind() {
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "no command is given",
            _ => text.lines().next().unwrap_or_default().trim_start_matches("error: "),
        };
        Output::new(true).failure(&Error::usage(message, "see `ironctl --help`"));
    } else {
        let _ = error.print();
    }
    exit::USAGE
}

#[cfg(test)]
mod tests;
