//! Attempts to see, signal, trace or read another process: the host, the launcher, process 1, a process of another jail.
//!
//! The only signal is 0, which has no effect and reports whether a signal is possible. See [`crate::self_test::files`].

use super::line::{Line, MISSING, Refusals, SECCOMP, Scene, bare, observation, refused};
use crate::Wall;
use crate::sys::bare;
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::{Pid, getpid, getppid, getsid};

/// The process id does not exist in this namespace.
const NO_SUCH_PROCESS: Refusals = &[(Errno::ESRCH, Wall::PidNamespace)];

pub(super) fn lines() -> Vec<Line> {
    let signal = |name: &'static str, target: fn(&Scene<'_>) -> u32| {
        refused(name, NO_SUCH_PROCESS, move |scene| Ok(kill(Pid::from_raw(target(scene) as i32), None)?))
    };
    let mut lines = vec![
        observation("see its own number", "2", Wall::PidNamespace, |_| Ok(getpid().to_string())).by_itself(),
        observation("see the number of its parent", "1", Wall::PidNamespace, |_| Ok(getppid().to_string())).by_itself(),
        signal("signal the host", |scene| scene.facts.host_pid),
        signal("signal the launcher", |scene| scene.facts.launcher_pid),
        signal("signal the program of another jail with the same uid", |scene| scene.facts.neighbour_pid),
        refused("ask for the session of the host", NO_SUCH_PROCESS, |scene| {
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
