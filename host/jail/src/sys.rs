//! System calls that neither the standard library nor `nix` wraps, each behind a safe function.
//!
//! All `unsafe` of the launcher is here. This module does not decide on mounts, mappings or rights. See [`crate::native`], which
//! documents the order of the calls.

pub(crate) mod bare;
mod slices;
mod wiping;

pub use slices::ask_for_short_slices;

use std::ffi::{CStr, CString, c_int, c_long, c_uint, c_void};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use tokio::io::unix::AsyncFd;

/// The first descriptor after stdin, stdout and stderr.
const FIRST_DESCRIPTOR: RawFd = 3;
/// Capabilities are numbered from 0; the kernel refuses the first number that it does not know.
const CAPABILITIES_MAX: c_long = 64;

/// Proof that this process has one thread, so that the copy that `fork` makes is complete.
///
/// Valid only in the process that got it, and in processes forked from that one.
pub struct OneThread(PhantomData<*const ()>);

/// Side of a fork.
pub(crate) enum Side {
    Child,
    /// The process that forked, with the child's process id.
    Parent(i32),
}

impl OneThread {
    /// Counts the threads of this process; an error if there is more than one.
    pub(crate) fn prove() -> io::Result<Self> {
        match std::fs::read_dir("/proc/self/task")?.count() {
            1 => Ok(Self(PhantomData)),
            threads => Err(io::Error::other(format!(
                "the launcher is forked before the first thread starts, and this process has {threads}"
            ))),
        }
    }

    /// Makes a copy of this process.
    pub(crate) fn fork(&self) -> io::Result<Side> {
        // SAFETY: `self` proves that no other thread holds a lock that the child would find taken.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => Ok(Side::Child),
            pid => Ok(Side::Parent(pid)),
        }
    }

    /// Copies this process into new namespaces (`CLONE_NEW…` in `namespaces`). The parent also gets a pidfd, which identifies the child
    /// even if the kernel uses its process id again.
    pub(crate) fn clone_into(&self, namespaces: c_int) -> io::Result<(Side, Option<OwnedFd>)> {
        let flags = namespaces | libc::CLONE_PIDFD | libc::SIGCHLD;
        let mut descriptor: c_int = -1;
        // SAFETY: without CLONE_VM and with a null stack this is `fork` with namespaces, and `self`
        // proves that no lock is held by another thread. The third argument is where the kernel
        // writes the pidfd on every architecture that we build for; it lives through the call.
        let pid = unsafe { libc::syscall(libc::SYS_clone, flags as c_long, 0, &raw mut descriptor, 0, 0) };
        match pid {
            -1 => Err(io::Error::last_os_error()),
            0 => Ok((Side::Child, None)),
            pid => Ok((Side::Parent(pid as i32), Some(own(descriptor)))),
        }
    }
}

/// Takes ownership of a new descriptor of the kernel.
pub(crate) fn own(descriptor: RawFd) -> OwnedFd {
    // SAFETY: callers pass a number that a system call returned to them and that has no other owner.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// Moves `kept` to the descriptors 3, 4, 5 … in their order. If `close` is true, closes every other descriptor above stderr.
///
/// For a process that never returns to the owners of the closed descriptors.
pub(crate) fn keep_only<const N: usize>(kept: [OwnedFd; N], close: bool) -> io::Result<[OwnedFd; N]> {
    // First move them to higher numbers, so that no move overwrites a descriptor that is still to be moved.
    let clear = FIRST_DESCRIPTOR + N as RawFd;
    let mut high = Vec::with_capacity(N);
    for descriptor in kept {
        // SAFETY: plain integer arguments; `descriptor` is open.
        let moved = checked(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, clear) } as c_long)?;
        let _ = descriptor.into_raw_fd();
        high.push(moved as RawFd);
    }
    for (index, descriptor) in high.iter().enumerate() {
        // SAFETY: plain integer arguments. The descriptor at the target number belongs to code that this process never returns
        // to, as the function's contract says.
        checked(unsafe { libc::dup3(*descriptor, FIRST_DESCRIPTOR + index as RawFd, libc::O_CLOEXEC) } as c_long)?;
    }
    if close {
        // SAFETY: as above; everything from `clear` on is either a copy made here or forgotten.
        checked(unsafe { libc::syscall(libc::SYS_close_range, clear as c_uint, c_uint::MAX, 0) })?;
    }
    Ok(std::array::from_fn(|index| own(FIRST_DESCRIPTOR + index as RawFd)))
}

/// Sets the interface `lo` of this network namespace up.
pub(crate) fn raise_loopback() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: all fields are plain data, for which zero bytes are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(*b"lo\0") {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads one `ifreq`, which lives through the call.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) } as c_long)?;
    Ok(())
}

/// Keeps a descriptor open in the program that is executed next.
pub(crate) fn keep_across_exec(descriptor: &OwnedFd) -> io::Result<()> {
    // SAFETY: plain integer arguments on an open descriptor.
    checked(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) } as c_long)?;
    Ok(())
}

/// Executes an open file with `arguments` and an empty environment; returns only if that fails.
pub(crate) fn execute(program: &OwnedFd, arguments: &[CString]) -> io::Error {
    let mut pointers: Vec<*const libc::c_char> = arguments.iter().map(|a| a.as_ptr()).collect();
    pointers.push(std::ptr::null());
    let environment: [*const libc::c_char; 1] = [std::ptr::null()];
    // SAFETY: both arrays end with null, and they and their strings live until the call returns.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            pointers.as_ptr(),
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    io::Error::last_os_error()
}

/// Executes the program at `path` with `arguments` and `environment`; returns only if that fails.
pub(crate) fn execute_path(path: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let ended = |list: &[CString]| -> Vec<*const libc::c_char> {
        list.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (ended(arguments), ended(environment));
    // SAFETY: both arrays end with null, and they and the strings behind them live until the call returns.
    unsafe { libc::execve(path.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Ends this process immediately, without the exit handlers that its parent registered.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: does not return and touches no memory.
    unsafe { libc::_exit(code) }
}

/// Makes a private, detached copy of the mount at `directory`.
pub(crate) fn open_tree(directory: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_EMPTY_PATH as c_uint;
    // SAFETY: the empty string is a valid C string; the descriptor is open.
    let tree = checked(unsafe { libc::syscall(libc::SYS_open_tree, directory.as_raw_fd(), c"".as_ptr(), flags) })?;
    Ok(own(tree as RawFd))
}

/// Adds the `MOUNT_ATTR_…` bits of `set` to the mount at `directory`.
pub(crate) fn mount_setattr(directory: BorrowedFd<'_>, set: u64) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the structure and its size go together, and both live through the call.
    checked(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            directory.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })?;
    Ok(())
}

/// Attaches a detached mount at `name` in the directory `parent`.
pub(crate) fn move_mount(tree: BorrowedFd<'_>, parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    // SAFETY: both strings are C strings that live through the call; both descriptors are open.
    checked(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            parent.as_raw_fd(),
            name.as_ptr(),
            libc::MOVE_MOUNT_F_EMPTY_PATH,
        )
    })?;
    Ok(())
}

/// Makes a new, detached file system with these options.
pub(crate) fn new_file_system(kind: &CStr, options: &[(&CStr, &CStr)]) -> io::Result<OwnedFd> {
    // linux/mount.h
    const CLOSE_ON_EXECUTE: c_uint = 1;
    const SET_STRING: c_uint = 1;
    const CREATE: c_uint = 6;
    // SAFETY: a C string that lives through the call.
    let context = own(checked(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), CLOSE_ON_EXECUTE) })? as RawFd);
    let null = std::ptr::null::<c_void>();
    for (key, value) in options {
        let context = context.as_raw_fd();
        // SAFETY: two C strings that live through the call, on an open descriptor.
        checked(unsafe { libc::syscall(libc::SYS_fsconfig, context, SET_STRING, key.as_ptr(), value.as_ptr(), 0) })?;
    }
    // SAFETY: with this command the kernel reads neither key nor value.
    checked(unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, null, null, 0) })?;
    // SAFETY: plain integer arguments on an open descriptor.
    let tree = checked(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOSE_ON_EXECUTE, 0) })?;
    Ok(own(tree as RawFd))
}

/// Empties the ambient, bounding, inheritable, permitted and effective sets.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    drop_bounding_capabilities()?;
    drop_held_capabilities()
}

/// Empties the bounding set. The process keeps its capabilities, and gets no further one by executing a program. Its children inherit
/// the empty set.
pub(crate) fn drop_bounding_capabilities() -> io::Result<()> {
    for capability in 0..CAPABILITIES_MAX {
        // SAFETY: plain integer arguments.
        match checked(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } as c_long) {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Empties the ambient, inheritable, permitted and effective sets.
pub(crate) fn drop_held_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    const VERSION_3: u32 = 0x2008_0522; // linux/capability.h: 64 bits in two words of three sets
    // SAFETY: plain integer arguments.
    checked(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) } as c_long)?;
    let header = Header { version: VERSION_3, pid: 0 };
    let empty = [0u32; 6];
    // SAFETY: version 3 reads a header and six words; both live through the call.
    checked(unsafe { libc::syscall(libc::SYS_capset, &raw const header, empty.as_ptr()) })?;
    Ok(())
}

/// Sends a signal to the process of a pidfd.
pub(crate) fn signal(process: BorrowedFd<'_>, signal: c_int) -> io::Result<()> {
    // SAFETY: a null siginfo makes the kernel fill in its own.
    checked(unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, std::ptr::null::<c_void>(), 0)
    })?;
    Ok(())
}

/// Opens a descriptor for a running process.
pub fn pidfd_open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: plain integer arguments.
    Ok(own(checked(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })? as RawFd))
}

/// Returns the Landlock ABI of the running kernel; 0 if it has none or Landlock is switched off.
pub fn landlock_abi() -> u32 {
    landlock().unwrap_or(0)
}

/// Asks the kernel for its Landlock ABI.
///
/// # Errors
/// `ENOSYS` from a kernel without Landlock, `EOPNOTSUPP` if it is switched off, `EPERM` or `ENOSYS` from a filter around this process.
pub fn landlock() -> io::Result<u32> {
    const VERSION: c_uint = 1; // LANDLOCK_CREATE_RULESET_VERSION
    // SAFETY: with this flag the kernel reads neither pointer nor size.
    let abi =
        checked(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<c_void>(), 0, VERSION) })?;
    Ok(u32::try_from(abi).unwrap_or(0))
}

/// Overwrites this process's environment: an inherited variable may be a key, and jails are forked from this process.
pub(crate) fn wipe_environment(_: &OneThread) {
    unsafe extern "C" {
        static mut environ: *mut *mut libc::c_char;
    }
    // SAFETY: the strings are this process's own writable memory, each ends with null, and the only thread is here, so no other
    // code reads or replaces them meanwhile.
    unsafe {
        if environ.is_null() {
            return;
        }
        let mut entry = environ;
        while !(*entry).is_null() {
            let length = libc::strlen(*entry);
            std::ptr::write_bytes(*entry, 0, length);
            entry = entry.add(1);
        }
        *environ = std::ptr::null_mut();
    }
}

/// Installs a seccomp filter without setting `no_new_privs` first.
#[cfg(feature = "failpoints")]
pub(crate) fn install_filter(instructions: &[libc::sock_filter]) -> io::Result<()> {
    let length = instructions.len().try_into().map_err(io::Error::other)?;
    let program = libc::sock_fprog { len: length, filter: instructions.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the instructions and writes nowhere; they live through the call.
    checked(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) })?;
    Ok(())
}

/// Connects a descriptor to the current async runtime.
pub fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` denotes the same open descriptor until it is dropped.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}

/// Makes a copy of a borrowed descriptor.
pub fn duplicate(descriptor: &impl AsFd) -> io::Result<OwnedFd> {
    descriptor.as_fd().try_clone_to_owned()
}

/// Gives memory that the allocator keeps for later back to the system. Returns whether there was some.
#[cfg(target_env = "gnu")]
pub fn give_free_memory_back() -> bool {
    // SAFETY: it takes a number, and changes no memory that is in use.
    unsafe { libc::malloc_trim(0) == 1 }
}

/// Does nothing, because this allocator has no such function.
#[cfg(not(target_env = "gnu"))]
pub const fn give_free_memory_back() -> bool {
    false
}

fn checked(result: c_long) -> io::Result<c_long> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Ignores a signal, or restores its default handler.
pub(crate) fn ignore(signal: nix::sys::signal::Signal, ignored: bool) -> io::Result<()> {
    use nix::sys::signal::SigHandler;
    let handler = if ignored { SigHandler::SigIgn } else { SigHandler::SigDfl };
    // SAFETY: neither handler runs any code of ours.
    unsafe { nix::sys::signal::signal(signal, handler) }?;
    Ok(())
}
