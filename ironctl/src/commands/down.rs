//! `ironctl down`: asks the host to stop, and waits until its process is gone.
//! Never sends a signal: the host puts its sessions to sleep in its own order.
//! Next: `commands::up`.

use super::{At, up};
use crate::failure::Error;
use serde_json::json;
use std::fs;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Sessions get time to finish what they are writing.
const STOP_WAIT: Duration = Duration::from_secs(60);

const STOP_POLL: Duration = Duration::from_millis(20);

/// Stops the host; one that does not run is fine too.
pub async fn run(at: &At) -> Result<(), Error> {
    let Some((client, status)) = up::answering(&at.home).await? else {
        at.out.json(&json!({ "stopped": false, "running": false }))?;
        return at.out.line(format!("not running: no host answers at {}", at.home.path().display()));
    };
    let process = Process::of(status.host.pid);
    match client.stop().await {
        // It may close the connection before its answer is through; the process tells.
        Ok(()) | Err(Error::Lost { .. } | Error::Unreachable { .. }) => {}
        Err(refused) => return Err(refused),
    }
    let deadline = Instant::now() + STOP_WAIT;
    while process.as_ref().is_some_and(Process::is_there) {
        if Instant::now() > deadline {
            return Err(Error::failed(
                "host_stop_slow",
                format!("process {} is still there after {STOP_WAIT:?}", status.host.pid),
            )
            .hinting("look at `ironctl logs`"));
        }
        sleep(STOP_POLL).await;
    }
    at.out.json(&json!({ "stopped": true, "running": false, "pid": status.host.pid }))?;
    at.out.line(format!("the host stopped: process {} is gone", status.host.pid))
}

/// A process, told apart from a later one with the same id by when it started.
#[derive(Debug, PartialEq, Eq)]
pub struct Process {
    pid: u32,
    started: String,
}

impl Process {
    /// `None` when there is none, or only the remains that its parent has not collected.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may hold anything, blanks and brackets too, so fields count from the last bracket.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let started = fields.nth(18)?.to_owned(); // field 22 of proc(5), 19 after the state
        (!matches!(state, "Z" | "X")).then_some(Self { pid, started })
    }

    /// Whether it is there still.
    pub fn is_there(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn an_ended_process_is_gone_even_before_it_is_collected() {
        assert!(Process::of(std::process::id()).is_some_and(|own| own.is_there()));
        let mut child = Command::new("sleep").arg("100").spawn().expect("sleep starts");
        let process = Process::of(child.id()).expect("it runs");
        child.kill().expect("killed");
        while process.is_there() {
            std::thread::sleep(STOP_POLL);
        }
        child.wait().expect("collected only now");
    }
}
