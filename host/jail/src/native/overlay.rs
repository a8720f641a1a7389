//! Read-only file systems for directories of the machine. A lock that is taken in a jail holds on such a file system, not on the
//! machine's files.
//!
//! It has exactly the files of the directory. If the machine replaces one later, the next jail sees that. Therefore only the
//! machine's programs are mounted like this, and no directory that people granted. See [`crate::native::system_mounts`] and
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

/// Name of the source in the table of mounts.
pub(crate) const SOURCE: &str = "ironclaw";
/// Directory that is covered briefly by an empty one, only in this mount namespace. Every machine has it.
const COVERED: &str = "/usr";
/// Mount options for a file system with only an empty directory.
const EMPTY: &str = "mode=0555,uid=1000,gid=1000,size=4096,nr_inodes=2";
const DIRECTORY: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Makes a file system from each of these open directories, without attaching it. If the kernel cannot do that, a copy of the
/// machine's own mount is used; `preflight` reports this.
pub(super) fn each(part: Part, directories: &[&OwnedFd]) -> Result<Vec<OwnedFd>, Failure> {
    let made = with_empty_directory(part, |empty| {
        directories.iter().map(|one| stack(&[one, empty])).collect::<io::Result<_>>()
    })?;
    or_copies(part, made, directories)
}

/// Falls back to the machine's own mounts only if the kernel cannot make such file systems. A shortage is temporary, so it fails the
/// launch, which is retried: otherwise an agent could cause a shortage and get a jail without this wall.
fn or_copies(part: Part, made: io::Result<Vec<OwnedFd>>, directories: &[&OwnedFd]) -> Result<Vec<OwnedFd>, Failure> {
    match made.as_ref().err().and_then(Shortage::from_io) {
        Some(Shortage::Descriptors | Shortage::Memory | Shortage::Processes) => {
            step(part, "make a file system of the machine's programs", made)
        }
        // The kernel reports the limit on mounts as a full disk. Only an operator sets that limit.
        Some(Shortage::Disk | Shortage::Inodes | Shortage::Quota | Shortage::ReadOnly) | None => match made {
            Ok(made) => Ok(made),
            Err(_) => directories.iter().map(|one| step(part, "copy a mount of the machine", copied(one))).collect(),
        },
    }
}

fn copied(directory: &OwnedFd) -> io::Result<OwnedFd> {
    sys::open_tree(directory.as_fd())
}

/// Makes one read-only overlay of several directories, the first on top. They are named by descriptor: not every kernel can escape
/// a colon in a path here, and programs that see the mount must not learn the path of the home.
pub(super) fn stack(directories: &[&OwnedFd]) -> io::Result<OwnedFd> {
    let lower: Vec<_> = directories.iter().map(|one| format!("/proc/self/fd/{}", one.as_raw_fd())).collect();
    let lower = CString::new(lower.join(":")).expect("numbers have no null byte");
    let source = CString::new(SOURCE).expect("it has no null byte");
    sys::new_file_system(c"overlay", &[(c"source", &source), (c"lowerdir", &lower)])
}

/// Runs `work` with an empty directory, which a read-only overlay needs as its second directory.
fn with_empty_directory<T>(part: Part, work: impl FnOnce(&OwnedFd) -> io::Result<T>) -> Result<io::Result<T>, Failure> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    if let Err(errno) = mount(Some(SOURCE), COVERED, Some("tmpfs"), flags, Some(EMPTY)) {
        return Ok(Err(errno.into()));
    }
    let made =
        open(COVERED, DIRECTORY, Mode::empty()).map_err(|errno: Errno| errno.into()).and_then(|empty| work(&empty));
    // Until the pivot, programs load their libraries from there.
    step(part, format!("uncover {COVERED}"), umount2(COVERED, MntFlags::MNT_DETACH))?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launcher::Error;

    fn fallback(errno: i32) -> Result<Vec<OwnedFd>, Failure> {
        or_copies(Part::System, Err(io::Error::from_raw_os_error(errno)), &[])
    }

    #[test]
    fn shortage_while_overlays_are_made_fails_the_launch() {
        for errno in [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EAGAIN] {
            let failure = fallback(errno).expect_err("a shortage is temporary, so the launch is retried");
            let error = Error::Refused { name: "ses".to_owned(), failure };
            assert_eq!(error.shortage(), Shortage::from_errno(errno), "{errno}");
            assert!(error.shortage().is_some(), "{errno}");
        }
    }

    #[test]
    fn kernel_without_overlays_gets_the_machines_own_mounts() {
        for errno in [libc::EPERM, libc::ENODEV, libc::EINVAL, libc::ENOSYS, libc::ENOSPC] {
            assert!(fallback(errno).is_ok_and(|copies| copies.is_empty()), "{errno}");
        }
    }
}
