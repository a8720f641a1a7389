//! The sandbox's end of the link: the frames of the handshake, then bells.
//!
//! It uses no timer, and never blocks if the host does not read its bells. See [`crate::agent`].

use ironclaw_contract::seam::link::BELL;
use ironclaw_contract::seam::socket;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, send};
use serde::Serialize;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use zeroize::Zeroizing;

/// Bells that one read takes; several have the same meaning as one.
const BELLS_AT_ONCE: usize = 64;

/// The other end of the link is closed: the session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host closed the link")]
pub struct Gone;

/// The socketpair between this process and the host.
pub struct Link(UnixStream);

impl Link {
    /// Takes ownership of the descriptor.
    pub fn new(descriptor: OwnedFd) -> Self {
        Self(UnixStream::from(descriptor))
    }

    /// Writes one frame of the handshake.
    pub fn write_frame(&mut self, frame: &impl Serialize) -> io::Result<()> {
        socket::write_frame(&mut self.0, frame)
    }

    /// Reads exactly one frame of the handshake; `None` if the host closed the link instead.
    pub fn read_frame(&mut self) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        Ok(socket::read_frame(&mut self.0)?.map(Zeroizing::new))
    }

    /// Rings: notifies the host that it should read the outbound queue.
    pub fn ring(&self) -> Result<(), Gone> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        loop {
            match send(self.0.as_raw_fd(), &[BELL], flags) {
                Err(Errno::EINTR) => {}
                // A full buffer has bells that the host has not read yet; one more would add no information.
                Ok(_) | Err(Errno::EAGAIN) => return Ok(()),
                Err(_) => return Err(Gone),
            }
        }
    }

    /// Sleeps until the host rings.
    pub fn wait(&self) -> Result<(), Gone> {
        self.take(MsgFlags::empty()).map(drop)
    }

    /// Takes the bells that have rung, without waiting; returns whether there were any.
    pub fn rung(&self) -> Result<bool, Gone> {
        self.take(MsgFlags::MSG_DONTWAIT)
    }

    /// Sleeps until `other` is readable. Takes bells meanwhile, and notices the end of the link.
    pub fn wait_for(&self, other: BorrowedFd<'_>) -> Result<(), Gone> {
        while self.wait_beside(other)? {}
        Ok(())
    }

    /// Sleeps until the host rings (true) or `other` is readable (false).
    pub fn wait_beside(&self, other: BorrowedFd<'_>) -> Result<bool, Gone> {
        loop {
            let mut both = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN), PollFd::new(other, PollFlags::POLLIN)];
            match poll(&mut both, PollTimeout::NONE) {
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(_) => return Err(Gone),
            }
            let [link, other] = both.map(|one| one.any().unwrap_or(true));
            // The end of the link is checked first; then the other end is not at fault.
            if link && self.rung()? {
                return Ok(true);
            }
            if other {
                return Ok(false);
            }
        }
    }

    fn take(&self, flags: MsgFlags) -> Result<bool, Gone> {
        let mut bells = [0; BELLS_AT_ONCE];
        loop {
            match recv(self.0.as_raw_fd(), &mut bells, flags) {
                Err(Errno::EINTR) => {}
                Ok(0) => return Err(Gone),
                Ok(_) => return Ok(true),
                Err(Errno::EAGAIN) => return Ok(false),
                Err(_) => return Err(Gone),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn pair() -> (UnixStream, Link) {
        let (host, sandbox) = UnixStream::pair().expect("a socketpair");
        (host, Link::new(sandbox.into()))
    }

    #[test]
    fn every_wait_notices_the_end_of_the_link() {
        let (host, link) = pair();
        let (other, _kept) = UnixStream::pair().expect("a socketpair");
        drop(host);
        assert_eq!(link.wait(), Err(Gone));
        assert_eq!(link.rung(), Err(Gone));
        assert_eq!(link.wait_for(other.as_fd()), Err(Gone));
        assert_eq!(link.ring(), Err(Gone));
    }

    #[test]
    fn many_bells_are_one() {
        let (mut host, link) = pair();
        host.write_all(&[BELL; 7]).expect("rung");
        assert_eq!(link.wait(), Ok(()));
        assert_eq!(link.rung(), Ok(false));
    }

    #[test]
    fn silent_host_never_blocks_a_ring() {
        let (_host, link) = pair();
        for _ in 0..100_000 {
            link.ring().expect("the host is there");
        }
    }

    #[test]
    fn a_frame_takes_no_bell_with_it() {
        let (mut host, mut link) = pair();
        socket::write_frame(&mut host, &"welcome").expect("written");
        host.write_all(&[BELL]).expect("rung");
        assert_eq!(link.read_frame().expect("read").expect("a frame").as_slice(), b"\"welcome\"");
        assert_eq!(link.rung(), Ok(true));
    }
}
