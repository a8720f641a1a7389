//! The command line of the daemon. People use `ironctl`, which calls this.
//!
//! `run` forks the launcher before it starts a thread or reads a key. Next: `daemon`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use crate::{audit, config, daemon, home, launcher, preflight, reader};
use clap::{Parser, Subcommand};
use ironclaw_contract::operator::{Failure, exit};
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "ironclaw-host",
    version,
    about = "The IronClaw daemon: owns every key, decision and effect",
    arg_required_else_help = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the host on a home, in the foreground
    Run(At),
    /// Set up a home; changes nothing the second time
    Init(At),
    /// Say whether this machine can hold an agent, and what to do where it cannot
    Preflight {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Look here instead of in /proc/sys
        #[arg(long, hide = true, default_value = "/proc/sys")]
        proc_sys: PathBuf,
    },
    /// Look at the ledger; works without a running host
    #[command(subcommand)]
    Audit(Audit),
    /// Look at the settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the contract's fingerprint
    Fingerprint,
}

#[derive(clap::Args)]
struct At {
    /// The home
    #[arg(long)]
    home: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Audit {
    /// Verify the chain: `ok N entries`, or `bad seq K: why`
    Verify(At),
    /// Print every entry, one JSON object a line
    Export(At),
    /// Print the last entries
    Tail {
        #[command(flatten)]
        at: At,
        /// How many
        #[arg(short = 'n', default_value_t = 20)]
        count: u64,
    },
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Read the settings and say what is wrong with them
    Check(At),
}

/// The program: reads the command line, does it, and gives the exit code.
pub fn main() -> ExitCode {
    // Nothing that this program makes is for others to read, whatever the umask of whoever starts it.
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
    let arguments = Arguments::parse();
    let json = match &arguments.command {
        Command::Run(at) | Command::Init(at) | Command::Config(ConfigCommand::Check(at)) => at.json,
        Command::Audit(Audit::Verify(at) | Audit::Export(at) | Audit::Tail { at, .. }) => at.json,
        Command::Preflight { json, .. } => *json,
        Command::Fingerprint => false,
    };
    let done = match arguments.command {
        Command::Run(at) => run(&at.home),
        Command::Init(at) => init(&at),
        Command::Preflight { json, proc_sys } => check_machine(&proc_sys, json),
        Command::Audit(Audit::Verify(at)) => verify(&at),
        Command::Audit(Audit::Export(at)) => export(&at.home),
        Command::Audit(Audit::Tail { at, count }) => tail(&at, count),
        Command::Config(ConfigCommand::Check(at)) => check_config(&at),
        Command::Fingerprint => say(&ironclaw_contract::seam::fingerprint()),
    };
    done.unwrap_or_else(|error| {
        fail(error.as_ref(), json);
        ExitCode::from(exit::FAILED)
    })
}

type Done = Result<ExitCode, Box<dyn Error>>;

fn say(line: &str) -> Done {
    writeln!(std::io::stdout(), "{line}")?;
    Ok(ExitCode::from(exit::DONE))
}

fn fail(error: &(dyn Error + 'static), json: bool) {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let text = source.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        cause = source.source();
    }
    let hint = hint_for(error);
    if json {
        let failure = Failure::new("failed", message, hint);
        eprintln!("{}", serde_json::to_string(&failure).unwrap_or_default());
    } else {
        eprintln!("error: {message}");
        if !hint.is_empty() {
            eprintln!("hint: {hint}");
        }
    }
}

fn hint_for(error: &(dyn Error + 'static)) -> &'static str {
    let not_initialised = |error: Option<&home::Error>| matches!(error, Some(home::Error::NotInitialised(_)));
    let direct = not_initialised(error.downcast_ref());
    let inside = match error.downcast_ref::<daemon::Error>() {
        Some(daemon::Error::Home(error)) => not_initialised(Some(error)),
        _ => matches!(error.downcast_ref::<audit::Error>(), Some(audit::Error::Home(home::Error::NotInitialised(_)))),
    };
    if direct || inside { "set it up with `ironctl init`" } else { "" }
}

fn run(path: &Path) -> Done {
    // A core dump would hold keys; children inherit the limit.
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0)?;
    let launcher = launcher::fork(launcher::Entries { reader: reader::main })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(daemon::run(path, launcher))?;
    Ok(ExitCode::from(exit::DONE))
}

fn init(at: &At) -> Done {
    let made = daemon::init(&at.home)?;
    let path = at.home.canonicalize()?;
    let path = path.display();
    match (at.json, made) {
        (true, made) => say(&serde_json::json!({ "home": path.to_string(), "made": made }).to_string()),
        (false, true) => say(&format!("set up {path}")),
        (false, false) => say(&format!("{path} is set up already; nothing was changed")),
    }
}

fn check_machine(proc_sys: &Path, json: bool) -> Done {
    let preflight = preflight::run(proc_sys);
    if json {
        say(&serde_json::to_string(&preflight)?)?;
    } else {
        for check in &preflight.checks {
            say(&format!("{}  {}: {}", if check.ok { "ok  " } else { "FAIL" }, check.name, check.found))?;
            if !check.remedy.is_empty() {
                say(&format!("      {}", check.remedy))?;
            }
        }
    }
    Ok(ExitCode::from(if preflight.ok { exit::DONE } else { exit::FAILED }))
}

fn verify(at: &At) -> Done {
    match audit::verify(&at.home) {
        Ok(entries) if at.json => say(&serde_json::json!({ "ok": true, "entries": entries }).to_string()),
        Ok(entries) => say(&format!("ok {entries} entries")),
        Err(audit::Error::Chain(crate::ledger::chain::Error::Broken(broken))) => {
            match at.json {
                true => say(&serde_json::json!({ "ok": false, "seq": broken.seq, "why": broken.why }).to_string())?,
                false => say(&broken.to_string())?,
            };
            Ok(ExitCode::from(exit::FAILED))
        }
        Err(error) => Err(error.into()),
    }
}

fn export(path: &Path) -> Done {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut broken_pipe = None;
    audit::export(path, |line| {
        let text = serde_json::to_string(&line).expect("a ledger line is plain data");
        if let Err(error) = writeln!(out, "{text}") {
            broken_pipe.get_or_insert(error);
        }
        Ok(())
    })?;
    match broken_pipe.or_else(|| out.flush().err()) {
        Some(error) => Err(error.into()),
        None => Ok(ExitCode::from(exit::DONE)),
    }
}

fn tail(at: &At, count: u64) -> Done {
    let lines = audit::tail(&at.home, count)?;
    for line in lines {
        if at.json {
            say(&serde_json::to_string(&line)?)?;
        } else {
            say(&format!("{:>6}  {:<8}  {}", line.seq, line.kind, line.canonical))?;
        }
    }
    Ok(ExitCode::from(exit::DONE))
}

fn check_config(at: &At) -> Done {
    let home = home::Home::open(&at.home)?;
    let (_, file) = config::load(&home)?;
    let file = file.map_or_else(|| "no file: every default".to_owned(), |file| file.display().to_string());
    match at.json {
        true => say(&serde_json::json!({ "ok": true, "file": file }).to_string()),
        false => say(&format!("ok {file}")),
    }
}
