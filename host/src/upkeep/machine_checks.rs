//! The checks of the machine on request, by the program of the host itself: what `ironctl doctor` runs first.
//!
//! A process of its own, because a check makes jails. Repairs nothing. See `ironclaw_host::daemon::preflight`.

use ironclaw_operator::Preflight;
use ironclaw_state::home::Home;
use std::io;
use std::process::{Command, Stdio};

/// Runs the checks for a home. Takes some seconds; call it off the async threads.
///
/// # Errors
/// When the program does not start, or says something else than the results.
pub fn run(home: &Home) -> io::Result<Preflight> {
    let mut command = Command::new("/proc/self/exe");
    command.args(["preflight", "--json", "--home"]).arg(home.path());
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
    serde_json::from_slice(&output.stdout).map_err(io::Error::other)
}
