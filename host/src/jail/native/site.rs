//! The root of a jail, from nothing to complete: what process 1 does before there is a process 2.
//!
//! Uses the host's paths once, at the beginning; later everything goes by descriptor. Next: `program`.

use super::{LAUNCHER_IGNORES, view};
use crate::jail::{HOSTNAME, INNER_ID, Mount, Role, Spec, Wall, Walls};
use crate::launcher::wire::{Failure, Part, step};
use crate::sys;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, fstatat, mkdirat};
use nix::unistd::{Gid, Uid, chdir, dup2_stderr, sethostname, setresgid, setresuid};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Where the new root is built: always there, because the launcher has just written below it, and
/// nothing of the jail needs what it covers.
const CONSTRUCTION_SITE: &str = "/proc";
/// Who owns the root of a jail, as seen in it.
const ROOT_OPTIONS: &str = "mode=0755,uid=1000,gid=1000";
/// Room for the mount points and nothing else: bytes and files.
pub(crate) const ROOT_ROOM: (u64, u64) = (64 * 1024, 64);

/// The new root, complete but not yet in place.
pub(super) struct Site {
    pub(super) root: OwnedFd,
    pub(super) program: Option<OwnedFd>,
}

/// Builds the root, with everything that the jail needs of the host open or attached.
pub(super) fn build(spec: &Spec, launcher: &OwnedFd, walls: Walls) -> Result<Site, Failure> {
    step(Part::Launch, "name process 1", prctl::set_name(c"ic-init"))?;
    for signal in LAUNCHER_IGNORES {
        step(Part::Launch, "reset signals", sys::ignore(signal, false))?;
    }
    if walls.stand(Wall::StandardStreams) {
        step(Part::Launch, "close standard error", nix::unistd::dup(io::stdin()).and_then(dup2_stderr))?;
    }
    step(Part::Launch, "wait for the launcher", wait_to_begin(launcher))?;
    let nowhere = None::<&str>;
    step(
        Part::Root,
        "make mounts private",
        mount(nowhere, "/", nowhere, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nowhere),
    )?;
    // As root this is the last moment with root's view of its own files, and the host's paths are
    // used here only: later everything goes by descriptor.
    let mut trees = Vec::with_capacity(spec.mounts.len());
    for mount in &spec.mounts {
        let name = format!("mount source {} for {}", mount.source.display(), mount.target);
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let directory =
            open(&mount.source, flags, Mode::empty()).map_err(|errno| refused_source(&name, &mount.source, errno))?;
        trees.push(step(Part::Source, format!("copy {name}"), sys::open_tree(directory.as_fd()))?);
    }
    let sights = match &spec.role {
        Role::Client(client) => view::open(client)?,
        Role::Sandbox { .. } | Role::Reader | Role::Probe(_) | Role::Noop { .. } => Vec::new(),
    };
    let program = match spec.role.program() {
        Some(path) => {
            let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
            Some(step(Part::Program, format!("open the program {}", path.display()), open(path, flags, Mode::empty()))?)
        }
        None => None,
    };
    let flags = guards(walls).map(|(_, flag)| flag).fold(MsFlags::empty(), |all, flag| all | flag);
    let options = match walls.stand(Wall::RootSize) {
        true => format!("{ROOT_OPTIONS},size={},nr_inodes={}", ROOT_ROOM.0, ROOT_ROOM.1),
        false => ROOT_OPTIONS.to_owned(),
    };
    step(
        Part::Root,
        "mount the root of the jail",
        mount(Some("ironclaw"), CONSTRUCTION_SITE, Some("tmpfs"), flags, Some(options.as_str())),
    )?;
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let root = step(Part::Root, "open the root of the jail", open(CONSTRUCTION_SITE, flags, Mode::empty()))?;
    // Root's own uid does not exist in this user namespace and so cannot create a file in it.
    if walls.stand(Wall::UserNamespace) {
        step(Part::Ids, "take the gid of the jail", setresgid(gid(), gid(), gid()))?;
        step(Part::Ids, "take the uid of the jail", setresuid(uid(), uid(), uid()))?;
    }
    // A change of uid clears this signal, so it is set behind the last one; and a launcher that
    // died before that is noticed by its closed socket.
    if walls.stand(Wall::ParentDeath) {
        step(Part::Launch, "follow the launcher's death", prctl::set_pdeathsig(Signal::SIGKILL))?;
    }
    step(Part::Launch, "look for the launcher", still_there(launcher))?;
    for (mount, tree) in spec.mounts.iter().zip(&trees) {
        attach(&root, mount, tree, walls)?;
    }
    if let Role::Client(client) = &spec.role {
        view::attach(&root, client, &sights)?;
    }
    // Without a namespace of its own this name would be the host's.
    if walls.stand(Wall::UtsNamespace) {
        step(Part::Root, "set the host name", sethostname(HOSTNAME))?;
    }
    step(Part::Root, "leave the working directory", chdir("/"))?;
    Ok(Site { root, program })
}

/// What every mount of a jail has, as its attribute and as a flag of `mount`.
fn guards(walls: Walls) -> impl Iterator<Item = (u64, MsFlags)> {
    let all = [
        (Wall::NoSetUid, libc::MOUNT_ATTR_NOSUID, MsFlags::MS_NOSUID),
        (Wall::NoDevices, libc::MOUNT_ATTR_NODEV, MsFlags::MS_NODEV),
        (Wall::NoExecution, libc::MOUNT_ATTR_NOEXEC, MsFlags::MS_NOEXEC),
    ];
    all.into_iter().filter(move |(wall, ..)| walls.stand(*wall)).map(|(_, attribute, flag)| (attribute, flag))
}

fn attach(root: &OwnedFd, mount: &Mount, tree: &OwnedFd, walls: Walls) -> Result<(), Failure> {
    let named = mount.name().and_then(|name| CString::new(name).ok());
    let name = step(Part::Root, format!("read the mount target {:?}", mount.target), named.ok_or(Errno::EINVAL))?;
    let guards = guards(walls).fold(0, |all, (attribute, _)| all | attribute);
    let read_only = mount.read_only && walls.stand(Wall::ReadOnlyMounts);
    let attributes = guards | if read_only { libc::MOUNT_ATTR_RDONLY } else { 0 };
    step(Part::Root, format!("make {}", mount.target), mkdirat(root, name.as_c_str(), Mode::S_IRWXU))?;
    step(Part::Root, format!("restrict {}", mount.target), sys::mount_setattr(tree.as_fd(), attributes))?;
    step(Part::Root, format!("attach {}", mount.target), sys::move_mount(tree.as_fd(), root.as_fd(), &name))
}

/// Waits for the launcher's byte: our ids are mapped. Its hang-up is an error.
fn wait_to_begin(launcher: &OwnedFd) -> nix::Result<()> {
    match nix::unistd::read(launcher, &mut [0])? {
        1 => Ok(()),
        _ => Err(Errno::EPIPE),
    }
}

fn still_there(launcher: &OwnedFd) -> nix::Result<()> {
    let mut watched = [PollFd::new(launcher.as_fd(), PollFlags::empty())];
    match poll(&mut watched, PollTimeout::ZERO)? {
        0 => Ok(()),
        _ => Err(Errno::EPIPE),
    }
}

/// Says what is wrong with a mount source as far as it can be seen.
fn refused_source(name: &str, source: &Path, errno: Errno) -> Failure {
    let link = fstatat(nix::fcntl::AT_FDCWD, source, AtFlags::AT_SYMLINK_NOFOLLOW)
        .is_ok_and(|found| found.st_mode & libc::S_IFMT == libc::S_IFLNK);
    let step = if link { format!("open {name}, which is a symbolic link") } else { format!("open {name}") };
    Failure { part: Part::Source, step, errno: errno as i32 }
}

fn uid() -> Uid {
    Uid::from_raw(INNER_ID)
}

fn gid() -> Gid {
    Gid::from_raw(INNER_ID)
}
