//! The few requests to the kernel that only an `unsafe` block can make.
//!
//! Every `unsafe` of this crate is here; each takes and gives plain values, so that no caller needs one. Next: `launch`.

use nix::sys::signal::{SigHandler, Signal, signal};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Descriptors below this number may be inherited; a bit of [`TAKEN`] each.
const INHERITED_MAX: RawFd = 64;

/// Which descriptors were handed out already.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// The descriptor that the launcher left at this number; `None` if there is none, or if it was taken before.
pub fn inherit(number: RawFd) -> Option<OwnedFd> {
    let bit = 1u64 << u32::try_from(number).ok().filter(|_| number < INHERITED_MAX)?;
    if TAKEN.fetch_or(bit, Ordering::AcqRel) & bit != 0 {
        return None;
    }
    // SAFETY: F_GETFD only asks whether the number is open and touches nothing of ours.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: it is open, and the bit above makes this its only owner; two would close a stranger's descriptor.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A write past the file size limit shall be an error to report, not the end of the process.
pub fn survive_file_size_limit() -> io::Result<()> {
    // SAFETY: SIG_IGN installs no handler, so no code of ours runs at a bad moment.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }?;
    Ok(())
}

/// The seccomp mode of this thread; 2 means that a filter is on.
pub fn seccomp_mode() -> io::Result<i32> {
    // SAFETY: PR_GET_SECCOMP takes no pointer and changes nothing.
    match unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) } {
        mode if mode >= 0 => Ok(mode),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a socket of this family can be made; it is closed again at once.
pub fn can_make_socket(family: i32) -> bool {
    // SAFETY: no pointer is passed; a descriptor that comes back belongs to nobody else.
    let descriptor = unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    if descriptor < 0 {
        return false;
    }
    // SAFETY: just made, and owned only here; dropping it closes it.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
    true
}
