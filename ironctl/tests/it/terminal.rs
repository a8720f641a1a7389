//! `ironctl` on a pseudo-terminal: the input of a person, and the screen.
//!
//! Each wait for a text has a timeout. See [`crate::inbox`].

use crate::fake_host::{FakeHost, ironctl};
use nix::poll::{PollFd, PollFlags, poll};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::AsFd;
use std::process::{Child, Stdio};

/// The editor of the person, which makes a free argument a floor.
const EDITOR: &str = r#"sed -i s/\"free\"/\"floor\"/"#;

/// A running `ironctl` and the terminal that it runs on.
pub struct Terminal {
    /// The process of `ironctl`.
    pub ironctl: Child,
    /// The side of the person; dropping it closes the terminal.
    pub screen: File,
    seen: Vec<u8>,
    /// The end of the last found text.
    looked: usize,
    /// Columns and rows.
    size: (u16, u16),
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
        command.args(words).env("TERM", "xterm").env("EDITOR", EDITOR).env_remove("VISUAL");
        command.stdin(end()).stdout(end()).stderr(end());
        let ironctl = command.spawn().expect("ironctl runs");
        let size = size.map_or((80, 24), |size| (size.ws_col, size.ws_row));
        Self { ironctl, screen, seen: Vec::new(), looked: 0, size }
    }

    /// Types a text, including its line ends.
    pub fn type_in(&mut self, text: &str) {
        self.screen.write_all(text.as_bytes()).expect("typed");
    }

    /// Types a line once this text is on the screen.
    pub fn reply(&mut self, after: &str, line: &str) {
        self.wait_for(after);
        self.type_in(&format!("{line}\n"));
    }

    /// Types a line at the prompt of a conversation.
    pub fn say(&mut self, line: &str) {
        self.wait_for("you> \r");
        self.type_in(&format!("{line}\r"));
    }

    /// Leaves a conversation at its prompt; returns everything that was printed before.
    pub fn leave(mut self) -> String {
        self.wait_for("you> \r");
        let seen = self.seen();
        self.type_in("/quit\r");
        assert_eq!(self.end(), 0);
        seen
    }

    /// Drops these lines, which were typed ahead and wait at the prompt one after the other.
    pub fn drop_kept(&mut self, lines: &[&str]) {
        for line in lines {
            self.wait_for(&format!("you> {line}"));
            // Ctrl-U.
            self.type_in("\u{15}\r");
        }
    }

    /// Types Ctrl-C.
    pub fn interrupt(&self) {
        let pid = Pid::from_raw(i32::try_from(self.ironctl.id()).expect("a process id"));
        kill(pid, Signal::SIGINT).expect("it runs");
    }

    /// Reads until `what` appears after the last found text.
    pub fn wait_for(&mut self, what: &str) {
        if !what.is_empty() {
            self.wait_for_one(&[what]);
        }
    }

    /// Reads until one of these texts appears after the last found text; returns its place in the list.
    pub fn wait_for_one(&mut self, texts: &[&str]) -> usize {
        loop {
            let new = &self.seen[self.looked..];
            let first = |text: &str| new.windows(text.len()).position(|window| window == text.as_bytes());
            let found =
                texts.iter().enumerate().filter_map(|(place, text)| Some((first(text)? + text.len(), place))).min();
            if let Some((end, place)) = found {
                self.looked += end;
                return place;
            }
            self.read_more(texts);
        }
    }

    /// Reads what `ironctl` prints next.
    fn read_more(&mut self, texts: &[&str]) {
        let mut buffer = [0; 1024];
        let mut readable = [PollFd::new(self.screen.as_fd(), PollFlags::POLLIN)];
        let ready = poll(&mut readable, 10_000_u16);
        assert_eq!(ready, Ok(1), "waited for {texts:?}, the screen has {:?}", self.seen());
        let read = self.screen.read(&mut buffer).expect("ironctl is still there");
        self.seen.extend_from_slice(&buffer[..read]);
    }

    /// Returns the lines that a person sees now, to the line of the cursor.
    pub fn lines(&self) -> Vec<String> {
        let (columns, rows) = self.size;
        let size = |size| NonZero::new(size).expect("a screen has a size");
        let mut emulator = vt100::Parser::new(size(rows), size(columns), 0);
        emulator.process(&self.seen);
        let screen = emulator.screen();
        let lines = screen.rows(0, columns).map(|line| line.trim_end().to_owned());
        lines.take(usize::from(screen.cursor_position().0) + 1).collect()
    }

    /// Returns everything that was printed so far.
    pub fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Waits for the end of the process; returns everything that it printed.
    pub fn end_with_screen(mut self) -> String {
        // The closed terminal is an error of the device.
        let mut buffer = [0; 1024];
        while self.ironctl.try_wait().expect("ironctl ends").is_none() {
            let mut readable = [PollFd::new(self.screen.as_fd(), PollFlags::POLLIN)];
            if poll(&mut readable, 100_u16) == Ok(1)
                && let Ok(read) = self.screen.read(&mut buffer)
            {
                self.seen.extend_from_slice(&buffer[..read]);
            }
        }
        // The last lines may still be in the terminal; at its end a read fails.
        while let Ok(read @ 1..) = self.screen.read(&mut buffer) {
            self.seen.extend_from_slice(&buffer[..read]);
        }
        self.seen()
    }

    /// Waits for this text, and for the end of the process with this exit code.
    pub fn end_after(mut self, text: &str, code: i32) {
        self.wait_for(text);
        assert_eq!(self.end(), code, "{text}");
    }

    /// Waits for the end of the process; returns its exit code.
    pub fn end(mut self) -> i32 {
        self.ironctl.wait().expect("ironctl ends").code().expect("not killed")
    }
}
