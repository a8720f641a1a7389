//! The connection to the model socket: one request, one answer, kept open between them.
//!
//! Names items and never words; a connection that broke is made anew once per request, not again and again. See
//! [`crate::agent::turn`].

use crate::link::{Gone, Link};
use ironclaw_contract::seam::socket::{Request, Response, read_frame, write_frame};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// The reason that there is no answer.
pub(super) enum Error {
    /// The host closed the link meanwhile.
    Gone(Gone),
    /// The socket broke twice.
    Io,
    /// The answer has a shape that is not in the contract.
    Malformed,
}

impl From<io::Error> for Error {
    /// Drops the details, which would not help: there is no log here, and the host knows its own end.
    fn from(_: io::Error) -> Self {
        Self::Io
    }
}

/// The client of `model.sock`.
pub(super) struct Model {
    path: PathBuf,
    stream: Option<UnixStream>,
}

impl Model {
    /// Connects with the first request.
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path, stream: None }
    }

    /// Asks and waits, for as long as the host keeps the link open.
    pub(super) fn ask(&mut self, request: &Request, link: &Link) -> Result<Response, Error> {
        // A connection from before may have been closed by a host that found it idle: that is no failure yet.
        let answer = match self.exchange(request, link) {
            Err(Error::Io) => self.exchange(request, link),
            other => other,
        };
        serde_json::from_slice(&answer?).map_err(|_| Error::Malformed)
    }

    fn exchange(&mut self, request: &Request, link: &Link) -> Result<Vec<u8>, Error> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => UnixStream::connect(&self.path)?,
        };
        write_frame(&mut stream, request)?;
        link.wait_for(stream.as_fd()).map_err(Error::Gone)?;
        let answer = read_frame(&mut stream)?.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        self.stream = Some(stream);
        Ok(answer)
    }
}
