//! The guards of the mounts of a jail, and the attachment of a mount with them.
//!
//! Opens no file. See [`crate::native::rootfs`].

use crate::launcher::wire::{Failure, Part, step};
use crate::sys;
use crate::{Wall, Walls};
use nix::errno::Errno;
use nix::mount::MsFlags;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

/// Returns the flags of a new file system: all guards.
pub(super) fn flags(walls: Walls) -> MsFlags {
    guards(walls).fold(MsFlags::empty(), |all, (_, _, flag)| all | flag)
}

/// Returns the attributes of a mount that lacks at most one guard on purpose.
pub(super) fn attributes(walls: Walls, lacks: Option<Wall>, read_only: bool) -> u64 {
    let read_only = if read_only && walls.has(Wall::ReadOnlyMounts) { libc::MOUNT_ATTR_RDONLY } else { 0 };
    let guards = guards(walls).filter(|(wall, ..)| Some(*wall) != lacks);
    guards.fold(read_only, |all, (_, attribute, _)| all | attribute)
}

/// Returns the guards of every mount of a jail, each as a mount attribute and as a flag of `mount`.
fn guards(walls: Walls) -> impl Iterator<Item = (Wall, u64, MsFlags)> {
    let all = [
        (Wall::NoSetUid, libc::MOUNT_ATTR_NOSUID, MsFlags::MS_NOSUID),
        (Wall::NoDevices, libc::MOUNT_ATTR_NODEV, MsFlags::MS_NODEV),
        (Wall::NoExecution, libc::MOUNT_ATTR_NOEXEC, MsFlags::MS_NOEXEC),
    ];
    all.into_iter().filter(move |(wall, ..)| walls.has(*wall))
}

/// Sets the attributes of a detached mount and attaches it at `place`, which exists below the root.
pub(super) fn attach_mount(
    part: Part,
    root: &OwnedFd,
    place: &str,
    tree: &OwnedFd,
    attributes: u64,
) -> Result<(), Failure> {
    let name = step(part, format!("read the mount point {place:?}"), CString::new(place).map_err(|_| Errno::EINVAL))?;
    step(part, format!("restrict /{place}"), sys::mount_setattr(tree.as_fd(), attributes))?;
    step(part, format!("attach /{place}"), sys::move_mount(tree.as_fd(), root.as_fd(), &name))
}
