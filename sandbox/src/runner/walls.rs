//! Reach of a command: the machine's programs, the agent's files, and nothing of the host or of this session's own.
//!
//! Only ever tightens what the launcher put in place; the filter below is a list of what is taken away from that. See
//! [`crate::lockdown`], for the walls of the main process.

use crate::lockdown::{LANDLOCK_WANTED, enter_domain};
use crate::{Places, Programs};
use landlock::{
    AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetError, RulesetStatus, Scope,
};
use nix::unistd::Pid;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::io;

/// No socket is made or used by name, and none carries a descriptor; a pair of sockets between two processes of a command is a
/// pipe and stays.
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

/// The walls around the runner, and what is still to be put around each command.
pub(super) struct Walls {
    main: Pid,
    runner: Pid,
    command: BpfProgram,
}

impl Walls {
    /// Raises those of the runner.
    pub(super) fn raise(places: &Places, programs: &Programs, main: Pid) -> io::Result<Self> {
        nix::sys::prctl::set_no_new_privs()?;
        domain(places, programs).map_err(io::Error::other)?;
        install(&refusing(sockets()?)?)?;
        let runner = Pid::this();
        Ok(Self { main, runner, command: refusing(signals(main, runner)?)? })
    }

    /// Raises those of a command, in its process: it may not signal the process that serves it.
    pub(super) fn around_command(&self) -> io::Result<()> {
        let alone = || -> Result<RulesetStatus, RulesetError> {
            let rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
            // A domain has to handle something; no command makes a device anyway.
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

    /// Returns the runner's own number.
    pub(super) fn runner(&self) -> Pid {
        self.runner
    }
}

/// Enters the domain of the runner, and so of every command.
fn domain(places: &Places, programs: &Programs) -> Result<(), String> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let never =
        AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev | AccessFs::ResolveUnix;
    let write = AccessFs::from_write(LANDLOCK_WANTED) & !never;
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    let mut allowed = vec![
        (&programs.usr, read | AccessFs::Execute),
        (&programs.etc, read),
        (&programs.tmp, read | write),
        (&places.workspace, read | write),
    ];
    allowed.extend(programs.devices.iter().map(|path| (path, device)));
    allowed.extend(places.granted.iter().map(|granted| {
        let rights = if granted.is_writable { read | write } else { read };
        (&granted.path, rights)
    }));
    // A path that is not there needs no rule, and a missing place cannot be reached.
    let rule = |(path, rights)| PathFd::new(path).ok().map(|place| PathBeneath::new(place, rights));
    enter_domain(allowed.into_iter().filter_map(rule).collect())
}

type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

/// Sockets by name, and what goes to one: all 64 bits of the pointer to the address are zero, or it is refused.
fn sockets() -> io::Result<Rules> {
    let mut rules: Rules = NO_SOCKETS.iter().map(|call| (*call, Vec::new())).collect();
    let addressed = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
    let addressed = addressed.and_then(|condition| SeccompRule::new(vec![condition])).map_err(io::Error::other)?;
    rules.insert(libc::SYS_sendto, vec![addressed]);
    Ok(rules)
}

/// Returns the rules about signals to the two processes that a command must not reach, or to every process. On a kernel with
/// scopes these are refused anyway.
fn signals(main: Pid, runner: Pid) -> io::Result<Rules> {
    let (main, runner) = (main.as_raw(), runner.as_raw());
    let to = |argument: u8, whom: i32| {
        let whom = u64::from(whom.cast_unsigned());
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, whom);
        condition.and_then(|condition| SeccompRule::new(vec![condition])).map_err(io::Error::other)
    };
    let kill = [main, runner, -main, -runner, -1].map(|whom| to(0, whom)).into_iter().collect::<io::Result<_>>()?;
    let tgkill = [main, runner].into_iter().flat_map(|whom| [to(0, whom), to(1, whom)]).collect::<io::Result<_>>()?;
    Ok([(libc::SYS_kill, kill), (libc::SYS_tgkill, tgkill)].into())
}

/// Makes a filter that refuses these and lets everything else through to the launcher's.
fn refusing(rules: Rules) -> io::Result<BpfProgram> {
    let architecture = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32), architecture);
    filter.and_then(BpfProgram::try_from).map_err(io::Error::other)
}

fn install(program: &BpfProgram) -> io::Result<()> {
    seccompiler::apply_filter(program).map_err(io::Error::other)
}
