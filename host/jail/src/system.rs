//! The host's own programs in a jail: `/usr`, read-only, and the few names around it that programs expect.
//!
//! Shows no configuration of the host, and refuses a jail that would lack a part of the programs. See
//! `crate::native::system_mounts`, which mounts them.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Component, Path, PathBuf};

/// The programs of the host in a jail: `/usr`, readable, executable and not writable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// A directory whose `usr` is laid over the host's, read-only as well.
    pub layer: Option<PathBuf>,
}

/// Returns whether a name in the root of a jail, without slash, is reserved for the jail: no granted mount may have it.
pub fn is_reserved(name: &str) -> bool {
    let own: [&[&str]; 4] = [&OWN, &DIRECTORIES, &LINKS, &KERNEL];
    name.starts_with("lib") || own.iter().any(|names| names.contains(&name))
}

/// The names of the mounts that the host makes for a session.
pub(super) const OWN: [&str; 6] = ["certificates", "in", "out", "run", "skills", "workspace"];
/// Names whose content programs trust as the kernel's; no granted directory has them.
const KERNEL: [&str; 2] = ["proc", "sys"];
/// Names of links into `/usr`, as far as the host has them.
pub const LINKS: [&str; 6] = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];
/// Directories that the jail makes for its programs.
const DIRECTORIES: [&str; 4] = ["dev", "etc", "tmp", "usr"];
/// Devices of the host that every program expects.
pub(crate) const DEVICES: [&str; 3] = ["dev/null", "dev/zero", "dev/urandom"];
/// Directory of links with which a distribution selects one of several programs for a name.
pub(crate) const ALTERNATIVES: &str = "etc/alternatives";
/// The directories of the host that a jail with programs shows; the names in the root are links into the first.
pub const SHOWN: [&str; 2] = ["/usr", "/etc/alternatives"];
/// The users in the jail.
pub(crate) const PASSWD: &str = "ironclaw:x:1000:1000::/workspace:/bin/sh\n";
/// The groups in the jail.
pub(crate) const GROUP: &str = "ironclaw:x:1000:\n";
/// Room in `/tmp`: bytes and inodes.
pub(crate) const TMP_ROOM: (u64, u64) = (64 << 20, 4096);

/// The names around `/usr` on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Links in the root, each with its target.
    pub links: Vec<(String, PathBuf)>,
    /// True if the host has the directory of alternatives.
    pub(crate) alternatives: bool,
}

impl Names {
    /// Reads the names in the root directory `root`; the sentence of an error names the unsuitable one.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut links = Vec::new();
        for name in LINKS {
            let target = match std::fs::read_link(root.join(name)) {
                Ok(target) => target,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                // A directory: programs and libraries beside `/usr` would be missing in the jail.
                Err(_) => return Err(io::Error::other(format!("/{name} is no link into /usr"))),
            };
            let inside = target.strip_prefix("/").unwrap_or(&target).to_owned();
            let plain = inside.components().all(|part| matches!(part, Component::Normal(_)));
            if !plain || !inside.starts_with("usr") {
                return Err(io::Error::other(format!("/{name} leads to {} and not into /usr", target.display())));
            }
            links.push((name.to_owned(), inside));
        }
        Ok(Self { links, alternatives: root.join(ALTERNATIVES).is_dir() })
    }

    /// Returns the names in the root of a jail that has the host's programs.
    pub(crate) fn in_root(&self) -> impl Iterator<Item = &str> {
        DIRECTORIES.into_iter().chain(self.links.iter().map(|(name, _)| name.as_str()))
    }

    /// Returns its mounts, in the form of `inspect`.
    pub(crate) fn mounts(&self) -> Vec<String> {
        let mut mounts = vec!["/usr ro without-noexec".to_owned(), "/tmp rw".to_owned()];
        mounts.extend(DEVICES.map(|device| format!("/{device} ro without-nodev")));
        mounts.extend(self.alternatives.then(|| format!("/{ALTERNATIVES} ro")));
        mounts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn host_with_programs_outside_usr_is_refused_by_name() {
        let root = tempfile::tempdir().expect("a directory");
        symlink("usr/lib", root.path().join("lib")).expect("a link");
        symlink("/usr/lib", root.path().join("lib64")).expect("a link");
        let names = Names::read(root.path()).expect("links into usr");
        let lib = |name: &str| (name.to_owned(), PathBuf::from("usr/lib"));
        assert_eq!(names.links, [lib("lib"), lib("lib64")]);
        for (name, target) in [("bin", "/opt/bin"), ("bin", "usr/../home"), ("bin", "../usr/bin"), ("bin", "usrx/bin")]
        {
            symlink(target, root.path().join(name)).expect("a link");
            let why = Names::read(root.path()).expect_err(target).to_string();
            assert!(why.contains("/bin leads to"), "{why}");
            std::fs::remove_file(root.path().join(name)).expect("removed");
        }
        std::fs::create_dir(root.path().join("sbin")).expect("a directory");
        assert_eq!(Names::read(root.path()).expect_err("a directory").to_string(), "/sbin is no link into /usr");
    }

    #[test]
    fn every_name_that_the_jail_uses_itself_is_reserved() {
        let own = ["in", "out", "run", "workspace", "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec"];
        for name in own.into_iter().chain(["etc", "dev", "tmp", "proc", "sys"]) {
            assert!(is_reserved(name), "{name}");
        }
        assert!(!is_reserved("data"));
    }
}
