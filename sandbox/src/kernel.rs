//! The few requests to the kernel that need an `unsafe` block.
//!
//! Every `unsafe` of this crate is here. Each function takes and returns plain values, so that no caller needs `unsafe`. See
//! [`crate::launch`].

use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::Pid;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Only descriptors below this number may be inherited; each has a bit of [`TAKEN`].
const INHERITED_MAX: RawFd = 64;

/// Descriptors that have an owner already.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Takes the inherited descriptor with this number; `None` if there is none, or if it was taken before.
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

/// Makes a write past the file size limit return an error instead of ending the process.
pub fn survive_file_size_limit() -> io::Result<()> {
    // SAFETY: SIG_IGN installs no handler, so no code of ours runs at a bad moment.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }?;
    Ok(())
}

/// Returns the seccomp mode of this thread; 2 means that a filter is installed.
pub fn seccomp_mode() -> io::Result<i32> {
    // SAFETY: PR_GET_SECCOMP takes no pointer and changes nothing.
    match unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) } {
        mode if mode >= 0 => Ok(mode),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns whether a socket of this family can be made; closes the socket immediately.
pub fn can_make_socket(family: i32) -> bool {
    // SAFETY: no pointer is passed; a descriptor that comes back has no other owner.
    let descriptor = unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    if descriptor < 0 {
        return false;
    }
    // SAFETY: just made, and owned only here; dropping it closes it.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
    true
}

/// Side of a fork.
pub enum Side {
    Child,
    /// The process that forked, with the child's process id.
    Parent(Pid),
}

/// Makes a copy of this process, which has one thread.
pub fn fork() -> io::Result<Side> {
    // SAFETY: this program never starts a thread (clippy.toml), so no lock is held by one that the child does not have.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        pid => Ok(Side::Parent(Pid::from_raw(pid))),
    }
}

/// Ends this process immediately, without the exit handlers that its parent registered.
pub fn exit(code: i32) -> ! {
    // SAFETY: does not return and touches no memory.
    unsafe { libc::_exit(code) }
}

/// Closes every descriptor above standard error except `kept`. For a process that never returns to the owners of the others.
pub fn keep_only(kept: OwnedFd) -> io::Result<OwnedFd> {
    const FIRST: RawFd = 3;
    // SAFETY: plain integer arguments; the descriptor at the number belongs to code that this process never returns to.
    if kept.as_raw_fd() != FIRST && unsafe { libc::dup3(kept.as_raw_fd(), FIRST, libc::O_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    if unsafe { libc::syscall(libc::SYS_close_range, FIRST + 1, libc::c_uint::MAX, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let _ = kept.into_raw_fd();
    // SAFETY: open, and every other owner of this number is forgotten.
    Ok(unsafe { OwnedFd::from_raw_fd(FIRST) })
}

/// Restores the default handlers of the signals that this program ignores, for the program that is executed next.
pub fn usual_signals() -> io::Result<()> {
    for one in [Signal::SIGPIPE, Signal::SIGXFSZ] {
        // SAFETY: SIG_DFL installs no handler.
        unsafe { signal(one, SigHandler::SigDfl) }?;
    }
    Ok(())
}
