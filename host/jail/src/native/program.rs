//! Process 2 of a jail: how it gives up what it has, and becomes the program or plays its role.
//!
//! Never runs an instruction of the program with a right that the program may not have. See [`crate::filter`] and
//! [`crate::landlock`], which it enters here.

use super::rootfs::Site;
use super::{FAILED, Image};
use crate::launcher::wire::{self, Failure, Part, Progress, step};
use crate::sys::{self, Side};
use crate::{Client, Limits, Role, Spec, Wall, Walls, filter, landlock, self_test};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::{Pid, chdir, dup2_stderr, dup2_stdout};
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Forks process 2; gives its process id in here and our end of the gate.
pub(super) fn start(
    spec: &Spec,
    link: OwnedFd,
    launcher: &OwnedFd,
    site: &Site,
    image: Image<'_>,
) -> Result<(Pid, OwnedFd), Failure> {
    let pair = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC);
    let (ours, theirs) = step(Part::Launch, "make the gate", pair)?;
    let told = step(Part::Launch, "copy the launcher's socket", sys::duplicate(launcher))?;
    let root = step(Part::Launch, "copy the root of the jail", sys::duplicate(&site.root))?;
    // A role without a program has its root there twice; both close before it begins.
    let program = sys::duplicate(site.program.as_ref().unwrap_or(&site.root));
    let program = step(Part::Launch, "copy the program", program)?;
    match step(Part::Launch, "fork process 2", image.thread.fork())? {
        Side::Parent(pid) => Ok((Pid::from_raw(pid), ours)),
        Side::Child => {
            let close = image.walls.stand(Wall::Descriptors);
            match sys::keep_only([link, theirs, told, root, program], close) {
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
            sys::exit(play(spec, link, gate, image))
        }
    };
    // A failed send means that the launcher is gone, and with it this process.
    let _ = wire::send(&launcher, &Progress::Failed(failure), None);
    sys::exit(FAILED)
}

/// Becomes the program; returns only when that fails.
fn execute(path: &Path, role: &Role, kept: [&OwnedFd; 2], file: &OwnedFd) -> Failure {
    let kept = kept.into_iter().try_for_each(sys::keep_across_exec);
    if let Err(failure) = step(Part::Launch, "keep link and gate", kept) {
        return failure;
    }
    let error = sys::execute(file, &arguments(path, role));
    let step = format!("execute {}", path.display());
    Failure { part: Part::Program, step, errno: error.raw_os_error().unwrap_or(0) }
}

/// Gives up, in process 2 and before the program runs, everything that can be given up.
fn confine(spec: &Spec, root: &OwnedFd, launcher: &OwnedFd, image: Image<'_>) -> Result<(), Failure> {
    let walls = image.walls;
    if walls.stand(Wall::ParentDeath) {
        step(Part::Launch, "follow the death of process 1", prctl::set_pdeathsig(Signal::SIGKILL))?;
    }
    step(Part::Privileges, "limit resources", limit(&spec.limits, walls))?;
    #[cfg(feature = "failpoints")]
    if !walls.stand(Wall::NoNewPrivileges) {
        return confine_without_no_new_privileges(spec, root, launcher, walls);
    }
    step(Part::Privileges, "set no_new_privs", prctl::set_no_new_privs())?;
    if walls.stand(Wall::Capabilities) {
        step(Part::Privileges, "drop capabilities", sys::drop_capabilities())?;
    }
    let landlock = match walls.stand(Wall::Landlock) {
        true => step(Part::Landlock, "enter a Landlock domain", landlock::restrict(root, spec, true))?,
        false => false,
    };
    let confined = wire::send(launcher, &Progress::Confined { landlock }, None);
    step(Part::Launch, "tell the launcher", confined)?;
    if walls.stand(Wall::Seccomp) {
        for filter in image.filters.of(spec) {
            step(Part::Seccomp, "install the seccomp filter", filter::install(filter))?;
        }
    }
    Ok(())
}

/// Confines in another order: without `no_new_privs` the kernel takes a filter only from a process with a capability.
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
    step(Part::Launch, "tell the launcher", confined)?;
    if walls.stand(Wall::Seccomp) {
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
    let mut raised = all.into_iter().filter(|(wall, ..)| walls.stand(*wall));
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

/// Runs a role in the launcher's own image, behind the gate.
fn play(spec: &Spec, link: OwnedFd, gate: OwnedFd, image: Image<'_>) -> i32 {
    if knock(&gate).is_err() {
        return FAILED;
    }
    drop(gate);
    if let Role::Client(client) = &spec.role {
        return fetch(client, &link);
    }
    let played = catch_unwind(AssertUnwindSafe(|| match &spec.role {
        Role::Reader => (image.entries.reader)(link),
        Role::Probe(probe) => self_test::run(link, probe, spec, image.thread),
        Role::Sandbox { .. } | Role::Client(_) | Role::Noop { .. } => FAILED,
    }));
    played.unwrap_or(FAILED)
}

/// Becomes a program of the machine, with the link as its output. Gives a code only when that fails, and says why on the link.
fn fetch(client: &Client, link: &OwnedFd) -> i32 {
    let string = |text: &str| CString::new(text).expect("a null byte is refused by Client::check");
    let became = || -> std::io::Result<std::convert::Infallible> {
        dup2_stdout(link)?;
        dup2_stderr(link)?;
        chdir(Path::new(&client.directory))?;
        let arguments: Vec<_> = std::iter::once(client.program.as_str())
            .chain(client.args.iter().map(String::as_str))
            .map(string)
            .collect();
        let environment: Vec<_> =
            client.environment.iter().map(|(name, value)| string(&format!("{name}={value}"))).collect();
        Err(sys::execute_path(&string(&client.program), &arguments, &environment))
    };
    let Err(error) = became();
    // If the reader has gone, the reason is not needed either.
    let _ = nix::unistd::write(link, format!("cannot start {}: {error}\n", client.program).as_bytes());
    FAILED
}

fn knock(gate: &OwnedFd) -> nix::Result<()> {
    nix::unistd::write(gate, &[1])?;
    match nix::unistd::read(gate, &mut [0])? {
        1 => Ok(()),
        _ => Err(Errno::EPIPE),
    }
}
