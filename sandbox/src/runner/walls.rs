//! The walls around a command. It reaches the machine's programs and the agent's files, but no other file of the host or the session.
//!
//! They only tighten the launcher's walls; the filter below lists further refused calls. See [`crate::lockdown`] for the walls of the
//! main process.

use crate::lockdown::{LANDLOCK_WANTED, enter_domain};
use crate::{Paths, Programs};
use landlock::{
    AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetError, RulesetStatus, Scope,
};
use nix::unistd::Pid;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::io;

/// Refused calls, so that no socket is made or used by name, and none passes a descriptor. A pair of sockets between two processes of
/// a command is allowed; it is a pipe.
const NO_SOCKETS: &[libc::c_long] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
];

/// The walls around the runner, and the data for those around each command.
pub(super) struct Walls {
    main: Pid,
    runner: Pid,
    command: BpfProgram,
}

impl Walls {
    /// Raises the walls of the runner.
    pub(super) fn raise(paths: &Paths, programs: &Programs, main: Pid) -> io::Result<Self> {
        nix::sys::prctl::set_no_new_privs()?;
        domain(paths, programs).map_err(io::Error::other)?;
        install(&refusing(sockets()?)?)?;
        let runner = Pid::this();
        Ok(Self { main, runner, command: refusing(signals(main, runner)?)? })
    }

    /// Raises the walls of a command, in its process. They also prevent signals to the process that serves it.
    pub(super) fn around_command(&self) -> io::Result<()> {
        let alone = || -> Result<RulesetStatus, RulesetError> {
            let rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
            // A domain must handle at least one right; no command makes a device anyway.
            let rules = rules.handle_access(AccessFs::MakeChar)?.scope(Scope::Signal)?;
            Ok(rules.create()?.restrict_self()?.ruleset)
        };
        alone().map_err(|error| io::Error::other(error.to_string()))?;
        install(&self.command)
    }

    /// Returns whether this is the runner or the process that it serves.
    pub(super) fn is_ours(&self, pid: Pid) -> bool {
        pid == self.main || pid == self.runner
    }

    /// Returns the runner's own process id.
    pub(super) fn runner(&self) -> Pid {
        self.runner
    }
}

/// Enters the Landlock domain of the runner, which every command inherits.
fn domain(paths: &Paths, programs: &Programs) -> Result<(), String> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let never =
        AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev | AccessFs::ResolveUnix;
    let write = AccessFs::from_write(LANDLOCK_WANTED) & !never;
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    let mut allowed = vec![
        (&programs.usr, read | AccessFs::Execute),
        (&programs.etc, read),
        (&programs.tmp, read | write),
        (&paths.workspace, read | write),
    ];
    allowed.extend(programs.devices.iter().map(|path| (path, device)));
    allowed.extend(paths.granted.iter().map(|granted| {
        let rights = if granted.is_writable { read | write } else { read };
        (&granted.path, rights)
    }));
    // A missing path needs no rule, because it cannot be reached.
    let rule = |(path, rights)| PathFd::new(path).ok().map(|place| PathBeneath::new(place, rights));
    enter_domain(allowed.into_iter().filter_map(rule).collect())
}

type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

/// Returns the rules about sockets: no socket by name, and `sendto` only if all 64 bits of the pointer to the address are zero.
fn sockets() -> io::Result<Rules> {
    let mut rules: Rules = NO_SOCKETS.iter().map(|call| (*call, Vec::new())).collect();
    let addressed = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
    let addressed = addressed.and_then(|condition| SeccompRule::new(vec![condition])).map_err(io::Error::other)?;
    rules.insert(libc::SYS_sendto, vec![addressed]);
    Ok(rules)
}

/// Returns the rules that refuse signals to the main process, to the runner, or to all processes. On a kernel with scopes, Landlock
/// refuses these too.
fn signals(main: Pid, runner: Pid) -> io::Result<Rules> {
    let (main, runner) = (main.as_raw(), runner.as_raw());
    let to = |argument: u8, target: i32| {
        let target = u64::from(target.cast_unsigned());
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, target);
        condition.and_then(|condition| SeccompRule::new(vec![condition])).map_err(io::Error::other)
    };
    let kill = [main, runner, -main, -runner, -1].map(|target| to(0, target)).into_iter().collect::<io::Result<_>>()?;
    let tgkill =
        [main, runner].into_iter().flat_map(|target| [to(0, target), to(1, target)]).collect::<io::Result<_>>()?;
    Ok([(libc::SYS_kill, kill), (libc::SYS_tgkill, tgkill)].into())
}

/// Makes a filter that refuses these calls and passes all others to the launcher's filter.
fn refusing(rules: Rules) -> io::Result<BpfProgram> {
    let architecture = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32), architecture);
    filter.and_then(BpfProgram::try_from).map_err(io::Error::other)
}

fn install(program: &BpfProgram) -> io::Result<()> {
    seccompiler::apply_filter(program).map_err(io::Error::other)
}
