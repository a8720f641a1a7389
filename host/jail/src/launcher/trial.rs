//! A trial launch of one jail, to find out whether this machine can make jails.
//!
//! Mounts no directory, runs no program of an agent, and leaves no process behind. See [`crate::launcher`].

use super::wire::{self, Event, Failure, Part, Request, Supply};
use super::{Entries, fork};
use crate::{Identity, Limits, Role, Spec, System, failpoint, inspect};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// The longest time that the trial may take.
const TRIAL_MS_MAX: u64 = 5_000;

/// Launches the reader's role without a mount and inspects the jail from outside. Returns whether its programs are on a file system
/// of their own.
///
/// `first_id` is the host uid and gid of the jail if `root` is true. This function forks, so the process must have only one thread.
///
/// # Errors
/// The step that failed.
pub fn try_launch(root: bool, first_id: u32, system: Option<System>) -> Result<bool, Failure> {
    let fault = |step: String| Failure { part: Part::Launch, step, errno: 0 };
    let own = |error: io::Error| Failure { part: Part::Launcher, step: format!("use a launcher: {error}"), errno: 0 };
    let handle = fork(Entries { reader: wait_for_end, probe: None }).map_err(own)?;
    let identity = match root {
        true => Identity::Mapped { uid: first_id, gid: first_id },
        false => Identity::Own,
    };
    let spec = Spec {
        name: "preflight".into(),
        role: Role::Reader,
        mounts: Vec::new(),
        system,
        listener: None,
        identity,
        limits: Limits { launch_ms: TRIAL_MS_MAX, ..Limits::default() },
    };
    let (link, theirs) = UnixStream::pair().map_err(own)?;
    let request = Request::Launch { id: 1, spec: Box::new(spec.clone()), supply: Supply::Demand };
    wire::send(&handle.control, &request, Some(&OwnedFd::from(theirs))).map_err(own)?;
    // The launcher answers within the time allowed, or ends and closes its socket.
    let answer = wire::receive::<Event>(&handle.control).map_err(own)?;
    let tried = match answer.map(|received| received.message) {
        Some(Event::Started { pid, landlock, .. }) => inspect::report(pid as u32, std::process::id())
            .map_err(|error| fault(format!("inspect the jail from outside: {error}")))
            .and_then(|mut report| {
                report.landlock = landlock;
                // A test that leaves out a wall wants a host without it.
                if failpoint::left_out_wall().is_none() {
                    inspect::verify(&report, &spec).map_err(|faults| fault(faults.join("; ")))?;
                }
                Ok(inspect::programs_have_own_file_system(pid as u32).unwrap_or(false))
            }),
        Some(Event::Failed { failure, .. }) => Err(failure),
        Some(Event::Exited { exit, .. }) => Err(fault(format!("keep the jail running: it {exit}"))),
        None => Err(own(io::Error::other("it exited unexpectedly"))),
    };
    let pid = handle.pid() as i32;
    drop((link, handle));
    // An error is harmless: the process has ended already, or is not a child.
    let _ = waitpid(Pid::from_raw(pid), None);
    tried
}

/// The role of the trial: waits until its link closes.
fn wait_for_end(link: OwnedFd) -> i32 {
    i32::from(nix::unistd::read(link, &mut [0]).is_err())
}
