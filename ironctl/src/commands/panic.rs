//! `ironctl panic`: stops every agent at once, and keeps them stopped until `ironctl resume`.
//! Never depends on a host that obeys: one that is silent or fails is killed, one that does not run will start stopped.
//! Next: `commands::resume`.

use super::{At, down};
use crate::failure::Error;
use crate::home::Home;
use ironclaw_contract::operator::Panicked;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A killed host is gone within this time, and every jail with it.
const KILL_WAIT: Duration = Duration::from_secs(10);

const KILL_POLL: Duration = Duration::from_millis(20);

/// Stops everything.
pub async fn run(at: &At) -> Result<(), Error> {
    if !at.home.is_initialised() {
        let missing = format!("there is no home at {}", at.home.path().display());
        return Err(Error::failed("home_missing", missing).hinting("name it with --home DIR"));
    }
    // First the file: whatever fails from here on, the next start is stopped.
    at.home.ask_for_panic()?;
    let asked = match at.client() {
        Ok(client) => client.panic().await,
        Err(error) => Err(error),
    };
    match asked {
        Ok(panicked) => tell(at, &panicked),
        Err(Error::Refused(no)) if is_not_ours_to_ask(&no.error.code) => {
            at.home.take_panic_back()?;
            Err(Error::Refused(no))
        }
        Err(failed) => without_a_stop(at, failed).await,
    }
}

/// Whether an answer says that the caller may not stop everything. Any other no, such as that of a full disk, comes from a host
/// that could not do it, and then the file stays.
fn is_not_ours_to_ask(code: &str) -> bool {
    matches!(code, "role_too_low" | "host_foreign" | "origin_foreign")
        || code.starts_with("token_")
        || code.starts_with("peer_")
}

fn tell(at: &At, panicked: &Panicked) -> Result<(), Error> {
    at.out.json(panicked)?;
    if !panicked.gone {
        at.out.line("warning: some processes were killed and not seen to be gone; look at `ironctl status`")?;
    }
    at.out.line(format!("everything is stopped; sessions that were awake: {}", panicked.sessions))?;
    at.out.line("messages are kept; `ironctl resume` lets them be answered")
}

/// A host that runs and did not say that everything is stopped is killed, and its agents die with it. Fails when a host goes on
/// listening: then nobody knows what of it is stopped.
async fn without_a_stop(at: &At, failed: Error) -> Result<(), Error> {
    let killed = match running(&at.home) {
        None => {
            let deadline = Instant::now() + KILL_WAIT;
            // One that is dying listens for a moment after it has lost its name; one that goes on listening is none that can
            // be seen or killed from here.
            while let Ok(client) = at.client()
                && client.is_listening().await
            {
                if Instant::now() > deadline {
                    return Err(still_there(&at.home, failed));
                }
                sleep(KILL_POLL).await;
            }
            None
        }
        Some((pid, process)) => {
            // It may have ended a moment ago.
            let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
            let deadline = Instant::now() + KILL_WAIT;
            while process.is_there() {
                if Instant::now() > deadline {
                    return Err(failed);
                }
                sleep(KILL_POLL).await;
            }
            Some(pid)
        }
    };
    at.out.json(&json!({ "stopped": true, "host_killed": killed }))?;
    at.out.line(match killed {
        Some(pid) => format!(
            "the host did not say that everything is stopped and was killed (process {pid}), and every agent with it"
        ),
        None => format!("no host runs at {}", at.home.path().display()),
    })?;
    at.out.line("the next start will be stopped; `ironctl resume` then lets it go on")
}

fn still_there(home: &Home, failed: Error) -> Error {
    let message = format!("a host at {} still listens and did not stop everything", home.path().display());
    Error::failed("panic_failed", message).because(failed).hinting(
        "it could not be found among the processes: end it where it runs; the next start will be stopped in any case",
    )
}

/// The host that the run file names, if that process is really one on this home.
fn running(home: &Home) -> Option<(u32, down::Process)> {
    let pid = home.run().ok()??.pid;
    let process = down::Process::of(pid)?;
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    is_host(&command, home.path()).then_some((pid, process))
}

fn is_host(command: &[u8], home: &Path) -> bool {
    let mut words = command.split(|byte| *byte == 0);
    let program = words.next().and_then(|program| program.rsplit(|byte| *byte == b'/').next());
    let names_home = |word: &[u8]| word == home.as_os_str().as_encoded_bytes();
    program == Some(b"ironclaw-host") && words.any(names_home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_may_not_ask_takes_it_back() {
        assert!(["role_too_low", "token_revoked", "peer_user", "host_foreign"].into_iter().all(is_not_ours_to_ask));
        assert!(!["internal", "too_many_failures", "not_found", ""].into_iter().any(is_not_ours_to_ask));
    }

    #[test]
    fn only_a_host_of_this_home_is_killed() {
        let home = Path::new("/srv/a");
        assert!(is_host(b"/usr/bin/ironclaw-host\0run\0--home\0/srv/a\0", home));
        assert!(!is_host(b"/usr/bin/ironclaw-host\0run\0--home\0/srv/b\0", home));
        assert!(!is_host(b"/usr/bin/vi\0/srv/a\0", home));
        assert!(!is_host(b"", home));
    }
}
