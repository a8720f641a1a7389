//! `ironctl panic`: stops every agent at once, and keeps them stopped until `ironctl resume`.
//!
//! Never depends on a host that obeys or on a file that can be written: a host that does not confirm the stop is killed, and
//! success means that no process of an agent was found afterwards. See [`crate::processes`] and [`crate::commands::resume`].

use super::At;
use crate::access::Way;
use crate::client::is_listening;
use crate::failure::Error;
use crate::processes::{self, Process};
use ironclaw_contract::operator::{DenialCode, Panicked};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A killed host is gone within this time, and every jail with it.
const KILL_WAIT: Duration = Duration::from_secs(10);

const KILL_POLL: Duration = Duration::from_millis(20);

/// Stops everything.
pub async fn run(at: &At) -> Result<(), Error> {
    let asked = match at.client() {
        Ok(client) => client.panic().await,
        Err(error) => Err(error),
    };
    match asked {
        Ok(panicked) if panicked.gone => confirmed(at, &panicked).await,
        Ok(_) => by_force(at, None).await,
        // A person who was named and may not do this is refused. Any other no is no reason to leave agents running: the
        // caller can write the home, or the kernel refuses what follows.
        Err(Error::Refused(no)) if at.access.names_token() && no.error.code == DenialCode::RoleTooLow.name() => {
            Err(Error::Refused(no))
        }
        Err(failed) => by_force(at, Some(failed)).await,
    }
}

/// Ends the remaining processes of agents after the host has stopped everything and recorded that.
async fn confirmed(at: &At, panicked: &Panicked) -> Result<(), Error> {
    // A host that was asked on a port need not be the one of this home.
    if at.access.port()?.is_none() {
        let deadline = Instant::now() + KILL_WAIT;
        loop {
            let left = processes::jailed(at.home.path());
            if left.is_empty() {
                break;
            }
            end(at, &left, deadline)?;
            sleep(KILL_POLL).await;
        }
    }
    at.out.json(panicked)?;
    at.out.line(format!("everything is stopped; sessions that were awake: {}", panicked.sessions))?;
    at.out.line("messages are kept; `ironctl resume` lets them be answered")
}

/// Kills every host of the home and what it runs, without its consent; a host that starts from now on finds the panic file.
async fn by_force(at: &At, failed: Option<Error>) -> Result<(), Error> {
    let home = at.home.path();
    let named = at.access.port()?;
    if let Some(way) = named.as_ref().filter(|way| is_of_another_home(at, way)) {
        return Err(failed.unwrap_or_else(|| not_stopped(way)));
    }
    let found = processes::hosts(home);
    if found.is_empty() && !at.home.is_there() {
        return Err(no_home(at, failed));
    }
    // Before the kill: a supervisor may start the host again at once.
    let lasting = at.home.ask_for_panic();
    let host_killed = match kill_all(at).await {
        Ok(killed) => killed,
        Err(error) => return Err(caused(error, failed)),
    };
    if let Some(way) = &named {
        check_named(at, way, host_killed, failed, lasting.is_ok()).await?;
    }
    at.out.json(&json!({ "stopped": true, "host_killed": host_killed, "lasts": lasting.is_ok() }))?;
    at.out.line(match host_killed {
        Some(pid) => format!(
            "the host did not say that everything is stopped and was killed (process {pid}), and every agent with it"
        ),
        None => format!("no host runs at {}", home.display()),
    })?;
    match lasting {
        Ok(()) => at.out.line("the next start will be stopped; `ironctl resume` then lets it go on"),
        Err(cause) => Err(does_not_last(cause)),
    }
}

/// Returns whether the home names its host, and that host does not listen on this port. A home that names none may be of any
/// host.
fn is_of_another_home(at: &At, way: &Way) -> bool {
    let (Way::Port(asked), Ok(Some(run))) = (way, at.home.run()) else { return false };
    let number = |address: &str| address.rsplit(':').next().map(str::to_owned);
    run.listen.as_deref().and_then(number) != number(asked)
}

/// Checks the host after everything of the home was killed: fails unless that was the host that the caller named by its port.
async fn check_named(at: &At, way: &Way, killed: Option<u32>, failed: Option<Error>, lasts: bool) -> Result<(), Error> {
    if is_listening(way).await {
        return Err(caused(not_stopped(way), failed));
    }
    if killed.is_some() {
        return Ok(());
    }
    if lasts {
        let home = at.home.path().display();
        at.out.remark(format!("the next start at {home} will be stopped; `ironctl resume` then lets it go on"))?;
    }
    Err(failed.unwrap_or_else(|| not_stopped(way)))
}

fn not_stopped(way: &Way) -> Error {
    let place = match way {
        Way::Socket(path) => path.display().to_string(),
        Way::Port(address) => format!("http://{address}"),
    };
    Error::failed("panic_failed", format!("the host at {place} did not stop its agents"))
        .hinting("run `ironctl --home DIR panic` with the home of that host, as the user who runs it")
}

/// Adds to the error what failed before it.
fn caused(error: Error, failed: Option<Error>) -> Error {
    match failed {
        Some(failed) => error.because(failed),
        None => error,
    }
}

/// Kills hosts and agents until none is found and the lock of the home can be taken; gives the host that was killed first.
async fn kill_all(at: &At) -> Result<Option<u32>, Error> {
    let home = at.home.path();
    let deadline = Instant::now() + KILL_WAIT;
    let mut seen = BTreeSet::new();
    let mut killed = None;
    loop {
        let hosts = processes::hosts(home);
        killed = killed.or_else(|| hosts.first().map(Process::pid));
        // Noted while their host lives: afterwards nothing shows whose they were.
        seen.extend(processes::below(&hosts));
        seen.extend(processes::jailed(home));
        seen.extend(hosts);
        seen.retain(Process::is_there);
        if !seen.is_empty() {
            end(at, &seen, deadline)?;
        } else if is_locked(at).await {
            if Instant::now() > deadline {
                return Err(still_held(at));
            }
        } else {
            return Ok(killed);
        }
        sleep(KILL_POLL).await;
    }
}

/// Kills these once more; fails when they had their time.
fn end(at: &At, left: &BTreeSet<Process>, deadline: Instant) -> Result<(), Error> {
    let mut refused = None;
    for process in left {
        refused = process.kill().err().or(refused);
    }
    if Instant::now() <= deadline {
        return Ok(());
    }
    let pids: Vec<String> = left.iter().map(|process| process.pid().to_string()).collect();
    let pids = pids.join(" ");
    let message = format!("processes of {} are still there: {pids}", at.home.path().display());
    let error = Error::failed("panic_failed", message)
        .hinting(format!("as the user who runs the host, or as root: `kill -9 {pids}`"));
    Err(match refused {
        Some(cause) => error.because(cause),
        None => error,
    })
}

/// Returns whether a host that is not among the processes seen here has the home.
async fn is_locked(at: &At) -> bool {
    match at.home.is_held() {
        Some(held) => held,
        // Nothing can be locked here: then only a host that listens shows.
        None => match at.home.run() {
            Ok(Some(run)) => is_listening(&Way::Socket(run.socket.into())).await,
            Ok(None) | Err(_) => false,
        },
    }
}

fn still_held(at: &At) -> Error {
    let message = format!("a host has {} and is not among the processes that are seen here", at.home.path().display());
    Error::failed("panic_failed", message).hinting(
        "end it where it runs, for instance outside of this container; a host that starts there from now on is stopped",
    )
}

fn no_home(at: &At, failed: Option<Error>) -> Error {
    match failed {
        // The host that was asked is another one's: nothing here is to be stopped.
        Some(failed) if at.access.port().is_ok_and(|port| port.is_some()) => failed,
        _ => {
            let missing = format!("there is no home at {}", at.home.path().display());
            Error::failed("home_missing", missing).hinting("name it with --home DIR")
        }
    }
}

fn does_not_last(cause: Error) -> Error {
    Error::failed("panic_does_not_last", "everything is stopped now, and a host that starts would not stay stopped")
        .because(cause)
        .hinting("let no host start (`systemctl stop ironclaw`), make the home writable, then `ironctl panic` again")
}
