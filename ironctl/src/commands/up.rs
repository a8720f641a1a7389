//! `ironctl up`: starts the host, in this terminal or detached from it.
//!
//! Never starts a second host nor on a machine that cannot jail an agent, and reports a detached host only after it answers. See `ironclaw-host run`, which it runs, and
//! [`crate::commands::down`].

use super::doctor;
use super::init::{self, Made};
use crate::at::At;
use crate::client::Client;
use crate::failure::Error;
use crate::home::Home;
use crate::host_binary::Offline;
use ironclaw_operator::{Preflight, Status, routes};
use serde::Serialize;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Time for a new host to answer.
pub(super) const START_WAIT: Duration = Duration::from_secs(30);

pub(super) const START_POLL: Duration = Duration::from_millis(20);

/// Bytes of the stderr of a failed host that are shown.
const STDERR_SHOWN_BYTES_MAX: u64 = 4096;

/// Options of `ironctl up`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl up\n  ironctl up --detach")]
pub struct Args {
    /// Start the host in the background and return once it answers
    #[arg(long)]
    detach: bool,
}

/// Starts the host unless it runs; creates a missing home first.
pub async fn run(at: &At, args: &Args) -> Result<(), Error> {
    if args.detach {
        let started = ensure(at).await?;
        return print(at, &started);
    }
    if let Some((_, status)) = answering_after_an_end(&at.home).await? {
        return print(at, &Started::new(status, true));
    }
    require_jails(at)?;
    create_home(at)?;
    Err(run_command(&at.home)?.exec())
}

/// A host that answers.
#[derive(Debug, Serialize)]
pub struct Started {
    pub pid: u32,
    pub already_running: bool,
    /// The warnings of `ironctl status`.
    pub warnings: Vec<String>,
}

impl Started {
    fn new(status: Status, already_running: bool) -> Self {
        Self { pid: status.host.pid, already_running, warnings: status.host.warnings }
    }
}

/// Starts a detached host unless one runs, and waits until it answers.
pub async fn ensure(at: &At) -> Result<Started, Error> {
    if let Some((_, status)) = answering_after_an_end(&at.home).await? {
        return Ok(Started::new(status, true));
    }
    require_jails(at)?;
    create_home(at)?;
    let log = at.home.open_stderr_file()?;
    let stderr_start = log.metadata().map(|meta| meta.len()).unwrap_or(0);
    let mut child = run_command(&at.home)?.detach(log)?;
    let deadline = Instant::now() + START_WAIT;
    loop {
        // Before the request, because of two hosts that start at once one ends and the other answers.
        let ended = child.try_wait().ok().flatten();
        match answering(&at.home).await {
            Ok(Some((_, status))) => {
                let already_running = status.host.pid != child.id();
                return Ok(Started::new(status, already_running));
            }
            Err(error) if is_final(&error) && ended.is_none() => return Err(error),
            // During a start, a refused connection is expected.
            Ok(None) | Err(_) => {}
        }
        if let Some(status) = ended {
            let words = stderr_from(&at.home, stderr_start);
            let (why, hint) = match words.rsplit_once("\nhint: ") {
                Some((why, hint)) => (why, hint.to_owned()),
                None => (words.as_str(), format!("look at {}", at.home.stderr_file().display())),
            };
            return Err(Error::failed(
                "host_start_failed",
                format!("the host ended during its start ({status}): {why}"),
            )
            .hinting(hint));
        }
        if Instant::now() > deadline {
            return Err(Error::failed(
                "host_start_slow",
                format!("process {} does not answer after {START_WAIT:?}", child.id()),
            )
            .hinting("look at `ironctl logs`"));
        }
        sleep(START_POLL).await;
    }
}

/// Returns a client for the host of a home and its status; `None` if no host answers.
pub async fn answering(home: &Home) -> Result<Option<(Client, Status)>, Error> {
    // Without a run file, a client would search `/proc`, which is too slow for each poll of a start.
    if home.run_file()?.is_none() {
        return Ok(None);
    }
    let answer = match Client::open(home) {
        Ok(client) => client.call(routes::STATUS, []).await.map(|status| (client, status)),
        Err(error) => Err(error),
    };
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Error::Unreachable { .. } | Error::AddressUnknown { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Does the same, and asks again while the host closes connections without an answer, as a host does at its end.
///
/// A killed host still accepts connections while a process that it has just forked has its sockets. Fails with the lost
/// connection if there is no other answer within [`START_WAIT`].
async fn answering_after_an_end(home: &Home) -> Result<Option<(Client, Status)>, Error> {
    let deadline = Instant::now() + START_WAIT;
    loop {
        match answering(home).await {
            Err(Error::Lost { .. }) if Instant::now() < deadline => sleep(START_POLL).await,
            answer => return answer,
        }
    }
}

/// Returns whether a starting host will keep failing requests with this error, because it does not accept the token.
pub(super) fn is_final(error: &Error) -> bool {
    match error {
        Error::Refused(_) => true,
        Error::Failed { code, .. } => *code == "token_unreadable",
        _ => false,
    }
}

/// Returns the number of checks; refuses a machine that cannot jail an agent, or a home that cannot be there, before anything is made.
pub fn require_jails(at: &At) -> Result<usize, Error> {
    all_pass(doctor::preflight(Some(&at.home))?)
}

/// Returns the number of checks, or the failure with every reason and remedy.
fn all_pass(preflight: Preflight) -> Result<usize, Error> {
    if preflight.ok {
        return Ok(preflight.checks.len());
    }
    let (reasons, remedies): (Vec<_>, Vec<_>) = preflight
        .checks
        .into_iter()
        .filter(|check| !check.ok)
        .map(|check| (format!("{}: {}", check.name, check.found), check.remedy))
        .unzip();
    let message = format!("this machine cannot run a host here: {}", reasons.join("; "));
    Err(Error::failed("preflight_failed", message).hinting(remedies.join("; ")))
}

fn create_home(at: &At) -> Result<(), Error> {
    let home = at.home.path().display();
    match init::ensure(at)? {
        Made::Home => at.out.remark(format!("created a home at {home}")),
        Made::Token => at.out.remark(format!("{home}/owner.token was missing, and holds a new token of the owner")),
        Made::Nothing => Ok(()),
    }
}

fn run_command(home: &Home) -> Result<Offline, Error> {
    Ok(Offline::host(&["run"])?.at(home))
}

fn print(at: &At, started: &Started) -> Result<(), Error> {
    at.out.json(started)?;
    for warning in &started.warnings {
        at.out.remark(format!("warning: {warning}"))?;
    }
    let home = at.home.path().display();
    at.out.line(if started.already_running {
        format!("the host already runs: process {} at {home}", started.pid)
    } else {
        format!("the host runs: process {} at {home}", started.pid)
    })
}

/// Returns the text of the stderr file after `from`, cut to its end.
fn stderr_from(home: &Home, from: u64) -> String {
    let mut words = Vec::new();
    let read = File::open(home.stderr_file()).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(from.max(length.saturating_sub(STDERR_SHOWN_BYTES_MAX))))?;
        file.take(STDERR_SHOWN_BYTES_MAX).read_to_end(&mut words)
    });
    match read {
        Ok(0) | Err(_) => "it printed no reason".to_owned(),
        Ok(_) => String::from_utf8_lossy(&words).trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_operator::Check;

    #[test]
    fn unfit_machine_is_refused_with_reason_and_remedy() {
        let check = Check {
            name: "user namespaces".to_owned(),
            ok: false,
            found: "forbidden".to_owned(),
            remedy: "sysctl kernel.unprivileged_userns_clone=1".to_owned(),
        };
        let refused = all_pass(Preflight { ok: false, checks: vec![check], features: Vec::new() }).expect_err("unfit");
        let report = refused.report().expect("reported").error;
        assert_eq!(report.code, "preflight_failed");
        assert!(report.message.ends_with("user namespaces: forbidden"), "{}", report.message);
        assert_eq!(report.hint, "sysctl kernel.unprivileged_userns_clone=1");
    }
}
