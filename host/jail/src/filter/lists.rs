//! Lists of the system calls that a jailed process may make, each group with its reason.
//!
//! Never compiles or installs a filter. See [`crate::filter`].

use libc::c_long;

/// Calls that are allowed, and the condition.
pub(super) struct Rule {
    pub(super) calls: &'static [c_long],
    pub(super) when: When,
}

/// A condition on arguments. They are numbered from 0; 32 bits are compared, as many as the kernel reads of these.
pub(super) enum When {
    Always,
    /// The argument is one of these.
    Is(u8, &'static [u32]),
    /// The argument is none of these.
    IsNot(u8, &'static [u32]),
    /// The argument has none of these bits.
    Without(u8, u32),
    /// The first argument is one of the first list, and the second masked by `.1` is `.2`.
    Both(&'static [u32], u32, u32),
    /// A socket of one of these families, types and protocols.
    Socket(&'static [u32], &'static [u32], &'static [u32]),
    /// At least one of two arguments has none of its bits: (argument, bits) or (argument, bits).
    EitherWithout((u8, u32), (u8, u32)),
}
use When::{Always, Both, EitherWithout, Is, IsNot, Socket, Without};

/// Bits of a file mode with which other users run a file with the rights of its owner.
const SET_ID: u32 = 0o6000;
/// Flags of `open` that make a file, so that `open` reads a mode.
const MAKES_FILE: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;
/// All namespaces that a process can request.
const NEW_NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

// Requests of `fcntl`, which the `libc` crate does not name for every C library (asm-generic/fcntl.h, linux/fcntl.h).
const F_SETOWN: u32 = 8;
const F_SETSIG: u32 = 10;
const F_SETOWN_EX: u32 = 15;
const F_SETLEASE: u32 = 1024;
const F_NOTIFY: u32 = 1026;
const F_SETDELEG: u32 = 1040;

/// Calls of a program that is linked dynamically, has threads, keeps encrypted databases and uses unix sockets.
///
/// Left out on purpose: mounts, pivots, namespaces, access to other processes, code in the kernel (bpf, io_uring, userfaultfd,
/// modules, kexec), keys, clocks, priorities, personalities, devices and links.
#[rustfmt::skip]
pub(super) const PROGRAM: &[Rule] = &[
    // Reading and writing open files. Locks use `fcntl`.
    Rule {
        calls: &[
            libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev, libc::SYS_pread64, libc::SYS_pwrite64,
            libc::SYS_preadv, libc::SYS_pwritev, libc::SYS_preadv2, libc::SYS_pwritev2, libc::SYS_lseek,
            libc::SYS_close, libc::SYS_close_range, libc::SYS_dup, libc::SYS_dup3, libc::SYS_flock, libc::SYS_fsync,
            libc::SYS_fdatasync, libc::SYS_ftruncate, libc::SYS_truncate, libc::SYS_fallocate,
            libc::SYS_fadvise64, libc::SYS_copy_file_range, libc::SYS_sendfile, libc::SYS_pipe2,
        ],
        when: Always,
    },
    // The other operations on a descriptor, except those that signal another process, watch a directory, or take a lease on a file
    // that others use.
    Rule {
        calls: &[libc::SYS_fcntl],
        when: IsNot(1, &[F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY, F_SETDELEG]),
    },
    // Finding, making and removing files; the mounts and Landlock decide which ones.
    Rule {
        calls: &[
            libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_faccessat, libc::SYS_faccessat2,
            libc::SYS_readlinkat, libc::SYS_getdents64, libc::SYS_mkdirat, libc::SYS_unlinkat,
            libc::SYS_getcwd, libc::SYS_chdir, libc::SYS_fchdir, libc::SYS_umask,
            libc::SYS_utimensat, libc::SYS_statfs, libc::SYS_fstatfs,
        ],
        when: Always,
    },
    // A whiteout is a device node, and would remain on the host's disk.
    Rule { calls: &[libc::SYS_renameat2], when: Without(4, libc::RENAME_WHITEOUT) },
    // A jail makes no set-uid or set-gid file: outside it would be a file of the host's uid.
    Rule { calls: &[libc::SYS_openat], when: EitherWithout((2, MAKES_FILE), (3, SET_ID)) },
    Rule { calls: &[libc::SYS_fchmod], when: Without(1, SET_ID) },
    Rule { calls: &[libc::SYS_fchmodat], when: Without(2, SET_ID) },
    // Memory. The loader needs executable mappings; every mount of the jail is noexec.
    Rule {
        calls: &[
            libc::SYS_mmap, libc::SYS_mprotect, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise, libc::SYS_brk,
            libc::SYS_mlock, libc::SYS_mlock2, libc::SYS_munlock, libc::SYS_membarrier, libc::SYS_msync,
        ],
        when: Always,
    },
    // Threads and children, without new namespaces. `clone3` is missing because a filter cannot see its flags, which are behind a
    // pointer.
    Rule { calls: &[libc::SYS_clone], when: Without(0, NEW_NAMESPACES) },
    Rule {
        calls: &[
            libc::SYS_exit, libc::SYS_exit_group, libc::SYS_futex, libc::SYS_set_robust_list,
            libc::SYS_get_robust_list, libc::SYS_set_tid_address, libc::SYS_rseq, libc::SYS_sched_yield,
            libc::SYS_sched_getaffinity, libc::SYS_wait4, libc::SYS_waitid, libc::SYS_getrusage, libc::SYS_getcpu,
        ],
        when: Always,
    },
    // The launch itself: the program by its descriptor. After the gate nothing is executable, and without a memfd no new file becomes
    // executable.
    Rule { calls: &[libc::SYS_execveat], when: Is(4, &[libc::AT_EMPTY_PATH as u32]) },
    // Identity and system information.
    Rule {
        calls: &[
            libc::SYS_getpid, libc::SYS_getppid, libc::SYS_gettid, libc::SYS_getuid, libc::SYS_geteuid,
            libc::SYS_getgid, libc::SYS_getegid, libc::SYS_getgroups, libc::SYS_getresuid, libc::SYS_getresgid,
            libc::SYS_getpgid, libc::SYS_getsid, libc::SYS_capget, libc::SYS_uname, libc::SYS_sysinfo,
            libc::SYS_times,
        ],
        when: Always,
    },
    // Signals. Only processes of this jail have a process id in its namespace.
    Rule {
        calls: &[
            libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_rt_sigpending,
            libc::SYS_rt_sigtimedwait, libc::SYS_rt_sigsuspend, libc::SYS_sigaltstack, libc::SYS_kill,
            libc::SYS_tgkill, libc::SYS_restart_syscall,
        ],
        when: Always,
    },
    // Time and random numbers.
    Rule {
        calls: &[
            libc::SYS_clock_gettime, libc::SYS_clock_getres, libc::SYS_clock_nanosleep, libc::SYS_nanosleep,
            libc::SYS_gettimeofday, libc::SYS_getrandom, libc::SYS_timerfd_create, libc::SYS_timerfd_settime,
            libc::SYS_timerfd_gettime,
        ],
        when: Always,
    },
    // The process's own limits. Without a capability it can only lower them.
    Rule { calls: &[libc::SYS_prlimit64], when: Is(0, &[0]) },
    // Waiting for descriptors.
    Rule {
        calls: &[
            libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_create1, libc::SYS_epoll_ctl, libc::SYS_epoll_pwait,
            libc::SYS_epoll_pwait2, libc::SYS_eventfd2,
        ],
        when: Always,
    },
    // Unix stream sockets, as a client: no process listens, and no other family is allowed.
    Rule {
        calls: &[libc::SYS_socket],
        when: Both(&[libc::AF_UNIX as u32], SOCKET_TYPE_MASK, libc::SOCK_STREAM as u32),
    },
    // Streams only: each socket of a datagram pair could send to any socket file in a directory.
    Rule {
        calls: &[libc::SYS_socketpair],
        when: Both(&[libc::AF_UNIX as u32], SOCKET_TYPE_MASK, libc::SOCK_STREAM as u32),
    },
    Rule {
        calls: &[
            libc::SYS_connect, libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_recvfrom, libc::SYS_recvmsg,
            libc::SYS_shutdown, libc::SYS_getsockopt, libc::SYS_setsockopt, libc::SYS_getsockname,
            libc::SYS_getpeername,
        ],
        when: Always,
    },
    // Four of the many requests: is it a terminal, how many bytes are ready, do not block, close at exec.
    Rule {
        calls: &[libc::SYS_ioctl],
        when: Is(1, &[libc::TCGETS as u32, libc::FIONREAD as u32, libc::FIONBIO as u32, libc::FIOCLEX as u32]),
    },
    // More restrictions on itself: Landlock and seccomp (but no listener that answers for other processes).
    Rule {
        calls: &[libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self],
        when: Always,
    },
    Rule {
        calls: &[libc::SYS_seccomp],
        when: Both(
            &[libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_GET_ACTION_AVAIL],
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER as u32,
            0,
        ),
    },
    Rule {
        calls: &[libc::SYS_prctl],
        when: Is(
            0,
            &[
                libc::PR_SET_NAME as u32, libc::PR_GET_NAME as u32, libc::PR_SET_NO_NEW_PRIVS as u32,
                libc::PR_GET_NO_NEW_PRIVS as u32, libc::PR_SET_SECCOMP as u32, libc::PR_GET_SECCOMP as u32,
                libc::PR_GET_DUMPABLE as u32, libc::PR_SET_DUMPABLE as u32, libc::PR_CAPBSET_READ as u32,
                libc::PR_GET_PDEATHSIG as u32, libc::PR_SET_VMA as u32,
            ],
        ),
    },
];

/// Further calls of the machine's own programs, both for the commands of an agent and for clients that fetch or unpack software.
/// The calls that [`PROGRAM`] leaves out on purpose are left out here too.
#[rustfmt::skip]
pub(super) const COMMANDS: &[Rule] = &[
    // Programs, by path or by descriptor. The mounts and Landlock decide which; `no_new_privs` holds for all of them.
    Rule { calls: &[libc::SYS_execve, libc::SYS_execveat], when: Always },
    // Links: the jail has no files that a link reaches and a path does not.
    Rule { calls: &[libc::SYS_symlinkat, libc::SYS_linkat], when: Always },
    // The process's own groups, sessions and timers, and questions about its scheduling.
    Rule {
        calls: &[
            libc::SYS_setpgid, libc::SYS_setsid, libc::SYS_getpriority, libc::SYS_sched_getparam,
            libc::SYS_sched_getscheduler, libc::SYS_setitimer, libc::SYS_getitimer, libc::SYS_mincore,
        ],
        when: Always,
    },
];

/// Older forms of these calls that only this architecture still has.
#[rustfmt::skip]
#[cfg(target_arch = "x86_64")]
pub(super) const COMMANDS_LEGACY: &[Rule] = &[Rule {
    calls: &[
        libc::SYS_symlink, libc::SYS_link, libc::SYS_vfork, libc::SYS_fork, libc::SYS_utimes, libc::SYS_utime,
        libc::SYS_futimesat, libc::SYS_alarm,
    ],
    when: Always,
}];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const COMMANDS_LEGACY: &[Rule] = &[];

/// Further calls of a shell, an interpreter and the tools around them in an agent's jail. The sandbox's own process gives them up
/// again.
#[rustfmt::skip]
pub(super) const SYSTEM: &[Rule] = &[
    // The requests of any program, and adoption of orphans.
    Rule {
        calls: &[libc::SYS_prctl],
        when: Is(
            0,
            &[
                libc::PR_SET_NAME as u32, libc::PR_GET_NAME as u32, libc::PR_SET_NO_NEW_PRIVS as u32,
                libc::PR_GET_NO_NEW_PRIVS as u32, libc::PR_SET_SECCOMP as u32, libc::PR_GET_SECCOMP as u32,
                libc::PR_GET_DUMPABLE as u32, libc::PR_SET_DUMPABLE as u32, libc::PR_CAPBSET_READ as u32,
                libc::PR_GET_PDEATHSIG as u32, libc::PR_SET_VMA as u32, libc::PR_SET_CHILD_SUBREAPER as u32,
            ],
        ),
    },
    // Attributes that `ls` and `cp` read; no call sets one.
    Rule {
        calls: &[
            libc::SYS_getxattr, libc::SYS_lgetxattr, libc::SYS_fgetxattr, libc::SYS_listxattr, libc::SYS_llistxattr,
            libc::SYS_flistxattr,
        ],
        when: Always,
    },
    // The process's own timers and signals.
    Rule {
        calls: &[
            libc::SYS_timer_create, libc::SYS_timer_settime, libc::SYS_timer_gettime, libc::SYS_timer_delete,
            libc::SYS_timer_getoverrun, libc::SYS_signalfd4,
        ],
        when: Always,
    },
    // Questions about scheduling, and moves of bytes between pipes.
    Rule {
        calls: &[
            libc::SYS_sched_get_priority_max, libc::SYS_sched_get_priority_min, libc::SYS_splice, libc::SYS_tee,
            libc::SYS_sync_file_range,
        ],
        when: Always,
    },
    // Only questions about a terminal, which does not exist; descriptors that the next program keeps.
    Rule {
        calls: &[libc::SYS_ioctl],
        when: Is(
            1,
            &[
                libc::TCGETS as u32, libc::FIONREAD as u32, libc::FIONBIO as u32, libc::FIOCLEX as u32,
                libc::FIONCLEX as u32, libc::TIOCGWINSZ as u32, libc::TIOCGPGRP as u32,
            ],
        ),
    },
];

/// Older forms of these calls that only this architecture still has.
#[rustfmt::skip]
#[cfg(target_arch = "x86_64")]
pub(super) const SYSTEM_LEGACY: &[Rule] = &[
    Rule { calls: &[libc::SYS_pause, libc::SYS_signalfd], when: Always },
    Rule { calls: &[libc::SYS_creat], when: Without(1, SET_ID) },
];
#[cfg(target_arch = "aarch64")]
pub(super) const SYSTEM_LEGACY: &[Rule] = &[];

/// Bits of a socket's type without its flags.
pub(super) const SOCKET_TYPE_MASK: u32 = 0xf;

/// Older forms of the calls above that only this architecture still has, and that its libraries use.
#[rustfmt::skip]
#[cfg(target_arch = "x86_64")]
pub(super) const LEGACY: &[Rule] = &[
    Rule {
        calls: &[
            libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_readlink, libc::SYS_getdents,
            libc::SYS_mkdir, libc::SYS_rmdir, libc::SYS_unlink, libc::SYS_rename, libc::SYS_dup2, libc::SYS_pipe,
            libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_create, libc::SYS_epoll_wait, libc::SYS_eventfd,
            libc::SYS_time, libc::SYS_getpgrp,
            libc::SYS_renameat, libc::SYS_getrlimit, libc::SYS_setrlimit,
        ],
        when: Always,
    },
    Rule { calls: &[libc::SYS_open], when: EitherWithout((1, MAKES_FILE), (2, SET_ID)) },
    Rule { calls: &[libc::SYS_chmod], when: Without(1, SET_ID) },
    // The thread pointer, which the loader sets.
    Rule { calls: &[libc::SYS_arch_prctl], when: Is(0, &[ARCH_SET_FS]) },
];
#[cfg(target_arch = "x86_64")]
const ARCH_SET_FS: u32 = 0x1002; // asm/prctl.h

/// Forms that this architecture still has and the `libc` crate does not name (asm-generic/unistd.h):
/// renameat, getrlimit, setrlimit.
#[cfg(target_arch = "aarch64")]
pub(super) const LEGACY: &[Rule] = &[Rule { calls: &[38, 163, 164], when: Always }];

/// Calls whose flags are behind a pointer, so that a filter cannot read them, and that have an older form without a pointer.
#[rustfmt::skip]
pub(super) const MISSING: &[c_long] = &[libc::SYS_clone3, libc::SYS_openat2, libc::SYS_pidfd_open, FCHMODAT2];
/// The same number everywhere; the `libc` crate does not name it everywhere.
const FCHMODAT2: c_long = 452;

/// Network calls of clients: TCP, and UDP for names. Landlock's list of ports covers only `connect` of TCP, so no other call may
/// connect: no other protocol (MPTCP falls back to TCP), and no first bytes without `connect`. No unix socket is allowed: the host's
/// network namespace has abstract sockets of the host, and on older kernels no other wall protects them.
#[rustfmt::skip]
pub(super) const CLIENT_NETWORK: &[Rule] = &[
    Rule {
        calls: &[libc::SYS_socket],
        when: Socket(
            &[libc::AF_INET as u32, libc::AF_INET6 as u32],
            &[libc::SOCK_STREAM as u32, libc::SOCK_DGRAM as u32],
            &[0, libc::IPPROTO_TCP as u32, libc::IPPROTO_UDP as u32],
        ),
    },
    Rule { calls: &[libc::SYS_sendto, libc::SYS_sendmmsg], when: Without(3, libc::MSG_FASTOPEN as u32) },
    Rule { calls: &[libc::SYS_sendmsg], when: Without(2, libc::MSG_FASTOPEN as u32) },
    Rule { calls: &[libc::SYS_recvmmsg], when: Always },
];

/// Network calls of a jail with a listener: a TCP connection over IPv4. Its network namespace has no other peer than the listener, and
/// no process can make one. No unix socket is allowed.
#[rustfmt::skip]
pub(super) const LISTENER: &[Rule] = &[
    Rule {
        calls: &[libc::SYS_socket],
        when: Socket(&[libc::AF_INET as u32], &[libc::SOCK_STREAM as u32], &[0, libc::IPPROTO_TCP as u32]),
    },
    Rule { calls: &[libc::SYS_sendto, libc::SYS_sendmmsg], when: Without(3, libc::MSG_FASTOPEN as u32) },
    Rule { calls: &[libc::SYS_sendmsg], when: Without(2, libc::MSG_FASTOPEN as u32) },
    Rule { calls: &[libc::SYS_recvmmsg], when: Always },
];

/// Further calls of a browser. Pairs of packets reach no other socket either, because the kernel ignores an address of theirs. It binds the
/// socket by which a second start would find it, and its driver connects to a socket of its own. Only processes of the jail reach them:
/// the network namespace is theirs alone, and Landlock permits socket files only in the jail's own directories.
#[rustfmt::skip]
pub(super) const BROWSER: &[Rule] = &[
    Rule {
        calls: &[libc::SYS_socketpair],
        when: Socket(&[libc::AF_UNIX as u32], &[libc::SOCK_STREAM as u32, libc::SOCK_SEQPACKET as u32], &[0]),
    },
    Rule {
        calls: &[libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4],
        when: Always,
    },
];

/// The sockets of a browser in a jail with a listener: those of [`LISTENER`] and unix streams.
#[rustfmt::skip]
pub(super) const BROWSER_LISTENER: &[Rule] = &[Rule {
    calls: &[libc::SYS_socket],
    when: Socket(
        &[libc::AF_INET as u32, libc::AF_UNIX as u32],
        &[libc::SOCK_STREAM as u32],
        &[0, libc::IPPROTO_TCP as u32],
    ),
}];

/// Calls of process 1: it reaps, reports and ends.
#[rustfmt::skip]
pub(super) const INIT: &[Rule] = &[Rule {
    calls: &[
        libc::SYS_wait4, libc::SYS_waitid, libc::SYS_exit_group, libc::SYS_read, libc::SYS_write, libc::SYS_sendmsg,
        libc::SYS_close, libc::SYS_brk, libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise,
        libc::SYS_futex, libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn,
        libc::SYS_restart_syscall, libc::SYS_getrandom,
    ],
    when: Always,
}];
