//! What a command can reach: the machine's programs, the agent's files, and nothing of the host or of this session's own.
//!
//! Only ever tightens what the launcher put in place; the filter below is a list of what is taken away from that. Next:
//! `lockdown`, for the walls of the main process.

use crate::{Places, Programs};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// What a kernel must enforce, and what it enforces if it knows it.
const LANDLOCK_REQUIRED: ABI = ABI::V3;
const LANDLOCK_WANTED: ABI = ABI::V9;

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
    main: i32,
    runner: i32,
    command: BpfProgram,
}

impl Walls {
    /// Raises those of the runner.
    pub(super) fn raise(places: &Places, programs: &Programs, main: u32) -> io::Result<Self> {
        nix::sys::prctl::set_no_new_privs()?;
        domain(places, programs).map_err(|error| io::Error::other(error.to_string()))?;
        install(&refusing(sockets()?)?)?;
        let main = i32::try_from(main).map_err(io::Error::other)?;
        let runner = i32::try_from(std::process::id()).map_err(io::Error::other)?;
        Ok(Self { main, runner, command: refusing(signals(main, runner)?)? })
    }

    /// Raises those of a command, in its process: whoever serves it is nobody to send a signal to.
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

    /// Whether this is the runner or whom it serves.
    pub(super) fn is_ours(&self, pid: i32) -> bool {
        pid == self.main || pid == self.runner
    }

    /// The runner's own number.
    pub(super) fn runner(&self) -> i32 {
        self.runner
    }
}

/// Enters the domain of the runner, and so of every command.
fn domain(places: &Places, programs: &Programs) -> Result<(), RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let never =
        AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev | AccessFs::ResolveUnix;
    let write = AccessFs::from_write(LANDLOCK_WANTED) & !never;
    let mut domain = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LANDLOCK_REQUIRED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK_WANTED))?
        .handle_access(AccessNet::from_all(LANDLOCK_WANTED))?
        .scope(Scope::from_all(LANDLOCK_WANTED))?
        .create()?;
    let mut allow = |path: &Path, rights: BitFlags<AccessFs>| -> Result<(), RulesetError> {
        // What is not there needs no rule, and a place that is missing is one thing less to reach.
        let Ok(place) = PathFd::new(path) else { return Ok(()) };
        (&mut domain).add_rule(PathBeneath::new(place, rights)).map(drop)
    };
    allow(&programs.usr, read | AccessFs::Execute)?;
    allow(&programs.etc, read)?;
    allow(&programs.tmp, read | write)?;
    for device in &programs.devices {
        allow(device, AccessFs::ReadFile | AccessFs::WriteFile)?;
    }
    allow(&places.workspace, read | write)?;
    for granted in &places.granted {
        let rights = if granted.is_writable { read | write } else { read };
        allow(&granted.path, rights)?;
    }
    match domain.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(RulesetError::from(landlock::CreateRulesetError::MissingHandledAccess)),
    }
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

/// Signals to the two processes that a command must not reach, or to everybody. On a kernel with scopes these are refused anyway.
fn signals(main: i32, runner: i32) -> io::Result<Rules> {
    let to = |argument: u8, whom: i32| {
        let whom = u64::from(whom.cast_unsigned());
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, whom);
        condition.and_then(|condition| SeccompRule::new(vec![condition])).map_err(io::Error::other)
    };
    let kill = [main, runner, -main, -runner, -1].map(|whom| to(0, whom)).into_iter().collect::<io::Result<_>>()?;
    let tgkill = [main, runner].into_iter().flat_map(|whom| [to(0, whom), to(1, whom)]).collect::<io::Result<_>>()?;
    Ok([(libc::SYS_kill, kill), (libc::SYS_tgkill, tgkill)].into())
}

/// A filter that refuses these and lets everything else through to the launcher's.
fn refusing(rules: Rules) -> io::Result<BpfProgram> {
    let architecture = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32), architecture);
    filter.and_then(BpfProgram::try_from).map_err(io::Error::other)
}

fn install(program: &BpfProgram) -> io::Result<()> {
    seccompiler::apply_filter(program).map_err(io::Error::other)
}
