//! Attempts to see, signal, trace or read another process: the host, the launcher, process 1, a process in another jail.
//!
//! Never sends a signal that does anything: 0 asks only whether it could. See [`crate::self_test::files`].

use super::line::{Line, MISSING, Refusals, SECCOMP, Scene, bare, refused, sight};
use crate::Wall;
use crate::sys::bare;
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::{Pid, getpid, getppid, getsid};

/// There is no process of that number here.
const NOBODY: Refusals = &[(Errno::ESRCH, Wall::PidNamespace)];

pub(super) fn lines() -> Vec<Line> {
    let signal = |name: &'static str, whom: fn(&Scene<'_>) -> u32| {
        refused(name, NOBODY, move |scene| Ok(kill(Pid::from_raw(whom(scene) as i32), None)?))
    };
    let mut lines = vec![
        sight("see its own number", "2", Wall::PidNamespace, |_| Ok(getpid().to_string())).by_itself(),
        sight("see the number of its parent", "1", Wall::PidNamespace, |_| Ok(getppid().to_string())).by_itself(),
        signal("signal the host", |scene| scene.facts.host_pid),
        signal("signal the launcher", |scene| scene.facts.launcher_pid),
        signal("signal the program of another jail with the same uid", |scene| scene.facts.neighbour_pid),
        refused("ask for the session of the host", NOBODY, |scene| {
            Ok(getsid(Some(Pid::from_raw(scene.facts.host_pid as i32)))?)
        }),
        refused("open the host as a process", MISSING, |scene| bare::PIDFD_OPEN.on(0, scene.facts.host_pid).make()),
        refused("open the program of another jail as a process", MISSING, |scene| {
            bare::PIDFD_OPEN.on(0, scene.facts.neighbour_pid).make()
        }),
        bare(bare::TRACE, SECCOMP),
        refused("trace the host", SECCOMP, |scene| bare::TRACE.on(1, scene.facts.host_pid).make()),
    ];
    lines.extend(
        bare::PROCESSES.iter().map(|call| refused(call.name, SECCOMP, |scene| call.on(0, scene.facts.host_pid).make())),
    );
    lines.extend(bare::PROCESS_DESCRIPTORS.iter().chain(bare::DESCRIPTORS).map(|call| bare(*call, SECCOMP)));
    lines
}
