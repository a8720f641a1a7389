//! System calls that the probe makes directly, as a closed list. Their arguments are numbers, null, and invalid descriptors.
//!
//! No call can write into this process's memory, even if the kernel allows it, and none has a lasting effect on the machine. See
//! [`crate::self_test`].

use super::{checked, own};
use libc::c_long;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// One call with its arguments. Only this file makes such values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bare {
    /// The effect of the call, if it is allowed.
    pub(crate) name: &'static str,
    number: c_long,
    arguments: [c_long; 6],
}

const fn call<const N: usize>(name: &'static str, number: c_long, given: [c_long; N]) -> Bare {
    let mut arguments = [0; 6];
    let mut index = 0;
    while index < N {
        arguments[index] = given[index];
        index += 1;
    }
    Bare { name, number, arguments }
}

const NONE: c_long = -1;
/// An address that no process has mapped: reads and writes there fail.
const NOWHERE: c_long = 1;

impl Bare {
    pub(crate) fn make(&self) -> io::Result<()> {
        let [a, b, c, d, e, f] = self.arguments;
        // SAFETY: every pointer among the arguments of the lists below is null or the address 1, which no process has mapped
        // (vm.mmap_min_addr), so the kernel can neither read nor write memory of ours.
        checked(unsafe { libc::syscall(self.number, a, b, c, d, e, f) })?;
        Ok(())
    }

    /// Returns the same call with this process id as the argument at `place`.
    pub(crate) fn on(mut self, place: usize, process: u32) -> Self {
        self.arguments[place] = c_long::from(process);
        self
    }
}

/// Ways to change mounts.
pub(crate) const MOUNTS: &[Bare] = &[
    call("mount a file system", libc::SYS_mount, [0, 0, 0, 0, 0]),
    call("unmount a file system", libc::SYS_umount2, [0, 0]),
    call("move a mount", libc::SYS_move_mount, [NONE, 0, NONE, 0, 0]),
    call("copy a mount", libc::SYS_open_tree, [NONE, 0, 0]),
    call("open a new file system", libc::SYS_fsopen, [0, 0]),
    call("make a mount of a new file system", libc::SYS_fsmount, [NONE, 0, 0]),
    call("open a mounted file system for changes", libc::SYS_fspick, [NONE, 0, 0]),
    call("change what a mount allows", libc::SYS_mount_setattr, [NONE, 0, 0, 0, 0]),
    call("pivot the root", libc::SYS_pivot_root, [0, 0]),
    call("change the root directory", libc::SYS_chroot, [0]),
];

/// Ways to get another namespace.
pub(crate) const NAMESPACES: &[Bare] = &[
    call("make a user namespace", libc::SYS_unshare, [libc::CLONE_NEWUSER as c_long]),
    call("make a mount namespace", libc::SYS_unshare, [libc::CLONE_NEWNS as c_long]),
    call("make a pid namespace", libc::SYS_unshare, [libc::CLONE_NEWPID as c_long]),
    call("make a network namespace", libc::SYS_unshare, [libc::CLONE_NEWNET as c_long]),
    call("make an IPC namespace", libc::SYS_unshare, [libc::CLONE_NEWIPC as c_long]),
    call("make a uts namespace", libc::SYS_unshare, [libc::CLONE_NEWUTS as c_long]),
    call("make a cgroup namespace", libc::SYS_unshare, [libc::CLONE_NEWCGROUP as c_long]),
    call("make a time namespace", libc::SYS_unshare, [0x80]), // CLONE_NEWTIME
    call("enter a namespace", libc::SYS_setns, [NONE, 0]),
    call("start a process in a user namespace", libc::SYS_clone, [(libc::CLONE_NEWUSER | libc::SIGCHLD) as c_long, 0]),
    call(
        "start a process in a network namespace",
        libc::SYS_clone,
        [(libc::CLONE_NEWNET | libc::SIGCHLD) as c_long, 0],
    ),
];

/// The same by a call whose flags a filter cannot read, and which is therefore missing.
pub(crate) const CLONE3: Bare = call("start a process by clone3", libc::SYS_clone3, [0, 0]);

/// Ways to inspect the host, or to take it over; the first argument is replaced by its process id.
pub(crate) const PROCESSES: &[Bare] = &[
    call("read the memory of the host", libc::SYS_process_vm_readv, [0, 0, 0, 0, 0, 0]),
    call("write the memory of the host", libc::SYS_process_vm_writev, [0, 0, 0, 0, 0, 0]),
    call("compare what it shares with the host", libc::SYS_kcmp, [0, 0, 0, 0, 0]),
    call("move the pages of the host", libc::SYS_move_pages, [0, 0, 0, 0, 0, 0]),
    call("read the limits of the host", libc::SYS_prlimit64, [0, 0, 0, 0]),
    call("change how the host is scheduled", libc::SYS_sched_setscheduler, [0, 0, NOWHERE]),
    call("queue a signal for the host", libc::SYS_rt_sigqueueinfo, [0, 0, NOWHERE]),
    call("signal a thread of the host", libc::SYS_tkill, [0, 0]),
];

/// The same by descriptors.
pub(crate) const PROCESS_DESCRIPTORS: &[Bare] = &[
    call("take a descriptor of a process", libc::SYS_pidfd_getfd, [NONE, 0, 0]),
    call("signal a process by descriptor", libc::SYS_pidfd_send_signal, [NONE, 0, 0, 0]),
    call("advise the memory of a process", libc::SYS_process_madvise, [NONE, 0, 0, 0, 0]),
];

/// Ways to have the kernel affect other processes when a descriptor is used. They are refused before the kernel reads the descriptor.
pub(crate) const DESCRIPTORS: &[Bare] = &[
    call("have a descriptor signal a process", libc::SYS_fcntl, [NONE, 8, 1]), // F_SETOWN
    call("choose the signal of a descriptor", libc::SYS_fcntl, [NONE, 10, 9]), // F_SETSIG
    call("have a descriptor signal a thread", libc::SYS_fcntl, [NONE, 15, 0]), // F_SETOWN_EX
    call("take a lease on a file", libc::SYS_fcntl, [NONE, 1024, 0]),          // F_SETLEASE
    call("take a delegation of a file", libc::SYS_fcntl, [NONE, 1040, 0]),     // F_SETDELEG
    call("watch a directory by signals", libc::SYS_fcntl, [NONE, 1026, 0]),    // F_NOTIFY
];

/// Makes a descriptor of a process; the call is therefore missing.
pub(crate) const PIDFD_OPEN: Bare = call("open a process of the host", libc::SYS_pidfd_open, [0, 0]);
/// Becomes the tracer of process 1, or of another process by [`Bare::on`] at place 1.
pub(crate) const TRACE: Bare = call("trace process 1", libc::SYS_ptrace, [16, 1, 0, 0]); // PTRACE_ATTACH

pub(crate) const KEYS: &[Bare] = &[
    call("reach the session keyring", libc::SYS_keyctl, [0, -3, 0]),
    call("add a key", libc::SYS_add_key, [0, 0, 0, 0, -3]),
    call("request a key", libc::SYS_request_key, [0, 0, 0, 0]),
];

/// Parts of the kernel that are large, that load code, or that change the whole machine.
pub(crate) const KERNEL: &[Bare] = &[
    call("load a bpf map", libc::SYS_bpf, [0, 0, 0]),
    call("set up an io_uring", libc::SYS_io_uring_setup, [1, 0]),
    call("enter an io_uring", libc::SYS_io_uring_enter, [NONE, 0, 0, 0, 0, 0]),
    call("register with an io_uring", libc::SYS_io_uring_register, [NONE, 0, 0, 0]),
    call("handle page faults", libc::SYS_userfaultfd, [0]),
    call("count performance events", libc::SYS_perf_event_open, [0, 0, NONE, NONE, 0]),
    call("watch a file system", libc::SYS_fanotify_init, [0, 0]),
    call("watch files", libc::SYS_inotify_init1, [0]),
    call("load a new kernel", libc::SYS_kexec_load, [0, 0, 0, 0]),
    call("load a kernel module", libc::SYS_init_module, [0, 0, 0]),
    call("load a kernel module from a file", libc::SYS_finit_module, [NONE, 0, 0]),
    call("remove a kernel module", libc::SYS_delete_module, [0, 0]),
    call("read the kernel's log", libc::SYS_syslog, [10, 0, 0]), // the size of its buffer
    call("restart the machine", libc::SYS_reboot, [0, 0, 0, 0]), // without the magic numbers
    call("swap to a file", libc::SYS_swapon, [NOWHERE, 0]),
    call("stop swapping", libc::SYS_swapoff, [NOWHERE]),
    call("account for processes", libc::SYS_acct, [NOWHERE]),
    call("change quotas", libc::SYS_quotactl, [0, 0, 0, 0]),
    call("set the clock", libc::SYS_clock_settime, [0, NOWHERE]),
    call("set the time of day", libc::SYS_settimeofday, [NOWHERE, 0]),
    call("adjust the clock", libc::SYS_adjtimex, [NOWHERE]),
    call("change the personality", libc::SYS_personality, [0xffff_ffff]), // only asks for it
    call("hang up the terminal", libc::SYS_vhangup, []),
    call("name a file by handle", libc::SYS_name_to_handle_at, [NONE, 0, 0, 0, 0]),
    call("open a file by handle", libc::SYS_open_by_handle_at, [NONE, 0, 0]),
    call("set the host name", libc::SYS_sethostname, [NOWHERE, 1]),
    call("answer another program's system calls", libc::SYS_seccomp, [1, 8, 0]), // a filter with a listener
    call("make secret memory", libc::SYS_memfd_secret, [0]),
    call("get shared memory of System V", libc::SYS_shmget, [0x6972_6f6e, 4096, 0]),
    call("get a queue of System V", libc::SYS_msgget, [0x6972_6f6e, 0]),
    call("open a POSIX message queue", libc::SYS_mq_open, [0, 0, 0, 0]),
    call("raise its own priority", libc::SYS_setpriority, [0, 0, -20]),
    #[cfg(target_arch = "x86_64")]
    call("change the descriptor table of the processor", libc::SYS_modify_ldt, [0, 0, 0]),
    #[cfg(target_arch = "x86_64")]
    call("reach an I/O port", libc::SYS_ioperm, [0x80, 1, 1]),
    #[cfg(target_arch = "x86_64")]
    call("reach every I/O port", libc::SYS_iopl, [3]),
];

/// Ways to get another user's rights.
pub(crate) const PRIVILEGES: &[Bare] = &[
    call("become root", libc::SYS_setuid, [0]),
    call("become root's group", libc::SYS_setgid, [0]),
    call("become root by setresuid", libc::SYS_setresuid, [0, 0, 0]),
    call("become root's group by setresgid", libc::SYS_setresgid, [0, 0, 0]),
    call("become root for files", libc::SYS_setfsuid, [0]),
    call("join a group", libc::SYS_setgroups, [1, 0]),
    call("take capabilities", libc::SYS_capset, [0, 0]),
    call("raise an ambient capability", libc::SYS_prctl, [47, 2, 21, 0, 0]), // CAP_SYS_ADMIN
    call("set the secure bits", libc::SYS_prctl, [28, 0, 0, 0, 0]),
    call("keep capabilities over a change of user", libc::SYS_prctl, [8, 1, 0, 0, 0]),
    call("let any process trace it", libc::SYS_prctl, [0x5961_6d61, -1, 0, 0, 0]),
    call("no longer die with process 1", libc::SYS_prctl, [1, 0, 0, 0, 0]),
];

/// Calls that only a parent of programs needs: a session and a group of its own, and adoption of orphans.
pub(crate) const PARENTS: &[Bare] = &[
    call("adopt orphans", libc::SYS_prctl, [36, 1, 0, 0, 0]),
    call("leave its session", libc::SYS_setsid, []),
    call("leave its process group", libc::SYS_setpgid, [0, 0]),
];

/// Clears `no_new_privs`.
pub(crate) const CLEAR_NO_NEW_PRIVILEGES: Bare = call("clear no_new_privs", libc::SYS_prctl, [38, 0, 0, 0, 0]);

/// Ways to give a file more rights, another owner, or another type.
pub(crate) const FILES: &[Bare] = &[
    call("make a file of memory that can be executed", libc::SYS_memfd_create, [NOWHERE, 0]),
    call("give a file away", libc::SYS_fchownat, [NONE, 0, 0, 0, 0]),
    call("set an extended attribute", libc::SYS_setxattr, [NOWHERE, 0, 0, 0, 0]),
    call("leave a device node where a file was", libc::SYS_renameat2, [NONE, NOWHERE, NONE, NOWHERE, 4]), // RENAME_WHITEOUT
    call("put a character into a terminal's input", libc::SYS_ioctl, [0, 0x5412, 0]),                     // TIOCSTI
];

/// Executes a program by its path.
pub(crate) const EXECUTE: Bare = call("execute a program by its path", libc::SYS_execve, [NOWHERE, 0, 0]);

/// Opens a file with rules for its path. A filter cannot read the flags of this call, which is therefore missing.
pub(crate) const OPENAT2: Bare = call("open a file with rules for its path", libc::SYS_openat2, [NONE, 0, 0, 0]);

/// Opens a non-blocking socket of any family and type, given as the kernel's numbers.
pub(crate) fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: plain integer arguments.
    Ok(own(checked(unsafe { libc::syscall(libc::SYS_socket, family, kind, protocol) })? as i32))
}

/// Listens on a socket, bound or not.
pub(crate) fn listen(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: plain integer arguments on an open descriptor.
    checked(unsafe { libc::syscall(libc::SYS_listen, socket.as_raw_fd(), 1) })?;
    Ok(())
}

/// Maps the first page of a file as code, and unmaps it again.
pub(crate) fn map_executable(file: BorrowedFd<'_>) -> io::Result<()> {
    map(4096, libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE, file.as_raw_fd())
}

/// Reserves `bytes` of addresses without using them, and releases them.
pub(crate) fn map_addresses(bytes: u64) -> io::Result<()> {
    let length = usize::try_from(bytes).map_err(io::Error::other)?;
    map(length, libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1)
}

fn map(length: usize, protection: i32, flags: i32, file: i32) -> io::Result<()> {
    // SAFETY: without MAP_FIXED the kernel picks unused addresses, and no other code knows them.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, file, 0) };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: exactly what was mapped above.
    checked(c_long::from(unsafe { libc::munmap(mapped, length) }))?;
    Ok(())
}

/// Returns the effective, permitted and inheritable capabilities of this process as the kernel's six words.
pub(crate) fn capabilities() -> io::Result<[u32; 6]> {
    let header: [u32; 2] = [0x2008_0522, 0]; // linux/capability.h: version 3, this process
    let mut words = [0u32; 6];
    // SAFETY: version 3 reads two words and writes six; both live through the call.
    checked(unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), words.as_mut_ptr()) })?;
    Ok(words)
}

/// Returns how many capabilities are left in the bounding set.
pub(crate) fn bounding_capabilities() -> usize {
    // SAFETY: plain integer arguments; the kernel answers 1, 0, or an error for a number that it does not know.
    (0..64).filter(|capability| unsafe { libc::prctl(libc::PR_CAPBSET_READ, *capability, 0, 0, 0) } == 1).count()
}

/// Returns the seccomp mode of this process; 0 if there is none. A filter of the strict mode kills the process.
pub(crate) fn seccomp_mode() -> io::Result<c_long> {
    // SAFETY: plain integer arguments.
    checked(c_long::from(unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) }))
}

/// Returns the open descriptors among the first `count`.
pub(crate) fn open_descriptors(count: i32) -> Vec<i32> {
    // SAFETY: plain integer arguments; a number that is not open gives an error.
    (0..count).filter(|number| unsafe { libc::fcntl(*number, libc::F_GETFD) } != -1).collect()
}
