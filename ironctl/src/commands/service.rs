//! `ironctl service`: runs the host as a service of systemd, of this user or of the machine.
//!
//! Replaces no unit file that a person changed, and removes no home. See [`unit`] for the unit, [`systemctl`] for the calls of systemd.

mod systemctl;
pub mod unit;

use crate::at::At;
use crate::commands::up;
use crate::failure::Error;
use crate::home::Home;
use crate::host_binary;
use clap::Subcommand;
use nix::unistd::geteuid;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;
use systemctl::Systemctl;
use tokio::time::sleep;
use unit::{Found, Manager, NAME, Unit};

/// The home of a service of the machine, if no other one is named.
const SYSTEM_HOME: &str = "/var/lib/ironclaw";

/// The verbs of `ironctl service`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Write the unit, and start the host with it now and at each login or boot
    #[command(after_help = "Example:\n  ironctl service install\n  ironctl service install --system")]
    Install {
        #[command(flatten)]
        scope: Scope,
        /// File with the master key that systemd hands to the host; only with --system
        #[arg(long, value_name = "FILE", requires = "system")]
        credential: Option<PathBuf>,
        /// Replace a unit file that was changed, or that is of another home
        #[arg(long)]
        force: bool,
        /// Print the unit, and change nothing
        #[arg(long)]
        print: bool,
    },
    /// Show the unit and its state
    #[command(after_help = "Example:\n  ironctl service status")]
    Status {
        #[command(flatten)]
        scope: Scope,
    },
    /// Stop the host and remove the unit; the home stays
    #[command(after_help = "Example:\n  ironctl service remove")]
    Remove {
        #[command(flatten)]
        scope: Scope,
        /// Remove a unit file that was changed
        #[arg(long)]
        force: bool,
    },
}

/// The user or the machine.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Scope {
    /// The service of the machine in place of that of this user; needs root
    #[arg(long)]
    system: bool,
}

impl Scope {
    fn manager(self) -> Manager {
        if self.system { Manager::System } else { Manager::User }
    }
}

/// Runs the command.
pub async fn run(at: &At, action: &Action) -> Result<(), Error> {
    match action {
        Action::Install { scope, credential, force, print } => {
            let unit = wanted(at, scope.manager(), credential.clone())?;
            match print {
                true => at.out.raw(unit.file_text()?.as_bytes()),
                false => install(at, &unit, *force).await,
            }
        }
        Action::Status { scope } => status(at, scope.manager()),
        Action::Remove { scope, force } => remove(at, scope.manager(), *force),
    }
}

/// Returns the unit for the home that the caller means.
fn wanted(at: &At, manager: Manager, credential: Option<PathBuf>) -> Result<Unit, Error> {
    let is_plain = |path: &PathBuf| {
        let text = path.to_str().unwrap_or_default();
        path.is_absolute() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b))
    };
    if let Some(path) = credential.as_ref().filter(|path| !is_plain(path)) {
        return Err(Error::usage(
            format!("{} cannot be the file of a credential", path.display()),
            "name an absolute path of letters, digits, and . _ - /",
        ));
    }
    let program = host_binary::find(host_binary::HOST)?;
    let program = std::path::absolute(&program).unwrap_or(program);
    Ok(Unit { manager, program, home: home_of(at, manager), credential })
}

/// Returns the home that the caller means. The default home of root is not the one of a service of the machine.
fn home_of(at: &At, manager: Manager) -> PathBuf {
    let is_usual = Home::resolve(None).is_ok_and(|usual| usual.path() == at.home.path());
    if manager == Manager::System && is_usual { SYSTEM_HOME.into() } else { at.home.path().to_owned() }
}

fn unit_path(manager: Manager) -> Result<PathBuf, Error> {
    unit::path(manager).ok_or_else(|| {
        Error::failed("home_unknown", "cannot find the directory of units: $HOME is not set").hinting("set HOME")
    })
}

fn require_root(manager: Manager, what: &str) -> Result<(), Error> {
    if manager == Manager::User || geteuid().is_root() {
        return Ok(());
    }
    Err(Error::failed("needs_root", "only root changes a service of the machine")
        .hinting(format!("sudo ironctl service {what} --system")))
}

async fn install(at: &At, unit: &Unit, force: bool) -> Result<(), Error> {
    require_root(unit.manager, "install")?;
    let (path, text) = (unit_path(unit.manager)?, unit.file_text()?);
    let found = unit::look(&path)?;
    check_replaceable(&path, &found, &unit.home, force)?;
    let systemctl = Systemctl::find(unit.manager)?;
    let is_active = systemctl.ask("is-active") == "active";
    refuse_running_host(unit, is_active).await?;
    let is_same = found == Found::Own(text.clone());
    if !is_same {
        unit::write(&path, &text)?;
        at.out.line(format!("wrote {}", path.display()))?;
    }
    systemctl.run(at, &["daemon-reload"])?;
    systemctl.run(at, &["enable", "--now", NAME])?;
    if is_active && !is_same {
        systemctl.run(at, &["restart", NAME])?;
    }
    let pid = wait_for_answer(unit, &systemctl).await?;
    let active = systemctl.ask("is-active");
    at.out.json(&json!({ "file": path, "home": unit.home, "written": !is_same, "active": active, "pid": pid }))?;
    at.out.line(format!("{NAME} runs the host on {}: {active}, process {pid} answers", unit.home.display()))?;
    if unit.manager == Manager::User {
        at.out.line(
            "it starts when you log in; to start it at boot and keep it after a logout: loginctl enable-linger",
        )?;
    }
    Ok(())
}

/// Waits until the host of the unit answers. Returns its process. Fails if the service ends, and after [`up::START_WAIT`].
async fn wait_for_answer(unit: &Unit, systemctl: &Systemctl) -> Result<u32, Error> {
    let home = Home::resolve(Some(unit.home.clone()))?;
    let deadline = Instant::now() + up::START_WAIT;
    loop {
        match up::answering(&home).await {
            Ok(Some((_, status))) => return Ok(status.host.pid),
            Err(error) if up::is_final(&error) => return Err(error),
            // During a start, a refused connection is expected.
            Ok(None) | Err(_) => {}
        }
        let state = systemctl.ask("is-active");
        if !["active", "activating"].contains(&state.as_str()) || Instant::now() > deadline {
            let message = format!("{NAME} is {state}, and no host answers on {}", unit.home.display());
            return Err(Error::failed("host_start_failed", message).hinting(systemctl.hint()));
        }
        sleep(up::START_POLL).await;
    }
}

/// Refuses to replace a unit file that a person wrote or changed, or that runs a host on another home.
fn check_replaceable(path: &Path, found: &Found, home: &Path, force: bool) -> Result<(), Error> {
    let what = match found {
        _ if force => return Ok(()),
        Found::Missing => return Ok(()),
        Found::Own(text) if unit::is_of_home(text, home) => return Ok(()),
        Found::Own(_) => "runs a host on another home",
        Found::Foreign => "was changed, or written by another program",
    };
    Err(Error::failed("unit_changed", format!("{} {what}; nothing was changed", path.display()))
        .hinting("compare it with `ironctl service install --print`; replace it with --force"))
}

/// Refuses if a host runs on the home that is not the one of the unit: only one can run.
async fn refuse_running_host(unit: &Unit, is_active: bool) -> Result<(), Error> {
    if is_active {
        return Ok(());
    }
    let home = Home::resolve(Some(unit.home.clone()))?;
    match up::answering(&home).await {
        Ok(Some((_, status))) => {
            let message = format!("a host runs on {} already: process {}", unit.home.display(), status.host.pid);
            Err(Error::failed("host_runs", message).hinting("stop it with `ironctl down`, then install the service"))
        }
        // A home that this user cannot read is for the unit to report.
        Ok(None) | Err(_) => Ok(()),
    }
}

fn status(at: &At, manager: Manager) -> Result<(), Error> {
    let path = unit_path(manager)?;
    let state = match unit::look(&path)? {
        Found::Missing => "missing",
        Found::Own(_) => "installed",
        Found::Foreign => "changed",
    };
    let (enabled, active) = match Systemctl::find(manager) {
        Ok(systemctl) => (systemctl.ask("is-enabled"), systemctl.ask("is-active")),
        Err(error) if state == "missing" => return Err(error),
        Err(_) => ("unknown".to_owned(), "unknown".to_owned()),
    };
    at.out.json(&json!({ "file": path, "unit": state, "enabled": enabled, "active": active }))?;
    let rows = [
        ["file".to_owned(), path.display().to_string()],
        ["unit".to_owned(), state.to_owned()],
        ["enabled".to_owned(), enabled],
        ["active".to_owned(), active],
    ];
    at.out.table(["SERVICE", NAME], rows)
}

fn remove(at: &At, manager: Manager, force: bool) -> Result<(), Error> {
    require_root(manager, "remove")?;
    let path = unit_path(manager)?;
    match unit::look(&path)? {
        Found::Missing => {
            at.out.json(&json!({ "file": path, "removed": false }))?;
            return at.out.line(format!("not installed: there is no {}", path.display()));
        }
        Found::Foreign if !force => {
            let message = format!("{} was changed, or written by another program; nothing was changed", path.display());
            return Err(Error::failed("unit_changed", message).hinting("remove it anyway with --force"));
        }
        Found::Own(_) | Found::Foreign => {}
    }
    disable(at, manager)?;
    at.out.json(&json!({ "file": path, "removed": true }))
}

/// Stops the service and removes its unit.
pub fn disable(at: &At, manager: Manager) -> Result<(), Error> {
    let (path, systemctl) = (unit_path(manager)?, Systemctl::find(manager)?);
    systemctl.run(at, &["disable", "--now", NAME])?;
    std::fs::remove_file(&path)
        .map_err(|cause| Error::failed("unit_unwritten", format!("cannot remove {}", path.display())).because(cause))?;
    at.out.line(format!("removed {}", path.display()))?;
    systemctl.run(at, &["daemon-reload"])
}
