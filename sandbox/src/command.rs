//! The command line of the sandbox: the names of directories that a person granted.
//!
//! The sandbox takes no configuration from the environment or from a file; it gets all other data over descriptor 3. See
//! [`crate::launch`].

use crate::{Paths, kernel, launch};
use ironclaw_contract::seam;
use ironclaw_contract::seam::link::{GATE_FD, GRANTED_ARGUMENT, LINK_FD, RUNNER_LOST_CODE};
use std::process::ExitCode;

/// Exit code of a wrong command line.
const USAGE_ERROR: u8 = 2;

/// Runs the program: one session, or an option that prints a fact about the program. Only this function reads the command line.
#[allow(clippy::disallowed_methods, clippy::print_stdout)]
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next().as_deref().and_then(|argument| argument.to_str()), arguments.next()) {
        (Some("--fingerprint"), None) => {
            println!("{}", seam::fingerprint());
            ExitCode::SUCCESS
        }
        (Some("--version"), None) => {
            println!("ironclaw-sandbox {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => match granted() {
            Some(granted) => attend(&granted),
            None => usage(),
        },
    }
}

/// Returns the names of granted directories, if every argument is one.
#[allow(clippy::disallowed_methods)]
fn granted() -> Option<Vec<String>> {
    let name = |argument: std::ffi::OsString| {
        let name = argument.to_str()?.strip_prefix(GRANTED_ARGUMENT)?;
        let is_one_name = name.strip_prefix('/').is_some_and(|name| !name.is_empty() && !name.contains('/'));
        is_one_name.then(|| name.to_owned())
    };
    std::env::args_os().skip(1).map(name).collect()
}

#[allow(clippy::print_stderr)]
fn usage() -> ExitCode {
    eprintln!("usage: ironclaw-sandbox [--fingerprint | --version]");
    eprintln!(
        "without an argument it runs one session, started by the host's launcher with descriptors {LINK_FD} and {GATE_FD}"
    );
    ExitCode::from(USAGE_ERROR)
}

/// Runs one session, from the gate to the end of the link.
fn attend(granted: &[String]) -> ExitCode {
    let Some((link, gate)) = kernel::inherit(LINK_FD).zip(kernel::inherit(GATE_FD)) else {
        return usage();
    };
    match launch::start(link, gate, || Paths::jail(granted)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(launch::Error::RunnerLost) => ExitCode::from(RUNNER_LOST_CODE),
        // The host got the sentence in the last frame, or it is not there to read it.
        Err(_) => ExitCode::FAILURE,
    }
}
