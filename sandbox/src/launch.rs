//! The start of the process, in order: gate, runner, lockdown, handshake, queues, first bell.
//!
//! It sends its hello only after the lockdown, and drops the key when both queues are open. See [`crate::lockdown`], then
//! [`crate::agent`].

use crate::Paths;
use crate::agent::{self, Agent, Stop};
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

/// Byte that each side sends once over the gate.
const GATE_BYTE: u8 = b'!';

/// The reason why the process fails. Its sentences have no content of the session: the host gets them unchanged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Process 1 of the jail ended, or the descriptor is no gate.
    #[error("cannot pass the gate of the jail: {0}")]
    Gate(#[source] io::Error),
    /// The process that runs commands could not be started.
    #[error("cannot start the process that runs commands: {0}")]
    Runner(#[source] io::Error),
    /// The process that runs commands is gone. The processes that commands started end with this process.
    #[error("the process that runs commands has ended")]
    RunnerLost,
    /// A wall is not in force.
    #[error(transparent)]
    Lockdown(#[from] lockdown::Error),
    /// The handshake is incomplete or malformed.
    #[error("cannot finish the handshake: {0}")]
    Handshake(String),
    /// A queue does not open or does not answer.
    #[error(transparent)]
    Queue(#[from] crypt::Error),
    #[error("cannot open the workspace: {0}")]
    Workspace(#[source] io::Error),
}

/// Runs the session from the gate to its end. `look` returns the paths; it is called when the jail's root is in place.
///
/// # Errors
/// [`Error`]. Its sentence is sent to the host as a `Fatal` frame if the first bell has not rung yet.
pub fn start(link: OwnedFd, gate: OwnedFd, look: impl FnOnce() -> Paths) -> Result<(), Error> {
    let mut link = Link::new(link);
    let locked = pass(gate).map_err(Error::Gate).and_then(|()| {
        // Before the gate, these paths are the host's, so they are not read earlier.
        let paths = look();
        // Before the lockdown, this process can still fork; before the handshake, the runner has no secret to inherit.
        let runner = Runner::start(&paths).map_err(Error::Runner)?;
        lockdown::enter(&paths)?;
        Ok((paths, runner))
    });
    match locked {
        Ok((paths, runner)) => serve_with(link, &paths, runner),
        Err(error) => Err(report_fatal(&mut link, error)),
    }
}

/// Runs the session from the hello to its end, in the jail of the caller.
///
/// # Errors
/// As [`start`].
pub fn serve(link: Link, paths: &Paths) -> Result<(), Error> {
    serve_with(link, paths, None)
}

fn serve_with(mut link: Link, paths: &Paths, runner: Option<Runner>) -> Result<(), Error> {
    match shake_hands(&mut link, paths, runner) {
        Ok(Some(parts)) => match agent::serve(Agent::new(link, parts)) {
            Stop::Gone => Ok(()),
            Stop::Broken(error) => Err(error.into()),
            Stop::Lost => Err(Error::RunnerLost),
        },
        Ok(None) => Ok(()),
        Err(error) => Err(report_fatal(&mut link, error)),
    }
}

/// Reports that the program is loaded, and waits until its root is in place.
fn pass(gate: OwnedFd) -> io::Result<()> {
    let mut gate = File::from(gate);
    gate.write_all(&[GATE_BYTE])?;
    gate.read_exact(&mut [0])
}

/// Makes the handshake: hello, welcome, queues, bell; `None` if the host closed the link instead.
fn shake_hands(link: &mut Link, paths: &Paths, runner: Option<Runner>) -> Result<Option<agent::Parts>, Error> {
    let broken = |error: io::Error| Error::Handshake(error.to_string());
    let tools = Tools::open(paths, runner).map_err(Error::Workspace)?;
    let hello = Hello { fingerprint: seam::fingerprint(), version: env!("CARGO_PKG_VERSION").to_owned() };
    match link.write_frame(&hello) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(None),
        other => other.map_err(broken)?,
    }
    let Some(frame) = link.read_frame().map_err(broken)? else { return Ok(None) };
    // The error of the parser could quote the frame, which has the key.
    let welcome = serde_json::from_slice(&frame).map_err(|_| Error::Handshake("the welcome is malformed".into()))?;
    drop(frame);
    let Welcome { session: _, key: mut hex, turn: limits, failpoint } = welcome;
    let key = SessionKey::from_hex(&hex);
    hex.zeroize();
    let key = key.ok_or_else(|| Error::Handshake("the key is not 64 hex characters".into()))?;
    if failpoint.is_some() && !cfg!(feature = "failpoints") {
        return Err(Error::Handshake("the host names a fail point, but this build has none".into()));
    }
    let inbound = InboundReader::open(&paths.inbound_db(), &key)?;
    let outbound = OutboundWriter::open(&paths.outbound_db(), &key)?;
    drop(key);
    Ok(match link.ring() {
        Ok(()) => Some(agent::Parts { inbound, outbound, tools, limits, failpoint, socket: paths.model_socket() }),
        Err(Gone) => None,
    })
}

/// Sends the error to the host, if it still listens.
fn report_fatal(link: &mut Link, error: Error) -> Error {
    // If the host is gone, the message is lost; the exit code is enough.
    let _ = link.write_frame(&Fatal { fatal: error.to_string() });
    error
}
