//! The client of the model socket: one request, one answer, over a connection that stays open.
//!
//! It sends names of items and no text. It opens a broken connection again once per request. See [`crate::agent::turn`].

use crate::link::{Gone, Link};
use ironclaw_contract::seam::socket::{Request, Response, read_frame, write_frame};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// The reason why there is no answer.
pub(super) enum Error {
    /// The host closed the link.
    Gone(Gone),
    /// The connection broke twice.
    Io,
    /// The answer does not match the contract.
    Malformed,
}

impl From<io::Error> for Error {
    /// Drops the details: this process has no log, and the host knows its own end.
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
    /// Makes a client that connects with the first request.
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path, stream: None }
    }

    /// Sends a request and waits for the answer while the host keeps the link open.
    pub(super) fn ask(&mut self, request: &Request, link: &Link) -> Result<Response, Error> {
        // The host may have closed an idle connection; the first break is no failure.
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
