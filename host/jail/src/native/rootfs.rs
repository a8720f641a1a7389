//! The root of a jail. Process 1 builds it before there is a process 2.
//!
//! It uses the host's paths only at the beginning; later everything goes by descriptor. See [`crate::native::program`].

use super::browser_mounts::BrowserMounts;
use super::guards::{self, attach_mount};
use super::system_mounts::SystemMounts;
use super::{client_mounts, listener};
use crate::launcher::wire::{Failure, Part, step};
use crate::sys;
use crate::{HOSTNAME, INNER_ID, Mount, Role, Spec, Wall, Walls};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, fstatat, mkdirat};
use nix::unistd::{Gid, Uid, chdir, sethostname, setresgid, setresuid};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Directory where the new root is built. It always exists, because the launcher has just written a file below it, and no process of
/// the jail needs its files.
const STAGING_MOUNT: &str = "/proc";
/// Mount options of the root: mode and owner, with the ids of the jail.
const ROOT_OPTIONS: &str = "mode=0755,uid=1000,gid=1000";
/// Room for the mount points and no other files: bytes and inodes.
pub(crate) const ROOT_ROOM: (u64, u64) = (64 * 1024, 64);

/// The complete new root before the pivot.
pub(super) struct StagingRoot {
    pub(super) root: OwnedFd,
    pub(super) program: Option<OwnedFd>,
    pub(super) names: BTreeSet<OsString>,
}

/// Builds the root, and opens or attaches all files of the host that the jail needs.
pub(super) fn build(spec: &Spec, launcher: &OwnedFd, walls: Walls) -> Result<StagingRoot, Failure> {
    let nowhere = None::<&str>;
    step(
        Part::Root,
        "make mounts private",
        mount(nowhere, "/", nowhere, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nowhere),
    )?;
    // As root, this is the last moment with root's access to its own files. The host's paths are used only here; later everything goes
    // by descriptor.
    let opened = Opened::open(spec)?;
    let root = mount_root(walls)?;
    take_ids(walls)?;
    // A change of uid clears this signal, so it is set again after the last change. If the launcher died before that, its socket is closed.
    if walls.has(Wall::ParentDeath) {
        step(Part::Launch, "follow the launcher's death", prctl::set_pdeathsig(Signal::SIGKILL))?;
    }
    step(Part::Launch, "check the launcher", is_alive(launcher))?;
    listener::pass(spec, launcher, walls)?;
    let (program, names) = opened.attach(spec, &root, walls)?;
    // Without a namespace of its own, this would change the name of the host.
    if walls.has(Wall::UtsNamespace) {
        step(Part::Root, "set the host name", sethostname(HOSTNAME))?;
    }
    step(Part::Root, "leave the working directory", chdir("/"))?;
    Ok(StagingRoot { root, program, names })
}

/// The files of the host that the jail needs, opened before the host's paths are out of reach.
struct Opened {
    /// A copy of each mount, in the order of the spec.
    trees: Vec<OwnedFd>,
    bind_mounts: Vec<client_mounts::Open>,
    system_mounts: Option<SystemMounts>,
    browser_mounts: Option<BrowserMounts>,
    program: Option<OwnedFd>,
}

impl Opened {
    /// Opens them by the host's paths.
    fn open(spec: &Spec) -> Result<Self, Failure> {
        let mut trees = Vec::with_capacity(spec.mounts.len());
        for mount in &spec.mounts {
            let name = format!("mount source {} for {}", mount.source.display(), mount.target);
            let directory = open_source(mount).map_err(|errno| refused_source(&name, mount, errno))?;
            trees.push(step(Part::Source, format!("copy {name}"), sys::open_tree(directory.as_fd()))?);
        }
        let bind_mounts = match &spec.role {
            Role::Client(client) => client_mounts::open(client)?,
            Role::Sandbox { .. } | Role::Reader | Role::Probe(_) | Role::Noop { .. } => Vec::new(),
        };
        let system_mounts = spec.system.as_ref().map(SystemMounts::open).transpose()?;
        let browser_mounts = spec.has_browser().then(BrowserMounts::open).transpose()?;
        let program = match spec.role.program() {
            Some(path) => {
                let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
                let opened = open(path, flags, Mode::empty());
                Some(step(Part::Program, format!("open the program {}", path.display()), opened)?)
            }
            None => None,
        };
        Ok(Self { trees, bind_mounts, system_mounts, browser_mounts, program })
    }

    /// Attaches them below the root; returns the program and all names in the root.
    fn attach(
        self,
        spec: &Spec,
        root: &OwnedFd,
        walls: Walls,
    ) -> Result<(Option<OwnedFd>, BTreeSet<OsString>), Failure> {
        for (mount, tree) in spec.mounts.iter().zip(&self.trees) {
            attach(root, mount, tree, walls)?;
        }
        let mut names: BTreeSet<OsString> = spec.mounts.iter().filter_map(Mount::name).map(OsString::from).collect();
        if let Some(system_mounts) = self.system_mounts {
            let attached = system_mounts.attach(root, STAGING_MOUNT, walls)?;
            names.extend(attached.in_root().map(OsString::from));
        }
        if let Some(browser_mounts) = self.browser_mounts {
            names.insert(browser_mounts.attach(root, STAGING_MOUNT, walls)?.into());
        }
        if let Role::Client(client) = &spec.role {
            client_mounts::attach(root, client, &self.bind_mounts)?;
            names.extend(client.names().map(OsString::from));
        }
        Ok((self.program, names))
    }
}

/// Mounts the empty root of the jail, with the guards of every mount, and opens it.
fn mount_root(walls: Walls) -> Result<OwnedFd, Failure> {
    let options = match walls.has(Wall::RootSize) {
        true => format!("{ROOT_OPTIONS},size={},nr_inodes={}", ROOT_ROOM.0, ROOT_ROOM.1),
        false => ROOT_OPTIONS.to_owned(),
    };
    step(
        Part::Root,
        "mount the root of the jail",
        mount(Some("ironclaw"), STAGING_MOUNT, Some("tmpfs"), guards::flags(walls), Some(options.as_str())),
    )?;
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    step(Part::Root, "open the root of the jail", open(STAGING_MOUNT, flags, Mode::empty()))
}

/// Takes the ids of the jail. Root's own uid does not exist in this user namespace, so it could not create a file there.
fn take_ids(walls: Walls) -> Result<(), Failure> {
    if walls.has(Wall::UserNamespace) {
        let (uid, gid) = (Uid::from_raw(INNER_ID), Gid::from_raw(INNER_ID));
        step(Part::Ids, "take the gid of the jail", setresgid(gid, gid, gid))?;
        step(Part::Ids, "take the uid of the jail", setresuid(uid, uid, uid))?;
    }
    Ok(())
}

fn attach(root: &OwnedFd, mount: &Mount, tree: &OwnedFd, walls: Walls) -> Result<(), Failure> {
    let named = mount.name().ok_or(Errno::EINVAL);
    let name = step(Part::Root, format!("read the mount target {:?}", mount.target), named)?;
    step(Part::Root, format!("make {}", mount.target), mkdirat(root, name, Mode::S_IRWXU))?;
    attach_mount(Part::Root, root, name, tree, guards::attributes(walls, None, mount.read_only))
}

fn is_alive(launcher: &OwnedFd) -> nix::Result<()> {
    let mut watched = [PollFd::new(launcher.as_fd(), PollFlags::empty())];
    match poll(&mut watched, PollTimeout::ZERO)? {
        0 => Ok(()),
        _ => Err(Errno::EPIPE),
    }
}

/// Opens a mount source. No component of a granted path may be a link, because the person approved exactly this path.
fn open_source(mount: &Mount) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    match mount.granted {
        true => {
            let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
            openat2(AT_FDCWD, &mount.source, how)
        }
        false => open(&mount.source, flags, Mode::empty()),
    }
}

/// Describes the fault of a mount source, as far as it is visible.
fn refused_source(name: &str, mount: &Mount, errno: Errno) -> Failure {
    let is_link = |path: &Path| {
        fstatat(AT_FDCWD, path, AtFlags::AT_SYMLINK_NOFOLLOW)
            .is_ok_and(|found| found.st_mode & libc::S_IFMT == libc::S_IFLNK)
    };
    // The outermost link is the first one on the path.
    let link =
        mount.source.ancestors().take(if mount.granted { usize::MAX } else { 1 }).filter(|at| is_link(at)).last();
    let step = match link {
        Some(link) if link == mount.source => format!("open {name}, which is a symbolic link"),
        Some(link) => format!("open {name}, because {} is a symbolic link", link.display()),
        None => format!("open {name}"),
    };
    Failure { part: Part::Source, step, errno: errno as i32 }
}
