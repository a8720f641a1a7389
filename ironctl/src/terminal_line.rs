//! A line that a person types on the terminal, read without a pause of the other work of the program.
//!
//! Never returns a line that was typed before [`discard`]. See `commands::review` for the questions.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{FlushArg, tcflush};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::time::sleep;

/// Bytes of a line; the kernel ends a line of a terminal far earlier.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Pause between two looks at the terminal; a person does not notice it. A blocking read could not be given up.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Drops everything that was typed and not read.
pub fn discard() -> io::Result<()> {
    Ok(tcflush(io::stdin(), FlushArg::TCIFLUSH)?)
}

/// Returns the next typed line without its end; `None` at the end of the input (Ctrl-D or a closed terminal).
///
/// A dropped wait leaves the input on the terminal: [`discard`] drops it.
pub async fn read() -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut part = [0; 4096];
    while line.len() < LINE_BYTES_MAX {
        while !has_input()? {
            sleep(LOOK_PAUSE).await;
        }
        let read = match nix::unistd::read(io::stdin(), &mut part) {
            // The terminal is closed.
            Err(Errno::EIO) => 0,
            read => read?,
        };
        match read {
            0 if line.is_empty() => return Ok(None),
            0 => break,
            bytes => line.extend_from_slice(&part[..bytes]),
        }
        if line.ends_with(b"\n") {
            line.pop();
            break;
        }
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

/// Returns whether a read returns at once: a whole line was typed, or the input has ended.
fn has_input() -> io::Result<bool> {
    let stdin = io::stdin();
    let mut typed = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    match poll(&mut typed, PollTimeout::ZERO) {
        Err(Errno::EINTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}
