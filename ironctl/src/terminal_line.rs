//! The lines that a person types on the terminal, read without a pause of the other work of the program.
//!
//! Never returns to a question what was typed before it, and loses none of it: [`hold`] keeps it for the prompt. See
//! `commands::review` for the questions, and `commands::chat::typed_ahead` for the prompt.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{FlushArg, LocalFlags, SetArg, SpecialCharacterIndices, tcflush, tcgetattr, tcsetattr};
use std::convert::Infallible;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::sleep;

/// Bytes of a line; the kernel ends a line of a terminal far earlier.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Bytes that are kept for the prompt; what a person types during one answer is far shorter.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Pause between two looks at the terminal; a person does not notice it. A blocking read could not be given up.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Pause between two looks while no question waits for the line.
const COLLECT_PAUSE: Duration = Duration::from_millis(100);

/// The typed bytes that no question read. A program has one terminal.
static KEPT: Mutex<Kept> = Mutex::new(Kept { bytes: Vec::new(), held: 0, was_held: false, has_ended: false });

/// Typed bytes that no question read, in their order.
#[derive(Debug, Default)]
pub struct Kept {
    pub bytes: Vec<u8>,
    /// The first bytes, behind which a question came, or the end of an answer that failed: the person may mean them otherwise now.
    pub held: usize,
    /// True if there was such a question or end, also before the first byte.
    pub was_held: bool,
    /// True if the input ended.
    pub has_ended: bool,
}

fn kept() -> MutexGuard<'static, Kept> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps everything that was typed and not read for the prompt, where the person sends it or not.
pub fn hold() -> io::Result<()> {
    let mut kept = kept();
    drain(&mut kept.bytes)?;
    (kept.held, kept.was_held) = (kept.bytes.len(), true);
    Ok(())
}

/// Takes everything that was typed and that no question read, with the beginning of a line.
pub fn take() -> io::Result<Kept> {
    let mut kept = kept();
    drain(&mut kept.bytes)?;
    Ok(std::mem::take(&mut *kept))
}

/// Keeps each line that is typed, and never returns. So Ctrl-C, at which the terminal forgets its lines, and its small buffer lose none.
pub async fn collect() -> Infallible {
    loop {
        if collect_lines(&mut kept()).is_err() {
            std::future::pending().await
        }
        sleep(COLLECT_PAUSE).await;
    }
}

fn collect_lines(kept: &mut Kept) -> io::Result<()> {
    let mut part = [0; 4096];
    while !kept.has_ended && kept.bytes.len() < KEPT_BYTES_MAX && has_input()? {
        match read_part(&mut part)? {
            0 => kept.has_ended = true,
            bytes => kept.bytes.extend_from_slice(&part[..bytes]),
        }
    }
    Ok(())
}

/// Takes all input off the terminal, also a line without its end: a terminal that edits no line gives it at once.
fn drain(into: &mut Vec<u8>) -> io::Result<()> {
    let stdin = io::stdin();
    let usual = tcgetattr(&stdin)?;
    let mut at_once = usual.clone();
    at_once.local_flags.remove(LocalFlags::ICANON);
    at_once.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
    at_once.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
    tcsetattr(&stdin, SetArg::TCSANOW, &at_once)?;
    let read = drain_unedited(into);
    tcsetattr(&stdin, SetArg::TCSANOW, &usual)?;
    read
}

fn drain_unedited(into: &mut Vec<u8>) -> io::Result<()> {
    let mut part = [0; 4096];
    while into.len() < KEPT_BYTES_MAX {
        match read_part(&mut part)? {
            0 => return Ok(()),
            bytes => into.extend_from_slice(&part[..bytes]),
        }
    }
    // No question may read the rest.
    Ok(tcflush(io::stdin(), FlushArg::TCIFLUSH)?)
}

/// Returns the next typed line without its end; `None` at the end of the input (Ctrl-D or a closed terminal).
///
/// A dropped wait leaves the input on the terminal: [`hold`] keeps it.
pub async fn read() -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut part = [0; 4096];
    while line.len() < LINE_BYTES_MAX {
        while !has_input()? {
            sleep(LOOK_PAUSE).await;
        }
        match read_part(&mut part)? {
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

/// Reads once; returns 0 at the end of the input.
fn read_part(part: &mut [u8]) -> io::Result<usize> {
    match nix::unistd::read(io::stdin(), part) {
        // The terminal is closed.
        Err(Errno::EIO) => Ok(0),
        read => Ok(read?),
    }
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
