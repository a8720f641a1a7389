//! Process 2 of a jail: it gives up its rights, and then becomes the program or runs its role.
//!
//! It never runs an instruction of the program with a right that the program may not have. See [`crate::filter`] and
//! [`crate::landlock`], which confine it.

use super::rootfs::StagingRoot;
use super::{FAILED, Image};
use crate::client::Streams;
use crate::launcher::wire::{self, Failure, Part, Progress, step};
use crate::sys::{self, Side};
use crate::{Client, Limits, Role, Spec, Wall, Walls, filter, landlock};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout};
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Forks process 2; returns its process id in this namespace and this side's end of the gate.
pub(super) fn start(
    spec: &Spec,
    link: OwnedFd,
    launcher: &OwnedFd,
    staging: &StagingRoot,
    image: Image<'_>,
) -> Result<(Pid, OwnedFd), Failure> {
    let pair = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC);
    let (ours, theirs) = step(Part::Launch, "make the gate", pair)?;
    let notify = step(Part::Launch, "copy the launcher's socket", sys::duplicate(launcher))?;
    let root = step(Part::Launch, "copy the root of the jail", sys::duplicate(&staging.root))?;
    // A role without a program gets the root a second time; it closes both copies before it starts.
    let program = sys::duplicate(staging.program.as_ref().unwrap_or(&staging.root));
    let program = step(Part::Launch, "copy the program", program)?;
    match step(Part::Launch, "fork process 2", image.thread.fork())? {
        Side::Parent(pid) => Ok((Pid::from_raw(pid), ours)),
        Side::Child => {
            let close = image.walls.has(Wall::Descriptors);
            match sys::keep_only([link, theirs, notify, root, program], close) {
                Ok(kept) => become_program(spec, kept, image),
                Err(_) => sys::exit(FAILED),
            }
        }
    }
}

fn become_program(spec: &Spec, kept: [OwnedFd; 5], image: Image<'_>) -> ! {
    let [link, gate, launcher, root, file] = kept;
    let confined = confine(spec, &root, &launcher, image);
    drop(root);
    let failure = match (confined, spec.role.program()) {
        (Err(failure), _) => failure,
        (Ok(()), Some(path)) => execute(path, &spec.role, [&link, &gate], &file),
        (Ok(()), None) => {
            drop((file, launcher));
            sys::exit(run_role(spec, link, gate, image))
        }
    };
    // A failed send means that the launcher is gone; then the kernel kills this process too.
    let _ = wire::send(&launcher, &Progress::Failed(failure), None);
    sys::exit(FAILED)
}

/// Executes the program; returns only if that fails.
fn execute(path: &Path, role: &Role, kept: [&OwnedFd; 2], file: &OwnedFd) -> Failure {
    let kept = kept.into_iter().try_for_each(sys::keep_across_exec);
    if let Err(failure) = step(Part::Launch, "keep link and gate", kept) {
        return failure;
    }
    let error = sys::execute(file, &arguments(path, role));
    let step = format!("execute {}", path.display());
    Failure { part: Part::Program, step, errno: error.raw_os_error().unwrap_or(0) }
}

/// Gives up all rights that process 2 does not need, before the program runs.
fn confine(spec: &Spec, root: &OwnedFd, launcher: &OwnedFd, image: Image<'_>) -> Result<(), Failure> {
    let walls = image.walls;
    if walls.has(Wall::ParentDeath) {
        step(Part::Launch, "follow the death of process 1", prctl::set_pdeathsig(Signal::SIGKILL))?;
    }
    step(Part::Privileges, "limit resources", limit(&spec.limits, walls))?;
    #[cfg(feature = "failpoints")]
    if !walls.has(Wall::NoNewPrivileges) {
        return confine_without_no_new_privileges(spec, root, launcher, walls);
    }
    step(Part::Privileges, "set no_new_privs", prctl::set_no_new_privs())?;
    if walls.has(Wall::Capabilities) {
        let dropped = if walls.bound_early() { sys::drop_held_capabilities() } else { sys::drop_capabilities() };
        step(Part::Privileges, "drop capabilities", dropped)?;
    }
    let landlock = match walls.has(Wall::Landlock) {
        true => step(Part::Landlock, "enter a Landlock domain", landlock::restrict(root, spec, true))?,
        false => false,
    };
    let confined = wire::send(launcher, &Progress::Confined { landlock }, None);
    step(Part::Launch, "notify the launcher", confined)?;
    if walls.has(Wall::Seccomp) {
        for filter in image.filters.for_spec(spec) {
            step(Part::Seccomp, "install the seccomp filter", filter::install(filter))?;
        }
    }
    Ok(())
}

/// Confines in another order. Without `no_new_privs`, the kernel accepts a filter only from a process with a capability.
#[cfg(feature = "failpoints")]
fn confine_without_no_new_privileges(
    spec: &Spec,
    root: &OwnedFd,
    launcher: &OwnedFd,
    walls: Walls,
) -> Result<(), Failure> {
    let landlock = landlock::restrict(root, spec, false);
    let landlock = step(Part::Landlock, "enter a Landlock domain", landlock)?;
    let confined = wire::send(launcher, &Progress::Confined { landlock }, None);
    step(Part::Launch, "notify the launcher", confined)?;
    if walls.has(Wall::Seccomp) {
        for filter in
            step(Part::Seccomp, "compile a seccomp filter", filter::base_before_dropping(spec.system.is_some()))?
        {
            step(Part::Seccomp, "install the seccomp filter", filter::install_with_capability(&filter))?;
        }
    }
    step(Part::Privileges, "drop capabilities", sys::drop_capabilities())
}

fn limit(limits: &Limits, walls: Walls) -> nix::Result<()> {
    let all = [
        (Wall::CoreLimit, Resource::RLIMIT_CORE, 0),
        (Wall::AddressLimit, Resource::RLIMIT_AS, limits.address_space_bytes),
        (Wall::OpenFilesLimit, Resource::RLIMIT_NOFILE, limits.open_files),
        (Wall::ProcessLimit, Resource::RLIMIT_NPROC, limits.processes),
        (Wall::FileSizeLimit, Resource::RLIMIT_FSIZE, limits.file_bytes),
    ];
    let mut raised = all.into_iter().filter(|(wall, ..)| walls.has(*wall));
    raised.try_for_each(|(_, resource, value)| setrlimit(resource, value, value))
}

fn arguments(program: &Path, role: &Role) -> Vec<CString> {
    let rest: &[String] = match role {
        Role::Sandbox { args, .. } => args,
        Role::Client(_) | Role::Reader | Role::Probe(_) | Role::Noop { .. } => &[],
    };
    let name = program.file_name().unwrap_or(program.as_os_str()).as_bytes();
    let all = std::iter::once(name).chain(rest.iter().map(String::as_bytes));
    all.map(|argument| CString::new(argument).expect("a null byte is refused by Spec::check and by open")).collect()
}

/// Runs a role in the launcher's own image, after the gate opens.
fn run_role(spec: &Spec, link: OwnedFd, gate: OwnedFd, image: Image<'_>) -> i32 {
    if pass_gate(&gate).is_err() {
        return FAILED;
    }
    drop(gate);
    if let Role::Client(client) = &spec.role {
        return execute_client(client, &link);
    }
    let code = catch_unwind(AssertUnwindSafe(|| match &spec.role {
        Role::Reader => (image.entries.reader)(link),
        Role::Probe(probe) => image.entries.probe.map_or(FAILED, |run| run(link, probe, spec, image.thread)),
        Role::Sandbox { .. } | Role::Client(_) | Role::Noop { .. } => FAILED,
    }));
    code.unwrap_or(FAILED)
}

/// Executes a client, with the link as its streams. Returns a code only if that fails, and writes the reason to standard error.
fn execute_client(client: &Client, link: &OwnedFd) -> i32 {
    let string = |text: &str| CString::new(text).expect("a null byte is refused by Client::check");
    let became = || -> std::io::Result<std::convert::Infallible> {
        attach_streams(&client.streams, link)?;
        chdir(Path::new(&client.directory))?;
        let arguments: Vec<_> = std::iter::once(client.program.as_str())
            .chain(client.args.iter().map(String::as_str))
            .map(string)
            .collect();
        let environment: Vec<_> =
            client.environment.iter().map(|(name, value)| string(&format!("{name}={}", value.expose()))).collect();
        Err(sys::execute_path(&string(&client.program), &arguments, &environment))
    };
    let Err(error) = became();
    // If the other end is closed, the reason is not needed.
    let _ = nix::unistd::write(std::io::stderr(), format!("cannot start {}: {error}\n", client.program).as_bytes());
    FAILED
}

fn attach_streams(streams: &Streams, link: &OwnedFd) -> nix::Result<()> {
    match streams {
        Streams::Output => dup2_stderr(link)?,
        Streams::Both { errors } => {
            let flags = OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
            let file = open(errors.as_str(), flags | OFlag::O_NOFOLLOW, Mode::S_IRUSR | Mode::S_IWUSR)?;
            dup2_stderr(&file)?;
            dup2_stdin(link)?;
        }
    }
    dup2_stdout(link)
}

fn pass_gate(gate: &OwnedFd) -> nix::Result<()> {
    nix::unistd::write(gate, &[1])?;
    match nix::unistd::read(gate, &mut [0])? {
        1 => Ok(()),
        _ => Err(Errno::EPIPE),
    }
}
