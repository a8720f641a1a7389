//! `ironctl` on a pseudo-terminal: what a person types, and what they see.
//! Never types before it was asked to, and waits for words with a bound.
//! Next: `inbox`.

use crate::fake_host::{FakeHost, ironctl};
use nix::poll::{PollFd, PollFlags, poll};
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, Stdio};

/// A running `ironctl` and the terminal that it runs on.
pub struct Terminal {
    /// The process.
    pub ironctl: Child,
    /// The person's side of the terminal; it is closed when this is dropped.
    pub screen: File,
    seen: Vec<u8>,
    /// Up to where what was waited for has been found.
    looked: usize,
}

impl Terminal {
    /// With these words, against this host, on a terminal of so many columns or one that does not say.
    pub fn running(host: &FakeHost, words: &[&str], columns: Option<u16>) -> Self {
        Self::on(host, words, columns.map(|ws_col| Winsize { ws_row: 40, ws_col, ws_xpixel: 0, ws_ypixel: 0 }))
    }

    /// On a terminal of this size.
    pub fn sized(host: &FakeHost, words: &[&str], ws_col: u16, ws_row: u16) -> Self {
        Self::on(host, words, Some(Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 }))
    }

    fn on(host: &FakeHost, words: &[&str], size: Option<Winsize>) -> Self {
        let pty = openpty(&size, None).expect("a pseudo-terminal");
        // The copy is closed on exec: a child that held our side would never see it closed.
        let screen = File::from(pty.master.try_clone().expect("a second handle"));
        drop(pty.master);
        let end = || Stdio::from(pty.slave.try_clone().expect("a second handle"));
        let mut command = ironctl(host.home.path());
        command.args(words).env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end());
        let ironctl = command.spawn().expect("ironctl runs");
        Self { ironctl, screen, seen: Vec::new(), looked: 0 }
    }

    /// Types this, with its own line ends.
    pub fn type_in(&mut self, text: &str) {
        self.screen.write_all(text.as_bytes()).expect("typed");
    }

    /// Reads until `what` appears behind what was waited for before.
    pub fn wait_for(&mut self, what: &str) {
        let mut buffer = [0; 1024];
        loop {
            let new = &self.seen[self.looked..];
            if what.is_empty() {
                return;
            }
            if let Some(at) = new.windows(what.len()).position(|window| window == what.as_bytes()) {
                self.looked += at + what.len();
                return;
            }
            let mut readable = [PollFd::new(self.screen.as_fd(), PollFlags::POLLIN)];
            let ready = poll(&mut readable, 10_000_u16);
            assert_eq!(ready, Ok(1), "waited for {what:?}, saw {:?}", self.seen());
            let read = self.screen.read(&mut buffer).expect("ironctl is still there");
            self.seen.extend_from_slice(&buffer[..read]);
        }
    }

    /// Everything that was read from the screen.
    pub fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Waits until it ends; gives its exit code.
    pub fn end(mut self) -> i32 {
        self.ironctl.wait().expect("it ends").code().expect("not killed")
    }
}
