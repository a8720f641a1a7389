//! The command line of the daemon. People use `ironctl`, which calls it.
//!
//! `run` forks the launcher before it starts a thread or reads a key. See [`crate::daemon`].
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod backup;

use crate::daemon::{self, audit, config, preflight};
use crate::upkeep::key_rotation;
use clap::{Parser, Subcommand};
use ironclaw_jail::{launcher, reader, self_test};
use ironclaw_operator::{AcceptedBreak, Failure, LedgerHead, exit};
use ironclaw_state::home;
use ironclaw_state::keys;
use ironclaw_store::toml_file;
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The remedy for a file of settings that cannot be read.
const UNREADABLE_SETTINGS: &str = "make the file readable (`chmod 600`), or move it away to use every default";

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
    /// Check if this machine can run agents, with a remedy for each failed check
    Preflight {
        /// A home, whose settings name the uids of jails if root starts the host
        #[arg(long)]
        home: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Read this directory instead of /proc/sys
        #[arg(long, hide = true, default_value = "/proc/sys")]
        proc_sys: PathBuf,
    },
    /// Inspect the ledger; works without a running host
    #[command(subcommand)]
    Audit(Audit),
    /// Make, verify and restore backups, without a running host
    #[command(subcommand)]
    Backup(backup::Action),
    /// Inspect the settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Replace keys, while no host runs
    #[command(subcommand)]
    Key(Key),
    /// List the files of a home that no host runs on, or remove them
    Uninstall {
        #[command(flatten)]
        at: At,
        /// Remove the listed files
        #[arg(long)]
        remove: bool,
    },
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
    /// Verify every chain and the heads kept outside: `ok N entries`, or `bad seq K: why`
    Verify {
        /// The home
        #[arg(long, required_unless_present = "file")]
        home: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Verify this export instead of a home; `-` is standard input
        #[arg(long, value_name = "FILE", conflicts_with = "home")]
        file: Option<PathBuf>,
        /// Compare with the heads in this directory
        #[arg(long, value_name = "DIR")]
        heads: Option<PathBuf>,
        /// The public key that the ledger must name, 64 hex characters
        #[arg(long, value_name = "HEX")]
        key: Option<String>,
    },
    /// Print every entry as one line of JSON, and signed heads at the ends of chains
    Export(At),
    /// Print the signed head of the present ledger
    Head(At),
    /// Close the chain and begin the next; only without a running host
    Rotate(At),
    /// Print the last entries
    Tail {
        #[command(flatten)]
        at: At,
        /// Number of entries
        #[arg(short = 'n', default_value_t = 20)]
        count: u64,
    },
}

#[derive(Subcommand)]
enum Key {
    /// Encrypt the record under a fresh master key
    RotateMaster {
        #[command(flatten)]
        at: At,
        /// File for the fresh key, unless the home keeps it
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        /// File for a copy of the old key
        #[arg(long, value_name = "FILE")]
        keep_old: Option<PathBuf>,
    },
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Read the settings and report mistakes
    Check(At),
}

/// Runs the program: parses the command line, runs the command, and returns the exit code.
pub fn main() -> ExitCode {
    // All files of this program are private, whatever umask it inherits.
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
    let arguments = Arguments::parse();
    let json = match &arguments.command {
        Command::Run(at) | Command::Init(at) | Command::Config(ConfigCommand::Check(at)) => at.json,
        Command::Audit(Audit::Export(at) | Audit::Head(at) | Audit::Rotate(at) | Audit::Tail { at, .. }) => at.json,
        Command::Audit(Audit::Verify { json, .. }) => *json,
        Command::Preflight { json, .. } => *json,
        Command::Backup(action) => action.json(),
        Command::Key(Key::RotateMaster { at, .. }) | Command::Uninstall { at, .. } => at.json,
        Command::Fingerprint => false,
    };
    let done = match arguments.command {
        Command::Run(at) => run(&at.home),
        Command::Init(at) => init(&at),
        Command::Preflight { home, json, proc_sys } => check_machine(&proc_sys, home.as_deref(), json),
        Command::Audit(Audit::Verify { home, json, file, heads, key }) => {
            let evidence = audit::Evidence { heads: heads.as_deref(), key: key.as_deref() };
            verify(home.as_deref(), file.as_deref(), &evidence, json)
        }
        Command::Backup(action) => backup::run(&action),
        Command::Audit(Audit::Head(at)) => head(&at),
        Command::Audit(Audit::Rotate(at)) => rotate(&at),
        Command::Audit(Audit::Export(at)) => export(&at.home),
        Command::Audit(Audit::Tail { at, count }) => tail(&at, count),
        Command::Config(ConfigCommand::Check(at)) => check_config(&at),
        Command::Key(Key::RotateMaster { at, to, keep_old }) => rotate_master(&at, to, keep_old),
        Command::Uninstall { at, remove } => uninstall(&at, remove),
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
        let failure = Failure::new(code_of(error), message, hint);
        eprintln!("{}", serde_json::to_string(&failure).unwrap_or_default());
    } else {
        eprintln!("error: {message}");
        if !hint.is_empty() {
            eprintln!("hint: {hint}");
        }
    }
}

fn backup_failure<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e crate::upkeep::backup::Error> {
    match error.downcast_ref() {
        Some(daemon::Error::Backup(error)) => Some(error),
        _ => error.downcast_ref(),
    }
}

/// Returns the stable code of a failure, or `failed`.
fn code_of(error: &(dyn Error + 'static)) -> &'static str {
    let home = match (error.downcast_ref(), error.downcast_ref()) {
        (Some(daemon::Error::Home(error)), _) | (_, Some(audit::Error::Home(error))) => Some(error),
        _ => error.downcast_ref::<home::Error>(),
    };
    if let Some(error) = backup_failure(error) {
        return error.code();
    }
    match (home, error.downcast_ref()) {
        (Some(home::Error::RecordMissing { .. }), _) => "record_missing",
        (Some(home::Error::Running(_)), _) => "host_running",
        (_, Some(daemon::Error::NoGenesis(_))) => "record_empty",
        (_, Some(daemon::Error::FileSystem(_))) => "file_system_unfit",
        (_, Some(daemon::Error::Key(keys::Error::Missing { .. }))) => "key_missing",
        _ => "failed",
    }
}

fn hint_for(error: &(dyn Error + 'static)) -> &'static str {
    let of_home = |error: &home::Error| -> &'static str {
        match error {
            home::Error::NotInitialised(_) => "set it up with `ironctl init`",
            home::Error::Running(_) => "stop it first: `ironctl down`",
            home::Error::RecordMissing { .. } => "restore the newest backup; to start over, move the home away first",
            home::Error::Damaged { remedy, .. } => remedy,
            home::Error::NoRoom { .. } => "free space on the disk of the home, then start again",
            home::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::ReadOnlyFilesystem => home::REMOUNT,
            home::Error::Permissions { .. } | home::Error::Io { .. } => "",
        }
    };
    let of_key = |error: &keys::Error| match error {
        keys::Error::Missing { .. } => "restore the key from your copy; no other key opens the record",
        keys::Error::Home(error) => of_home(error),
        _ => "",
    };
    let of_rotation = |error: &key_rotation::Error| match error {
        key_rotation::Error::Home(error) => of_home(error),
        key_rotation::Error::Key(error) => of_key(error),
        key_rotation::Error::Replaced { .. } => "use the newer key; this one only opens earlier copies",
        _ => "",
    };
    if let Some(error) = backup_failure(error) {
        return error.hint();
    }
    if let Some(error) = error.downcast_ref() {
        return of_home(error);
    }
    if let Some(error) = error.downcast_ref() {
        return of_rotation(error);
    }
    match (error.downcast_ref::<daemon::Error>(), error.downcast_ref::<audit::Error>()) {
        (Some(daemon::Error::Settings(toml_file::Error::Read { .. })), _) => UNREADABLE_SETTINGS,
        (Some(daemon::Error::Settings(_)), _) => "correct the file; `ironctl config check` reads it again",
        (Some(daemon::Error::Key(keys::Error::Read { .. } | keys::Error::Length(_))), _) => {
            "restore the master key from your copy; no other key opens the record"
        }
        (Some(daemon::Error::Home(error)), _) | (_, Some(audit::Error::Home(error))) => of_home(error),
        (Some(daemon::Error::FileSystem(unfit)), _) => unfit.hint(),
        (Some(daemon::Error::Foreign { .. }), _) => "move them to another directory, then uninstall again",
        (Some(daemon::Error::Rotation(error)), _) | (_, Some(audit::Error::Key(error))) => of_rotation(error),
        (Some(daemon::Error::Key(error)), _) => of_key(error),
        (Some(daemon::Error::NoGenesis(_)), _) => {
            "restore the newest backup of the home; if it never had a record, move the home away and run `ironctl init`"
        }
        _ => "",
    }
}

fn run(path: &Path) -> Done {
    // A core dump would hold keys; children inherit the limit.
    if ironclaw_jail::failpoint::left_out_wall().as_deref() != Some(ironclaw_jail::Wall::CoreLimit.name()) {
        nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0)?;
    }
    // The launcher, its jails and all threads inherit it. A machine that refuses it works as before, with later wake-ups under load.
    let _ = ironclaw_jail::sys::ask_for_short_slices();
    let launcher = launcher::fork(launcher::Entries { reader: reader::main, probe: Some(self_test::run) })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(task_threads()).enable_all().build()?;
    runtime.block_on(daemon::run(path, launcher))?;
    Ok(ExitCode::from(exit::DONE))
}

/// Returns the number of threads that run the tasks of the host: half of the processors. The threads of the record, the blocking threads
/// and the sandboxes use the others, and each further thread here is woken for tasks that another one already runs.
fn task_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| (processors.get() / 2).max(1))
}

fn init(at: &At) -> Done {
    let made = daemon::init(&at.home)?;
    let path = at.home.canonicalize()?.display().to_string();
    if let (daemon::Made::Home, Some(warning)) = (made, daemon::zone(&at.home)?.warning()) {
        eprintln!("warning: {warning}");
    }
    match (at.json, made) {
        (true, made) => {
            let (is_new, token) = (made != daemon::Made::Nothing, made == daemon::Made::Token);
            say(&serde_json::json!({ "home": path, "made": is_new, "token_replaced": token }).to_string())
        }
        (false, daemon::Made::Home) => say(&format!("set up {path}")),
        (false, daemon::Made::Token) => {
            say(&format!("{path} is set up already; {path}/owner.token holds a new token of the owner"))
        }
        (false, daemon::Made::Nothing) => say(&format!("{path} is set up already; nothing was changed")),
    }
}

fn check_machine(proc_sys: &Path, home: Option<&Path>, json: bool) -> Done {
    // Without a home, or with unreadable settings, the defaults apply; `init` and `config check` report those.
    let settings = home.and_then(|home| home::Home::open(home).ok()).and_then(|home| config::load(&home).ok());
    let first_id = settings.map_or(ironclaw_jail::FIRST_HOST_ID, |(settings, _)| settings.jail.uid_base);
    let preflight = preflight::run_for(proc_sys, first_id, home);
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

fn verify(home: Option<&Path>, file: Option<&Path>, evidence: &audit::Evidence<'_>, json: bool) -> Done {
    let found = match (file, home) {
        (Some(file), _) => audit::verify_file(file, evidence),
        (None, Some(home)) => audit::verify(home, evidence),
        (None, None) => unreachable!("clap asks for one of them"),
    };
    match found {
        Ok(whole) if json => say(&serde_json::to_string(&whole)?),
        Ok(whole) => {
            say(&format!("ok {} entries", whole.entries))?;
            say(&format!("   chains {}, outside heads {}", whole.chains, whole.heads))?;
            say(&format!("   ledger {}", whole.ledger))?;
            if let Some(key) = &whole.key {
                say(&format!("   key    {key}"))?;
            }
            for accepted in &whole.accepted {
                say(&accepted_line(accepted))?;
            }
            for remark in &whole.remarks {
                say(&format!("   note: {remark}"))?;
            }
            Ok(ExitCode::from(exit::DONE))
        }
        Err(audit::Error::Bad(bad)) => {
            match json {
                true => say(&serde_json::to_string(&bad.view())?)?,
                false => say(&bad.to_string())?,
            };
            Ok(ExitCode::from(exit::FAILED))
        }
        Err(error) => Err(error.into()),
    }
}

/// Formats an accepted break, with the reason as JSON so that it is one line of printable text.
fn accepted_line(AcceptedBreak { seq, from, by, reason }: &AcceptedBreak) -> String {
    let reason = serde_json::to_string(reason).expect("text is JSON");
    format!("   accepted at {seq}: heads and archives know another history from entry {from} on, by {by}: {reason}")
}

fn head(at: &At) -> Done {
    let LedgerHead { head, kept } = audit::head(&at.home)?;
    if at.json {
        return say(&serde_json::to_string(&LedgerHead { head, kept })?);
    }
    say(&serde_json::to_string(&head)?)?;
    match (kept.trouble, kept.directory) {
        (Some(trouble), _) => eprintln!("warning: {trouble}"),
        (None, Some(directory)) => eprintln!("heads are kept in {directory}"),
        (None, None) => {}
    }
    Ok(ExitCode::from(exit::DONE))
}

fn rotate(at: &At) -> Done {
    let rotated = daemon::rotate(&at.home)?;
    match at.json {
        true => say(&serde_json::to_string(&rotated)?),
        false => say(&format!("entries {} to {} are in {} now", rotated.first, rotated.last, rotated.archive)),
    }
}

fn export(path: &Path) -> Done {
    let mut out = std::io::BufWriter::with_capacity(256 * 1024, std::io::stdout().lock());
    audit::export(path, &mut out)?;
    out.flush()?;
    Ok(ExitCode::from(exit::DONE))
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

fn rotate_master(at: &At, to: Option<PathBuf>, keep_old: Option<PathBuf>) -> Done {
    let home = home::Home::open(&at.home)?;
    let (config, _) = config::load(&home)?;
    to.iter().chain(&keep_old).try_for_each(|path| daemon::refuse_key_file(path))?;
    let rotated = key_rotation::rotate(&at.home, &config.keys, to, keep_old)?;
    if at.json {
        return say(&serde_json::to_string(&rotated)?);
    }
    say(&format!("the record is under a fresh master key, fingerprint {}", rotated.fingerprint))?;
    say(&format!("{} holds it", rotated.key_file.display()))?;
    match &rotated.old_key_file {
        Some(file) => say(&format!("the old one, {}, is kept in {}", rotated.replaced, file.display()))?,
        None => say(&format!("the old one, {}, only opens earlier copies", rotated.replaced))?,
    };
    for file in &rotated.removed {
        say(&format!("removed {}, which was under the old key", file.display()))?;
    }
    for file in &rotated.under_old {
        say(&format!("{} remains under the old key", file.display()))?;
    }
    for todo in &rotated.todo {
        say(&format!("now: {todo}"))?;
    }
    Ok(ExitCode::from(exit::DONE))
}

fn uninstall(at: &At, remove: bool) -> Done {
    let removal = if remove { daemon::removal::remove(&at.home)? } else { daemon::removal::list(&at.home)? };
    if at.json {
        return say(&serde_json::to_string(&removal)?);
    }
    let verb = if remove { "removed" } else { "remove" };
    removal.remove.iter().try_for_each(|one| say(&format!("{verb} {}: {}", one.path, one.what)).map(drop))?;
    removal.keep.iter().try_for_each(|one| say(&format!("keep {}: {}", one.path, one.what)).map(drop))?;
    Ok(ExitCode::from(exit::DONE))
}

fn check_config(at: &At) -> Done {
    let home = home::Home::open(&at.home)?;
    let (config, file) = config::load(&home)?;
    let policy = crate::registry::policy::load(&home.policy())?;
    let mut warnings = Vec::new();
    for unmet in unmet(&home, &config, &policy)? {
        if unmet.is_refused {
            return Err(ironclaw_store::toml_file::refused(&home.policy(), unmet.to_string()).into());
        }
        warnings.push(unmet.to_string());
    }
    let file = file.map_or_else(|| "no file: every default".to_owned(), |file| file.display().to_string());
    let policy_file = match home.policy().exists() {
        true => home.policy().display().to_string(),
        false => format!("no {}: every default", home.policy().display()),
    };
    if at.json {
        let found = serde_json::json!({ "ok": true, "file": file, "policy_file": policy_file, "warnings": warnings });
        return say(&found.to_string());
    }
    for warning in &warnings {
        eprintln!("warning: {}: {warning}", home.policy().display());
    }
    say(&format!("ok {file}\nok {policy_file}"))
}

/// Returns the rules of the policy that the people of this home cannot meet. Empty before the home has people.
fn unmet(
    home: &home::Home,
    config: &config::Config,
    policy: &crate::registry::policy::Policy,
) -> Result<Vec<crate::gateway::quorum::Unmet>, Box<dyn Error>> {
    if !home.state_db().exists() {
        return Ok(Vec::new());
    }
    let master = key_rotation::key(home, &config.keys)?;
    let people = ironclaw_state::look(&home.state_db(), &master.state_key(), crate::gateway::quorum::read_people)?;
    Ok(crate::gateway::quorum::unmet(&people, policy))
}
