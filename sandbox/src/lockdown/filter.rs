//! The seccomp filter of the sandbox: the allowed system calls, each group with its reason. All other calls fail with EPERM.
//!
//! It allows no new process, thread or program, no executable memory, and only unix stream sockets. See [`crate::agent`].

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

/// Condition under which a call is allowed. Arguments count from 0; only the 32 bits that the kernel reads are compared.
#[derive(Debug, Clone, Copy)]
enum When {
    Always,
    /// If the argument is one of these.
    Is(u8, &'static [u32]),
    /// If the argument has none of these bits.
    Without(u8, u32),
    /// If the first argument is this process.
    Myself,
    /// If it requests a unix stream socket.
    UnixStream,
}
use When::{Always, Is, Myself, UnixStream, Without};

/// Calls, their condition, and their purpose.
type Rule = (&'static [libc::c_long], When, &'static str);

/// Bits of a socket's type without its flags.
const SOCKET_TYPE_MASK: u64 = 0xf;

#[rustfmt::skip]
const RULES: &[Rule] = &[
    // Files. The mounts and Landlock decide which ones are reachable.
    (&[libc::SYS_openat], Always, "queues, their journals, the workspace"),
    (&[libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev, libc::SYS_lseek, libc::SYS_close], Always,
        "open files"),
    (&[libc::SYS_pread64, libc::SYS_pwrite64, libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_ftruncate], Always,
        "pages of a queue and their way to the disk"),
    (&[libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_faccessat, libc::SYS_faccessat2,
        libc::SYS_getdents64], Always, "SQLite looks for a journal; a tool lists a directory"),
    (&[libc::SYS_mkdirat, libc::SYS_unlinkat], Always, "directories above a new file; a journal that is done"),
    #[cfg(target_arch = "x86_64")]
    (&[libc::SYS_renameat], Always, "a finished file gets its name"),
    (&[libc::SYS_renameat2], Without(4, libc::RENAME_WHITEOUT), "the same in its newer form; no device node"),
    (&[libc::SYS_fcntl], Is(1, &[libc::F_GETLK as u32, libc::F_SETLK as u32, libc::F_SETLKW as u32,
        libc::F_GETFD as u32, libc::F_SETFD as u32, libc::F_GETFL as u32]), "locks of a queue; is it open, and how"),

    // The link and the model socket.
    (&[libc::SYS_socket], UnixStream, "the model socket, again if it broke"),
    (&[libc::SYS_connect, libc::SYS_sendto, libc::SYS_recvfrom, libc::SYS_sendmsg, libc::SYS_recvmsg], Always,
        "frames and bells"),
    (&[libc::SYS_ppoll], Always, "sleeping until one of them has data"),

    // Memory, never executable: no code is loaded after the start.
    (&[libc::SYS_mmap, libc::SYS_mprotect], Without(2, libc::PROT_EXEC as u32), "the allocator"),
    (&[libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise, libc::SYS_brk], Always, "the allocator"),

    // Waiting and time.
    (&[libc::SYS_futex, libc::SYS_sched_yield], Always, "locks inside the libraries"),
    (&[libc::SYS_nanosleep, libc::SYS_clock_nanosleep, libc::SYS_restart_syscall], Always,
        "SQLite waits for a lock"),
    (&[libc::SYS_clock_gettime, libc::SYS_clock_getres, libc::SYS_gettimeofday], Always, "timestamps"),

    // Random numbers and identity.
    (&[libc::SYS_getrandom], Always, "ids, and the vectors of encrypted pages"),
    (&[libc::SYS_getpid, libc::SYS_gettid, libc::SYS_getuid, libc::SYS_geteuid, libc::SYS_getgid, libc::SYS_getegid,
        libc::SYS_uname], Always, "SQLite and OpenSSL ask"),
    (&[libc::SYS_prctl], Is(0, &[libc::PR_GET_NO_NEW_PRIVS as u32, libc::PR_GET_SECCOMP as u32,
        libc::PR_GET_DUMPABLE as u32]), "the self-test"),

    // The end of the process.
    (&[libc::SYS_exit, libc::SYS_exit_group], Always, "the end"),
    (&[libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_sigaltstack], Always,
        "the runtime's report of a stack overflow, and an abort"),
    (&[libc::SYS_tgkill], Myself, "an abort"),
    #[cfg(feature = "failpoints")]
    (&[libc::SYS_kill], Myself, "the fail point"),
];

/// Older forms that only this architecture still has, and that its C library prefers.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const LEGACY: &[Rule] = &[
    (&[libc::SYS_open, libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_unlink, libc::SYS_poll], Always,
        "as their newer forms"),
];
#[cfg(target_arch = "aarch64")]
const LEGACY: &[Rule] = &[
    // asm-generic/unistd.h; the `libc` crate does not name it here.
    (&[38], Always, "renameat: a finished file gets its name"),
];

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: TargetArch = TargetArch::aarch64;

/// Installs the filter for this thread, which is the only one of the process.
///
/// # Errors
/// A sentence of the filter's compiler or of the kernel.
pub fn install() -> Result<(), String> {
    let program = compile(std::process::id()).map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}

fn compile(me: u32) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for (calls, when, _reason) in RULES.iter().chain(LEGACY) {
        for call in *calls {
            let alternatives = rules.entry(*call).or_default();
            alternatives.extend(when.alternatives(me)?);
        }
    }
    SeccompFilter::new(rules, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow, ARCHITECTURE)?.try_into()
}

impl When {
    /// Returns the alternatives, one of which must match; an empty list always matches.
    fn alternatives(self, me: u32) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
        let compare = |argument, how, value: u64| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, value);
        let is = |argument, value: u32| SeccompRule::new(vec![compare(argument, SeccompCmpOp::Eq, value.into())?]);
        match self {
            Always => Ok(Vec::new()),
            Is(argument, values) => values.iter().map(|&value| is(argument, value)).collect(),
            Without(argument, bits) => {
                Ok(vec![SeccompRule::new(vec![compare(argument, SeccompCmpOp::MaskedEq(bits.into()), 0)?])?])
            }
            Myself => Ok(vec![is(0, me)?]),
            UnixStream => Ok(vec![SeccompRule::new(vec![
                compare(0, SeccompCmpOp::Eq, libc::AF_UNIX as u64)?,
                compare(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE_MASK), libc::SOCK_STREAM as u64)?,
            ])?]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn calls_that_reach_outside_are_not_allowed() {
        let allowed: BTreeSet<_> = RULES.iter().chain(LEGACY).flat_map(|(calls, ..)| *calls).collect();
        for call in [
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_ptrace,
            libc::SYS_bpf,
            libc::SYS_mount,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_io_uring_setup,
            libc::SYS_memfd_create,
            libc::SYS_bind,
            libc::SYS_listen,
            libc::SYS_symlinkat,
            libc::SYS_linkat,
            libc::SYS_mknodat,
            libc::SYS_openat2,
            libc::SYS_process_vm_readv,
            libc::SYS_userfaultfd,
            libc::SYS_keyctl,
            libc::SYS_ioctl,
            libc::SYS_prlimit64,
            libc::SYS_seccomp,
            libc::SYS_fchmod,
            libc::SYS_pidfd_open,
        ] {
            assert!(!allowed.contains(&call), "call {call}");
        }
    }

    #[test]
    fn no_call_is_listed_twice() {
        let mut seen = BTreeSet::new();
        for call in RULES.iter().chain(LEGACY).flat_map(|(calls, ..)| *calls) {
            assert!(seen.insert(call), "call {call}: a second rule without a condition would undo the first");
        }
    }
}
