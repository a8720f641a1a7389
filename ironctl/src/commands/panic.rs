//! `ironctl panic`: the emergency stop of every agent, until `ironctl resume`.
//!
//! Never relies on the host: it kills a host that does not confirm the stop. Success means that no process of an agent is left. See
//! [`crate::processes`] and [`crate::commands::resume`].

use crate::access::Transport;
use crate::at::At;
use crate::client::is_listening;
use crate::failure::Error;
use crate::processes::{self, Process};
use ironclaw_operator::{DenialCode, Panicked, routes};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Time for a killed host and its jails to end.
const KILL_WAIT: Duration = Duration::from_secs(10);

const KILL_POLL: Duration = Duration::from_millis(20);

/// Requests the stop from the host, and enforces it if the host does not confirm it.
pub async fn run(at: &At) -> Result<(), Error> {
    let asked = match at.client() {
        Ok(client) => client.call(routes::PANIC, []).await,
        Err(error) => Err(error),
    };
    match asked {
        Ok(panicked) if panicked.gone => confirmed(at, &panicked).await,
        Ok(_) => by_force(at, None).await,
        // A caller who names the token of a person without the right is refused. After any other refusal the agents are stopped
        // by force: either the caller may write to the home, or the kernel refuses that.
        Err(Error::Refused(refusal))
            if at.access.names_token() && refusal.error.code == DenialCode::RoleTooLow.name() =>
        {
            Err(Error::Refused(refusal))
        }
        Err(failed) => by_force(at, Some(failed)).await,
    }
}

/// Kills the remaining processes of agents after the host has stopped everything and recorded that.
async fn confirmed(at: &At, panicked: &Panicked) -> Result<(), Error> {
    // A host behind a port may be the host of another home.
    if at.access.port()?.is_none() {
        let deadline = Instant::now() + KILL_WAIT;
        loop {
            let left = processes::jailed(at.home.path());
            if left.is_empty() {
                break;
            }
            kill_remaining(at, &left, deadline)?;
            sleep(KILL_POLL).await;
        }
    }
    at.out.json(panicked)?;
    at.out.line(format!("everything is stopped; sessions that were awake: {}", panicked.sessions))?;
    at.out.line("messages are kept and answered after `ironctl resume`")
}

/// Kills every host of the home and its agents. A host that starts later finds the panic file.
async fn by_force(at: &At, failed: Option<Error>) -> Result<(), Error> {
    let home = at.home.path();
    let named = at.access.port()?;
    if let Some(port) = named.as_ref().filter(|port| is_of_another_home(at, port)) {
        return Err(failed.unwrap_or_else(|| not_stopped(port)));
    }
    let found = processes::hosts(home);
    if found.is_empty() && !at.home.exists() {
        return Err(no_home(at, failed));
    }
    // Before the kill, because a supervisor may restart the host at once.
    let panic_file = at.home.create_panic_file();
    let host_killed = match kill_all(at).await {
        Ok(killed) => killed,
        Err(error) => return Err(caused(error, failed)),
    };
    if let Some(port) = &named {
        check_named(at, port, host_killed, failed, panic_file.is_ok()).await?;
    }
    at.out.json(&json!({ "stopped": true, "host_killed": host_killed, "lasts": panic_file.is_ok() }))?;
    at.out.line(match host_killed {
        Some(pid) => {
            format!("the host did not confirm the stop; it was killed (process {pid}), and every agent with it")
        }
        None => format!("no host runs at {}", home.display()),
    })?;
    match panic_file {
        Ok(()) => at.out.line("the next start will be stopped, until `ironctl resume`"),
        Err(cause) => Err(does_not_last(cause)),
    }
}

/// Returns whether the run file of the home has another port than this one. Without a run file the home may belong to any host.
fn is_of_another_home(at: &At, port: &Transport) -> bool {
    let (Transport::Port(asked), Ok(Some(run))) = (port, at.home.run_file()) else { return false };
    let number = |address: &str| address.rsplit(':').next().map(str::to_owned);
    run.listen.as_deref().and_then(number) != number(asked)
}

/// Checks after the kill that the killed host was the host that the caller named by its port; fails otherwise.
async fn check_named(
    at: &At,
    port: &Transport,
    killed: Option<u32>,
    failed: Option<Error>,
    lasts: bool,
) -> Result<(), Error> {
    if is_listening(port).await {
        return Err(caused(not_stopped(port), failed));
    }
    if killed.is_some() {
        return Ok(());
    }
    if lasts {
        let home = at.home.path().display();
        at.out.remark(format!("the next start at {home} will be stopped, until `ironctl resume`"))?;
    }
    Err(failed.unwrap_or_else(|| not_stopped(port)))
}

fn not_stopped(transport: &Transport) -> Error {
    let address = match transport {
        Transport::Socket(path) => path.display().to_string(),
        Transport::Port(address) => format!("http://{address}"),
    };
    Error::failed("panic_failed", format!("the host at {address} did not stop its agents"))
        .hinting("run `ironctl --home DIR panic` with the home of that host, as the user who runs it")
}

/// Adds the earlier failure to an error as its cause.
fn caused(error: Error, failed: Option<Error>) -> Error {
    match failed {
        Some(failed) => error.because(failed),
        None => error,
    }
}

/// Kills hosts and agents until none is found and the lock of the home is free; returns the first killed host.
async fn kill_all(at: &At) -> Result<Option<u32>, Error> {
    let home = at.home.path();
    let deadline = Instant::now() + KILL_WAIT;
    let mut seen = BTreeSet::new();
    let mut killed = None;
    loop {
        let hosts = processes::hosts(home);
        killed = killed.or_else(|| hosts.first().map(Process::pid));
        // Collected before the kill, because afterwards the processes have no link to their host.
        seen.extend(processes::descendants(&hosts));
        seen.extend(processes::jailed(home));
        seen.extend(hosts);
        seen.retain(Process::is_alive);
        if !seen.is_empty() {
            kill_remaining(at, &seen, deadline)?;
        } else if is_locked(at).await {
            if Instant::now() > deadline {
                return Err(still_locked(at));
            }
        } else {
            return Ok(killed);
        }
        sleep(KILL_POLL).await;
    }
}

/// Kills these processes again; fails after the deadline.
fn kill_remaining(at: &At, left: &BTreeSet<Process>, deadline: Instant) -> Result<(), Error> {
    let mut refused = None;
    for process in left {
        refused = process.kill().err().or(refused);
    }
    if Instant::now() <= deadline {
        return Ok(());
    }
    let pids: Vec<String> = left.iter().map(|process| process.pid().to_string()).collect();
    let pids = pids.join(" ");
    let message = format!("processes of {} still run: {pids}", at.home.path().display());
    let error = Error::failed("panic_failed", message)
        .hinting(format!("as the user who runs the host, or as root: `kill -9 {pids}`"));
    Err(match refused {
        Some(cause) => error.because(cause),
        None => error,
    })
}

/// Returns whether a host that is not visible in `/proc` has the home.
async fn is_locked(at: &At) -> bool {
    match at.home.is_locked() {
        Some(locked) => locked,
        // No file can be locked, so only a listening host is found.
        None => match at.home.run_file() {
            Ok(Some(run)) => is_listening(&Transport::Socket(run.socket.into())).await,
            Ok(None) | Err(_) => false,
        },
    }
}

fn still_locked(at: &At) -> Error {
    let message = format!("a host that is not visible here runs on {}", at.home.path().display());
    Error::failed("panic_failed", message)
        .hinting("stop it where it runs, e.g. outside of this container; a host that starts there later is stopped")
}

fn no_home(at: &At, failed: Option<Error>) -> Error {
    match failed {
        // The named host belongs to another home, and there is no home here to stop.
        Some(failed) if at.access.port().is_ok_and(|port| port.is_some()) => failed,
        _ => {
            let missing = format!("there is no home at {}", at.home.path().display());
            Error::failed("home_missing", missing).hinting("name it with --home DIR")
        }
    }
}

fn does_not_last(cause: Error) -> Error {
    Error::failed("panic_does_not_last", "everything is stopped, but a host that starts would not stay stopped")
        .because(cause)
        .hinting("prevent a start (`systemctl stop ironclaw`), make the home writable, then repeat `ironctl panic`")
}
