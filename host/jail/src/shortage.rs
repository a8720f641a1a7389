//! Shortages: the resources that a machine can run out of. A shortage is never a session's failure: the host waits and retries.
//!
//! Classifies errors of the kernel and of SQLite, and never repairs anything. See `runtime::shortages` of the host.

use ironclaw_operator::DenialCode;
use nix::libc;
use std::error::Error;
use std::io;

/// A resource of which the machine, and not a session, has too little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// The file system of the home has no free bytes.
    Disk,
    /// The file system of the home has no free inodes.
    Inodes,
    /// The disk quota or the file size limit of the host's user is reached.
    Quota,
    /// The file system of the home is read-only.
    ReadOnly,
    /// The process or the machine has no file descriptor left.
    Descriptors,
    /// The kernel has no free memory.
    Memory,
    /// The kernel starts no further process or thread.
    Processes,
}

impl Shortage {
    /// Returns the shortage that an `errno` reports, if it reports one.
    pub const fn from_errno(errno: i32) -> Option<Self> {
        match errno {
            libc::ENOSPC => Some(Self::Disk),
            libc::EDQUOT | libc::EFBIG => Some(Self::Quota),
            libc::EROFS => Some(Self::ReadOnly),
            libc::EMFILE | libc::ENFILE => Some(Self::Descriptors),
            libc::ENOMEM => Some(Self::Memory),
            libc::EAGAIN => Some(Self::Processes),
            _ => None,
        }
    }

    /// Returns the shortage behind an error: the first that the error or one of its sources reports.
    pub fn find_in(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            let found = match (error.downcast_ref::<io::Error>(), error.downcast_ref::<rusqlite::Error>()) {
                (Some(error), _) => Self::from_io(error),
                (_, Some(error)) => Self::from_sqlite(error),
                _ => error.downcast_ref::<nix::errno::Errno>().and_then(|errno| Self::from_errno(*errno as i32)),
            };
            if found.is_some() {
                return found;
            }
            next = error.source();
        }
        None
    }

    /// Returns the shortage that an input or output error reports.
    pub fn from_io(error: &io::Error) -> Option<Self> {
        match error.raw_os_error() {
            Some(errno) => Self::from_errno(errno),
            // `source` of such an error skips its inner error.
            None => error.get_ref().and_then(|inner| Self::find_in(inner)),
        }
    }

    /// Returns the shortage of an error of SQLite. Most of its codes do not show the `errno`; then only the machine itself can tell.
    fn from_sqlite(error: &rusqlite::Error) -> Option<Self> {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Some(Self::Disk),
            Some(rusqlite::ErrorCode::OutOfMemory) => Some(Self::Memory),
            _ => None,
        }
    }

    /// Returns whether the file system of the home is short of something, so that its figures show the end of the shortage.
    pub const fn is_of_storage(self) -> bool {
        match self {
            Self::Disk | Self::Inodes | Self::Quota | Self::ReadOnly => true,
            Self::Descriptors | Self::Memory | Self::Processes => false,
        }
    }

    /// Returns the stable code for scripts.
    pub const fn code(self) -> DenialCode {
        match self {
            Self::Disk => DenialCode::DiskFull,
            Self::Inodes => DenialCode::InodesUsedUp,
            Self::Quota => DenialCode::QuotaUsedUp,
            Self::ReadOnly => DenialCode::HomeReadOnly,
            Self::Descriptors => DenialCode::DescriptorsUsedUp,
            Self::Memory => DenialCode::MemoryUsedUp,
            Self::Processes => DenialCode::ProcessesUsedUp,
        }
    }

    /// Describes the shortage for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Disk => "the disk of the home is full",
            Self::Inodes => "the file system of the home has no inodes left",
            Self::Quota => "the disk quota or the file size limit of the host's user is reached",
            Self::ReadOnly => "the file system of the home is read-only",
            Self::Descriptors => "the host has no file descriptors left",
            Self::Memory => "the machine has no memory left",
            Self::Processes => "the machine starts no further process",
        }
    }

    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Disk => {
                "free disk space on the file system of the home; workspaces below sessions/ may hold much of it"
            }
            Self::Inodes => "remove files on the file system of the home; workspaces below sessions/ may hold many",
            Self::Quota => "free disk space of the host's user, or raise its quota or its limit on file sizes",
            Self::ReadOnly => "mount the file system of the home read-write again; `dmesg` says why it changed",
            Self::Descriptors => "raise the limit on open files (LimitNOFILE of the service, fs.file-max)",
            Self::Memory => "end other programs, or give the machine more memory",
            Self::Processes => {
                "raise the limit on processes (TasksMax of the service, `ulimit -u`), or end other programs"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::libc::{EAGAIN, EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM, ENOSPC, EROFS, EWOULDBLOCK};

    /// Every `errno` for which the machine, and never a session, is the cause.
    pub(crate) const ERRNOS: [i32; 9] = [EMFILE, ENFILE, ENOMEM, EAGAIN, ENOSPC, EDQUOT, EROFS, EFBIG, EWOULDBLOCK];

    #[test]
    fn every_errno_of_a_shortage_is_found_at_any_depth() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] io::Error);
        for errno in ERRNOS {
            let expected = Shortage::from_errno(errno);
            assert!(expected.is_some(), "{errno}");
            let io = || io::Error::from_raw_os_error(errno);
            assert_eq!(Shortage::find_in(&io()), expected, "{errno}");
            assert_eq!(Shortage::find_in(&Outer(io())), expected, "{errno}");
            assert_eq!(Shortage::find_in(&io::Error::other(Outer(io()))), expected, "{errno}");
            assert_eq!(Shortage::find_in(&nix::errno::Errno::from_raw(errno)), expected, "{errno}");
        }
    }

    #[test]
    fn other_errors_are_no_shortage() {
        for errno in [libc::ENOENT, libc::EACCES, libc::EINVAL, libc::EIO, libc::ENOTDIR, libc::EPERM] {
            assert_eq!(Shortage::find_in(&io::Error::from_raw_os_error(errno)), None, "{errno}");
        }
        assert_eq!(Shortage::find_in(&io::Error::other("no errno")), None);
    }

    #[test]
    fn sqlite_says_that_it_is_full_or_out_of_memory() {
        let error = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        assert_eq!(Shortage::find_in(&error(rusqlite::ffi::SQLITE_FULL)), Some(Shortage::Disk));
        assert_eq!(Shortage::find_in(&error(rusqlite::ffi::SQLITE_NOMEM)), Some(Shortage::Memory));
        assert_eq!(Shortage::find_in(&error(rusqlite::ffi::SQLITE_CORRUPT)), None);
    }
}
