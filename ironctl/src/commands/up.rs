//! `ironctl up`: starts the host, in this terminal or detached from it.
//!
//! Never starts a second one, and never says that one runs before it answered. See `ironclaw-host run`, which it becomes or
//! starts; [`crate::commands::down`].

use super::{At, init};
use crate::client::Client;
use crate::failure::Error;
use crate::home::Home;
use crate::sibling::Offline;
use ironclaw_contract::operator::Status;
use serde::Serialize;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A host that does not answer within this has a problem that waiting does not solve.
const START_WAIT: Duration = Duration::from_secs(30);

const START_POLL: Duration = Duration::from_millis(20);

/// Most bytes that are shown of what a host said before it died.
const LAST_WORDS_BYTES_MAX: u64 = 4096;

/// Options of `ironctl up`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl up\n  ironctl up --detach")]
pub struct Args {
    /// Start it in the background and return when it answers
    #[arg(long)]
    detach: bool,
}

/// Starts the host unless it runs; makes the home first when there is none.
pub async fn run(at: &At, args: &Args) -> Result<(), Error> {
    if args.detach {
        let started = ensure(at).await?;
        return tell(at, &started);
    }
    if let Some((_, status)) = answering(&at.home).await? {
        return tell(at, &Started::of(status, true));
    }
    make_home(at)?;
    Err(run_command(&at.home)?.exec())
}

/// A host that answers.
#[derive(Debug, Serialize)]
pub struct Started {
    /// Its process id.
    pub pid: u32,
    /// Whether it ran before we came.
    pub already_running: bool,
    /// Its warnings, as `ironctl status` shows them.
    pub warnings: Vec<String>,
}

impl Started {
    fn of(status: Status, already_running: bool) -> Self {
        Self { pid: status.host.pid, already_running, warnings: status.host.warnings }
    }
}

/// Starts a detached host unless one runs, and waits until it answers.
pub async fn ensure(at: &At) -> Result<Started, Error> {
    if let Some((_, status)) = answering(&at.home).await? {
        return Ok(Started::of(status, true));
    }
    make_home(at)?;
    let log = at.home.open_stderr_file()?;
    let said_before = log.metadata().map(|meta| meta.len()).unwrap_or(0);
    let mut child = run_command(&at.home)?.detach(log)?;
    let deadline = Instant::now() + START_WAIT;
    loop {
        // Asked before the child is looked at: when two start at once, one gives way to the other.
        let ended = child.try_wait().ok().flatten();
        match answering(&at.home).await {
            Ok(Some((_, status))) => {
                let already_running = status.host.pid != child.id();
                return Ok(Started::of(status, already_running));
            }
            Err(refused) if is_final(&refused) && ended.is_none() => return Err(refused),
            // While it starts, a refused connection only means "not yet".
            Ok(None) | Err(_) => {}
        }
        if let Some(status) = ended {
            let words = last_words(&at.home, said_before);
            let (why, hint) = match words.rsplit_once("\nhint: ") {
                Some((why, hint)) => (why, hint.to_owned()),
                None => (words.as_str(), format!("look at {}", at.home.stderr_file().display())),
            };
            return Err(
                Error::failed("host_start_failed", format!("the host ended at once ({status}): {why}")).hinting(hint)
            );
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

/// Returns the host of a home and its status; `None` when none answers.
pub async fn answering(home: &Home) -> Result<Option<(Client, Status)>, Error> {
    // Without a run file a client is refused after a look through `/proc`, which is too much for each poll of a start.
    if home.run()?.is_none() {
        return Ok(None);
    }
    let asked = match Client::open(home) {
        Ok(client) => client.status().await.map(|status| (client, status)),
        Err(error) => Err(error),
    };
    match asked {
        Ok(answer) => Ok(Some(answer)),
        Err(Error::Unreachable { .. } | Error::Hidden { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Returns whether a host that starts will answer so for as long as it runs: it does not take the token that we have.
fn is_final(refused: &Error) -> bool {
    match refused {
        Error::Refused(_) => true,
        Error::Failed { code, .. } => *code == "token_unreadable",
        _ => false,
    }
}

fn make_home(at: &At) -> Result<(), Error> {
    if init::ensure(at)? {
        at.out.remark(format!("made a new home at {}", at.home.path().display()))?;
    }
    Ok(())
}

fn run_command(home: &Home) -> Result<Offline, Error> {
    Ok(Offline::host(&["run"])?.at(home))
}

fn tell(at: &At, started: &Started) -> Result<(), Error> {
    at.out.json(started)?;
    for warning in &started.warnings {
        at.out.remark(format!("warning: {warning}"))?;
    }
    let home = at.home.path().display();
    at.out.line(if started.already_running {
        format!("the host runs already: process {} at {home}", started.pid)
    } else {
        format!("the host runs: process {} at {home}", started.pid)
    })
}

/// Returns what was written to the stderr file after `from`, at most the end of it.
fn last_words(home: &Home, from: u64) -> String {
    let mut words = Vec::new();
    let read = File::open(home.stderr_file()).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(from.max(length.saturating_sub(LAST_WORDS_BYTES_MAX))))?;
        file.take(LAST_WORDS_BYTES_MAX).read_to_end(&mut words)
    });
    match read {
        Ok(0) | Err(_) => "it said nothing".to_owned(),
        Ok(_) => String::from_utf8_lossy(&words).trim().to_owned(),
    }
}
