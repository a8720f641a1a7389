//! The seccomp filters of jailed processes, compiled from the lists in `filter::lists`.
//!
//! An unlisted call fails with EPERM. A call of the list `MISSING` fails with ENOSYS, so that the C library uses an older call.
//! A program can add filters, but cannot remove one. See [`crate::native`], which installs the filters before it executes the
//! program.

mod lists;

use libc::c_long;
use lists::When::{Always, Both, EitherWithout, Is, IsNot, Socket, Without};
use lists::{
    BROWSER, BROWSER_LISTENER, CLIENT_NETWORK, COMMANDS, COMMANDS_LEGACY, INIT, LEGACY, LISTENER, MISSING, PROGRAM,
    Rule, SOCKET_TYPE_MASK, SYSTEM, SYSTEM_LEGACY, When,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::io;

/// A filter in the form that the kernel takes.
pub(crate) type Program = BpfProgram;

/// Returns the filters of a jailed program, in the order in which they are installed.
///
/// Two filters are necessary because each has only one error for the calls that it refuses. If both refuse a call, the kernel
/// returns the error of the later one. `system` is true for a jail that has the host's programs.
pub(crate) fn base(system: bool) -> io::Result<[Program; 2]> {
    let missing = MISSING.iter().map(|call| (*call, Vec::new())).collect();
    Ok([
        compile(allowed(system)?, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow)?,
        compile(missing, SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32))?,
    ])
}

/// Returns the calls that a program may make. With `system`, the wider rules replace the narrower ones.
fn allowed(system: bool) -> io::Result<BTreeMap<c_long, Vec<SeccompRule>>> {
    let mut allowed = collect(PROGRAM.iter().chain(LEGACY))?;
    if system {
        allowed.extend(collect(commands().chain(SYSTEM).chain(SYSTEM_LEGACY))?);
    }
    Ok(allowed)
}

/// Returns the calls that the machine's own programs need, on this architecture.
fn commands() -> impl Iterator<Item = &'static Rule> {
    COMMANDS.iter().chain(COMMANDS_LEGACY)
}

/// Returns the filters for a process that drops its capabilities after they are installed. Only a test build uses them.
#[cfg(feature = "failpoints")]
pub(crate) fn base_before_dropping(system: bool) -> io::Result<[Program; 2]> {
    let [_, missing] = base(system)?;
    let mut allowed = allowed(system)?;
    allowed.insert(libc::SYS_capset, Vec::new());
    allowed.insert(libc::SYS_prctl, Vec::new());
    Ok([compile(allowed, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow)?, missing])
}

/// Installs a filter with a capability instead of `no_new_privs`.
#[cfg(feature = "failpoints")]
pub(crate) fn install_with_capability(program: &Program) -> io::Result<()> {
    // SAFETY: the crate's instruction has the layout of the kernel's (`linux/filter.h`), as it says itself.
    let instructions =
        unsafe { std::slice::from_raw_parts(program.as_ptr().cast::<libc::sock_filter>(), program.len()) };
    crate::sys::install_filter(instructions)
}

/// Returns the filters of a client. It executes other programs, makes links, and uses the network if `network` is true. It never
/// listens, and no file that it makes is set-uid.
pub(crate) fn client(network: bool) -> io::Result<[Program; 2]> {
    let [_, missing] = base(false)?;
    let mut allowed = collect(PROGRAM.iter().chain(LEGACY))?;
    // These rules replace the narrower ones.
    allowed.extend(collect(commands())?);
    if network {
        allowed.extend(collect(CLIENT_NETWORK.iter())?);
    }
    Ok([compile(allowed, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow)?, missing])
}

/// Returns the filters of a jail with the machine's programs and a listener of the host: the sockets of TCP over IPv4, and no other.
pub(crate) fn with_listener() -> io::Result<[Program; 2]> {
    let [_, missing] = base(true)?;
    let mut allowed = allowed(true)?;
    // These rules replace the narrower ones.
    allowed.extend(collect(LISTENER.iter())?);
    Ok([compile(allowed, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow)?, missing])
}

/// Returns the filters of a jail with a browser, which has the machine's programs, and a listener of the host or none.
pub(crate) fn browser(has_listener: bool) -> io::Result<[Program; 2]> {
    let [_, missing] = base(true)?;
    let mut allowed = allowed(true)?;
    // Later rules replace earlier ones.
    if has_listener {
        allowed.extend(collect(LISTENER.iter())?);
        allowed.extend(collect(BROWSER_LISTENER.iter())?);
    }
    allowed.extend(collect(BROWSER.iter())?);
    Ok([compile(allowed, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow)?, missing])
}

/// Returns the filter of process 1 of a jail. Process 1 only reaps and reports.
pub(crate) fn init() -> io::Result<Program> {
    compile(collect(INIT.iter())?, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow)
}

/// Installs a filter in this process, and sets `no_new_privs`, which it needs.
pub(crate) fn install(program: &Program) -> io::Result<()> {
    seccompiler::apply_filter(program).map_err(|error| match error {
        seccompiler::Error::Prctl(cause) | seccompiler::Error::Seccomp(cause) => cause,
        other => io::Error::other(other),
    })
}

/// Returns the alternatives of a rule, one of which must match; an empty list always matches.
fn alternatives(when: &When) -> Vec<Vec<(u8, Compare, u32)>> {
    match when {
        Always => Vec::new(),
        Is(argument, values) => values.iter().map(|value| vec![(*argument, Compare::Eq, *value)]).collect(),
        IsNot(argument, values) => {
            vec![values.iter().map(|value| (*argument, Compare::Ne, *value)).collect()]
        }
        Without(argument, bits) => vec![vec![(*argument, Compare::MaskedEq(u64::from(*bits)), 0)]],
        Both(firsts, mask, second) => firsts
            .iter()
            .map(|first| vec![(0, Compare::Eq, *first), (1, Compare::MaskedEq(u64::from(*mask)), *second)])
            .collect(),
        Socket(families, kinds, protocols) => {
            let kind = Compare::MaskedEq(u64::from(SOCKET_TYPE_MASK));
            let mut all = Vec::new();
            for family in *families {
                for one in *kinds {
                    all.extend(protocols.iter().map(|protocol| {
                        vec![(0, Compare::Eq, *family), (1, kind.clone(), *one), (2, Compare::Eq, *protocol)]
                    }));
                }
            }
            all
        }
        EitherWithout(one, other) => {
            [one, other].map(|(argument, bits)| vec![(*argument, Compare::MaskedEq(u64::from(*bits)), 0)]).to_vec()
        }
    }
}

fn collect<'a>(rules: impl Iterator<Item = &'a Rule>) -> io::Result<BTreeMap<c_long, Vec<SeccompRule>>> {
    let mut map = BTreeMap::new();
    for rule in rules {
        for call in rule.calls {
            let built: Result<Vec<_>, _> = alternatives(&rule.when)
                .into_iter()
                .map(|conditions| {
                    let conditions: Result<Vec<_>, _> = conditions
                        .into_iter()
                        .map(|(argument, compare, value)| {
                            SeccompCondition::new(argument, Length::Dword, compare, u64::from(value))
                        })
                        .collect();
                    conditions.and_then(SeccompRule::new)
                })
                .collect();
            if map.insert(*call, built.map_err(io::Error::other)?).is_some() {
                return Err(io::Error::other(format!("system call {call} is in the filter twice")));
            }
        }
    }
    Ok(map)
}

fn compile(
    rules: BTreeMap<c_long, Vec<SeccompRule>>,
    unlisted: SeccompAction,
    listed: SeccompAction,
) -> io::Result<Program> {
    let architecture = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    SeccompFilter::new(rules, unlisted, listed, architecture).and_then(Program::try_from).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip]
    fn no_rule_allows_a_call_that_leads_out_of_a_jail() {
        let never = [
            libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root, libc::SYS_chroot, libc::SYS_move_mount,
            libc::SYS_open_tree, libc::SYS_fsopen, libc::SYS_fsmount, libc::SYS_mount_setattr, libc::SYS_unshare,
            libc::SYS_setns, libc::SYS_clone3, libc::SYS_ptrace, libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev, libc::SYS_pidfd_open, libc::SYS_pidfd_getfd, libc::SYS_pidfd_send_signal,
            libc::SYS_bpf, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register,
            libc::SYS_userfaultfd, libc::SYS_perf_event_open, libc::SYS_keyctl, libc::SYS_add_key,
            libc::SYS_request_key, libc::SYS_open_by_handle_at, libc::SYS_name_to_handle_at, libc::SYS_personality,
            libc::SYS_kexec_load, libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module,
            libc::SYS_mknodat, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4,
            libc::SYS_setuid, libc::SYS_setresuid, libc::SYS_setgroups, libc::SYS_capset, libc::SYS_execve,
            libc::SYS_memfd_create, libc::SYS_symlinkat, libc::SYS_linkat, libc::SYS_reboot, libc::SYS_swapon,
            libc::SYS_sethostname, libc::SYS_quotactl, libc::SYS_syslog, libc::SYS_openat2, libc::SYS_fchownat,
        ];
        for rules in [PROGRAM, LEGACY, SYSTEM, SYSTEM_LEGACY, CLIENT_NETWORK, LISTENER, BROWSER_LISTENER, INIT] {
            let allowed = rules.iter().flat_map(|rule| rule.calls);
            let out: Vec<_> = allowed.filter(|call| never.contains(call)).collect();
            assert!(out.is_empty(), "allowed: {out:?}");
        }
        // The machine's programs make links and execute each other. They need no other of these calls.
        let needed = [libc::SYS_execve, libc::SYS_symlinkat, libc::SYS_linkat];
        let allowed = commands().flat_map(|rule| rule.calls);
        let out: Vec<_> = allowed.filter(|call| never.contains(call) && !needed.contains(call)).collect();
        assert!(out.is_empty(), "allowed to the machine's programs: {out:?}");
        // A browser and its driver bind sockets and serve them, inside of their jail. They need no other of these calls.
        let needed = [libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4];
        let allowed = BROWSER.iter().flat_map(|rule| rule.calls);
        let out: Vec<_> = allowed.filter(|call| never.contains(call) && !needed.contains(call)).collect();
        assert!(out.is_empty(), "allowed to a browser: {out:?}");
        for whether in [false, true] {
            base(whether).and(client(whether)).and(browser(whether)).expect("the filters compile");
        }
        with_listener().expect("the filters compile");
    }
}
