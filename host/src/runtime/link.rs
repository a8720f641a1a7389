//! The host's end of the link: the handshake, then bells.
//!
//! Sends the queue key once, and only after the host asked the kernel about the process. See [`crate::runtime::launch`].

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::SessionId;
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_contract::seam::limits::{HANDSHAKE_BYTES_MAX, HELLO_MS_MAX};
use ironclaw_contract::seam::link::{BELL, FromSandbox, Hello, TurnLimits, Welcome};
use ironclaw_contract::seam::{fingerprint, socket};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use zeroize::Zeroize;

/// The reason that a handshake failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It sent no message in time.
    #[error("the sandbox of {session} did not say hello, or was not ready, within {HELLO_MS_MAX} ms")]
    Silent { session: SessionId },
    /// It was built with another contract.
    #[error("the sandbox of {session} has contract fingerprint {theirs}, the host {ours}: install both from one build")]
    Drift { session: SessionId, theirs: String, ours: String },
    /// It gave up by itself.
    #[error("the sandbox of {session} cannot continue: {reason}")]
    Fatal {
        session: SessionId,
        /// The reason that the sandbox gives.
        reason: String,
    },
    /// It sent a message that the contract does not allow.
    #[error("the sandbox of {session} broke the link's contract: {what}")]
    Violation { session: SessionId, what: &'static str },
    #[error("the link to the sandbox of {session} is cut: {source}")]
    Cut { session: SessionId, source: io::Error },
}

/// An event on the link after the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    /// A bell: the outbound queue has rows.
    Bell,
    /// The end of the link: the other side is gone.
    Ended,
    /// A message other than a bell.
    Violation(&'static str),
}

/// The host's end of one link.
pub struct Link {
    session: SessionId,
    stream: UnixStream,
}

impl Link {
    /// Takes the host's end of a new socket pair.
    pub const fn new(session: SessionId, stream: UnixStream) -> Self {
        Self { session, stream }
    }

    /// Waits for the hello and compares its fingerprint.
    ///
    /// # Errors
    /// Returns each case of [`Error`].
    pub async fn hello(&mut self) -> Result<Hello, Error> {
        let session = self.session;
        let wait = tokio::time::timeout(Duration::from_millis(HELLO_MS_MAX), self.first_frame());
        let hello = match wait.await.map_err(|_| Error::Silent { session })?? {
            FromSandbox::Hello(hello) => hello,
            FromSandbox::Fatal(fatal) => return Err(Error::Fatal { session, reason: printable(&fatal.fatal) }),
        };
        let ours = fingerprint();
        if hello.fingerprint != ours {
            // Only a well-formed fingerprint is quoted, because it appears in messages of the host.
            let theirs =
                hello.fingerprint.parse::<Digest>().map_or_else(|_| "(none)".to_owned(), |theirs| theirs.to_string());
            return Err(Error::Drift { session, theirs, ours });
        }
        Ok(hello)
    }

    /// Sends the queue key. Call it once, after [`Self::hello`] and the check of the process.
    pub async fn welcome(&mut self, key: &SessionKey, turn: TurnLimits) -> Result<(), Error> {
        let session = self.session;
        let failpoint = ironclaw_state::failpoint::requested();
        let mut welcome = Welcome { session, key: key.to_hex().to_string(), turn, failpoint };
        let frame = socket::frame(&welcome);
        welcome.key.zeroize();
        let cut = |source| Error::Cut { session, source };
        let mut frame = frame.map_err(cut)?;
        let sent = tokio::time::timeout(Duration::from_millis(HELLO_MS_MAX), self.stream.write_all(&frame)).await;
        frame.zeroize();
        sent.map_err(|_| Error::Silent { session })?.map_err(cut)
    }

    /// Waits for the first bell: both queues are open on the other side.
    pub async fn ready(&mut self) -> Result<(), Error> {
        let session = self.session;
        let wait = tokio::time::timeout(Duration::from_millis(HELLO_MS_MAX), self.first_bell());
        wait.await.map_err(|_| Error::Silent { session })?
    }

    async fn first_bell(&mut self) -> Result<(), Error> {
        let session = self.session;
        let cut = |source| Error::Cut { session, source };
        match self.stream.read_u8().await.map_err(cut)? {
            BELL => Ok(()),
            // A frame instead of a bell: the sandbox reports a fatal error, or asks for the key again.
            first => {
                let mut prefix = [first, 0, 0, 0];
                self.stream.read_exact(&mut prefix[1..]).await.map_err(cut)?;
                match self.frame_of(prefix).await? {
                    FromSandbox::Fatal(fatal) => Err(Error::Fatal { session, reason: printable(&fatal.fatal) }),
                    FromSandbox::Hello(_) => {
                        Err(Error::Violation { session, what: "it asked for its key a second time" })
                    }
                }
            }
        }
    }

    /// Ends the link for good; the other side reads its end.
    pub fn close(&mut self) {
        // A link that is already broken needs no shutdown.
        let _ =
            nix::sys::socket::shutdown(std::os::fd::AsRawFd::as_raw_fd(&self.stream), nix::sys::socket::Shutdown::Both);
    }

    /// Rings the bell. A link that is full of bells needs no other one, so the host never waits for a sandbox that does not read.
    pub fn ring(&mut self) -> io::Result<()> {
        match self.stream.try_write(&[BELL]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            written => written.map(drop),
        }
    }

    /// Waits for the next bell; several bells at once count as one.
    pub async fn next_event(&mut self) -> LinkEvent {
        let mut bytes = [0; 64];
        match self.stream.read(&mut bytes).await {
            Ok(0) | Err(_) => LinkEvent::Ended,
            Ok(count) if bytes[..count].iter().all(|&byte| byte == BELL) => LinkEvent::Bell,
            Ok(_) => LinkEvent::Violation("it sent something other than a bell, such as a second request for its key"),
        }
    }

    async fn first_frame(&mut self) -> Result<FromSandbox, Error> {
        let session = self.session;
        let mut prefix = [0; 4];
        self.stream.read_exact(&mut prefix).await.map_err(|source| Error::Cut { session, source })?;
        self.frame_of(prefix).await
    }

    async fn frame_of(&mut self, prefix: [u8; 4]) -> Result<FromSandbox, Error> {
        let session = self.session;
        let violation = |what| Error::Violation { session, what };
        let length = u32::from_be_bytes(prefix) as usize;
        if length > HANDSHAKE_BYTES_MAX {
            return Err(violation("a frame of its handshake is over the limit"));
        }
        let mut frame = vec![0; length];
        self.stream.read_exact(&mut frame).await.map_err(|source| Error::Cut { session, source })?;
        serde_json::from_slice(&frame).map_err(|_| violation("a frame of its handshake is neither a hello nor a fatal"))
    }
}

/// Shortens the words of a sandbox about itself, and removes control characters.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(400).collect()
}
