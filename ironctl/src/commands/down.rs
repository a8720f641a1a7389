//! `ironctl down`: asks the host to stop, and waits until its process is gone.
//!
//! Never sends a signal: the host puts its sessions to sleep in its own order. See [`crate::commands::up`].

use super::At;
use crate::client::Client;
use crate::failure::Error;
use crate::processes::Process;
use ironclaw_contract::operator::Status;
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Sessions get time to finish what they are writing.
const STOP_WAIT: Duration = Duration::from_secs(60);

const STOP_POLL: Duration = Duration::from_millis(20);

/// Stops the host; one that does not run is fine too.
pub async fn run(at: &At) -> Result<(), Error> {
    let (client, status) = match answering(at).await {
        Ok(answering) => answering,
        Err(Error::Unreachable { .. }) => {
            at.out.json(&json!({ "stopped": false, "running": false }))?;
            return at.out.line(format!("not running: no host answers at {}", at.home.path().display()));
        }
        Err(other) => return Err(other),
    };
    let process = Process::of(status.host.pid);
    match client.stop().await {
        // It may close the connection before its answer is through; the process tells.
        Ok(()) | Err(Error::Lost { .. } | Error::Unreachable { .. }) => {}
        Err(refused) => return Err(refused),
    }
    if at.access.port()?.is_some() {
        // Behind a port may be another machine, whose processes are not seen here.
        at.out.json(&json!({ "stopped": false, "stopping": true, "pid": status.host.pid }))?;
        return at.out.line(format!("the host stops: process {}", status.host.pid));
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

/// Returns the host that the caller means and its status, asked with the caller's own token.
async fn answering(at: &At) -> Result<(Client, Status), Error> {
    let client = at.client()?;
    let status = client.status().await?;
    Ok((client, status))
}
