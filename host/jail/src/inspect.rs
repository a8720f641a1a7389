//! Inspection of a jailed process from outside: the kernel's report, compared with the spec.
//!
//! Reads `/proc` and trusts no statement of the process or the launcher. The host inspects a jail before it hands out a session's
//! key. See [`crate::self_test`], which makes attempts from inside instead.

use super::browser::{PROC, SHARED_MEMORY};
use super::native::overlay::SOURCE;
use super::system::Names;
use super::{Identity, Mount, Spec};
use crate::sys;
use ironclaw_operator::JailReport;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The namespaces that a jail does not share with the host.
pub const NAMESPACES: [&str; 7] = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];
/// Capability sets: the kernel's name and the name in a report.
const CAPABILITY_SETS: [(&str, &str); 5] = [
    ("CapInh", "inheritable"),
    ("CapPrm", "permitted"),
    ("CapEff", "effective"),
    ("CapBnd", "bounding"),
    ("CapAmb", "ambient"),
];

/// Returns the kernel's report about process `pid`. Its namespaces are compared with those of `host_pid`.
///
/// `landlock` is always false here: the kernel does not show it; `launcher::Jailed::report` sets it.
/// An error if the process has ended, or if `/proc` is not readable.
pub fn report(pid: u32, host_pid: u32) -> io::Result<JailReport> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let namespaces = namespaces(pid)?;
    let host = self::namespaces(host_pid)?;
    let own = namespaces.iter().filter(|(kind, inode)| host.get(*kind) != Some(inode));
    let own_namespaces = own.map(|(kind, _)| kind.clone()).collect();
    let status = Status::read(&process)?;
    let mut root = Vec::new();
    for entry in fs::read_dir(process.join("root"))? {
        root.push(entry?.file_name().to_string_lossy().into_owned());
    }
    root.sort();
    Ok(JailReport {
        namespaces,
        own_namespaces,
        seccomp: status.number("Seccomp")?,
        seccomp_filters: status.number("Seccomp_filters").unwrap_or(0), // Linux 5.9
        capabilities: CAPABILITY_SETS
            .iter()
            .map(|(theirs, ours)| Ok((String::from(*ours), status.field(theirs)?.to_owned())))
            .collect::<io::Result<_>>()?,
        no_new_privs: status.number("NoNewPrivs")? == 1,
        landlock: false,
        landlock_abi: sys::landlock_abi(),
        interfaces: interfaces(&process)?,
        uid: status.only_id("Uid")?,
        gid: status.only_id("Gid")?,
        root,
        mounts: mounts(&fs::read_to_string(process.join("mountinfo"))?),
    })
}

/// Checks that a report matches `spec`; the error has one sentence for each difference.
pub fn verify(report: &JailReport, spec: &Spec) -> Result<(), Vec<String>> {
    let mut faults = Vec::new();
    let mut require = |holds: bool, fault: String| {
        if !holds {
            faults.push(format!("{}: {fault}", spec.name));
        }
    };
    for kind in NAMESPACES {
        require(report.own_namespaces.iter().any(|own| own == kind), format!("its {kind} namespace is the host's"));
    }
    require(report.seccomp == 2, format!("its seccomp mode is {} and not 2", report.seccomp));
    require(report.no_capabilities(), format!("it has capabilities: {:?}", report.capabilities));
    require(report.no_new_privs, "it can gain privileges by executing a program".into());
    require(report.landlock, "it is in no Landlock domain".into());
    let network = network_of(spec);
    require(report.interfaces == [network], format!("its network is {:?} and not `{network}`", report.interfaces));
    let View { root, mounts: expected } = View::for_spec(spec);
    require(report.root == root, format!("its root holds {:?} and not {root:?}", report.root));
    require(report.mounts == expected, format!("its mounts are {:?} and not {expected:?}", report.mounts));
    let (uid, gid) = match spec.identity {
        Identity::Own => (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw()),
        Identity::Mapped { uid, gid } => (uid, gid),
    };
    require(report.uid == uid && uid != 0, format!("its uid is {} and not {uid}", report.uid));
    require(report.gid == gid, format!("its gid is {} and not {gid}", report.gid));
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Returns the interfaces of the jail of a spec, in the form of a report.
pub(super) const fn network_of(spec: &Spec) -> &'static str {
    if spec.listener.is_some() { "lo up" } else { "lo down" }
}

/// The expected view of a jail from outside, in the form of a report.
pub(super) struct View {
    pub(super) root: Vec<String>,
    pub(super) mounts: Vec<String>,
}

impl View {
    /// Returns the view of a spec. If the host lacks the names that its programs need, the view is one that no jail has: such a jail
    /// cannot be made.
    pub(super) fn for_spec(spec: &Spec) -> Self {
        let mut root: Vec<String> = spec.mounts.iter().filter_map(Mount::name).map(str::to_owned).collect();
        let access = |mount: &Mount| format!("{} {}", mount.target, if mount.read_only { "ro" } else { "rw" });
        let mut mounts: Vec<String> = spec.mounts.iter().map(access).collect();
        mounts.push("/ ro".to_owned());
        if spec.system.is_some()
            && let Ok(names) = Names::read(Path::new("/"))
        {
            root.extend(names.in_root().map(str::to_owned));
            mounts.extend(names.mounts());
        }
        if spec.has_browser() {
            root.push(PROC.to_owned());
            mounts.push(format!("/{SHARED_MEMORY} rw"));
        }
        root.sort();
        mounts.sort();
        Self { root, mounts }
    }
}

/// Returns whether process `pid` sees the machine's programs on a file system of the jail's own, so that locks on them have no
/// effect outside.
pub fn programs_have_own_file_system(pid: u32) -> io::Result<bool> {
    Ok(have_own_file_system(&fs::read_to_string(format!("/proc/{pid}/mountinfo"))?))
}

/// Returns whether the table of mounts has a line like `30 25 0:26 / /usr ro,nosuid - overlay ironclaw ro`.
fn have_own_file_system(mountinfo: &str) -> bool {
    let is_own = |line: &str| {
        let (mount, system) = line.split_once(" - ").unwrap_or_default();
        let mut system = system.split(' ');
        mount.split(' ').nth(4) == Some("/usr") && system.next() == Some("overlay") && system.next() == Some(SOURCE)
    };
    mountinfo.lines().any(is_own)
}

/// Returns kind and inode of each namespace of a process.
fn namespaces(pid: u32) -> io::Result<BTreeMap<String, u64>> {
    let mut found = BTreeMap::new();
    for kind in NAMESPACES {
        let link = fs::read_link(format!("/proc/{pid}/ns/{kind}"))?;
        // The kernel writes `user:[4026531837]`.
        let text = link.to_string_lossy();
        let inode = text.split_once('[').and_then(|(_, rest)| rest.trim_end_matches(']').parse().ok());
        found.insert(kind.to_owned(), inode.ok_or_else(|| unreadable(format!("namespace {text}")))?);
    }
    Ok(found)
}

/// `/proc/<pid>/status`.
struct Status(String);

impl Status {
    fn read(process: &Path) -> io::Result<Self> {
        fs::read_to_string(process.join("status")).map(Self)
    }

    fn field(&self, name: &str) -> io::Result<&str> {
        let line = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim).ok_or_else(|| unreadable(format!("no {name} in its status")))
    }

    fn number(&self, name: &str) -> io::Result<u32> {
        self.field(name)?.parse().map_err(|_| unreadable(format!("{name} in its status")))
    }

    /// Returns the id, if real, effective, saved and file system id are the same.
    fn only_id(&self, name: &str) -> io::Result<u32> {
        let ids: BTreeSet<&str> = self.field(name)?.split_whitespace().collect();
        let mut ids = ids.into_iter();
        match (ids.next().and_then(|id| id.parse().ok()), ids.next()) {
            (Some(id), None) => Ok(id),
            _ => Err(unreadable(format!("{name} in its status is more than one id"))),
        }
    }
}

/// Returns the interfaces of its network namespace, each with `up` or `down`.
fn interfaces(process: &Path) -> io::Result<Vec<String>> {
    let devices = fs::read_to_string(process.join("net/dev"))?;
    let routes = fs::read_to_string(process.join("net/fib_trie"))?;
    let addresses = match fs::read_to_string(process.join("net/if_inet6")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(), // no IPv6 on this machine
        read => read?,
    };
    let state = if quiet(&routes, &addresses) { "down" } else { "up" };
    let names = devices.lines().skip(2).filter_map(|line| line.split_once(':'));
    Ok(names.map(|(name, _)| format!("{} {state}", name.trim())).collect())
}

/// Returns whether a network namespace has no address. `/proc` shows no flags of interfaces, but an interface that is up has an
/// address; `lo` always gets one.
fn quiet(fib_trie: &str, if_inet6: &str) -> bool {
    !fib_trie.contains("host LOCAL") && if_inet6.trim().is_empty()
}

/// Returns the mount points in the form `/in ro`, followed by the missing guards among nosuid, nodev and noexec.
fn mounts(mountinfo: &str) -> Vec<String> {
    let mut found: Vec<String> = mountinfo
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(4);
            let (point, options) = (fields.next()?, fields.next()?);
            let options: Vec<&str> = options.split(',').collect();
            let access = if options.contains(&"ro") { "ro" } else { "rw" };
            let lacks = ["nosuid", "nodev", "noexec"].into_iter().filter(|option| !options.contains(option));
            Some(lacks.fold(format!("{point} {access}"), |text, option| format!("{text} without-{option}")))
        })
        .collect();
    found.sort();
    found
}

fn unreadable(part: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("cannot read {part}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Role};

    fn spec() -> Spec {
        let mount = |name: &str, read_only| Mount {
            source: format!("/home/{name}").into(),
            target: format!("/{name}"),
            read_only,
            granted: false,
        };
        Spec {
            name: "ses_test".into(),
            role: Role::Reader,
            mounts: vec![mount("in", true), mount("out", false)],
            system: None,
            listener: None,
            identity: Identity::Mapped { uid: 70_000, gid: 70_001 },
            limits: Limits::default(),
        }
    }

    type Spoil = fn(&mut JailReport);

    fn good() -> JailReport {
        let none = || "0".repeat(16);
        JailReport {
            namespaces: NAMESPACES.map(|kind| (kind.to_owned(), 1)).into(),
            own_namespaces: NAMESPACES.map(String::from).into(),
            seccomp: 2,
            seccomp_filters: 2,
            capabilities: CAPABILITY_SETS.map(|(_, set)| (set.to_owned(), none())).into(),
            no_new_privs: true,
            landlock: true,
            landlock_abi: 7,
            interfaces: vec!["lo down".into()],
            uid: 70_000,
            gid: 70_001,
            root: vec!["in".into(), "out".into()],
            mounts: vec!["/ ro".into(), "/in ro".into(), "/out rw".into()],
        }
    }

    #[test]
    fn one_difference_from_the_spec_is_enough_to_refuse_a_jail() {
        assert_eq!(verify(&good(), &spec()), Ok(()));
        let spoilt: [(&str, Spoil); 14] = [
            ("net namespace", |r| r.own_namespaces.retain(|kind| kind != "net")),
            ("seccomp", |r| r.seccomp = 0),
            ("capabilities", |r| drop(r.capabilities.insert("bounding".into(), "1".repeat(16)))),
            ("capabilities", |r| r.capabilities.clear()),
            ("privileges", |r| r.no_new_privs = false),
            ("Landlock", |r| r.landlock = false),
            ("network", |r| r.interfaces = vec!["lo up".into()]),
            ("network", |r| r.interfaces.push("eth0 down".into())),
            ("root", |r| r.root.push("etc".into())),
            ("root", |r| drop(r.root.pop())),
            ("mounts", |r| r.mounts[1] = "/in rw".into()),
            ("mounts", |r| r.mounts.push("/proc rw".into())),
            ("uid", |r| r.uid = 0),
            ("gid", |r| r.gid = 0),
        ];
        for (word, spoil) in spoilt {
            let mut report = good();
            spoil(&mut report);
            let faults = verify(&report, &spec()).expect_err(word);
            assert!(faults.len() == 1 && faults[0].contains(word), "{word}: {faults:?}");
        }
    }

    #[test]
    fn only_jail_with_a_listener_has_its_loopback_up() {
        let with = Spec { listener: Some(8129), ..spec() };
        let up = JailReport { interfaces: vec!["lo up".into()], ..good() };
        assert_eq!(verify(&up, &with), Ok(()));
        assert!(verify(&good(), &with).is_err());
        let more = JailReport { interfaces: vec!["lo up".into(), "eth0 up".into()], ..good() };
        assert!(verify(&more, &with).is_err());
    }

    #[test]
    fn an_interface_with_an_address_is_not_down() {
        let local = "Local:\n  +-- 127.0.0.0/8 2 0 2\n        |-- 127.0.0.1\n           /32 host LOCAL\n";
        let lo6 = "00000000000000000000000000000001 01 80 10 80       lo\n";
        assert!(!quiet(local, ""));
        assert!(!quiet("", lo6));
        assert!(quiet("Main:\nLocal:\n", "\n"));
    }

    #[test]
    fn machines_own_mount_is_no_file_system_of_the_jail() {
        let line =
            |point: &str, kind: &str, source: &str| format!("30 25 0:26 / {point} ro,nosuid - {kind} {source} ro");
        assert!(have_own_file_system(&line("/usr", "overlay", "ironclaw")));
        for other in
            [line("/usr", "ext4", "/dev/vda"), line("/usr", "overlay", "overlay"), line("/tmp", "overlay", "ironclaw")]
        {
            assert!(!have_own_file_system(&other), "{other}");
        }
    }

    #[test]
    fn mount_without_a_guard_is_reported_as_such() {
        let safe = "30 25 0:26 / /in ro,nosuid,nodev,noexec,relatime - ext4 /dev/vda rw";
        let lax = "31 25 0:26 / /out rw,nosuid,relatime - ext4 /dev/vda rw";
        assert_eq!(mounts(&format!("{lax}\n{safe}\n")), ["/in ro", "/out rw without-nodev without-noexec"]);
    }
}
