//! `ironctl`, the operator's hand on an IronClaw host.
//!
//! Never opens a database and never decides anything: it asks the host, and runs `ironclaw-host` offline. See [`crate::commands`]
//! for what it can do, [`crate::client`] for how it asks, [`crate::failure`] for how it ends.

mod access;
mod client;
mod clock;
mod commands;
mod failure;
mod hidden;
mod home;
mod jail;
mod nearest;
mod output;
mod probe;
mod processes;
mod sibling;

use clap::Parser;
use clap::error::ErrorKind;
use failure::Error;
use ironclaw_contract::operator::exit;
use output::Output;
use std::path::PathBuf;
use std::process::ExitCode;

/// Operates an IronClaw host: agents that you do not have to trust.
#[derive(Debug, Parser)]
#[command(name = "ironctl", version, after_help = "Example:\n  ironctl quickstart")]
struct Cli {
    /// Directory that holds the installation [default: the XDG state directory, `ironclaw` in it]
    #[arg(long, global = true, env = "IRONCLAW_HOME", value_name = "DIR")]
    home: Option<PathBuf>,

    /// Ask the host on this loopback port, not the one of the home [e.g. http://127.0.0.1:8787]
    #[arg(long, global = true, env = "IRONCLAW_API", value_name = "URL")]
    api: Option<String>,

    /// Speak with the token in this file, not with $IRONCLAW_TOKEN or the owner's
    #[arg(long, global = true, env = "IRONCLAW_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Print JSON for scripts; failures are JSON on stderr
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(misread(&error)),
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
    let at = commands::At { home: home::Home::resolve(cli.home)?, out, access };
    runtime.block_on(cli.command.run(&at))
}

/// Reports a misread command line: help and version are asked for and go to stdout; the rest is a wrong command line.
fn misread(error: &clap::Error) -> u8 {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Nothing can be done about a closed stdout.
        let _ = error.print();
        return exit::DONE;
    }
    // Without a parsed command line, whether a script is listening shows only in its words.
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
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_that_it_accepts() {
        fn walk(command: &clap::Command, path: &str) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with("Example:\n"), "{path} has no example");
            for line in help.lines().skip(1) {
                let words: Vec<&str> = line.split(['|', '<', '>']).next().unwrap_or("").split_whitespace().collect();
                assert_eq!(words.first(), Some(&"ironctl"), "{path}: {line}");
                let read = Cli::try_parse_from(words.iter().map(|word| word.trim_matches('"')));
                assert!(read.is_ok(), "{path}: {line}: {}", read.expect_err("checked"));
            }
            assert!(command.get_about().is_some(), "{path} does not say what it does");
            for child in command.get_subcommands() {
                walk(child, &format!("{path} {}", child.get_name()));
            }
        }
        walk(&Cli::command(), "ironctl");
    }
}
