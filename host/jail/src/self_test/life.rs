//! The probe's process in the jail: it makes its attempts one by one, reports, and leaves a daemon behind.
//!
//! Each attempt runs in a child, so that its effects end with the child. The wait for a child has a bound. See
//! [`crate::self_test::line`].

use super::line::{By, Line, Scene, Tried};
use super::{commands, files, limits, privileges, processes, sockets};
use crate::sys::{self, OneThread, Side};
use crate::{Facts, Probe, Spec};
use ironclaw_contract::seam;
use ironclaw_contract::seam::link::{BELL, Hello};
use ironclaw_contract::seam::socket::{read_frame, write_frame};
use ironclaw_operator::Attempt;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, pipe2};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Byte that the host writes after it has inspected the probe from outside.
pub(super) const CONTINUE: u8 = b'.';
/// Longest time of one attempt. A system call takes microseconds; the slowest attempt forks up to the process limit.
const ATTEMPT_MS_MAX: u16 = 10_000;
/// Number of tries of a fork while the process limit is reached because an ended process is not reaped yet.
const FORKS_MAX: u32 = 200;
/// Longest time that the daemon runs.
const DAEMON_MS_MAX: u16 = 20_000;
/// Exit code of a probe that got a second key.
const GOT_SECOND_KEY: i32 = 3;
/// Exit code of a probe that failed.
const FAILED: i32 = 1;

/// Runs the probe, in the jail, and returns its exit code.
pub fn run(link: OwnedFd, probe: &Probe, spec: &Spec, thread: &OneThread) -> i32 {
    let link = UnixStream::from(link);
    match probe {
        Probe::Attempts(facts) | Probe::Control(facts) => attempts(link, &Scene { spec, facts, thread }),
        Probe::Neighbour => i32::from((&link).read(&mut [0]).is_err()),
        Probe::KeyAgain { after_bell } => ask_again(link, *after_bell).unwrap_or(FAILED),
    }
}

fn attempts(mut link: UnixStream, scene: &Scene<'_>) -> i32 {
    let made: Vec<Attempt> =
        lines(scene.spec, scene.facts).iter().map(|line| line.judge(&tried(line, scene))).collect();
    let reported = serde_json::to_vec(&made).map_err(io::Error::from).and_then(|bytes| {
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        link.write_all(&length.to_be_bytes())?;
        link.write_all(&bytes)
    });
    let mut word = [0];
    match reported.and_then(|()| link.read(&mut word)) {
        Ok(1) if word == [CONTINUE] => leave_a_daemon(&link, scene.thread),
        // The host does not need this probe any longer.
        Ok(_) => 0,
        Err(_) => FAILED,
    }
}

fn tried(line: &Line, scene: &Scene<'_>) -> Tried {
    match line.by {
        By::Itself => (line.act)(scene).into(),
        By::Child => by_child(line, scene).unwrap_or_else(|error| Tried::Lost(format!("could not be tried: {error}"))),
    }
}

fn by_child(line: &Line, scene: &Scene<'_>) -> io::Result<Tried> {
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC)?;
    let child = match fork(scene.thread)? {
        Side::Parent(pid) => Pid::from_raw(pid),
        Side::Child => {
            drop(reader);
            let outcome = catch_unwind(AssertUnwindSafe(|| (line.act)(scene)));
            let outcome = outcome.map_or_else(|_| Tried::Lost("panicked".to_owned()), Tried::from);
            let sent = File::from(writer).write_all(&encode(&outcome));
            sys::exit(i32::from(sent.is_err()))
        }
    };
    drop(writer);
    let mut report = Vec::new();
    let mut reader = File::from(reader);
    let in_time = loop {
        let mut ready = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, PollTimeout::from(ATTEMPT_MS_MAX)) {
            Ok(0) => break false,
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno.into()),
        }
        let mut bytes = [0; 4096];
        match reader.read(&mut bytes)? {
            0 => break true,
            length => report.extend_from_slice(&bytes[..length]),
        }
    };
    if !in_time {
        // If it has just ended, there is no process to kill.
        let _ = kill(child, Signal::SIGKILL);
    }
    let ended = waitpid(child, None)?;
    Ok(match (decode(&report), in_time, ended) {
        (Some(tried), ..) => tried,
        (None, false, _) => Tried::Lost(format!("no end within {ATTEMPT_MS_MAX} ms")),
        (None, true, WaitStatus::Signaled(_, signal, _)) => Tried::Lost(format!("ended by {signal}")),
        // Another program was executed in this process, and it does not report.
        (None, true, _) => Tried::Lost("ended without a report".to_owned()),
    })
}

fn fork(thread: &OneThread) -> io::Result<Side> {
    for _ in 1..FORKS_MAX {
        match thread.fork() {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => std::thread::sleep(Duration::from_millis(5)),
            other => return other,
        }
    }
    thread.fork()
}

fn encode(tried: &Tried) -> Vec<u8> {
    match tried {
        Tried::Saw(what) => [b"s", what.as_bytes()].concat(),
        Tried::Lost(how) => [b"l", how.as_bytes()].concat(),
        Tried::Refused(errno) => format!("r{}", *errno as i32).into_bytes(),
    }
}

fn decode(report: &[u8]) -> Option<Tried> {
    let (kind, rest) = report.split_first()?;
    let text = String::from_utf8_lossy(rest).into_owned();
    match kind {
        b's' => Some(Tried::Saw(text)),
        b'l' => Some(Tried::Lost(text)),
        b'r' => text.parse().ok().map(|errno| Tried::Refused(Errno::from_raw(errno))),
        _ => None,
    }
}

/// Forks twice, so that no process waits for the second child. That child holds the link until the host closes its end.
fn leave_a_daemon(link: &UnixStream, thread: &OneThread) -> i32 {
    match fork(thread) {
        Ok(Side::Parent(pid)) => i32::from(waitpid(Pid::from_raw(pid), None).is_err()),
        Ok(Side::Child) => {
            if let Ok(Side::Child) = fork(thread) {
                let mut gone = [PollFd::new(link.as_fd(), PollFlags::empty())];
                let _ = poll(&mut gone, PollTimeout::from(DAEMON_MS_MAX));
            }
            sys::exit(0)
        }
        Err(_) => FAILED,
    }
}

/// Makes a sandbox's handshake, and then sends a second hello.
fn ask_again(mut link: UnixStream, after_bell: bool) -> io::Result<i32> {
    let hello = Hello { fingerprint: seam::fingerprint(), version: "probe".to_owned() };
    write_frame(&mut link, &hello)?;
    if read_frame(&mut link)?.is_none() {
        return Ok(FAILED);
    }
    if after_bell {
        link.write_all(&[BELL])?;
    }
    write_frame(&mut link, &hello)?;
    // The host closes the link, which may reset it; any frame instead would be a second key.
    Ok(match read_frame(&mut link) {
        Ok(None) | Err(_) => 0,
        Ok(Some(_)) => GOT_SECOND_KEY,
    })
}

/// Returns the lines of all attempts in the jail of `spec`, in order.
fn lines(spec: &Spec, facts: &Facts) -> Vec<Line> {
    let groups = [
        ("sockets", sockets::lines(spec)),
        ("processes", processes::lines()),
        ("files", files::lines(spec, facts)),
        ("the host's programs", commands::lines(spec)),
        ("privileges", privileges::own(spec)),
        ("mounts", privileges::mounts()),
        ("namespaces", privileges::namespaces()),
        ("kernel", privileges::kernel()),
        ("limits", limits::lines(spec)),
    ];
    let mut all = Vec::new();
    for (group, lines) in groups {
        all.extend(lines.into_iter().map(|line| Line { group, ..line }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Identity, Limits, Mount, Role, System};

    #[test]
    fn no_two_attempts_in_a_jail_have_one_name() {
        for (system, listener) in [(None, None), (Some(System::default()), None), (Some(System::default()), Some(8129))]
        {
            no_two_attempts_have_one_name(system, listener);
        }
    }

    fn no_two_attempts_have_one_name(system: Option<System>, listener: Option<u16>) {
        let mount = |name: &str, read_only| Mount {
            source: "/x".into(),
            target: format!("/{name}"),
            read_only,
            granted: false,
        };
        let spec = Spec {
            name: "ses_test".into(),
            role: Role::Reader,
            mounts: vec![mount("in", true), mount("out", false), mount("workspace", false)],
            system,
            listener,
            identity: Identity::Mapped { uid: 70_000, gid: 70_000 },
            limits: Limits::default(),
        };
        let facts =
            Facts { host_files: vec![("x".into(), "/x".into()), ("y".into(), "/y".into())], ..Facts::default() };
        let mut names: Vec<String> = lines(&spec, &facts).into_iter().map(|line| line.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(count >= 60, "{count}");
    }
}
