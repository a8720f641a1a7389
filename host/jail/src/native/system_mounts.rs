//! The mounts of the host's programs in the root of a jail.
//!
//! All files are opened before the host's root is covered, and the jail can write to none of them. See
//! [`crate::native::rootfs`].

use super::guards::{self, attach_mount};
use super::overlay;
use crate::launcher::wire::{Failure, Part, step};
use crate::sys;
use crate::system::{ALTERNATIVES, DEVICES, GROUP, Names, PASSWD, System, TMP_ROOM};
use crate::{Wall, Walls};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::mount::mount;
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::symlinkat;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

const DIRECTORY: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Detached mounts of files of the host.
pub(super) struct SystemMounts {
    names: Names,
    /// Each with its mount point below the root, and the guard that it lacks on purpose.
    trees: Vec<(&'static str, OwnedFd, Option<Wall>)>,
}

impl SystemMounts {
    /// Opens the files while the host's paths are reachable.
    pub(super) fn open(system: &System) -> Result<Self, Failure> {
        let names = Names::read(Path::new("/")).map_err(|why| Failure {
            part: Part::System,
            step: format!("mount the programs of this machine, because {why}"),
            errno: 0,
        })?;
        let host = step(Part::System, "open /usr", open("/usr", DIRECTORY, Mode::empty()))?;
        let alternatives = match names.alternatives {
            true => Some(step(
                Part::System,
                format!("open /{ALTERNATIVES}"),
                open(&Path::new("/").join(ALTERNATIVES), DIRECTORY, Mode::empty()),
            )?),
            false => None,
        };
        let directories: Vec<&OwnedFd> =
            system.layer.is_none().then_some(&host).into_iter().chain(&alternatives).collect();
        let mut own = overlay::each(Part::System, &directories)?.into_iter();
        let usr = match &system.layer {
            None => own.next().expect("one file system is made from each directory"),
            Some(layer) => {
                let name = format!("lay {} over /usr", layer.display());
                step(Part::System, name, open_layer(layer).and_then(|layer| overlay::stack(&[&layer, &host])))?
            }
        };
        let mut trees = vec![("usr", usr, Some(Wall::NoExecution))];
        for device in DEVICES {
            let file = open(&Path::new("/").join(device), OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty());
            let tree = file.map_err(io::Error::from).and_then(|file| sys::open_tree(file.as_fd()));
            let tree = step(Part::System, format!("copy the mount of /{device}"), tree)?;
            trees.push((device, tree, Some(Wall::NoDevices)));
        }
        trees.extend(own.map(|tree| (ALTERNATIVES, tree, None)));
        Ok(Self { names, trees })
    }

    /// Attaches the mounts below `root`, which is mounted at `staging`.
    pub(super) fn attach(self, root: &OwnedFd, staging: &str, walls: Walls) -> Result<Names, Failure> {
        for directory in ["usr", "dev", "etc", "tmp"] {
            let mode = Mode::S_IRWXU | Mode::S_IRGRP | Mode::S_IXGRP | Mode::S_IROTH | Mode::S_IXOTH;
            step(Part::System, format!("make /{directory}"), mkdirat(root, directory, mode))?;
        }
        for (name, target) in &self.names.links {
            step(Part::System, format!("link /{name}"), symlinkat(target, root, name.as_str()))?;
        }
        step(Part::System, "write /etc/passwd", write(root, "etc/passwd", PASSWD))?;
        step(Part::System, "write /etc/group", write(root, "etc/group", GROUP))?;
        for (place, tree, lacks) in &self.trees {
            let target = match *place {
                ALTERNATIVES => mkdirat(root, *place, Mode::S_IRWXU).map_err(io::Error::from),
                "usr" => Ok(()),
                device => write(root, device, ""),
            };
            step(Part::System, format!("make /{place}"), target)?;
            attach_mount(Part::System, root, place, tree, guards::attributes(walls, *lacks, true))?;
        }
        let options = format!("mode=0700,uid=1000,gid=1000,size={},nr_inodes={}", TMP_ROOM.0, TMP_ROOM.1);
        let at = format!("{staging}/tmp");
        let mounted = mount(Some("ironclaw"), at.as_str(), Some("tmpfs"), guards::flags(walls), Some(options.as_str()));
        step(Part::System, "mount /tmp", mounted)?;
        Ok(self.names)
    }
}

/// Opens the directory that is laid over `/usr`; no link of the layer is followed.
fn open_layer(layer: &Path) -> io::Result<OwnedFd> {
    let layer = open(layer, DIRECTORY, Mode::empty())?;
    let how = OpenHow::new().flags(DIRECTORY).resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
    Ok(openat2(&layer, "usr", how)?)
}

pub(super) fn write(root: &OwnedFd, name: &str, content: &str) -> io::Result<()> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mode = Mode::S_IRUSR | Mode::S_IWUSR | Mode::S_IRGRP | Mode::S_IROTH;
    let file = openat(root, name, flags, mode).map_err(|errno: Errno| io::Error::from(errno))?;
    File::from(file).write_all(content.as_bytes())
}
