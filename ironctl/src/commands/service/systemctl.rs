//! The calls of `systemctl`, each shown before it runs.
//!
//! Never changes a unit file. See [`super`].

use super::unit::{Manager, NAME};
use crate::at::At;
use crate::failure::Error;
use std::process::{Command, Stdio};

/// The words of `is-system-running` of a machine that systemd runs.
const RUNNING: [&str; 6] = ["initializing", "starting", "running", "degraded", "maintenance", "stopping"];

/// The service manager of systemd that runs.
pub struct Systemctl(Manager);

impl Systemctl {
    /// Finds the manager; fails on a machine without systemd, and without a session of the user.
    pub fn find(manager: Manager) -> Result<Self, Error> {
        let systemctl = Self(manager);
        let (word, said) = match systemctl.command(&["is-system-running"]).stdin(Stdio::null()).output() {
            Ok(output) => (text(&output.stdout), text(&output.stderr)),
            Err(_) => (String::new(), "systemctl is not installed".to_owned()),
        };
        if RUNNING.contains(&word.as_str()) {
            return Ok(systemctl);
        }
        let said = if said.is_empty() { format!("its state is {word}") } else { said };
        let (which, hint) = match manager {
            Manager::User => (
                "systemd does not run for this user",
                "log in directly, not with su or sudo; or start the host without systemd: `ironctl up --detach`",
            ),
            Manager::System => {
                ("systemd does not run on this machine", "start the host without systemd: `ironctl up --detach`")
            }
        };
        Err(Error::failed("systemd_missing", format!("{which}: {said}")).hinting(hint))
    }

    /// Shows and runs a command; fails with its words.
    pub fn run(&self, at: &At, words: &[&str]) -> Result<(), Error> {
        let shown = [&self.program()[..], words].concat().join(" ");
        at.out.line(format!("$ {shown}"))?;
        let output = self.command(words).stdin(Stdio::null()).output();
        let output =
            output.map_err(|cause| Error::failed("systemctl_failed", format!("cannot run {shown}")).because(cause))?;
        if output.status.success() {
            return Ok(());
        }
        let message = format!("{shown} failed ({}): {}", output.status, text(&output.stderr));
        Err(Error::failed("systemctl_failed", message).hinting(self.hint()))
    }

    /// Returns the command that shows the state and the last lines of the log.
    pub fn hint(&self) -> String {
        format!("look at `{} status {NAME}`", self.program().join(" "))
    }

    /// Returns the word that a query prints, such as `active`.
    pub fn ask(&self, query: &str) -> String {
        let output = self.command(&[query, NAME]).stdin(Stdio::null()).output();
        let word = output.map(|output| text(&output.stdout)).unwrap_or_default();
        if word.is_empty() { "unknown".to_owned() } else { word }
    }

    fn program(&self) -> Vec<&'static str> {
        match self.0 {
            Manager::User => vec!["systemctl", "--user"],
            Manager::System => vec!["systemctl"],
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let program = self.program();
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).args(words);
        command
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}
