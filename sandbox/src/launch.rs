//! The first seconds of the process, in order: gate, runner, lockdown, handshake, queues, first bell.
//!
//! Says hello only after it has locked itself down, and keeps the key no longer than it takes to open both queues. See
//! [`crate::lockdown`], then [`crate::agent`].

use crate::Places;
use crate::agent::{self, Agent};
use crate::link::{Gone, Link};
use crate::lockdown;
use crate::runner::Runner;
use crate::tools::Tools;
use ironclaw_contract::seam;
use ironclaw_contract::seam::crypt::{self, SessionKey};
use ironclaw_contract::seam::inbound::InboundReader;
use ironclaw_contract::seam::link::{Fatal, Hello, Welcome};
use ironclaw_contract::seam::outbound::OutboundWriter;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use zeroize::Zeroize;

/// Byte that the gate carries, each way, once.
const GATE_BYTE: u8 = b'!';

/// The reason that the process ends with a failure. Sentences without content: they go to the host as they are.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Process 1 of the jail went away, or the pipe is no gate.
    #[error("cannot pass the gate of the jail: {0}")]
    Gate(#[source] io::Error),
    /// The process that runs commands could not be started.
    #[error("cannot start the process that runs commands: {0}")]
    Runner(#[source] io::Error),
    /// The process that runs commands, and ends what they started, is gone; what they started ends with this process.
    #[error("the process that runs commands has ended")]
    RunnerLost,
    /// A wall that is not in force.
    #[error(transparent)]
    Lockdown(#[from] lockdown::Error),
    /// The handshake broke off in the middle, or was none.
    #[error("cannot finish the handshake: {0}")]
    Handshake(String),
    /// A queue that does not open or does not answer.
    #[error(transparent)]
    Queue(#[from] crypt::Error),
    /// The workspace is not there.
    #[error("cannot open the workspace: {0}")]
    Workspace(#[source] io::Error),
}

/// Runs the session from the gate to its end; `look` finds the places, once the root is in place.
///
/// # Errors
/// [`Error`], whose sentence went to the host as a `Fatal` frame if the first bell had not rung yet.
pub fn start(link: OwnedFd, gate: OwnedFd, look: impl FnOnce() -> Places) -> Result<(), Error> {
    let mut link = Link::new(link);
    let locked = pass(gate).map_err(Error::Gate).and_then(|()| {
        // Before the gate these names are the host's, so they are not looked at earlier.
        let places = look();
        // Before the lockdown there can still be another process, and before the handshake it has nothing to inherit.
        let runner = Runner::start(&places).map_err(Error::Runner)?;
        lockdown::enter(&places)?;
        Ok((places, runner))
    });
    match locked {
        Ok((places, runner)) => serve_with(link, &places, runner),
        Err(error) => Err(last_words(&mut link, error)),
    }
}

/// Runs the session from the hello to its end, in whatever jail there is.
///
/// # Errors
/// As [`start`].
pub fn serve(link: Link, places: &Places) -> Result<(), Error> {
    serve_with(link, places, None)
}

fn serve_with(mut link: Link, places: &Places, runner: Option<Runner>) -> Result<(), Error> {
    match shake_hands(&mut link, places, runner) {
        Ok(Some(parts)) => agent::serve(Agent::new(link, parts)),
        Ok(None) => Ok(()),
        Err(error) => Err(last_words(&mut link, error)),
    }
}

/// Says that the program is loaded, and waits until its root is in place.
fn pass(gate: OwnedFd) -> io::Result<()> {
    let mut gate = File::from(gate);
    gate.write_all(&[GATE_BYTE])?;
    gate.read_exact(&mut [0])
}

/// Shakes hands: hello, welcome, queues, bell; `None` when the host closed the link instead.
fn shake_hands(link: &mut Link, places: &Places, runner: Option<Runner>) -> Result<Option<agent::Parts>, Error> {
    let broken = |error: io::Error| Error::Handshake(error.to_string());
    let tools = Tools::open(places, runner).map_err(Error::Workspace)?;
    let hello = Hello { fingerprint: seam::fingerprint(), version: env!("CARGO_PKG_VERSION").to_owned() };
    match link.say(&hello) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(None),
        other => other.map_err(broken)?,
    }
    let Some(frame) = link.hear().map_err(broken)? else { return Ok(None) };
    // The error of the parser could quote the frame, and the frame holds the key.
    let welcome = serde_json::from_slice(&frame).map_err(|_| Error::Handshake("the welcome is malformed".into()))?;
    drop(frame);
    let Welcome { session: _, key: mut hex, turn: limits, failpoint } = welcome;
    let key = SessionKey::from_hex(&hex);
    hex.zeroize();
    let key = key.ok_or_else(|| Error::Handshake("the key is not 64 hex characters".into()))?;
    if failpoint.is_some() && !cfg!(feature = "failpoints") {
        return Err(Error::Handshake("the host names a fail point, and this build has none".into()));
    }
    let inbound = InboundReader::open(&places.inbound_db(), &key)?;
    let outbound = OutboundWriter::open(&places.outbound_db(), &key)?;
    drop(key);
    Ok(match link.ring() {
        Ok(()) => Some(agent::Parts { inbound, outbound, tools, limits, failpoint, socket: places.model_socket() }),
        Err(Gone) => None,
    })
}

/// Tells the host why, if it still listens.
fn last_words(link: &mut Link, error: Error) -> Error {
    // If the host is gone the message is lost, and the exit code says enough.
    let _ = link.say(&Fatal { fatal: error.to_string() });
    error
}

/// Returns the clock of this process, milliseconds since the epoch; without authority.
pub(crate) fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
