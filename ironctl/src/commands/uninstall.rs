//! `ironctl uninstall`: removes a home, and the files of its host beside it, after a person typed the path of the home.
//!
//! Never chooses a path of the home itself: `ironclaw-host` lists and removes those, while it holds the lock of the home. Never removes
//! the programs. See [`crate::commands::service`] for the unit.

use super::service::unit::{self, Found, Manager};
use super::{completions, down, service};
use crate::at::At;
use crate::failure::Error;
use crate::home::Home;
use crate::host_binary::{self, Offline};
use ironclaw_operator::{Removal, RemovalPath};
use nix::unistd::geteuid;
use serde_json::json;
use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The AppArmor profile of the manual.
const APPARMOR_PROFILE: &str = "/etc/apparmor.d/ironclaw";

/// Options of `ironctl uninstall`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl uninstall --dry-run\n  ironctl --home /srv/ironclaw uninstall --stop")]
pub struct Args {
    /// Show the paths, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Stop a running host first
    #[arg(long)]
    stop: bool,
    /// Confirm it with the path of the home, in place of typing the path
    #[arg(long, value_name = "PATH")]
    confirm: Option<PathBuf>,
}

/// Everything that belongs to a home.
struct Plan {
    /// The paths that the host lists, and those that stay.
    removal: Removal,
    /// The service that runs the home.
    service: Option<Manager>,
    completions: Vec<PathBuf>,
}

/// Shows the paths, asks, and removes them.
pub async fn run(at: &At, args: &Args) -> Result<(), Error> {
    let plan = plan(at)?;
    print(at, &plan)?;
    if args.dry_run {
        return at.out.json(&report(&plan, false));
    }
    let is_running = at.home.is_locked().unwrap_or(false);
    if is_running && !args.stop {
        let message = format!("a host runs on {}; nothing was removed", plan.removal.home);
        return Err(Error::failed("host_runs", message).hinting("stop it with `ironctl down`, or add --stop"));
    }
    confirm(at, &plan.removal.home, args.confirm.as_deref())?;
    if let Some(manager) = plan.service {
        service::disable(at, manager)?;
    }
    if is_running {
        down::stop(at).await?;
    }
    for path in &plan.completions {
        fs::remove_file(path).map_err(|cause| {
            Error::failed("not_removed", format!("cannot remove {}", path.display())).because(cause)
        })?;
    }
    removal(at, true)?;
    at.out.result(&report(&plan, true), format!("removed {} and everything listed above", plan.removal.home))
}

/// Asks the host's program for the paths of the home; with `remove`, it removes them.
fn removal(at: &At, remove: bool) -> Result<Removal, Error> {
    let mut command = Offline::host(&["uninstall"])?.at(&at.home).json(true);
    if remove {
        command = command.arg("--remove");
    }
    let output = command.capture_all()?;
    if !output.status.success() {
        return Err(host_binary::failure_of(&output));
    }
    serde_json::from_slice(&output.stdout).map_err(|cause| {
        Error::failed("answer_unclear", "the list of ironclaw-host has an unexpected shape")
            .because(cause)
            .hinting("install ironctl and ironclaw-host from one release")
    })
}

fn plan(at: &At) -> Result<Plan, Error> {
    let mut removal = removal(at, false)?;
    let home = PathBuf::from(&removal.home);
    let mut service = None;
    for manager in [Manager::User, Manager::System] {
        let Some(path) = unit::path(manager) else { continue };
        let is_mine = manager == Manager::User || geteuid().is_root();
        match unit::look(&path)? {
            Found::Missing => {}
            Found::Own(text) if !is_of(&text, &home, at.home.path()) => {}
            Found::Own(_) if is_mine => service = Some(manager),
            Found::Own(_) => {
                removal.keep.push(named(&path, "the service of the machine; `sudo ironctl service remove --system`"))
            }
            Found::Foreign => removal.keep.push(named(&path, "a unit that was changed; look at it yourself")),
        }
    }
    if Path::new(APPARMOR_PROFILE).exists() {
        removal.keep.push(named(Path::new(APPARMOR_PROFILE), "the AppArmor profile"));
    }
    if let Some(programs) = host_binary::find(host_binary::HOST)?.parent() {
        removal.keep.push(named(programs, "the directory of the programs"));
    }
    // The scripts are of the programs. Another home may still use them.
    let is_usual = Home::resolve(None).is_ok_and(|usual| usual.path() == at.home.path());
    let scripts = completions::INSTALLABLE.into_iter().filter_map(completions::place);
    let completions = scripts.filter(|path| is_usual && path.symlink_metadata().is_ok_and(|found| found.is_file()));
    Ok(Plan { service, completions: completions.collect(), removal })
}

/// Returns whether a unit runs a host on this home, by the path without links or as the caller named it.
fn is_of(text: &str, home: &Path, named: &Path) -> bool {
    unit::is_of_home(text, home) || unit::is_of_home(text, named)
}

fn named(path: &Path, what: &str) -> RemovalPath {
    RemovalPath { path: path.display().to_string(), what: what.to_owned() }
}

/// Returns the paths to remove, in their order.
fn paths(plan: &Plan) -> Vec<RemovalPath> {
    let unit = plan.service.and_then(unit::path).map(|path| named(&path, "the service; it is stopped first"));
    let completions = plan.completions.iter().map(|path| named(path, "completions of a shell"));
    unit.into_iter().chain(completions).chain(plan.removal.remove.iter().cloned()).collect()
}

fn print(at: &At, plan: &Plan) -> Result<(), Error> {
    let rows = |paths: Vec<RemovalPath>| paths.into_iter().map(|RemovalPath { path, what }| [path, what]);
    at.out.table(["REMOVE", ""], rows(paths(plan)))?;
    at.out.line("")?;
    at.out.table(["KEEP", ""], rows(plan.removal.keep.clone()))
}

fn report(plan: &Plan, removed: bool) -> serde_json::Value {
    json!({ "home": plan.removal.home, "removed": removed, "remove": paths(plan), "keep": plan.removal.keep })
}

/// Asks a person to type the path of the home. Elsewhere the command line has it.
fn confirm(at: &At, home: &str, given: Option<&Path>) -> Result<(), Error> {
    let is_it = |path: &Path| path == Path::new(home) || path == at.home.path();
    if let Some(given) = given {
        if is_it(given) {
            return Ok(());
        }
        let message = format!("--confirm names {}, and the home is {home}; nothing was removed", given.display());
        return Err(Error::usage(message, format!("--confirm {home}")));
    }
    if at.out.is_json() || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let hint = format!("confirm it with --confirm {home}");
        return Err(Error::usage("cannot remove a home without a confirmation", hint));
    }
    at.out.remark(
        "\nThis erases all conversations, files of agents, keys and the ledger. No command brings them back.",
    )?;
    write!(io::stderr().lock(), "Type the path of the home to remove it: ")?;
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed)?;
    match is_it(Path::new(typed.trim())) {
        true => Ok(()),
        false => Err(Error::failed("not_confirmed", "another text was typed; nothing was removed")),
    }
}
