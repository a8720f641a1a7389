//! The check if this machine can run agents, with a remedy for each failed part.
//!
//! Makes a real jail and inspects it instead of guessing, and never offers less isolation. See `ironclaw_jail::native` for the steps.

mod diagnosis;

use diagnosis::{Advice, Machine, advise};
use ironclaw_contract::operator::{Check, Preflight};
use ironclaw_jail::launcher::Part;
use ironclaw_jail::launcher::trial::try_launch;
use ironclaw_jail::{System, landlock, sys};
use std::path::Path;

/// Checks all needs of a launch, in the order of a launch.
///
/// `proc_sys` is `/proc/sys`, or a copy of it in a test; `first_id` is the host uid and gid that root would give to the first jail, and is
/// ignored for other users. Forks, so it must run before the first thread; with threads, every check that needs a trial fails and says so.
pub fn run(proc_sys: &Path, first_id: u32) -> Preflight {
    let machine = Machine::read(proc_sys);
    let mut checks = machine.settings();
    checks.push(processes());
    checks.push(landlock());
    checks.push(pidfd());
    checks.extend(trial(&machine, first_id));
    checks.push(locks(machine.root, first_id));
    Preflight { ok: checks.iter().all(|check| check.ok), checks }
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

/// Makes one jail, part by part. Parts before the failed one passed, and later ones were not tried.
fn trial(machine: &Machine, first_id: u32) -> Vec<Check> {
    let failed = try_launch(machine.root, first_id, None).err();
    // The pivot comes last, but belongs to the root.
    let failing = failed.as_ref().map(|failure| match failure.part {
        Part::Source | Part::System | Part::Program | Part::Launch => Part::Launch,
        part => part,
    });
    PARTS
        .iter()
        .map(|(part, name, found)| match (&failed, failing) {
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

fn landlock() -> Check {
    match sys::landlock_abi() {
        0 => fail(
            "Landlock",
            Advice::new(
                "this kernel has no Landlock, or it is switched off",
                "use Linux 6.2 or later with CONFIG_SECURITY_LANDLOCK, and add `landlock` to the list of the kernel parameter `lsm=` (see /sys/kernel/security/lsm)",
            ),
        ),
        abi if abi < landlock::ABI_MIN => fail(
            "Landlock",
            Advice::new(
                format!(
                    "Landlock ABI {abi} cannot keep a sandbox from truncating files (it takes ABI {})",
                    landlock::ABI_MIN
                ),
                "use Linux 6.2 or later",
            ),
        ),
        abi => pass("Landlock", format!("Landlock ABI {abi}")),
    }
}

fn pidfd() -> Check {
    match sys::pidfd_open(std::process::id()) {
        Ok(_) => pass("pidfd", "processes can be held by descriptor".into()),
        Err(error) => fail(
            "pidfd",
            Advice::new(
                format!("pidfd_open answers: {error}"),
                "use Linux 5.13 or later; in a container, allow pidfd_open in its seccomp profile",
            ),
        ),
    }
}

pub(crate) fn pass(name: &str, found: String) -> Check {
    Check { name: name.into(), ok: true, found, remedy: String::new() }
}

pub(crate) fn fail(name: &str, advice: Advice) -> Check {
    Check { name: name.into(), ok: false, found: advice.found, remedy: advice.remedy }
}
