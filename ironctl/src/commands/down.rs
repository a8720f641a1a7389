//! `ironctl down`: requests the shutdown of the host, and waits for the end of its process.
//!
//! Never sends a signal: the host puts its sessions to sleep first. See [`crate::commands::up`].

use crate::at::At;
use crate::client::Client;
use crate::failure::Error;
use crate::processes::Process;
use ironclaw_operator::{Status, routes};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Time for the host to stop; its sessions finish their writes.
const STOP_WAIT: Duration = Duration::from_secs(60);

const STOP_POLL: Duration = Duration::from_millis(20);

/// Stops the host and prints that; succeeds if no host runs.
pub async fn run(at: &At) -> Result<(), Error> {
    match stop(at).await? {
        Stop::NotRunning => {
            at.out.json(&json!({ "stopped": false, "running": false }))?;
            at.out.line(format!("not running: no host answers at {}", at.home.path().display()))
        }
        // Another machine may be behind a port, and its processes are not visible here.
        Stop::Stopping(pid) => {
            at.out.json(&json!({ "stopped": false, "stopping": true, "pid": pid }))?;
            at.out.line(format!("the host is stopping: process {pid}"))
        }
        Stop::Stopped(pid) => {
            at.out.json(&json!({ "stopped": true, "running": false, "pid": pid }))?;
            at.out.line(format!("the host stopped: process {pid} has ended"))
        }
    }
}

/// The outcome of a stop.
pub enum Stop {
    NotRunning,
    Stopping(u32),
    Stopped(u32),
}

/// Stops the host and waits for the end of its process.
pub async fn stop(at: &At) -> Result<Stop, Error> {
    let (client, status) = match answering(at).await {
        Ok(answering) => answering,
        Err(Error::Unreachable { .. }) => return Ok(Stop::NotRunning),
        Err(other) => return Err(other),
    };
    let process = Process::find(status.host.pid);
    match client.send(routes::STOP, []).await {
        // The host may close the connection before its answer arrives; the process shows whether it stops.
        Ok(()) | Err(Error::Lost { .. } | Error::Unreachable { .. }) => {}
        Err(refused) => return Err(refused),
    }
    if at.access.port()?.is_some() {
        return Ok(Stop::Stopping(status.host.pid));
    }
    let deadline = Instant::now() + STOP_WAIT;
    while process.as_ref().is_some_and(Process::is_alive) {
        if Instant::now() > deadline {
            return Err(Error::failed(
                "host_stop_slow",
                format!("process {} still runs after {STOP_WAIT:?}", status.host.pid),
            )
            .hinting("look at `ironctl logs`"));
        }
        sleep(STOP_POLL).await;
    }
    Ok(Stop::Stopped(status.host.pid))
}

/// Returns a client for the host that the caller means, with the token of the caller, and the status of the host.
async fn answering(at: &At) -> Result<(Client, Status), Error> {
    let client = at.client()?;
    let status = client.call(routes::STATUS, []).await?;
    Ok((client, status))
}
