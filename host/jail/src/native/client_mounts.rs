//! Bind mounts of a client: opened by the host's paths, attached in the jail by descriptor, read-only.
//!
//! Only the machine's programs are executable. See [`crate::native::rootfs`].

use super::guards::attach_mount;
use super::overlay;
use crate::client::{Client, Kind};
use crate::launcher::wire::{Failure, Part, step};
use crate::sys;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, fstat, mkdirat};
use nix::unistd::symlinkat;
use std::os::fd::{AsFd, OwnedFd};

/// An open bind mount, not attached yet.
pub(super) struct Open {
    tree: OwnedFd,
    is_directory: bool,
}

/// Opens the bind mounts of a client, in their order.
pub(super) fn open(client: &Client) -> Result<Vec<Open>, Failure> {
    let open = |mount: &crate::client::BindMount| {
        let name = format!("{} for {}", mount.source.display(), mount.target);
        let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
        let found = nix::fcntl::open(&mount.source, flags, Mode::empty());
        let found = step(Part::Source, format!("open {name}"), found)?;
        let mode = step(Part::Source, format!("inspect {name}"), fstat(&found))?.st_mode;
        let is_directory = mode & libc::S_IFMT == libc::S_IFDIR;
        let tree = match mount.kind {
            Kind::Programs if is_directory => overlay::each(Part::Source, &[&found])?.remove(0),
            Kind::Programs | Kind::Data | Kind::Device => {
                step(Part::Source, format!("copy {name}"), sys::open_tree(found.as_fd()))?
            }
        };
        Ok(Open { tree, is_directory })
    };
    client.bind_mounts.iter().map(open).collect()
}

/// Attaches the bind mounts in the root, and makes the links.
pub(super) fn attach(root: &OwnedFd, client: &Client, opened: &[Open]) -> Result<(), Failure> {
    for (mount, Open { tree, is_directory }) in client.bind_mounts.iter().zip(opened) {
        let target = mount.target.trim_start_matches('/');
        step(Part::Root, format!("make {}", mount.target), make_mount_point(root, target, *is_directory))?;
        let always = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID;
        let attributes = match mount.kind {
            Kind::Programs => always | libc::MOUNT_ATTR_NODEV,
            Kind::Data => always | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC,
            Kind::Device => always | libc::MOUNT_ATTR_NOEXEC,
        };
        attach_mount(Part::Root, root, target, tree, attributes)?;
    }
    for (name, target) in &client.links {
        step(Part::Root, format!("make the link {name}"), symlinkat(target.as_str(), root, name.as_str()))?;
    }
    Ok(())
}

/// Makes an empty file or directory as a mount point, with the directories above it.
fn make_mount_point(root: &OwnedFd, target: &str, is_directory: bool) -> nix::Result<()> {
    let ends = target.match_indices('/').map(|(end, _)| end).chain(is_directory.then_some(target.len()));
    for end in ends {
        match mkdirat(root, &target[..end], Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    if !is_directory {
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        drop(openat(root, target, flags, Mode::S_IRUSR)?);
    }
    Ok(())
}
