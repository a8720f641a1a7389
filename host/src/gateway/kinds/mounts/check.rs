//! Checks directories of the host and their places in a jail.
//!
//! Never follows a link: a path that means another one is refused. Never waits for another machine. See `mount_source` and
//! [`crate::registry::mounts`].

use super::super::{Check, CheckContext};
use super::mount_source::{self, Place, Unseen};
use crate::gateway::Grounds;
use crate::refusal::{Denied, Refusal};
use crate::registry::{Agent, mounts};
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::{Change, Mount};
use ironclaw_jail::shown::Mounts;
use ironclaw_state::ReadTx;
use serde_json::{Map, Value, json};
use std::io;
use std::path::{Path, PathBuf};

/// What the system makes of itself, and where other services are reached: nothing at or below one of these.
const OF_THE_SYSTEM: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/etc"];

impl Check for Vec<Mount> {
    fn complete(&self, _tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied> {
        Ok(Change::Mounts(complete(self.clone(), context.grounds)?))
    }

    fn current(&self, tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let Some(agent) = agent else { return Ok(Value::Null) };
        let mounts = mounts::of(tx, agent.id)?.into_iter();
        let shown = mounts.map(|mount| Mount {
            source: mount.source.display().to_string(),
            target: Some(mount.target),
            read_only: Some(mount.read_only),
        });
        Ok(json!(shown.collect::<Vec<_>>()))
    }

    fn facts(&self, _tx: &ReadTx<'_>, _grounds: &Grounds) -> Result<Value, ironclaw_state::Error> {
        Ok(json!({ "sources": of_sources(self) }))
    }

    fn after(&self, _agent: Option<&Agent>) -> Option<Value> {
        Some(json!(self))
    }
}

/// What lies at each source; of one that is not this machine's own only of what kind that is.
fn of_sources(mounts: &[Mount]) -> Map<String, Value> {
    let told = |seen| match seen {
        Ok(Place { filesystem, directory, owner }) => {
            json!({ "filesystem": filesystem, "directory": directory, "owner": owner })
        }
        Err(Unseen::Elsewhere(filesystem)) => json!({ "filesystem": filesystem, "elsewhere": true }),
        Err(Unseen::Link) => json!({ "link": true }),
        Err(Unseen::Absent | Unseen::Closed) => Value::Null,
    };
    mounts.iter().map(|mount| (mount.source.clone(), told(mount_source::look(Path::new(&mount.source))))).collect()
}

/// Fills in targets and who may write, and puts the mounts in the order of their targets.
///
/// # Errors
/// The first that may not be.
fn complete(mounts: Vec<Mount>, grounds: &Grounds) -> Result<Vec<Mount>, Refusal> {
    if !mounts.is_empty() && grounds.mounts.is_empty() {
        let refusal = Refusal::new(DenialCode::MountsOff, "no directory of this host may be mounted");
        return Err(refusal.hint("`[mounts] allow` in config.toml names the directories below which one may be"));
    }
    let mut completed: Vec<Mount> = Vec::with_capacity(mounts.len());
    for mount in mounts {
        let source = source(&mount.source, grounds)?;
        let target = match mount.target {
            Some(target) => target,
            None => format!("/{}", source.file_name().and_then(|name| name.to_str()).unwrap_or_default()),
        };
        check_target(&target)?;
        if completed.iter().any(|other| other.source == mount.source) {
            return Err(Refusal::new(DenialCode::MountTwice, format!("{:?} is mounted twice", short(&mount.source))));
        }
        if completed.iter().any(|other| other.target.as_deref() == Some(target.as_str())) {
            return Err(
                Refusal::new(DenialCode::MountTwice, format!("two mounts are at {target}")).hint("name their targets")
            );
        }
        let read_only = Some(mount.read_only.unwrap_or(true));
        completed.push(Mount { source: mount.source, target: Some(target), read_only });
    }
    completed.sort_by(|one, other| one.target.cmp(&other.target));
    Ok(completed)
}

fn source(text: &str, grounds: &Grounds) -> Result<PathBuf, Refusal> {
    let refuse = |code, why: &str| Err(Refusal::new(code, format!("{:?} cannot be mounted: {why}", short(text))));
    let Some(parts) = text.strip_prefix('/') else {
        return refuse(DenialCode::MountSource, "its path does not begin with a slash");
    };
    if parts.is_empty() {
        return refuse(DenialCode::MountSystem, "it is all there is");
    }
    if parts.split('/').any(|part| matches!(part, "" | "." | "..")) || text.chars().any(char::is_control) {
        return refuse(DenialCode::MountSource, "its path holds . or .. or an empty part, or what is not seen");
    }
    let path = PathBuf::from(text);
    if OF_THE_SYSTEM.iter().any(|system| path.starts_with(system)) {
        return refuse(DenialCode::MountSystem, "it is the system's own");
    }
    // Before anybody is told what there is elsewhere.
    if !grounds.allows(&path) {
        if let Some(real) = by_its_own_name(&path, grounds) {
            let hint = format!("name it as {}", real.display());
            return refuse(DenialCode::MountLink, "its path goes by a link").map_err(|refusal| refusal.hint(hint));
        }
        let refused = refuse(DenialCode::MountNotAllowed, "it is below no directory that may be mounted");
        return refused.map_err(|refusal| refusal.hint("`[mounts] allow` in config.toml names those that may be"));
    }
    lies(text, mount_source::look(&path))?;
    // It resolves the path, so only a path without a link on a local file system gets here.
    is_free(text, grounds, &path, Mounts::read()).map(|()| path)
}

/// Refuses the host's own directories, and every directory while bind mounts are unknown.
fn is_free(text: &str, grounds: &Grounds, path: &Path, mounts: io::Result<Mounts>) -> Result<(), Refusal> {
    let no = |why: &str| format!("{:?} cannot be mounted: {why}", short(text));
    match mounts {
        Ok(mounts) if grounds.keeps(&mounts, path) => {
            Err(Refusal::new(DenialCode::MountPrivate, no("the host keeps what is its own there")))
        }
        Ok(_) => Ok(()),
        Err(error) => {
            let refusal =
                Refusal::new(DenialCode::MountUnknown, no(&format!("the table of mounts cannot be read: {error}")));
            Err(refusal.hint("see that the host's limit on open files is not reached, and try again"))
        }
    }
}

/// What a path is called that names an allowed directory by the same link as the settings do.
fn by_its_own_name(path: &Path, grounds: &Grounds) -> Option<PathBuf> {
    grounds.linked.iter().find_map(|(named, real)| Some(real.join(path.strip_prefix(named).ok()?)))
}

/// Whether what was seen at a source is a directory that may be mounted.
fn lies(text: &str, seen: Result<Place, Unseen>) -> Result<(), Refusal> {
    let refuse = |code, why: &str| Refusal::new(code, format!("{:?} cannot be mounted: {why}", short(text)));
    match seen {
        Ok(Place { directory: true, .. }) => Ok(()),
        Ok(Place { directory: false, .. }) => Err(refuse(DenialCode::MountSource, "it is no directory")),
        Err(Unseen::Elsewhere(kind)) => {
            let why = format!(
                "on the way to it lies a file system of kind {kind}, which other machines or programs answer for"
            );
            Err(refuse(DenialCode::MountNetwork, &why)
                .hint("name a directory on a disk of this machine, and copy there what it needs"))
        }
        // Also one further up: whoever owns that link could turn it to another place later.
        Err(Unseen::Link) => Err(refuse(DenialCode::MountLink, "its path goes by a link")),
        Err(Unseen::Absent) => Err(refuse(DenialCode::MountSource, "it is not there")),
        Err(Unseen::Closed) => Err(refuse(DenialCode::MountSource, "it cannot be reached")),
    }
}

fn check_target(target: &str) -> Result<(), Refusal> {
    let Some(name) = ironclaw_jail::target_name(target) else {
        let refusal = Refusal::new(DenialCode::MountTarget, format!("{:?} is no target of a mount", short(target)));
        return Err(refusal.hint("a target is / and one name of a-z, A-Z, 0-9, -, _ and ., such as /data"));
    };
    if ironclaw_jail::is_reserved(name) {
        let refusal = Refusal::new(DenialCode::MountTarget, format!("{target} is the jail's own"));
        return Err(refusal.hint("name another target, such as /data"));
    }
    Ok(())
}

fn short(text: &str) -> String {
    text.chars().take(128).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    struct Scene {
        _directory: tempfile::TempDir,
        root: PathBuf,
        grounds: Grounds,
    }

    fn scene() -> Scene {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("there");
        for made in ["allowed/data/deep", "allowed/home/sessions", "allowedly"] {
            fs::create_dir_all(root.join(made)).expect("made");
        }
        fs::write(root.join("allowed/file"), "x").expect("written");
        symlink(root.join("allowed/data"), root.join("allowed/link")).expect("linked");
        let private = vec![root.join("allowed/home")];
        let linked = vec![(root.join("named"), root.join("allowed"))];
        let packages = crate::packages::Config::default();
        let budget = crate::turns::budget::Config::default();
        let grounds = Grounds { mounts: vec![root.join("allowed")], linked, private, packages, budget };
        Scene { _directory: directory, root, grounds }
    }

    fn mount(source: &str, target: Option<&str>) -> Mount {
        Mount { source: source.to_owned(), target: target.map(str::to_owned), read_only: None }
    }

    #[test]
    fn mount_outside_allowed_or_of_host_or_system_is_refused() {
        let Scene { root, grounds, .. } = &scene();
        let at = |rest: &str| format!("{}{rest}", root.display());
        for (source, code) in [
            ("/".to_owned(), DenialCode::MountSystem),
            ("/proc".to_owned(), DenialCode::MountSystem),
            ("/proc/self".to_owned(), DenialCode::MountSystem),
            ("/etc/ssh".to_owned(), DenialCode::MountSystem),
            ("/home".to_owned(), DenialCode::MountNotAllowed),
            (at(""), DenialCode::MountNotAllowed),
            (at("/allowedly"), DenialCode::MountNotAllowed),
            (at("/allowed"), DenialCode::MountPrivate),
            (at("/allowed/home"), DenialCode::MountPrivate),
            (at("/allowed/home/sessions"), DenialCode::MountPrivate),
            (at("/allowed/link"), DenialCode::MountLink),
            (at("/allowed/link/deep"), DenialCode::MountLink),
            (at("/named/data"), DenialCode::MountLink),
            (at("/allowed/file"), DenialCode::MountSource),
            (at("/allowed/nothing"), DenialCode::MountSource),
            (at("/allowed/data/../home"), DenialCode::MountSource),
            (at("/allowed/./data"), DenialCode::MountSource),
            (at("//allowed/data"), DenialCode::MountSource),
            (at("/allowed/data/"), DenialCode::MountSource),
            (at("/allowed/da\nta"), DenialCode::MountSource),
            ("allowed/data".to_owned(), DenialCode::MountSource),
        ] {
            let refused = complete(vec![mount(&source, Some("/x"))], grounds).expect_err(&source);
            assert_eq!(refused.code, code, "{source}: {refused}");
        }
    }

    #[test]
    fn no_directory_is_mounted_while_bind_mounts_are_unknown() {
        let Scene { root, grounds, .. } = &scene();
        let (path, unread) = (root.join("allowed/data"), io::Error::from_raw_os_error(nix::libc::EMFILE));
        assert!(is_free("data", grounds, &path, Mounts::read()).is_ok());
        assert_eq!(is_free("data", grounds, &path, Err(unread)).expect_err("refused").code, DenialCode::MountUnknown);
    }

    #[test]
    fn mount_named_by_a_link_is_refused_with_its_real_name() {
        let Scene { root, grounds, .. } = &scene();
        let named = root.join("named/data").display().to_string();
        let refused = complete(vec![mount(&named, None)], grounds).expect_err("a link");
        assert_eq!(refused.hint, format!("name it as {}", root.join("allowed/data").display()));
    }

    #[test]
    fn network_directory_is_refused_with_its_kind_and_a_remedy() {
        let refused = lies("/srv/net", Err(Unseen::Elsewhere("nfs4".to_owned()))).expect_err("elsewhere");
        assert_eq!(refused.code, DenialCode::MountNetwork);
        assert!(refused.message.contains("\"/srv/net\"") && refused.message.contains("nfs4"), "{refused}");
        assert!(refused.hint.contains("a disk of this machine"), "{}", refused.hint);
    }

    #[test]
    fn mounts_without_setting_are_refused_with_its_name() {
        let mut scene = scene();
        let Scene { root, grounds, .. } = &mut scene;
        grounds.mounts = Vec::new();
        let source = root.join("allowed/data").display().to_string();
        let refused = complete(vec![mount(&source, None)], grounds).expect_err("off");
        assert_eq!(refused.code, DenialCode::MountsOff);
        assert!(refused.hint.contains("[mounts] allow"), "{}", refused.hint);
        assert_eq!(complete(Vec::new(), grounds), Ok(Vec::new()), "to take all away is always possible");
    }

    #[test]
    fn a_target_that_is_the_jails_own_or_no_plain_name_is_refused() {
        let Scene { root, grounds, .. } = &scene();
        let source = root.join("allowed/data").display().to_string();
        for target in
            ["/", "data", "/a/b", "/..", "/.ssh", "/usr", "/workspace", "/lib64", "/libexec", "/a b", "/\u{e9}", "//x"]
        {
            let refused = complete(vec![mount(&source, Some(target))], grounds).expect_err(target);
            assert_eq!(refused.code, DenialCode::MountTarget, "{target}");
        }
    }

    #[test]
    fn a_target_that_is_taken_here_is_taken_by_every_jail() {
        let Scene { root, grounds, .. } = &scene();
        let source = root.join("allowed/data").display().to_string();
        let longest = format!("/{}", "x".repeat(64));
        for target in ["/data", "/Photos", "/ALL", "/a", "/A.b_c-9", "/9", "/-", &longest] {
            complete(vec![mount(&source, Some(target))], grounds)
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
                identity: ironclaw_jail::Identity::Own,
                limits: ironclaw_jail::Limits::default(),
            };
            spec.check(1).unwrap_or_else(|unfit| panic!("{target}: {unfit}"));
        }
        let refused = complete(vec![mount(&source, Some(&format!("{longest}x")))], grounds).expect_err("too long");
        assert_eq!(refused.code, DenialCode::MountTarget);
    }

    #[test]
    fn duplicate_source_or_target_is_refused() {
        let Scene { root, grounds, .. } = &scene();
        let source = |rest: &str| root.join("allowed").join(rest).display().to_string();
        let same = vec![mount(&source("data"), Some("/a")), mount(&source("data"), Some("/b"))];
        assert_eq!(complete(same, grounds).expect_err("twice").code, DenialCode::MountTwice);
        let same = vec![mount(&source("data"), Some("/a")), mount(&source("data/deep"), Some("/a"))];
        assert_eq!(complete(same, grounds).expect_err("twice").code, DenialCode::MountTwice);
    }

    #[test]
    fn what_is_left_open_is_the_last_name_and_only_read() {
        let Scene { root, grounds, .. } = &scene();
        let source = root.join("allowed/data").display().to_string();
        let completed = complete(vec![mount(&source, None)], grounds).expect("it may be");
        assert_eq!(completed[0].target.as_deref(), Some("/data"));
        assert_eq!(completed[0].read_only, Some(true));
        assert_eq!(complete(completed.clone(), grounds), Ok(completed));
    }
}
