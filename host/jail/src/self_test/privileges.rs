//! Attempts to become another user, to gain rights, to mount, to make namespaces, and to use rare parts of the kernel.
//!
//! Even if the kernel allows an attempt, it does not change the machine. See [`crate::self_test::limits`].

use super::line::{Line, MISSING, SECCOMP, allowed, bare, observation, refused};
use crate::sys::bare;
use crate::{INNER_ID, Identity, Spec, Wall};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::unistd::{getgroups, getresgid, getresuid};

/// Returns the lines about the probe's own identity and rights.
pub(super) fn own(spec: &Spec) -> Vec<Line> {
    let ids = format!("{INNER_ID} {INNER_ID} {INNER_ID}");
    let mut lines = vec![
        observation("see its own uid", ids.clone(), Wall::UserNamespace, |_| {
            let ids = getresuid()?;
            Ok(format!("{} {} {}", ids.real, ids.effective, ids.saved))
        }),
        observation("see its own gid", ids, Wall::UserNamespace, |_| {
            let ids = getresgid()?;
            Ok(format!("{} {} {}", ids.real, ids.effective, ids.saved))
        }),
        observation("see its own capabilities", "none", Wall::Capabilities, |_| {
            let words = bare::capabilities()?;
            Ok(if words == [0; 6] { "none".to_owned() } else { format!("{words:x?}") })
        }),
        observation("see the capabilities that it could gain", "0", Wall::Capabilities, |_| {
            Ok(bare::bounding_capabilities().to_string())
        }),
        observation("see no_new_privs", "true", Wall::NoNewPrivileges, |_| Ok(prctl::get_no_new_privs()?.to_string())),
        observation("see its own seccomp mode", "2", Wall::Seccomp, |_| Ok(bare::seccomp_mode()?.to_string())),
        // A child of the probe does not inherit this signal.
        observation("see the signal of its parent's death", "SIGKILL", Wall::ParentDeath, |_| {
            Ok(prctl::get_pdeathsig()?.map_or_else(|| "none".to_owned(), |signal| signal.to_string()))
        })
        .by_itself(),
        refused(bare::CLEAR_NO_NEW_PRIVILEGES.name, &[(Errno::EINVAL, Wall::NoNewPrivileges)], |_| {
            bare::CLEAR_NO_NEW_PRIVILEGES.make()
        }),
    ];
    // An ordinary user cannot leave groups, and the host's files know that user anyway.
    if matches!(spec.identity, Identity::Mapped { .. }) {
        lines.push(observation("see groups of the host", "none", Wall::OwnGroups, |_| {
            let groups: Vec<String> = getgroups()?.iter().map(ToString::to_string).collect();
            Ok(if groups.is_empty() { "none".to_owned() } else { groups.join(" ") })
        }));
    }
    lines.extend(bare::PRIVILEGES.iter().map(|call| bare(*call, SECCOMP)));
    lines.extend(bare::PARENTS.iter().map(|call| match spec.system {
        None => bare(*call, SECCOMP),
        Some(_) => allowed(call.name, |_| call.make()),
    }));
    lines
}

pub(super) fn mounts() -> Vec<Line> {
    bare::MOUNTS.iter().map(|call| bare(*call, SECCOMP)).collect()
}

pub(super) fn namespaces() -> Vec<Line> {
    let mut lines: Vec<Line> = bare::NAMESPACES.iter().map(|call| bare(*call, SECCOMP)).collect();
    lines.push(bare(bare::CLONE3, MISSING));
    lines
}

pub(super) fn kernel() -> Vec<Line> {
    bare::KERNEL.iter().chain(bare::KEYS).map(|call| bare(*call, SECCOMP)).collect()
}
