//! A pseudo-terminal that runs commands of a shell as the user of a fixture, and returns what a person sees.
//!
//! Contains no tests. See `ops::first_day`.

use super::host_fixture::WAIT_MAX;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The size that programs see.
const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

/// The emulated screen is larger, so that all lines stay on it and none is wrapped.
const COLUMNS_KEPT: u16 = 1000;
const ROWS_KEPT: u16 = 1000;

/// The longest wait for output, in milliseconds.
const POLL_MS: u16 = 100;

/// The result of a command on a terminal.
pub(crate) struct Seen {
    pub(crate) code: i32,
    pub(crate) lines: Vec<String>,
}

/// Runs a command on a terminal of 80x24. At each of the `prompts` it types the line that `answer` returns.
pub(crate) fn run(mut command: Command, prompts: &[&str], mut answer: impl FnMut(&str) -> String) -> Seen {
    let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(&Some(size), None).expect("a pseudo-terminal");
    let end = || Stdio::from(pty.slave.try_clone().expect("a second handle"));
    let mut child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("a shell runs");
    // Otherwise this process would keep the terminal open.
    drop(command);
    drop(pty.slave);
    let mut screen = File::from(pty.master);
    let size = |size| NonZero::new(size).expect("a screen has a size");
    let mut emulator = vt100::Parser::new(size(ROWS_KEPT), size(COLUMNS_KEPT), 0);
    let mut buffer = [0; 4096];
    // The output after the last typed line.
    let mut unread = Vec::new();
    let until = Instant::now() + WAIT_MAX;
    loop {
        // Before the wait for output: otherwise a command that writes and ends after that wait loses its last lines.
        let ended = child.try_wait().expect("our child");
        let mut readable = [PollFd::new(screen.as_fd(), PollFlags::POLLIN)];
        let ready = poll(&mut readable, PollTimeout::from(POLL_MS)).expect("a terminal");
        let read = if ready > 0 { screen.read(&mut buffer).unwrap_or(0) } else { 0 };
        emulator.process(&buffer[..read]);
        if let (Some(status), 0) = (ended, read) {
            return Seen { code: status.code().unwrap_or(-1), lines: lines(&emulator) };
        }
        unread.extend_from_slice(&buffer[..read]);
        if let Some(prompt) = prompts.iter().find(|prompt| unread.ends_with(prompt.as_bytes())) {
            unread.clear();
            screen.write_all(format!("{}\n", answer(prompt)).as_bytes()).expect("typed");
        }
        assert!(Instant::now() < until, "a command hangs:\n{}", lines(&emulator).join("\n"));
    }
}

/// Returns the lines to that of the cursor, without one that is empty.
fn lines(emulator: &vt100::Parser) -> Vec<String> {
    let screen = emulator.screen();
    let count = usize::from(screen.cursor_position().0) + usize::from(screen.cursor_position().1 > 0);
    screen.rows(0, COLUMNS_KEPT).take(count).map(|line| line.trim_end().to_owned()).collect()
}
