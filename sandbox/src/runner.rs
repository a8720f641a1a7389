//! Commands of the agent: a process beside this one runs them, and this is the way to it.
//!
//! Nothing that the host entrusts to this process is in the other one: it is forked before the handshake, and has one socketpair
//! to here and no other descriptor. See [`crate::runner::serve`] for its life, [`crate::runner::walls`] for what a command can
//! reach.

mod serve;
mod walls;

use crate::kernel::{self, Side};
use crate::link::{Gone, Link};
use crate::{Places, tools};
use ironclaw_contract::seam::socket::{read_frame, write_frame};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Bytes of a command.
pub const COMMAND_BYTES_MAX: usize = 64 * 1024;
/// Seconds that a command may take when the call does not say.
const SECONDS_USUAL: u32 = 30;
/// Seconds that a command may take.
pub const SECONDS_MAX: u32 = 120;
/// Bytes of output that a result shows.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Arguments of `run_command`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunCommand {
    /// The command for the shell.
    command: String,
    /// Seconds; 30 if absent.
    timeout_seconds: Option<u32>,
}

/// The runner's first frame: whether its walls are in place.
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    /// The reason if they are not, and then it has ended.
    fault: Option<String>,
}

/// One command, to the runner.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    command: String,
    seconds: u32,
}

/// Result of a command.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    end: End,
    /// The first of what it wrote to both streams.
    output: String,
    /// Number of bytes that it wrote in all.
    bytes: u64,
}

/// The end of a command. No process of it is left by then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum End {
    /// By itself.
    Code(i32),
    /// By a signal of this name.
    Signal(String),
    /// Its time was over.
    Timeout,
    /// It was not even started.
    NotStarted(String),
}

/// The reason that a command has no result. Either way this process ends, the jail with it, and with the jail whatever the
/// command started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The host closed the link.
    Gone,
    /// The runner has ended, and what it watched over may still run.
    Lost,
}

impl From<Gone> for Over {
    fn from(Gone: Gone) -> Self {
        Self::Gone
    }
}

/// This process's end of the way to the runner.
#[derive(Debug)]
pub struct Runner(UnixStream);

impl Runner {
    /// Forks the runner where there are programs to run, and waits until its walls are in place; `None` where there are none.
    ///
    /// # Errors
    /// Those of `socketpair` and `fork`, and what the runner says of its walls.
    pub fn start(places: &Places) -> io::Result<Option<Self>> {
        let Some(programs) = &places.programs else { return Ok(None) };
        let (ours, theirs) = UnixStream::pair()?;
        let main = nix::unistd::Pid::this();
        match kernel::fork()? {
            Side::Parent(_) => {
                drop(theirs);
                Self::begun(ours).map(Some)
            }
            Side::Child => {
                drop(ours);
                serve::live(theirs, places, programs, main)
            }
        }
    }

    fn begun(mut stream: UnixStream) -> io::Result<Self> {
        let frame = read_frame(&mut stream)?.ok_or_else(|| io::Error::other("it ended before it said anything"))?;
        match serde_json::from_slice(&frame)? {
            Begun { fault: None } => Ok(Self(stream)),
            Begun { fault: Some(fault) } => Err(io::Error::other(fault)),
        }
    }

    /// Returns the descriptor that can be read between two commands only when the runner has ended.
    pub(crate) fn end(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Runs one command and waits for its end, for as long as the host keeps the link open.
    ///
    /// # Errors
    /// [`Over`]; with this process the jail ends, and with it whatever still runs.
    pub fn run(&self, call: RunCommand, link: &Link) -> Result<tools::Outcome, Over> {
        let refused = |body: &str| Ok(tools::Outcome { ok: false, body: body.to_owned() });
        if call.command.is_empty() || call.command.len() > COMMAND_BYTES_MAX || call.command.contains('\0') {
            return refused("refused: a command has 1 to 65536 bytes and no NUL byte");
        }
        let seconds = call.timeout_seconds.unwrap_or(SECONDS_USUAL).clamp(1, SECONDS_MAX);
        let order = Order { command: call.command, seconds };
        let mut stream = &self.0;
        write_frame(&mut stream, &order).map_err(|_| Over::Lost)?;
        link.wait_for(stream.as_fd())?;
        let frame = read_frame(&mut stream).ok().flatten();
        let report = frame.and_then(|frame| serde_json::from_slice(&frame).ok()).ok_or(Over::Lost)?;
        Ok(say(report, seconds))
    }
}

fn say(report: Report, seconds: u32) -> tools::Outcome {
    let Report { end, mut output, bytes } = report;
    let mut fits = tools::that_fits(&output).min(OUTPUT_BYTES_MAX);
    while !output.is_char_boundary(fits) {
        fits -= 1;
    }
    let cut = fits < output.len() || bytes > OUTPUT_BYTES_MAX as u64;
    output.truncate(fits);
    let shown = output.len();
    if !output.is_empty() && !output.ends_with('\n') {
        output.push('\n');
    }
    if cut {
        let _ = writeln!(output, "[{bytes} bytes of output, of which the first {shown} are shown]");
    }
    let _ = match &end {
        End::Code(code) => write!(output, "[exit code {code}]"),
        End::Signal(signal) => write!(output, "[ended by {signal}]"),
        End::Timeout => write!(output, "[ended after {seconds} s, which is all the time that it had]"),
        End::NotStarted(why) => write!(output, "[not started: {why}]"),
    };
    tools::Outcome { ok: end == End::Code(0), body: output }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(end: End, output: &str, bytes: u64) -> tools::Outcome {
        say(Report { end, output: output.into(), bytes }, 7)
    }

    #[test]
    fn only_exit_code_0_is_a_success_and_the_end_is_always_named() {
        for (end, ok, words) in [
            (End::Code(0), true, "[exit code 0]"),
            (End::Code(1), false, "[exit code 1]"),
            (End::Signal("SIGKILL".into()), false, "[ended by SIGKILL]"),
            (End::Timeout, false, "[ended after 7 s"),
            (End::NotStarted("no".into()), false, "[not started: no]"),
        ] {
            let outcome = report(end.clone(), "said", 4);
            assert_eq!((outcome.ok, outcome.body.starts_with("said\n")), (ok, true), "{end:?}");
            assert!(outcome.body.contains(words), "{end:?}: {}", outcome.body);
        }
    }

    #[test]
    fn output_that_was_left_out_is_said() {
        let outcome = report(End::Code(0), &"x".repeat(OUTPUT_BYTES_MAX), 1_000_000);
        assert!(outcome.body.contains("[1000000 bytes of output, of which the first 65536 are shown]"));
        assert!(!report(End::Code(0), "x", 1).body.contains("are shown"));
        // Bytes that are no UTF-8 take three bytes each.
        let outcome = report(End::Code(0), &"\u{fffd}".repeat(OUTPUT_BYTES_MAX), OUTPUT_BYTES_MAX as u64);
        assert!(outcome.body.contains("[65536 bytes of output, of which the first 65535 are shown]"));
    }

    #[test]
    fn a_runner_without_its_walls_is_none() {
        let begun = |frame: Option<Begun>| {
            let (ours, mut theirs) = UnixStream::pair().expect("a socketpair");
            frame.map_or(Ok(()), |frame| write_frame(&mut theirs, &frame)).expect("written");
            drop(theirs);
            Runner::begun(ours).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(begun(None), Err("it ended before it said anything".to_owned()));
        assert_eq!(begun(Some(Begun { fault: Some("no wall".to_owned()) })), Err("no wall".to_owned()));
        assert_eq!(begun(Some(Begun { fault: None })), Ok(()));
    }

    #[test]
    fn a_runner_that_has_ended_ends_the_session_and_is_no_hang() {
        let (ours, theirs) = UnixStream::pair().expect("a socketpair");
        let (_host, link) = UnixStream::pair().expect("a socketpair");
        drop(theirs);
        let call = RunCommand { command: "true".into(), timeout_seconds: None };
        assert_eq!(Runner(ours).run(call, &Link::new(link.into())), Err(Over::Lost));
    }
}
