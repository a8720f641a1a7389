//! The process of the runner: it runs one command after the other, each in a session of its own, and reports it when no process of
//! the command is left.
//!
//! It exchanges data only with its parent, and ends with it. See [`crate::runner::walls`].

use super::walls::Walls;
use super::{Begun, End, OUTPUT_BYTES_MAX, Order, Report};
use crate::kernel::{self, Side};
use crate::{Paths, Programs};
use ironclaw_contract::seam::socket::{read_frame, write_frame};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::Mode;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, execve, pipe2, read, setsid};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Address space of each process of a command.
const ADDRESSES_MAX: u64 = 2 << 30;
/// Processes and threads of the whole jail: the limit under which a command may fork.
const PROCESSES_MAX: u64 = 32;
/// Largest file that a command may write.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Open descriptors of each process of a command.
const OPEN_FILES_MAX: u64 = 128;
/// Longest time until all killed processes of a command have ended.
const END_TIME_MAX: Duration = Duration::from_secs(20);
/// Bytes of one read.
const CHUNK_BYTES: usize = 16 * 1024;
/// Highest process id of any kernel.
const PIDS_MAX: i32 = 4_194_304;
/// The environment of a command.
const ENVIRONMENT: [&CStr; 5] =
    [c"PATH=/usr/local/bin:/usr/bin:/bin", c"HOME=/workspace", c"TMPDIR=/tmp", c"LANG=C.UTF-8", c"USER=ironclaw"];
/// Exit code of a runner that failed.
const FAILED: i32 = 1;

/// Runs the process of the runner.
pub(super) fn live(main: UnixStream, paths: &Paths, programs: &Programs, pid_of_main: Pid) -> ! {
    let lived = kernel::keep_only(main.into()).map(UnixStream::from).and_then(|mut main| {
        let serving = Serving::begin(paths, programs, pid_of_main);
        let begun = Begun { fault: serving.as_ref().err().map(ToString::to_string) };
        write_frame(&mut main, &begun)?;
        serving?.serve(main)
    });
    let code = match lived {
        Ok(()) => 0,
        // The runner has no log; a waiting caller sees the end of the socket.
        Err(_) => FAILED,
    };
    kernel::exit(code)
}

struct Serving {
    walls: Walls,
    ended: SignalFd,
    workspace: CString,
    /// True if a signal to all processes reaches only the processes of a command.
    scoped: bool,
}

impl Serving {
    fn begin(paths: &Paths, programs: &Programs, pid_of_main: Pid) -> io::Result<Self> {
        setsid()?;
        nix::sys::prctl::set_child_subreaper(true)?;
        let mut child = SigSet::empty();
        child.add(Signal::SIGCHLD);
        child.thread_block()?;
        let ended = SignalFd::with_flags(&child, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let walls = Walls::raise(paths, programs, pid_of_main)?;
        let scoped = kill(pid_of_main, None) == Err(Errno::EPERM);
        let workspace = paths.workspace.to_string_lossy().into_owned();
        Ok(Self { walls, ended, workspace: CString::new(workspace)?, scoped })
    }

    /// Runs commands until the other end is closed.
    fn serve(mut self, mut main: UnixStream) -> io::Result<()> {
        while let Some(frame) = read_frame(&mut main)? {
            let order: Order = serde_json::from_slice(&frame)?;
            let report = match self.start(&order) {
                Ok((child, output)) => self.watch(child, output, Duration::from_secs(order.seconds.into()))?,
                Err(why) => Report { end: End::NotStarted(why.to_string()), output: String::new(), bytes: 0 },
            };
            write_frame(&mut main, &report)?;
        }
        Ok(())
    }

    /// Starts the shell; returns its process id and the reading end of its output.
    fn start(&self, order: &Order) -> io::Result<(Pid, OwnedFd)> {
        let command = CString::new(order.command.as_str())?;
        let (output, theirs) = pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        match kernel::fork()? {
            Side::Parent(pid) => Ok((pid, output)),
            Side::Child => {
                let error = self.become_command(&command, &theirs, order.seconds);
                let message = format!("cannot start a command: {error}\n");
                // The result shows this as the output of the command.
                let _ = nix::unistd::write(&theirs, message.as_bytes());
                kernel::exit(126)
            }
        }
    }

    /// Gives up the remaining rights and executes the shell; returns only if that fails.
    fn become_command(&self, command: &CStr, output: &OwnedFd, seconds: u32) -> io::Error {
        let prepare = || -> io::Result<()> {
            setsid()?;
            chdir(self.workspace.as_c_str())?;
            let null = open("/dev/null", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
            dup2_stdin(&null)?;
            dup2_stdout(output)?;
            dup2_stderr(output)?;
            kernel::usual_signals()?;
            SigSet::empty().thread_set_mask()?;
            for (resource, max) in [
                (Resource::RLIMIT_CORE, 0),
                (Resource::RLIMIT_AS, ADDRESSES_MAX),
                (Resource::RLIMIT_NPROC, PROCESSES_MAX),
                (Resource::RLIMIT_FSIZE, FILE_BYTES_MAX),
                (Resource::RLIMIT_NOFILE, OPEN_FILES_MAX),
                (Resource::RLIMIT_CPU, u64::from(seconds) + 1),
            ] {
                setrlimit(resource, max, max)?;
            }
            self.walls.around_command()
        };
        match prepare() {
            Err(error) => error,
            Ok(()) => match execve(c"/bin/sh", &[c"sh", c"-c", command], &ENVIRONMENT) {
                Ok(never) => match never {},
                Err(errno) => errno.into(),
            },
        }
    }

    /// Reads the output of the command until it ends or its time is over, and kills its remaining processes.
    fn watch(&mut self, child: Pid, output: OwnedFd, time: Duration) -> io::Result<Report> {
        let until = Instant::now() + time;
        let mut written = Written::default();
        let mut open = true;
        let mut status = None;
        while status.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // One more millisecond, so that the poll never wakes just before the deadline.
            let wait = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            let mut both =
                [PollFd::new(self.ended.as_fd(), PollFlags::POLLIN), PollFd::new(output.as_fd(), PollFlags::POLLIN)];
            let watched = if open { &mut both[..] } else { &mut both[..1] };
            match poll(watched, wait) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            if open && both[1].any().unwrap_or(true) {
                open = written.take(&output)? != Taken::End;
            }
            while self.ended.read_signal()?.is_some() {}
            status = reap(child)?.0;
        }
        let timed_out = status.is_none();
        if let Some(late) = self.end_everything(child)? {
            status = status.or(Some(late));
        }
        // No process is left that could write, so this is the rest, even if another end was never closed.
        while open && written.take(&output)? == Taken::Data {}
        let end = match status {
            _ if timed_out => End::Timeout,
            Some(WaitStatus::Exited(_, code)) => End::Code(code),
            Some(WaitStatus::Signaled(_, signal, _)) => End::Signal(signal.as_str().to_owned()),
            other => End::NotStarted(format!("its status is unknown: {other:?}")),
        };
        let (output, bytes) = written.text();
        Ok(Report { end, output, bytes })
    }

    /// Kills until there is no child left. A process that loses its parent becomes a child of this process, so then none is left.
    fn end_everything(&self, child: Pid) -> io::Result<Option<WaitStatus>> {
        let until = Instant::now() + END_TIME_MAX;
        let mut status = None;
        loop {
            self.kill_all()?;
            let (found, left) = reap(child)?;
            status = status.or(found);
            if left == Children::None {
                return Ok(status);
            }
            if Instant::now() > until {
                return Err(io::Error::other("a command does not end"));
            }
            let mut ended = [PollFd::new(self.ended.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ended, PollTimeout::from(10u8)) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            while self.ended.read_signal()?.is_some() {}
        }
    }

    fn kill_all(&self) -> io::Result<()> {
        if self.scoped {
            // One call for all processes, so that none forks between two signals.
            return match kill(Pid::from_raw(-1), Signal::SIGKILL) {
                Ok(()) | Err(Errno::ESRCH | Errno::EPERM) => Ok(()),
                Err(errno) => Err(errno.into()),
            };
        }
        // Before Linux 6.12, that call would kill the process that this one serves.
        for pid in (2..=self.highest_pid()?).map(Pid::from_raw) {
            if !self.walls.is_ours(pid) {
                let _ = kill(pid, Signal::SIGKILL);
            }
        }
        Ok(())
    }

    /// Returns the highest process id in use. If the kernel has started again with low ids, that is the highest possible one.
    fn highest_pid(&self) -> io::Result<i32> {
        match kernel::fork() {
            Ok(Side::Child) => kernel::exit(0),
            Ok(Side::Parent(pid)) if pid > self.walls.runner() => Ok(pid.as_raw()),
            // The kernel started again with low ids, or the process limit is reached.
            Ok(Side::Parent(_)) | Err(_) => Ok(PIDS_MAX),
        }
    }
}

/// Remaining processes of a command.
#[derive(Debug, PartialEq, Eq)]
enum Children {
    /// At least one has not ended yet.
    Running,
    /// This process has no child.
    None,
}

/// Reaps all ended children; returns the status of `child` if it is among them, and the remaining children.
fn reap(child: Pid) -> io::Result<(Option<WaitStatus>, Children)> {
    let mut status = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return Ok((status, Children::Running)),
            Err(Errno::ECHILD) => return Ok((status, Children::None)),
            Ok(found) if found.pid() == Some(child) => status = Some(found),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Output of a command: its beginning, and its size.
#[derive(Default)]
struct Written {
    start: Vec<u8>,
    bytes: u64,
}

/// Result of one read of the output.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    /// Some bytes; there may be more.
    Data,
    /// No bytes at the moment.
    Nothing,
    /// The end: all writing ends are closed.
    End,
}

impl Written {
    /// Reads the available bytes, at most one chunk.
    fn take(&mut self, output: &OwnedFd) -> io::Result<Taken> {
        let mut chunk = [0; CHUNK_BYTES];
        loop {
            match read(output, &mut chunk) {
                Ok(0) => return Ok(Taken::End),
                Ok(length) => {
                    self.bytes += length as u64;
                    let room = OUTPUT_BYTES_MAX.saturating_sub(self.start.len()).min(length);
                    self.start.extend_from_slice(&chunk[..room]);
                    return Ok(Taken::Data);
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(Taken::Nothing),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn text(self) -> (String, u64) {
        (String::from_utf8_lossy(&self.start).into_owned(), self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_pipe_without_data_is_not_read_for_ever() {
        let (output, theirs) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).expect("a pipe");
        let mut written = Written::default();
        assert_eq!(written.take(&output).expect("read"), Taken::Nothing);
        nix::unistd::write(&theirs, b"said").expect("written");
        assert_eq!(written.take(&output).expect("read"), Taken::Data);
        assert_eq!(written.take(&output).expect("read"), Taken::Nothing);
        drop(theirs);
        assert_eq!(written.take(&output).expect("read"), Taken::End);
        assert_eq!(written.text(), ("said".to_owned(), 4));
    }
}
