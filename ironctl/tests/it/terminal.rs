//! `ironctl` on a pseudo-terminal: the input of a person, and the screen.
//!
//! Each wait for a text has a timeout. See [`crate::inbox`].

use crate::fake_host::{FakeHost, ironctl};
use nix::poll::{PollFd, PollFlags, poll};
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, Stdio};

/// A running `ironctl` and the terminal that it runs on.
pub struct Terminal {
    /// The process of `ironctl`.
    pub ironctl: Child,
    /// The side of the person; dropping it closes the terminal.
    pub screen: File,
    seen: Vec<u8>,
    /// The end of the last found text.
    looked: usize,
}

impl Terminal {
    /// Runs `ironctl` against a host, on a terminal of this width or of unknown size.
    pub fn running(host: &FakeHost, words: &[&str], columns: Option<u16>) -> Self {
        Self::on(host, words, columns.map(|ws_col| Winsize { ws_row: 40, ws_col, ws_xpixel: 0, ws_ypixel: 0 }))
    }

    /// Runs `ironctl` against a host, on a terminal of this size.
    pub fn sized(host: &FakeHost, words: &[&str], ws_col: u16, ws_row: u16) -> Self {
        Self::on(host, words, Some(Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 }))
    }

    fn on(host: &FakeHost, words: &[&str], size: Option<Winsize>) -> Self {
        let pty = openpty(&size, None).expect("a pseudo-terminal");
        // The copy is closed on exec. Otherwise the child would keep this side open and never see it closed.
        let screen = File::from(pty.master.try_clone().expect("a second handle"));
        drop(pty.master);
        let end = || Stdio::from(pty.slave.try_clone().expect("a second handle"));
        let mut command = ironctl(host.home.path());
        command.args(words).env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end());
        let ironctl = command.spawn().expect("ironctl runs");
        Self { ironctl, screen, seen: Vec::new(), looked: 0 }
    }

    /// Types a text, including its line ends.
    pub fn type_in(&mut self, text: &str) {
        self.screen.write_all(text.as_bytes()).expect("typed");
    }

    /// Reads until `what` appears after the last found text.
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
            assert_eq!(ready, Ok(1), "waited for {what:?}, the screen has {:?}", self.seen());
            let read = self.screen.read(&mut buffer).expect("ironctl is still there");
            self.seen.extend_from_slice(&buffer[..read]);
        }
    }

    /// Returns the text of the screen so far.
    pub fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Waits for the end of the process; returns its exit code.
    pub fn end(mut self) -> i32 {
        self.ironctl.wait().expect("ironctl ends").code().expect("not killed")
    }
}
