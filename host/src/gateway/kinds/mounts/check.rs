//! Checks directories of the host and their places in a jail.
//!
//! Never follows a link: a path through a link is refused. Never waits for another machine. See `mount_source` and
//! [`crate::registry::mounts`].

use super::super::kind::{Check, CheckContext};
use super::mount_source::{self, LookError, PathProperties};
use super::own_directory;
use crate::registry::live_settings::HostPolicy;
use crate::registry::{Agent, mounts};
use ironclaw_contract::seam::change::{Change, Mount};
use ironclaw_jail::mount_table::Mounts;
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_text::excerpt::start;
use serde_json::{Map, Value, json};
use std::io;
use std::path::{Path, PathBuf};

/// Directories of the system and of other services. Neither they nor a directory below can be mounted.
const SYSTEM_DIRECTORIES: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/etc"];

impl Check for Vec<Mount> {
    fn complete(&self, tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied> {
        let mounts = complete(self.clone(), context.host_policy)?;
        own_directory::check(tx, context, &mounts)?;
        Ok(Change::Mounts(mounts))
    }

    fn current(&self, tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let Some(agent) = agent else { return Ok(Value::Null) };
        let mounts = mounts::list_for_agent(tx, agent.id)?.into_iter();
        let shown = mounts.map(|mount| Mount {
            source: mount.source.display().to_string(),
            target: Some(mount.target),
            read_only: Some(mount.read_only),
            mine: mount.mine.map(|_| true),
        });
        Ok(json!(shown.collect::<Vec<_>>()))
    }

    fn facts(&self, tx: &ReadTx<'_>, _policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        let mut facts = json!({ "sources": describe_sources(self) });
        own_directory::add_ended(tx, &mut facts, self)?;
        if self.iter().any(|mount| mount.mine == Some(true)) {
            own_directory::add_known_since(tx, &mut facts)?;
        }
        Ok(facts)
    }
}

/// Describes the directory at each source; of a source on a foreign file system only the kind of that file system.
pub fn describe_sources(mounts: &[Mount]) -> Map<String, Value> {
    let described = |found| match found {
        Ok(PathProperties { filesystem, directory, owner }) => {
            json!({ "filesystem": filesystem, "directory": directory, "owner": owner })
        }
        Err(LookError::Elsewhere(filesystem)) => json!({ "filesystem": filesystem, "elsewhere": true }),
        Err(LookError::Link) => json!({ "link": true }),
        Err(LookError::Absent | LookError::Closed) => Value::Null,
    };
    mounts
        .iter()
        .map(|mount| (mount.source.clone(), described(mount_source::read_properties(Path::new(&mount.source)))))
        .collect()
}

/// Fills in targets and access, and sorts the mounts by their targets.
///
/// # Errors
/// Refuses the first mount that fails a check.
pub fn complete(mounts: Vec<Mount>, host_policy: &HostPolicy) -> Result<Vec<Mount>, Refusal> {
    if !mounts.is_empty() && host_policy.mounts.is_empty() {
        let refusal = Refusal::new(DenialCode::MountsOff, "no directory of this host may be mounted");
        return Err(refusal
            .hint("list the allowed directories in `[mounts] allow` of config.toml, then `ironctl config reload`"));
    }
    let mut completed: Vec<Mount> = Vec::with_capacity(mounts.len());
    for mount in mounts {
        let name = Path::new(&mount.source).file_name().and_then(|name| name.to_str());
        let target = mount.target.unwrap_or_else(|| format!("/{}", name.unwrap_or_default()));
        source(&mount.source, host_policy).map_err(|refusal| match (refusal.code, check_target(&target)) {
            // Otherwise an owner allows the directory for nothing.
            (DenialCode::MountNotAllowed, Err(of_target)) => of_target,
            _ => refusal,
        })?;
        check_target(&target)?;
        if completed.iter().any(|other| other.source == mount.source) {
            return Err(Refusal::new(DenialCode::MountTwice, format!("{:?} is mounted twice", short(&mount.source))));
        }
        if completed.iter().any(|other| other.target.as_deref() == Some(target.as_str())) {
            return Err(Refusal::new(DenialCode::MountTwice, format!("two mounts are at {target}"))
                .hint("name a target for each mount"));
        }
        let read_only = Some(mount.read_only.unwrap_or(true));
        let mine = mount.mine.filter(|mine| *mine);
        completed.push(Mount { source: mount.source, target: Some(target), read_only, mine });
    }
    completed.sort_by(|one, other| one.target.cmp(&other.target));
    Ok(completed)
}

/// Checks a directory that an owner wants to add to the allowed ones.
///
/// # Errors
/// Refuses what no agent could be granted even then.
pub fn check_allowable(directory: &str, host_policy: &HostPolicy) -> Result<PathBuf, Refusal> {
    source(directory, &HostPolicy { mounts: vec![PathBuf::from(directory)], ..host_policy.clone() })
}

fn source(text: &str, host_policy: &HostPolicy) -> Result<PathBuf, Refusal> {
    let refuse = |code, why: &str| Err(Refusal::new(code, format!("{:?} cannot be mounted: {why}", short(text))));
    let Some(parts) = text.strip_prefix('/') else {
        return refuse(DenialCode::MountSource, "its path does not begin with a slash");
    };
    if parts.is_empty() {
        return refuse(DenialCode::MountSystem, "it is the root directory");
    }
    if parts.split('/').any(|part| matches!(part, "" | "." | "..")) || text.chars().any(char::is_control) {
        return refuse(DenialCode::MountSource, "its path has . or .. or an empty part, or a control character");
    }
    let path = PathBuf::from(text);
    if SYSTEM_DIRECTORIES.iter().any(|system| path.starts_with(system)) {
        return refuse(DenialCode::MountSystem, "it belongs to the system");
    }
    // First: no refusal may reveal what exists outside of the allowed directories.
    if !host_policy.allows(&path) {
        if let Some(real) = real_name(&path, host_policy) {
            let hint = format!("name it as {}", real.display());
            return refuse(DenialCode::MountLink, "its path has a symbolic link").map_err(|refusal| refusal.hint(hint));
        }
        let refused = refuse(DenialCode::MountNotAllowed, "it is below no directory that may be mounted");
        return refused
            .map_err(|refusal| refusal.hint("`[mounts] allow` of config.toml lists the allowed directories"));
    }
    check_found(text, mount_source::read_properties(&path))?;
    // It resolves the path, so only a path without a link on a local file system gets here.
    is_free(text, host_policy, &path, Mounts::read()).map(|()| path)
}

/// Refuses the host's own directories, and every directory while bind mounts are unknown.
fn is_free(text: &str, host_policy: &HostPolicy, path: &Path, mounts: io::Result<Mounts>) -> Result<(), Refusal> {
    let no = |why: &str| format!("{:?} cannot be mounted: {why}", short(text));
    match mounts {
        Ok(mounts) if host_policy.keeps(&mounts, path) => {
            Err(Refusal::new(DenialCode::MountPrivate, no("it has files of the host itself")))
        }
        Ok(_) => Ok(()),
        Err(error) => {
            let refusal =
                Refusal::new(DenialCode::MountUnknown, no(&format!("the table of mounts cannot be read: {error}")));
            Err(refusal.hint("check that the host is below its limit on open files, and try again"))
        }
    }
}

/// Returns the real name of a path that uses the same link to an allowed directory as the settings do.
fn real_name(path: &Path, host_policy: &HostPolicy) -> Option<PathBuf> {
    host_policy.linked.iter().find_map(|(named, real)| Some(real.join(path.strip_prefix(named).ok()?)))
}

/// Refuses a source at which no directory of a local file system was found.
fn check_found(text: &str, found: Result<PathProperties, LookError>) -> Result<(), Refusal> {
    let refuse = |code, why: &str| Refusal::new(code, format!("{:?} cannot be mounted: {why}", short(text)));
    match found {
        Ok(PathProperties { directory: true, .. }) => Ok(()),
        Ok(PathProperties { directory: false, .. }) => Err(refuse(DenialCode::MountSource, "it is not a directory")),
        Err(LookError::Elsewhere(kind)) => {
            let why =
                format!("its path leads through a file system of kind {kind}, which other machines or programs serve");
            Err(refuse(DenialCode::MountNetwork, &why)
                .hint("copy the files to a disk of this machine, and name that directory"))
        }
        // Also a link further up: its owner could change its target later.
        Err(LookError::Link) => Err(refuse(DenialCode::MountLink, "its path has a symbolic link")),
        Err(LookError::Absent) => Err(refuse(DenialCode::MountSource, "it does not exist")),
        Err(LookError::Closed) => Err(refuse(DenialCode::MountSource, "it cannot be reached")),
    }
}

fn check_target(target: &str) -> Result<(), Refusal> {
    let Some(name) = ironclaw_jail::target_name(target) else {
        let refusal = Refusal::new(DenialCode::MountTarget, format!("{:?} is not a valid mount target", short(target)));
        return Err(refusal.hint("a target is / and one name of a-z, A-Z, 0-9, -, _ and ., such as /data"));
    };
    if ironclaw_jail::is_reserved(name) {
        let refusal = Refusal::new(DenialCode::MountTarget, format!("target {target} is reserved for the jail"));
        return Err(refusal.hint("name another target, such as /data"));
    }
    Ok(())
}

fn short(text: &str) -> &str {
    start(text, 128)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::checks::tests::host_policy;
    use std::fs;
    use std::os::unix::fs::symlink;

    struct Fixture {
        _directory: tempfile::TempDir,
        root: PathBuf,
        host_policy: HostPolicy,
    }

    fn fixture() -> Fixture {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("there");
        for made in ["allowed/data/deep", "allowed/home/sessions", "allowedly"] {
            fs::create_dir_all(root.join(made)).expect("made");
        }
        fs::write(root.join("allowed/file"), "x").expect("written");
        symlink(root.join("allowed/data"), root.join("allowed/link")).expect("linked");
        let private = vec![root.join("allowed/home")];
        let linked = vec![(root.join("named"), root.join("allowed"))];
        let host_policy = HostPolicy { mounts: vec![root.join("allowed")], linked, private, ..host_policy() };
        Fixture { _directory: directory, root, host_policy }
    }

    fn mount(source: &str, target: Option<&str>) -> Mount {
        Mount { source: source.to_owned(), target: target.map(str::to_owned), read_only: None, mine: None }
    }

    #[test]
    fn mount_outside_allowed_or_of_host_or_system_is_refused() {
        let Fixture { root, host_policy, .. } = &fixture();
        let refuses = |code: DenialCode, source: &str| {
            let refused = complete(vec![mount(source, Some("/x"))], host_policy).expect_err(source);
            assert_eq!(refused.code, code, "{source}: {refused}");
        };
        for (code, sources) in [
            (DenialCode::MountSystem, &["/", "/proc", "/proc/self", "/etc/ssh"][..]),
            (DenialCode::MountNotAllowed, &["/home"]),
            (DenialCode::MountSource, &["allowed/data"]),
        ] {
            sources.iter().for_each(|source| refuses(code, source));
        }
        for (code, below) in [
            (DenialCode::MountNotAllowed, &["", "/allowedly"][..]),
            (DenialCode::MountPrivate, &["/allowed", "/allowed/home", "/allowed/home/sessions"]),
            (DenialCode::MountLink, &["/allowed/link", "/allowed/link/deep", "/named/data"]),
            (DenialCode::MountSource, &["/allowed/file", "/allowed/nothing", "/allowed/data/../home"]),
            (DenialCode::MountSource, &["/allowed/./data", "//allowed/data", "/allowed/data/", "/allowed/da\nta"]),
        ] {
            below.iter().for_each(|rest| refuses(code, &format!("{}{rest}", root.display())));
        }
    }

    #[test]
    fn directory_that_is_made_after_the_start_counts() {
        let Fixture { root, host_policy, .. } = &fixture();
        let later = root.join("later");
        let host_policy = HostPolicy { mounts: vec![later.clone()], ..host_policy.clone() };
        let (own, below) = (later.display().to_string(), later.join("sub").display().to_string());
        for source in [&own, &below] {
            assert_eq!(
                complete(vec![mount(source, None)], &host_policy).expect_err("absent").code,
                DenialCode::MountSource
            );
        }
        fs::create_dir_all(later.join("sub")).expect("made");
        for source in [own, below] {
            complete(vec![mount(&source, None)], &host_policy).unwrap_or_else(|refused| panic!("{source}: {refused}"));
        }
        fs::remove_dir_all(&later).expect("removed");
        symlink(root.join("allowed"), &later).expect("linked");
        let linked = later.join("data").display().to_string();
        assert_eq!(complete(vec![mount(&linked, None)], &host_policy).expect_err("a link").code, DenialCode::MountLink);
    }

    #[test]
    fn directory_may_be_allowed_unless_no_agent_could_get_it() {
        let Fixture { root, host_policy, .. } = &fixture();
        let path = |rest: &str| root.join(rest).display().to_string();
        assert_eq!(check_allowable(&path("allowedly"), host_policy), Ok(root.join("allowedly")));
        for (rest, code) in [
            ("allowed", DenialCode::MountPrivate),
            ("allowed/home/sessions", DenialCode::MountPrivate),
            ("allowed/link", DenialCode::MountLink),
            ("allowed/file", DenialCode::MountSource),
            ("nothing", DenialCode::MountSource),
        ] {
            assert_eq!(check_allowable(&path(rest), host_policy).expect_err(rest).code, code);
        }
        for (named, code) in
            [("/", DenialCode::MountSystem), ("/etc", DenialCode::MountSystem), ("a", DenialCode::MountSource)]
        {
            assert_eq!(check_allowable(named, host_policy).expect_err(named).code, code);
        }
    }

    #[test]
    fn no_directory_is_mounted_while_bind_mounts_are_unknown() {
        let Fixture { root, host_policy, .. } = &fixture();
        let (path, unread) = (root.join("allowed/data"), io::Error::from_raw_os_error(nix::libc::EMFILE));
        assert!(is_free("data", host_policy, &path, Mounts::read()).is_ok());
        assert_eq!(
            is_free("data", host_policy, &path, Err(unread)).expect_err("refused").code,
            DenialCode::MountUnknown
        );
    }

    #[test]
    fn mount_named_by_a_link_is_refused_with_its_real_name() {
        let Fixture { root, host_policy, .. } = &fixture();
        let named = root.join("named/data").display().to_string();
        let refused = complete(vec![mount(&named, None)], host_policy).expect_err("a link");
        assert_eq!(refused.hint, format!("name it as {}", root.join("allowed/data").display()));
    }

    #[test]
    fn network_directory_is_refused_with_its_kind_and_a_remedy() {
        let refused = check_found("/srv/net", Err(LookError::Elsewhere("nfs4".to_owned()))).expect_err("elsewhere");
        assert_eq!(refused.code, DenialCode::MountNetwork);
        assert!(refused.message.contains("\"/srv/net\"") && refused.message.contains("nfs4"), "{refused}");
        assert!(refused.hint.contains("a disk of this machine"), "{}", refused.hint);
    }

    #[test]
    fn mounts_without_setting_are_refused_with_its_name() {
        let mut fixture = fixture();
        let Fixture { root, host_policy, .. } = &mut fixture;
        host_policy.mounts = Vec::new();
        let source = root.join("allowed/data").display().to_string();
        let refused = complete(vec![mount(&source, None)], host_policy).expect_err("off");
        assert_eq!(refused.code, DenialCode::MountsOff);
        assert!(refused.hint.contains("[mounts] allow"), "{}", refused.hint);
        assert_eq!(complete(Vec::new(), host_policy), Ok(Vec::new()), "removing all mounts is always possible");
    }

    #[test]
    fn reserved_or_malformed_target_is_refused() {
        let Fixture { root, host_policy, .. } = &fixture();
        let source = root.join("allowed/data").display().to_string();
        for target in
            ["/", "data", "/a/b", "/..", "/.ssh", "/usr", "/workspace", "/lib64", "/libexec", "/a b", "/\u{e9}", "//x"]
        {
            let refused = complete(vec![mount(&source, Some(target))], host_policy).expect_err(target);
            assert_eq!(refused.code, DenialCode::MountTarget, "{target}");
        }
    }

    #[test]
    fn every_jail_accepts_an_accepted_target() {
        let Fixture { root, host_policy, .. } = &fixture();
        let source = root.join("allowed/data").display().to_string();
        let longest = format!("/{}", "x".repeat(64));
        for target in ["/data", "/Photos", "/ALL", "/a", "/A.b_c-9", "/9", "/-", &longest] {
            complete(vec![mount(&source, Some(target))], host_policy)
                .unwrap_or_else(|refused| panic!("{target}: {refused}"));
            let granted = ironclaw_jail::Mount {
                source: source.clone().into(),
                target: target.to_owned(),
                read_only: true,
                granted: true,
            };
            let spec = ironclaw_jail::Spec {
                name: "ses_test".to_owned(),
                role: ironclaw_jail::Role::Reader,
                mounts: vec![granted],
                system: Some(ironclaw_jail::System::default()),
                listener: None,
                identity: ironclaw_jail::Identity::Own,
                limits: ironclaw_jail::Limits::default(),
            };
            spec.check(1).unwrap_or_else(|unfit| panic!("{target}: {unfit}"));
        }
        let refused = complete(vec![mount(&source, Some(&format!("{longest}x")))], host_policy).expect_err("too long");
        assert_eq!(refused.code, DenialCode::MountTarget);
    }

    #[test]
    fn duplicate_source_or_target_is_refused() {
        let Fixture { root, host_policy, .. } = &fixture();
        let source = |rest: &str| root.join("allowed").join(rest).display().to_string();
        let same = vec![mount(&source("data"), Some("/a")), mount(&source("data"), Some("/b"))];
        assert_eq!(complete(same, host_policy).expect_err("twice").code, DenialCode::MountTwice);
        let same = vec![mount(&source("data"), Some("/a")), mount(&source("data/deep"), Some("/a"))];
        assert_eq!(complete(same, host_policy).expect_err("twice").code, DenialCode::MountTwice);
    }

    #[test]
    fn default_mount_is_read_only_at_the_last_name() {
        let Fixture { root, host_policy, .. } = &fixture();
        let source = root.join("allowed/data").display().to_string();
        let completed = complete(vec![mount(&source, None)], host_policy).expect("it may be");
        assert_eq!(completed[0].target.as_deref(), Some("/data"));
        assert_eq!(completed[0].read_only, Some(true));
        assert_eq!(complete(completed.clone(), host_policy), Ok(completed));
    }
}
