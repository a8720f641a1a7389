//! The check if this machine can run agents, with a remedy for each failed part.
//!
//! Makes a real jail and inspects it instead of guessing, and never offers less isolation. See `ironclaw_jail::native` for the steps.

mod diagnosis;

use super::file_system;
use diagnosis::{Advice, Machine, advise, newer_kernel};
use ironclaw_jail::launcher::trial::try_launch;
use ironclaw_jail::launcher::{Failure, Part};
use ironclaw_jail::{System, landlock, sys};
use ironclaw_operator::{Check, Feature, FeatureState, Preflight};
use nix::errno::Errno;
use std::path::Path;

const LANDLOCK: &str = "Landlock";
const PIDFD: &str = "pidfd";

/// Checks all needs of a launch, in the order of a launch.
///
/// `proc_sys` is `/proc/sys`, or a copy of it in a test; `first_id` is the host uid and gid that root would give to the first jail, and is
/// ignored for other users. Forks, so it must run before the first thread; with threads, every check that needs a trial fails and says so.
pub fn run(proc_sys: &Path, first_id: u32) -> Preflight {
    let machine = Machine::read(proc_sys);
    let mut checks = machine.settings();
    checks.push(processes());
    let own = [(LANDLOCK, landlock(&machine)), (PIDFD, pidfd(&machine))];
    let mut features = Vec::new();
    for (name, (check, state)) in own {
        checks.push(check);
        features.push(Feature { name: name.to_owned(), state });
    }
    let failed = try_launch(machine.root, first_id, None).err();
    features.extend(tried(&machine, failed.as_ref()));
    checks.extend(trial(&machine, failed.as_ref()));
    checks.push(locks(machine.root, first_id));
    Preflight { ok: checks.iter().all(|check| check.ok), checks, features }
}

/// Does the same for a home, whose file system has to fit too.
pub fn run_for(proc_sys: &Path, first_id: u32, home: Option<&Path>) -> Preflight {
    let mut preflight = run(proc_sys, first_id);
    preflight.checks.extend(home.map(file_system::check));
    preflight.ok = preflight.checks.iter().all(|check| check.ok);
    preflight
}

/// Returns the state of each feature that the trial came to. A failed part before it leaves it unknown.
fn tried(machine: &Machine, failed: Option<&Failure>) -> Vec<Feature> {
    let state = |part: Part| match failed {
        Some(failure) if failure.part == part => Some(machine.state(Errno::from_raw(failure.errno))),
        Some(failure) if failure.part < part => None,
        Some(_) | None => Some(FeatureState::Present),
    };
    let feature = |name: &str, part| Some(Feature { name: name.to_owned(), state: state(part)? });
    [feature("user namespaces", Part::Namespaces), feature("seccomp", Part::Seccomp)].into_iter().flatten().collect()
}

/// The parts of the trial, each with its name and the result of a success.
const PARTS: [(Part, &str, &str); 8] = [
    (Part::Launcher, "launcher", "a launcher was forked before there were threads, and answers"),
    (Part::Namespaces, "namespaces", "user, mount, pid, network, ipc, host name and cgroup namespaces can be created"),
    (Part::Ids, "host ids", "a jail can be given its uid and gid"),
    (Part::Root, "root of a jail", "an empty root can be mounted and entered, and the host's root detached"),
    (Part::Privileges, "privileges", "capabilities can be dropped and resources limited"),
    (Part::Landlock, "Landlock domain", "a Landlock domain can be entered"),
    (Part::Seccomp, "seccomp", "seccomp filters can be installed"),
    (Part::Launch, "a whole jail", "a jail was created, inspected from outside, and found closed"),
];

/// Returns a check of each part of a trial. Parts before the failed one passed, and later ones were not tried.
fn trial(machine: &Machine, failed: Option<&Failure>) -> Vec<Check> {
    // The pivot comes last, but belongs to the root.
    let failing = failed.map(|failure| match failure.part {
        Part::Source | Part::System | Part::Program | Part::Launch => Part::Launch,
        part => part,
    });
    PARTS
        .iter()
        .map(|(part, name, found)| match (failed, failing) {
            (Some(failure), Some(failing)) if failing == *part => fail(name, advise(machine, failure)),
            (Some(failure), Some(failing)) if failing < *part => {
                fail(name, Advice::found(format!("not tried, because the launch failed before it ({})", failure.step)))
            }
            _ => pass(name, (*found).to_owned()),
        })
        .collect()
}

/// Reports if a command's locks below `/usr` affect the machine's files. Such locks are no reason to refuse launches.
fn locks(root: bool, first_id: u32) -> Check {
    let found = match try_launch(root, first_id, Some(System::default())) {
        Ok(true) => "locks on programs hold in the jail alone".to_owned(),
        Ok(false) => {
            "this kernel mounts no file system of its own over /usr, so an agent with run_command can hold locks on \
                      the machine's files below /usr; take run_command from agents that must not"
                .to_owned()
        }
        Err(failure) => format!("not tried, because a jail with programs cannot be made here ({})", failure.step),
    };
    pass("locks on programs", found)
}

fn processes() -> Check {
    match std::fs::read_to_string("/proc/self/status") {
        Ok(_) => pass("/proc", "processes can be inspected".into()),
        Err(error) => fail(
            "/proc",
            Advice::new(format!("cannot read /proc/self/status: {error}"), "mount it: `sudo mount -t proc proc /proc`"),
        ),
    }
}

/// Checks that Landlock is there, switched on, permitted and new enough.
fn landlock(machine: &Machine) -> (Check, FeatureState) {
    match sys::landlock() {
        Ok(abi) if abi < landlock::ABI_MIN => {
            let words = format!("Landlock ABI {abi} cannot keep a sandbox from truncating files");
            let advice = Advice::new(format!("{words} (it takes ABI {})", landlock::ABI_MIN), newer_kernel());
            (fail(LANDLOCK, advice), FeatureState::Absent)
        }
        Ok(abi) => (pass(LANDLOCK, format!("Landlock ABI {abi}")), FeatureState::Present),
        Err(error) => {
            let errno = errno_of(&error);
            (fail(LANDLOCK, diagnosis::landlock(machine, errno)), machine.state(errno))
        }
    }
}

fn pidfd(machine: &Machine) -> (Check, FeatureState) {
    match sys::pidfd_open(std::process::id()) {
        Ok(_) => (pass(PIDFD, "processes can be held by descriptor".into()), FeatureState::Present),
        Err(error) => {
            let (errno, found) = (errno_of(&error), format!("pidfd_open answers: {error}"));
            let state = machine.state(errno);
            let remedy =
                if state == FeatureState::Absent { newer_kernel() } else { diagnosis::OUTER_FILTER.to_owned() };
            (fail(PIDFD, Advice::new(found, remedy)), state)
        }
    }
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}

pub(crate) fn pass(name: &str, found: String) -> Check {
    Check { name: name.into(), ok: true, found, remedy: String::new() }
}

pub(crate) fn fail(name: &str, advice: Advice) -> Check {
    Check { name: name.into(), ok: false, found: advice.found, remedy: advice.remedy }
}
