//! The processes of a jail: process 1, which builds it, and process 2, which becomes the program.
//!
//! The program is confined before its first instruction, and gets no input before the host's root is detached. This code runs only
//! in processes that the launcher cloned. See [`crate::native::program`] for process 2.
//!
//! Process 1 begins without a spec and waits for it. A jail in stock is a process 1 that waits: it has its namespaces, and no part of a
//! session. All other steps come after the spec, so they are the same for a jail from stock and for one on demand.
//!
//! The order of the steps is essential:
//! 1. Process 1 opens the files of the host that the jail needs. Then it covers `/proc` with an empty root and attaches the mounts
//!    there.
//! 2. Process 2 gives up all rights that it can give up and executes the program. The program loads its libraries from the host's
//!    root and writes a byte to the gate.
//! 3. Process 1 pivots. The kernel moves every process of the mount namespace that was in the old root. So process 2 moves too,
//!    although its own rules forbid it to pivot.
//! 4. Process 1 gives up its rights too and opens the gate. From then on it only reaps.

mod browser_mounts;
mod client_mounts;
mod guards;
mod listener;
pub(crate) mod overlay;
mod program;
pub(crate) mod rootfs;
mod system_mounts;

use super::filter::{self, Program};
use super::{Probe, Role, Spec, Wall, Walls};
use crate::launcher::wire::{self, Exit, Failure, Part, Progress, step};
use crate::sys::{self, OneThread};
use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, chdir, dup2_stderr, fchdir, pivot_root};
use rootfs::StagingRoot;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Returns the flags of the namespaces of a jail. The mount namespace is always one of them, because the root is built in it. A test
/// leaves out that wall by leaving out the pivot.
pub(crate) fn namespaces(walls: Walls) -> libc::c_int {
    let others = [
        (Wall::UserNamespace, libc::CLONE_NEWUSER),
        (Wall::PidNamespace, libc::CLONE_NEWPID),
        (Wall::NetworkNamespace, libc::CLONE_NEWNET),
        (Wall::IpcNamespace, libc::CLONE_NEWIPC),
        (Wall::UtsNamespace, libc::CLONE_NEWUTS),
        (Wall::CgroupNamespace, libc::CLONE_NEWCGROUP),
    ];
    let raised = others.into_iter().filter(|(wall, _)| walls.has(*wall));
    raised.fold(libc::CLONE_NEWNS, |all, (_, flag)| all | flag)
}

/// Signals that the launcher ignores. Its children must not ignore them.
pub(crate) const LAUNCHER_IGNORES: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGPIPE];

/// Exit code of a process 1 that could not build its jail, or of a role that panicked.
const FAILED: i32 = 101;

/// The highest possible `oom_score_adj`.
const FIRST_VICTIM: &str = "1000";

/// The program of a probe: takes its link, what it tries, its jail, and the proof that it may fork; returns its exit code.
pub type ProbeProgram = fn(OwnedFd, &Probe, &Spec, &OneThread) -> i32;

/// Roles without a program of their own: functions of this image that run after the gate opens.
#[derive(Debug, Clone, Copy)]
pub struct Entries {
    /// The reader of a session's outbound queue: takes its link, returns its exit code.
    pub reader: fn(OwnedFd) -> i32,
    /// The probe; a launcher without one makes no proof.
    pub probe: Option<ProbeProgram>,
}

/// Arguments of process 1.
pub(crate) struct InitArgs<'a> {
    pub(crate) launcher: OwnedFd,
    pub(crate) thread: &'a OneThread,
    pub(crate) entries: Entries,
    pub(crate) filters: &'a Filters,
    /// The wall that a test build leaves out.
    pub(crate) missing: Option<Wall>,
}

/// The seccomp programs, compiled once by the launcher.
pub(crate) struct Filters {
    program: [Program; 2],
    /// Without a network, and with one.
    client: [[Program; 2]; 2],
    /// For a jail that has the host's programs.
    with_system: [Program; 2],
    with_listener: [Program; 2],
    /// Without a listener, and with one.
    browser: [[Program; 2]; 2],
    init: Program,
}

impl Filters {
    /// Returns the filters for the program of a jail.
    fn for_spec(&self, spec: &Spec) -> &[Program; 2] {
        if spec.has_browser() {
            return &self.browser[usize::from(spec.listener.is_some())];
        }
        if spec.listener.is_some() {
            return &self.with_listener;
        }
        if spec.system.is_some() {
            return &self.with_system;
        }
        match &spec.role {
            Role::Client(client) => &self.client[usize::from(client.network.is_some())],
            Role::Sandbox { .. } | Role::Reader | Role::Probe(_) | Role::Noop { .. } => &self.program,
        }
    }

    /// Compiles them for this machine.
    pub(crate) fn compile() -> io::Result<Self> {
        let client = [filter::client(false)?, filter::client(true)?];
        let browser = [filter::browser(false)?, filter::browser(true)?];
        Ok(Self {
            program: filter::base(false)?,
            client,
            with_system: filter::base(true)?,
            with_listener: filter::with_listener()?,
            browser,
            init: filter::init()?,
        })
    }
}

/// Runs process 1 of a jail, from its first instruction to its end.
pub(crate) fn init(arguments: InitArgs<'_>) -> ! {
    let InitArgs { launcher, thread, entries, filters, missing } = arguments;
    let walls = Walls::for_every_role(missing);
    // If memory runs out, the kernel kills a jail before a process of the host. A failure here does no harm.
    let _ = std::fs::write("/proc/self/oom_score_adj", FIRST_VICTIM);
    let kept = sys::keep_only([launcher], walls.has(Wall::Descriptors));
    let Ok([launcher]) = kept else { sys::exit(FAILED) };
    let lived = await_spec(&launcher, walls).and_then(|(spec, link)| {
        let walls = Walls::around(&spec.role, missing);
        let staging = rootfs::build(&spec, &launcher, walls)?;
        let image = Image { thread, entries, filters, walls };
        let (program, gate) = program::start(&spec, link, &launcher, &staging, image)?;
        close(&spec, &launcher, &staging, program, gate, image)
    });
    let (last, code) = match lived {
        Ok(exit @ Exit::Code(code)) => (Progress::Ended(exit), code),
        Ok(exit @ Exit::Signal(signal)) => (Progress::Ended(exit), 128 + signal),
        Err(failure) => (Progress::Failed(failure), FAILED),
    };
    // If the launcher is gone, the kernel is already killing this process.
    let _ = wire::send(&launcher, &last, None);
    sys::exit(code)
}

/// Prepares process 1 as far as no spec is needed, and waits for the spec and the link. The launcher sends them when the ids are mapped.
fn await_spec(launcher: &OwnedFd, walls: Walls) -> Result<(Spec, OwnedFd), Failure> {
    step(Part::Launch, "name process 1 in stock", prctl::set_name(c"ic-stock"))?;
    for signal in LAUNCHER_IGNORES {
        step(Part::Launch, "reset signals", sys::ignore(signal, false))?;
    }
    if walls.has(Wall::StandardStreams) {
        step(Part::Launch, "close standard error", nix::unistd::dup(io::stdin()).and_then(dup2_stderr))?;
    }
    if walls.bound_early() {
        step(Part::Privileges, "drop the bounding set of process 1", sys::drop_bounding_capabilities())?;
    }
    // If the launcher died before this call, its socket is closed and the wait below fails.
    if walls.has(Wall::ParentDeath) {
        step(Part::Launch, "follow the launcher's death", prctl::set_pdeathsig(Signal::SIGKILL))?;
    }
    let received = step(Part::Launch, "wait for the launcher", wire::receive::<Spec>(launcher))?;
    step(Part::Launch, "name process 1", prctl::set_name(c"ic-init"))?;
    let given = received.and_then(|received| Some((received.message, received.descriptor?)));
    step(Part::Launch, "receive the spec and the link", given.ok_or(Errno::EPIPE))
}

/// Parts of the launcher's image that the processes of a jail use.
#[derive(Clone, Copy)]
struct Image<'a> {
    thread: &'a OneThread,
    entries: Entries,
    filters: &'a Filters,
    walls: Walls,
}

/// Closes the jail when the program is at its gate, and waits for its end.
fn close(
    spec: &Spec,
    launcher: &OwnedFd,
    staging: &StagingRoot,
    program: Pid,
    gate: OwnedFd,
    image: Image<'_>,
) -> Result<Exit, Failure> {
    let (walls, root) = (image.walls, &staging.root);
    let knocked = step(Part::Program, "wait at the gate", nix::unistd::read(&gate, &mut [0]))? == 1;
    if !knocked && !matches!(spec.role, Role::Noop { .. }) {
        let exit = step(Part::Launch, "wait for the program", watch(program))?;
        return Err(Failure {
            part: Part::Program,
            step: format!("start the program, which {exit} before it reached its gate"),
            errno: 0,
        });
    }
    if walls.has(Wall::Root) {
        step(Part::Root, "enter the root of the jail", fchdir(root))?;
        step(Part::Root, "pivot into the root of the jail", pivot_root(".", "."))?;
        // The old root is now mounted over the new one.
        step(Part::Root, "detach the host's root", umount2(".", MntFlags::MNT_DETACH))?;
        step(Part::Root, "enter the new root", chdir("/"))?;
        step(Part::Root, "inspect the root of the jail", inspect_root(&staging.names))?;
    }
    if walls.has(Wall::ReadOnlyRoot) {
        step(Part::Root, "make the root read-only", sys::mount_setattr(root.as_fd(), libc::MOUNT_ATTR_RDONLY))?;
    }
    if walls.has(Wall::InitCapabilities) {
        let dropped = if walls.bound_early() { sys::drop_held_capabilities() } else { sys::drop_capabilities() };
        step(Part::Privileges, "drop the capabilities of process 1", dropped)?;
    }
    if walls.has(Wall::InitSeccomp) {
        step(Part::Privileges, "set no_new_privs of process 1", prctl::set_no_new_privs())?;
        step(Part::Seccomp, "install the seccomp filter of process 1", filter::install(&image.filters.init))?;
    }
    step(Part::Launch, "report that the jail is closed", wire::send(launcher, &Progress::Closed, None))?;
    match nix::unistd::write(&gate, &[1]) {
        Err(Errno::EPIPE) | Ok(_) => {} // the program ended meanwhile and is reaped below
        Err(errno) => {
            return Err(Failure { part: Part::Launch, step: "open the gate".into(), errno: errno as i32 });
        }
    }
    drop(gate);
    step(Part::Launch, "wait for the program", watch(program))
}

/// Checks that the root has exactly these names; otherwise the jail differs from the spec.
fn inspect_root(names: &BTreeSet<OsString>) -> io::Result<()> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir("/")? {
        found.insert(entry?.file_name());
    }
    if found == *names { Ok(()) } else { Err(Errno::EXDEV.into()) }
}

/// Reaps the processes of the jail until `program` ends.
fn watch(program: Pid) -> nix::Result<Exit> {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == program => return Ok(Exit::Code(code)),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == program => {
                return Ok(Exit::Signal(signal as i32));
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
