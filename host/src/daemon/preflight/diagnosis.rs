//! The cause of a failed part of a jail on this machine, and the exact remedy.
//!
//! Reads a few files once, and tries nothing itself. See [`crate::daemon::preflight`] for the trial.

use super::{fail, pass};
use ironclaw_jail::launcher::{Failure, Part};
use ironclaw_operator::{Check, FeatureState, KERNEL_MIN};
use nix::errno::Errno;
use std::fs;
use std::path::Path;

const APPARMOR: &str = "install IronClaw's AppArmor profile: `sudo install -m 644 docs/apparmor/ironclaw /etc/apparmor.d/ironclaw && sudo apparmor_parser -r /etc/apparmor.d/ironclaw`; or lift the restriction for every program: `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`";
const USERNS_CLONE: &str =
    "`echo kernel.unprivileged_userns_clone=1 | sudo tee /etc/sysctl.d/60-ironclaw.conf && sudo sysctl --system`";
const MAX_NAMESPACES: &str = "`echo user.max_user_namespaces=15000 | sudo tee /etc/sysctl.d/60-ironclaw.conf && sudo sysctl --system`; in a container, on the machine that runs it";
pub(super) const OUTER_FILTER: &str = "start the container with `--security-opt seccomp=unconfined` or `--privileged` (see docs/operate/install.md, Containers)";
const OUTER_MODULE: &str = "in Docker, start the container with `--security-opt apparmor=unconfined` as well (see docs/operate/install.md, Containers); elsewhere search the kernel's log for the security module that denied it";

const LANDLOCK_OFF: &str = "add `landlock` to the list of the kernel parameter `lsm=` (/sys/kernel/security/lsm has the present list), and restart the machine";

/// Returns the remedy for a kernel without a feature.
pub(crate) fn newer_kernel() -> String {
    format!("use Linux {KERNEL_MIN} or later with user namespaces, seccomp and CONFIG_SECURITY_LANDLOCK")
}

/// Returns the meaning of an error of the first call of Landlock.
pub(crate) fn landlock(machine: &Machine, errno: Errno) -> Advice {
    match (machine.state(errno), errno) {
        (_, Errno::EOPNOTSUPP) => Advice::new("Landlock is switched off on this machine", LANDLOCK_OFF),
        (FeatureState::Forbidden, _) if machine.filtered => Advice::new(
            format!("a seccomp filter around this process forbids Landlock: {}", errno.desc()),
            OUTER_FILTER,
        ),
        (FeatureState::Forbidden, _) => {
            Advice::new(format!("something forbids Landlock: {}", errno.desc()), OUTER_MODULE)
        }
        (FeatureState::Absent | FeatureState::Present, _) => Advice::new("this kernel has no Landlock", newer_kernel()),
    }
}

/// A finding, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Advice {
    pub(crate) found: String,
    pub(crate) remedy: String,
}

impl Advice {
    pub(crate) fn new(found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { found: found.into(), remedy: remedy.into() }
    }

    /// Returns a finding whose remedy is in another check.
    pub(crate) fn found(found: impl Into<String>) -> Self {
        Self::new(found, "see the check that failed before this one")
    }
}

/// Facts about this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    /// True for root, in any user namespace.
    pub(crate) root: bool,
    /// True under a seccomp filter from outside.
    filtered: bool,
    /// `kernel/apparmor_restrict_unprivileged_userns`, if it exists.
    apparmor_restricts: Option<u64>,
    /// True under an AppArmor profile; the restriction is for programs without one.
    profiled: bool,
    /// `kernel/unprivileged_userns_clone`, if it exists.
    userns_clone: Option<u64>,
    /// `user/max_user_namespaces`, if it exists.
    max_namespaces: Option<u64>,
    /// `/proc/self/uid_map`, in one line.
    uid_map: String,
}

impl Machine {
    /// Reads the settings below `proc_sys`, and the kernel's facts about this process.
    pub(crate) fn read(proc_sys: &Path) -> Self {
        let number = |name: &str| fs::read_to_string(proc_sys.join(name)).ok()?.trim().parse().ok();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let profile = fs::read_to_string("/proc/self/attr/apparmor/current")
            .or_else(|_| fs::read_to_string("/proc/self/attr/current"))
            .unwrap_or_default();
        let profile = profile.trim_matches(['\0', '\n']);
        let uid_map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        Self {
            root: nix::unistd::geteuid().is_root(),
            filtered: status.lines().any(|line| line.starts_with("Seccomp:") && line.ends_with('2')),
            apparmor_restricts: number("kernel/apparmor_restrict_unprivileged_userns"),
            profiled: !profile.is_empty() && profile != "unconfined",
            userns_clone: number("kernel/unprivileged_userns_clone"),
            max_namespaces: number("user/max_user_namespaces"),
            uid_map: uid_map.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    }

    /// Returns the state of a feature from the error of its call. A filter can say that a call does not exist.
    pub(crate) const fn state(&self, errno: Errno) -> FeatureState {
        match errno {
            Errno::ENOSYS if self.filtered => FeatureState::Forbidden,
            Errno::ENOSYS | Errno::EOPNOTSUPP | Errno::EINVAL | Errno::ENODEV => FeatureState::Absent,
            _ => FeatureState::Forbidden,
        }
    }

    /// Returns the settings that forbid user namespaces, each as a check.
    pub(crate) fn settings(&self) -> Vec<Check> {
        let limit = match self.max_namespaces {
            Some(0) => fail("limit of user namespaces", Advice::new("user.max_user_namespaces is 0", MAX_NAMESPACES)),
            Some(limit) => pass("limit of user namespaces", format!("user.max_user_namespaces is {limit}")),
            None => pass("limit of user namespaces", "this kernel has no such limit".into()),
        };
        let clone = match (self.userns_clone, self.root) {
            (Some(0), false) => {
                let found = "kernel.unprivileged_userns_clone is 0, so only root can create user namespaces";
                fail("unprivileged user namespaces", Advice::new(found, USERNS_CLONE))
            }
            (Some(0), true) => pass("unprivileged user namespaces", "forbidden, which does not affect root".into()),
            (Some(_) | None, _) => pass("unprivileged user namespaces", "not forbidden by a setting".into()),
        };
        let apparmor = match (self.apparmor_restricts, self.root, self.profiled) {
            (None | Some(0), _, _) => pass("AppArmor", "does not restrict user namespaces".into()),
            (Some(_), true, _) => pass("AppArmor", "restricts user namespaces, which does not affect root".into()),
            (Some(_), false, true) => {
                pass("AppArmor", "restricts user namespaces, and this program has a profile".into())
            }
            (Some(_), false, false) => {
                let found = "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1) and this program has no profile";
                fail("AppArmor", Advice::new(found, APPARMOR))
            }
        };
        vec![limit, clone, apparmor]
    }
}

/// Returns the meaning of a failed part of a launch on this machine.
pub(crate) fn advise(machine: &Machine, failure: &Failure) -> Advice {
    let errno = Errno::from_raw(failure.errno);
    let told = match failure.errno {
        0 => format!("cannot {}", failure.step),
        _ => format!("cannot {}: {}", failure.step, errno.desc()),
    };
    let restricted = machine.apparmor_restricts.unwrap_or(0) != 0 && !machine.root;
    let newer = newer_kernel();
    let (why, remedy) = match (failure.part, errno) {
        (Part::Namespaces, Errno::ENOSPC | Errno::EUSERS) => {
            ("the number of user namespaces is limited, or they are nested too deeply", MAX_NAMESPACES)
        }
        (Part::Namespaces, Errno::EINVAL) => (
            "this kernel was built without one of the namespaces",
            "use a kernel with CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_NET_NS, CONFIG_IPC_NS, CONFIG_UTS_NS and CONFIG_CGROUPS",
        ),
        (_, Errno::ENOSYS) if machine.filtered => {
            ("a seccomp filter around this process says that the call does not exist", OUTER_FILTER)
        }
        (_, Errno::ENOSYS) => ("this kernel does not have the call", newer.as_str()),
        (Part::Namespaces, Errno::EPERM | Errno::EACCES) if machine.userns_clone == Some(0) && !machine.root => {
            ("only root can create user namespaces here", USERNS_CLONE)
        }
        (Part::Ids, Errno::EPERM | Errno::EINVAL) if machine.root => (
            "root here is root of a user namespace that does not hold the jail's host id",
            "start the host as an ordinary user, or give this user namespace more ids (`/etc/subuid`, Docker's userns-remap)",
        ),
        (_, Errno::EPERM | Errno::EACCES) if restricted => ("AppArmor restricts user namespaces", APPARMOR),
        (Part::Namespaces | Part::Root | Part::Seccomp | Part::Landlock, Errno::EPERM) if machine.filtered => {
            ("a seccomp filter around this process forbids the call", OUTER_FILTER)
        }
        (Part::Namespaces, Errno::EPERM) => (
            "this process runs in a chroot, or a security module forbids it",
            "start the host outside the chroot; otherwise search the kernel's log for the security module that denied it",
        ),
        (Part::Root, Errno::EINVAL) => (
            "the root of this machine cannot be pivoted away from, as in an initramfs or a chroot",
            "start the host from a root that is a mount of its own",
        ),
        (Part::Landlock, Errno::EOPNOTSUPP) => ("Landlock is switched off or too old", LANDLOCK_OFF),
        (_, Errno::EPERM | Errno::EACCES) => ("something forbids it", OUTER_MODULE),
        (Part::Launcher, _) => {
            return Advice::new(told, "run this before anything else in a process of its own");
        }
        _ => {
            return Advice::new(told, "this failure is unknown; report it with this line");
        }
    };
    let ids = if failure.part == Part::Ids && machine.root { format!(" ({})", machine.uid_map) } else { String::new() };
    Advice::new(format!("{told}; {why}{ids}"), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(filtered: bool) -> Machine {
        Machine {
            root: false,
            filtered,
            apparmor_restricts: None,
            profiled: false,
            userns_clone: None,
            max_namespaces: None,
            uid_map: String::new(),
        }
    }

    #[test]
    fn feature_has_one_of_three_states_and_one_remedy() {
        use FeatureState::{Absent, Forbidden};
        let kernel = format!("use Linux {KERNEL_MIN} or later");
        for (errno, filtered, state, remedy) in [
            (Errno::ENOSYS, false, Absent, kernel.as_str()),
            (Errno::EOPNOTSUPP, false, Absent, LANDLOCK_OFF),
            (Errno::EOPNOTSUPP, true, Absent, LANDLOCK_OFF),
            (Errno::ENOSYS, true, Forbidden, OUTER_FILTER),
            (Errno::EPERM, true, Forbidden, OUTER_FILTER),
            (Errno::EPERM, false, Forbidden, OUTER_MODULE),
            (Errno::EACCES, false, Forbidden, OUTER_MODULE),
        ] {
            let machine = machine(filtered);
            assert_eq!(machine.state(errno), state, "{errno} {filtered}");
            let advice = landlock(&machine, errno);
            assert!(advice.remedy.starts_with(remedy), "{errno} {filtered}: {advice:?}");
        }
        for errno in [Errno::ENOSPC, Errno::EUSERS, Errno::EACCES] {
            assert_eq!(machine(false).state(errno), Forbidden, "{errno}");
        }
    }

    #[test]
    fn remedy_for_an_old_kernel_names_the_least_version() {
        for part in [Part::Namespaces, Part::Root, Part::Landlock, Part::Seccomp] {
            let failure = Failure { part, step: "do it".to_owned(), errno: Errno::ENOSYS as i32 };
            let advice = advise(&machine(false), &failure);
            assert_eq!(advice.remedy, newer_kernel(), "{part:?}");
        }
    }

    #[test]
    fn documents_and_programs_name_the_same_kernel() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for file in ["README.md", "docs/contributing.md", "docs/operate/install.md", "sandbox/src/lockdown.rs"] {
            let text = fs::read_to_string(root.join(file)).expect("readable");
            assert!(text.contains(&format!("Linux {KERNEL_MIN} or newer")), "{file}");
        }
        let text = fs::read_to_string(root.join("docs/operate/troubleshooting.md")).expect("readable");
        assert!(text.contains(&format!("older than {KERNEL_MIN}")), "troubleshooting.md");
    }
}
