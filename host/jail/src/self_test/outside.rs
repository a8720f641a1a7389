//! The host's view of a probe's jail, line by line: the walls that cannot be observed from inside.
//!
//! Uses only the kernel's report. See [`crate::inspect`], which reads it, and decides with the same facts before each launch.

use crate::inspect::{self, View};
use crate::launcher::Jailed;
use crate::{Identity, Spec, Wall};
use ironclaw_operator::{Attempt, JailReport};
use std::io;

/// Characters of an observation in the report; if the root is the host's own, it has many names.
const OBSERVED_CHARACTERS_MAX: usize = 160;

/// Inspects the program and process 1. A failed inspection is a breach.
pub(super) fn look(jailed: &Jailed, spec: &Spec) -> Vec<Attempt> {
    let mut lines = match jailed.report() {
        Ok(report) => program(&report, spec),
        Err(error) => vec![unseen("the program", &error)],
    };
    lines.extend(match inspect::report(jailed.init_pid, std::process::id()) {
        Ok(report) => init(&report),
        Err(error) => vec![unseen("process 1", &error)],
    });
    lines
}

fn program(report: &JailReport, spec: &Spec) -> Vec<Attempt> {
    let walls = [
        ("user", Wall::UserNamespace),
        ("mnt", Wall::Root),
        ("pid", Wall::PidNamespace),
        ("net", Wall::NetworkNamespace),
        ("ipc", Wall::IpcNamespace),
        ("uts", Wall::UtsNamespace),
        ("cgroup", Wall::CgroupNamespace),
    ];
    let mut lines: Vec<Attempt> = walls
        .into_iter()
        .map(|(kind, wall)| {
            let own = report.own_namespaces.iter().any(|own| own == kind);
            let observed = if own { "its own" } else { "the host's" };
            line(format!("{kind} namespace of the program"), "its own", observed.to_owned(), wall)
        })
        .collect();
    let View { root, mounts } = View::for_spec(spec);
    let (uid, gid) = match spec.identity {
        Identity::Own => (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw()),
        Identity::Mapped { uid, gid } => (uid, gid),
    };
    let own_uid = match spec.identity {
        Identity::Own => Wall::UserNamespace,
        Identity::Mapped { .. } => Wall::OwnUid,
    };
    let ids = format!("uid {} gid {}", report.uid, report.gid);
    lines.extend([
        line("names in the root of the program", &root.join(" "), report.root.join(" "), Wall::Root),
        line("mounts of the program", &mounts.join(", "), report.mounts.join(", "), Wall::ReadOnlyMounts),
        line("network of the program", inspect::network_of(spec), report.interfaces.join(", "), Wall::NetworkNamespace),
        line("ids of the program on this machine", &format!("uid {uid} gid {gid}"), ids, own_uid),
        line("seccomp mode of the program", "2", report.seccomp.to_string(), Wall::Seccomp),
        line("capabilities of the program", "none", capabilities(report), Wall::Capabilities),
        line("no_new_privs of the program", "true", report.no_new_privs.to_string(), Wall::NoNewPrivileges),
        line("Landlock domain of the program", "true", report.landlock.to_string(), Wall::Landlock),
    ]);
    lines
}

fn init(report: &JailReport) -> Vec<Attempt> {
    vec![
        line("seccomp mode of process 1", "2", report.seccomp.to_string(), Wall::InitSeccomp),
        line("no_new_privs of process 1", "true", report.no_new_privs.to_string(), Wall::InitSeccomp),
        line("capabilities of process 1", "none", capabilities(report), Wall::InitCapabilities),
    ]
}

fn capabilities(report: &JailReport) -> String {
    if report.no_capabilities() {
        return "none".to_owned();
    }
    let held = report.capabilities.iter().filter(|(_, set)| set.bytes().any(|byte| byte != b'0'));
    held.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

fn unseen(who: &str, error: &io::Error) -> Attempt {
    line(format!("look at {who}"), "seen", error.to_string(), Wall::PidNamespace)
}

fn line(name: impl Into<String>, expected: &str, observed: String, wall: Wall) -> Attempt {
    Attempt {
        group: "seen from outside".to_owned(),
        name: name.into(),
        contained: expected == observed,
        expected: expected.to_owned(),
        observed: observed.chars().take(OBSERVED_CHARACTERS_MAX).collect(),
        wall: wall.name().to_owned(),
    }
}
