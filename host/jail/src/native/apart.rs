//! Directories of the machine as read-only file systems of their own: a lock that is taken in a jail holds on those, not on the
//! machine's files.
//!
//! Shows what is there and nothing else. A later replacement on the machine is seen by the next jail, so only the machine's
//! programs are shown like this and no directory that people granted. See [`crate::native::system_mounts`] and
//! [`crate::native::client_mounts`].

use crate::launcher::wire::{Failure, Part, step};
use crate::shortage::Shortage;
use crate::sys;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::Mode;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Source of the mount of such a file system in the table of mounts.
pub(crate) const SOURCE: &str = "ironclaw";
/// Directory that an empty directory covers for a moment, in this mount namespace alone: one that every machine has.
const COVERED: &str = "/usr";
/// An empty directory and nothing else.
const EMPTY: &str = "mode=0555,uid=1000,gid=1000,size=4096,nr_inodes=2";
const DIRECTORY: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Makes a file system of its own of each of these directories, open already, attached nowhere. Where the kernel makes none it is
/// the machine's own mount: `preflight` tells that.
pub(super) fn each(part: Part, directories: &[&OwnedFd]) -> Result<Vec<OwnedFd>, Failure> {
    let made = under_cover(part, |empty| directories.iter().map(|one| laid(&[one, empty])).collect::<io::Result<_>>())?;
    or_copies(part, made, directories)
}

/// Falls back to the machine's own mounts only where the kernel cannot make such file systems. A shortage passes, so it fails the
/// launch, which is tried again: an agent that causes one must not get a jail without this wall.
fn or_copies(part: Part, made: io::Result<Vec<OwnedFd>>, directories: &[&OwnedFd]) -> Result<Vec<OwnedFd>, Failure> {
    match made.as_ref().err().and_then(Shortage::of_io) {
        Some(Shortage::Descriptors | Shortage::Memory | Shortage::Processes) => {
            step(part, "make a file system of the machine's programs", made)
        }
        // The limit on mounts, which only an operator sets, is reported as a full disk.
        Some(Shortage::Disk | Shortage::Inodes | Shortage::Quota | Shortage::ReadOnly) | None => match made {
            Ok(made) => Ok(made),
            Err(_) => directories.iter().map(|one| step(part, "copy a mount of the machine", copied(one))).collect(),
        },
    }
}

fn copied(directory: &OwnedFd) -> io::Result<OwnedFd> {
    sys::open_tree(directory.as_fd())
}

/// Lays directories over each other, the first on top, as one read-only file system. Named by descriptor: the option has no way to
/// write a colon in a path that is safe on every kernel, and the path of the home stays unknown to programs that see the mount.
pub(super) fn laid(directories: &[&OwnedFd]) -> io::Result<OwnedFd> {
    let lower: Vec<_> = directories.iter().map(|one| format!("/proc/self/fd/{}", one.as_raw_fd())).collect();
    let lower = CString::new(lower.join(":")).expect("numbers have no null byte");
    let source = CString::new(SOURCE).expect("it has no null byte");
    sys::new_file_system(c"overlay", &[(c"source", &source), (c"lowerdir", &lower)])
}

/// Runs `work` with an empty directory: an overlay that cannot be written takes two directories.
fn under_cover<T>(part: Part, work: impl FnOnce(&OwnedFd) -> io::Result<T>) -> Result<io::Result<T>, Failure> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    if let Err(errno) = mount(Some(SOURCE), COVERED, Some("tmpfs"), flags, Some(EMPTY)) {
        return Ok(Err(errno.into()));
    }
    let made =
        open(COVERED, DIRECTORY, Mode::empty()).map_err(|errno: Errno| errno.into()).and_then(|empty| work(&empty));
    // Programs load their libraries from there until the pivot.
    step(part, format!("uncover {COVERED}"), umount2(COVERED, MntFlags::MNT_DETACH))?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launcher::Error;

    fn tried(errno: i32) -> Result<Vec<OwnedFd>, Failure> {
        or_copies(Part::System, Err(io::Error::from_raw_os_error(errno)), &[])
    }

    #[test]
    fn shortage_while_programs_are_set_apart_fails_the_launch() {
        for errno in [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EAGAIN] {
            let failure = tried(errno).expect_err("it passes, so the launch is tried again");
            let error = Error::Refused { name: "ses".to_owned(), failure };
            assert_eq!(error.shortage(), Shortage::of_errno(errno), "{errno}");
            assert!(error.shortage().is_some(), "{errno}");
        }
    }

    #[test]
    fn kernel_without_overlays_gets_the_machines_own_mounts() {
        for errno in [libc::EPERM, libc::ENODEV, libc::EINVAL, libc::ENOSYS, libc::ENOSPC] {
            assert!(tried(errno).is_ok_and(|copies| copies.is_empty()), "{errno}");
        }
    }
}
