//! The runner: a process beside this one that runs the agent's commands, and the connection to it.
//!
//! The runner is forked before the handshake, so it has no data that the host entrusts to this process. Its only descriptor is one
//! end of a socketpair. See [`crate::runner::serve`] for its process, and [`crate::runner::walls`] for the reach of a command.

mod serve;
mod walls;

use crate::Paths;
use crate::kernel::{self, Side};
use crate::link::{Gone, Link};
use ironclaw_contract::seam::socket::{read_frame, write_frame};
use ironclaw_files::outcome::{Outcome, prefix_that_fits};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Longest command, in bytes.
pub const COMMAND_BYTES_MAX: usize = 64 * 1024;
/// Time limit of a command if the call has none, in seconds.
const SECONDS_DEFAULT: u32 = 30;
/// Longest time limit of a command, in seconds.
pub const SECONDS_MAX: u32 = 120;
/// Bytes of output in a result.
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

/// The runner's first frame, which reports its walls.
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    /// The reason why its walls are not in place; then it has ended.
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
    /// The beginning of its output on both streams.
    output: String,
    /// Bytes of its whole output.
    bytes: u64,
}

/// The end of a command; none of its processes is left then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum End {
    /// An exit with this code.
    Code(i32),
    /// An end by the signal of this name.
    Signal(String),
    /// Its time limit was reached.
    Timeout,
    /// The command was not started.
    NotStarted(String),
}

/// The reason why a command has no result. In both cases this process ends, and with it the jail and all processes that the command
/// started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The host closed the link.
    Gone,
    /// The runner has ended, and processes of the command may still run.
    Lost,
}

impl From<Gone> for Over {
    fn from(Gone: Gone) -> Self {
        Self::Gone
    }
}

/// This process's end of the connection to the runner.
#[derive(Debug)]
pub struct Runner(UnixStream);

impl Runner {
    /// Forks the runner and waits until its walls are in place; `None` if the jail has no programs.
    ///
    /// # Errors
    /// Those of `socketpair` and `fork`, and the runner's fault if its walls are not in place.
    pub fn start(paths: &Paths) -> io::Result<Option<Self>> {
        let Some(programs) = &paths.programs else { return Ok(None) };
        let (ours, theirs) = UnixStream::pair()?;
        let main = nix::unistd::Pid::this();
        match kernel::fork()? {
            Side::Parent(_) => {
                drop(theirs);
                Self::begun(ours).map(Some)
            }
            Side::Child => {
                drop(ours);
                serve::live(theirs, paths, programs, main)
            }
        }
    }

    fn begun(mut stream: UnixStream) -> io::Result<Self> {
        let frame = read_frame(&mut stream)?.ok_or_else(|| io::Error::other("it ended before its first frame"))?;
        match serde_json::from_slice(&frame)? {
            Begun { fault: None } => Ok(Self(stream)),
            Begun { fault: Some(fault) } => Err(io::Error::other(fault)),
        }
    }

    /// Returns a descriptor. Between two commands, it is readable only if the runner has ended.
    pub(crate) fn end(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Runs one command and waits for its end while the host keeps the link open.
    ///
    /// # Errors
    /// [`Over`]. Then this process ends, and with it the jail and all its processes.
    pub fn run(&self, call: RunCommand, link: &Link) -> Result<Outcome, Over> {
        let refused = |body: &str| Ok(Outcome { ok: false, body: body.to_owned() });
        if call.command.is_empty() || call.command.len() > COMMAND_BYTES_MAX || call.command.contains('\0') {
            return refused("refused: a command has 1 to 65536 bytes and no NUL byte");
        }
        let seconds = call.timeout_seconds.unwrap_or(SECONDS_DEFAULT).clamp(1, SECONDS_MAX);
        let order = Order { command: call.command, seconds };
        let mut stream = &self.0;
        write_frame(&mut stream, &order).map_err(|_| Over::Lost)?;
        link.wait_for(stream.as_fd())?;
        let frame = read_frame(&mut stream).ok().flatten();
        let report = frame.and_then(|frame| serde_json::from_slice(&frame).ok()).ok_or(Over::Lost)?;
        Ok(outcome(report, seconds))
    }
}

fn outcome(report: Report, seconds: u32) -> Outcome {
    let Report { end, mut output, bytes } = report;
    let fits = output.floor_char_boundary(prefix_that_fits(&output).min(OUTPUT_BYTES_MAX));
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
        End::Timeout => write!(output, "[ended after {seconds} s: time limit reached]"),
        End::NotStarted(why) => write!(output, "[not started: {why}]"),
    };
    Outcome { ok: end == End::Code(0), body: output }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(end: End, output: &str, bytes: u64) -> Outcome {
        super::outcome(Report { end, output: output.into(), bytes }, 7)
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
    fn truncated_output_is_marked() {
        let outcome = report(End::Code(0), &"x".repeat(OUTPUT_BYTES_MAX), 1_000_000);
        assert!(outcome.body.contains("[1000000 bytes of output, of which the first 65536 are shown]"));
        assert!(!report(End::Code(0), "x", 1).body.contains("are shown"));
        // Each byte that is not UTF-8 becomes three bytes.
        let outcome = report(End::Code(0), &"\u{fffd}".repeat(OUTPUT_BYTES_MAX), OUTPUT_BYTES_MAX as u64);
        assert!(outcome.body.contains("[65536 bytes of output, of which the first 65535 are shown]"));
    }

    #[test]
    fn runner_without_its_walls_is_refused() {
        let begun = |frame: Option<Begun>| {
            let (ours, mut theirs) = UnixStream::pair().expect("a socketpair");
            frame.map_or(Ok(()), |frame| write_frame(&mut theirs, &frame)).expect("written");
            drop(theirs);
            Runner::begun(ours).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(begun(None), Err("it ended before its first frame".to_owned()));
        assert_eq!(begun(Some(Begun { fault: Some("no wall".to_owned()) })), Err("no wall".to_owned()));
        assert_eq!(begun(Some(Begun { fault: None })), Ok(()));
    }

    #[test]
    fn end_of_the_runner_ends_the_session_without_a_hang() {
        let (ours, theirs) = UnixStream::pair().expect("a socketpair");
        let (_host, link) = UnixStream::pair().expect("a socketpair");
        drop(theirs);
        let call = RunCommand { command: "true".into(), timeout_seconds: None };
        assert_eq!(Runner(ours).run(call, &Link::new(link.into())), Err(Over::Lost));
    }
}
