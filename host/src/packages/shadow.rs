//! Refuses a file of a package that would stand in the place of another file of this machine: a layer lies over `/usr`.
//!
//! Reads the machine's files and dpkg's lists of them; changes nothing. Next: `layer`.

use super::layer::{Entry, Place, Source, TOP, copy};
use super::{Error, unfit};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where dpkg keeps the list of files of each package.
const DPKG_LISTS: &str = "/var/lib/dpkg/info";
/// A directory of programs, and one that the `PATH` of a command names behind it.
const PROGRAMS_FIRST: [(&str, &str); 1] = [("usr/local/bin", "usr/bin")];
/// Where the loader looks for libraries after the directory of the machine's architecture.
const LIBRARIES_LAST: [&str; 2] = ["usr/lib", "usr/lib64"];
/// A directory of libraries for newer processors: the loader looks there first.
const HARDWARE: &str = "glibc-hwcaps";

/// The machine over whose `/usr` a layer would lie.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    root: PathBuf,
    lists: PathBuf,
}

impl Default for Machine {
    fn default() -> Self {
        Self { root: PathBuf::from("/"), lists: PathBuf::from(DPKG_LISTS) }
    }
}

impl Machine {
    #[cfg(test)]
    pub(super) fn at(root: &Path, lists: &Path) -> Self {
        Self { root: root.to_owned(), lists: lists.to_owned() }
    }

    /// Refuses an entry of a layer that hides a different file of the machine, by both names.
    pub(super) fn check(&self, source: &Source, target: &str, entry: &Entry) -> Result<(), Error> {
        for hidden in hidden_by(target) {
            let is_replaced = self.differs(&hidden, entry)?;
            if is_replaced && !self.owns(source, &hidden) {
                return Err(unfit(format!(
                    "{} brings {target:?}, which would replace /{hidden} of this machine for every command of the agent",
                    source.name
                )));
            }
        }
        Ok(())
    }

    /// Whether the machine has something else at this place.
    fn differs(&self, path: &str, entry: &Entry) -> Result<bool, Error> {
        let path = self.root.join(path);
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(false);
            }
            Err(error) => return Err(Error::io(&path)(error)),
        };
        Ok(match entry {
            // Directories of both are merged.
            Entry::Directory => !found.is_dir(),
            Entry::Link { target } => fs::read_link(&path).ok().is_none_or(|there| there != Path::new(target)),
            Entry::File { source, bytes, .. } => {
                let is_same = found.is_file() && found.len() == *bytes && {
                    let brought = copy(source, *bytes, None).map_err(Error::io(source))?;
                    copy(&path, *bytes, None).is_ok_and(|own| own == brought)
                };
                !is_same
            }
        })
    }

    /// Whether the Debian package that brings a file is the one that has it on this machine.
    fn owns(&self, source: &Source, path: &str) -> bool {
        if source.place != Place::Root {
            return false;
        }
        let package = source.name.split('=').next().unwrap_or_default();
        let merged = path.strip_prefix(TOP).unwrap_or(path);
        let is_listed = |list: &Path| {
            let text = fs::read(list).unwrap_or_default();
            let lines = text.split(|byte| *byte == b'\n');
            lines.into_iter().any(|line| line == format!("/{path}").as_bytes() || line == merged.as_bytes())
        };
        let lists = fs::read_dir(&self.lists).into_iter().flatten().flatten();
        let lists = lists.filter(|list| is_list_of(&list.file_name().to_string_lossy(), package));
        lists.into_iter().any(|list| is_listed(&list.path()))
    }
}

/// Whether a file of dpkg lists the files of this package, of whatever architecture.
fn is_list_of(file: &str, package: &str) -> bool {
    let Some(name) = file.strip_suffix(".list") else { return false };
    !package.is_empty() && name.split(':').next() == Some(package)
}

/// The paths that something at `target` hides: its own, and those that programs look for behind it.
fn hidden_by(target: &str) -> Vec<String> {
    let mut hidden = vec![target.to_owned()];
    let Some((directory, name)) = target.rsplit_once('/') else { return hidden };
    let behind = PROGRAMS_FIRST.iter().filter(|(first, _)| *first == directory);
    hidden.extend(behind.map(|(_, last)| format!("{last}/{name}")));
    if name.contains(".so") {
        // `usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v3`
        let plain = directory.split_once(&format!("/{HARDWARE}/")).map(|(plain, _)| plain);
        let plain_or_own = plain.unwrap_or(directory);
        hidden.extend(plain.map(|plain| format!("{plain}/{name}")));
        let is_of_architecture = plain_or_own.strip_prefix("usr/lib/").is_some_and(|rest| rest.contains("-linux-"));
        if is_of_architecture {
            hidden.extend(LIBRARIES_LAST.map(|last| format!("{last}/{name}")));
        }
    }
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        directory: tempfile::TempDir,
        machine: Machine,
    }

    fn scene() -> Scene {
        let directory = tempfile::tempdir().expect("a directory");
        let (root, lists) = (directory.path().join("machine"), directory.path().join("info"));
        for made in ["usr/bin", "usr/local/bin", "usr/lib/x86_64-linux-gnu", "usr/lib/i386-linux-gnu"] {
            fs::create_dir_all(root.join(made)).expect("made");
        }
        fs::create_dir(&lists).expect("made");
        for (path, text) in [
            ("usr/bin/sh", "the machine's"),
            ("usr/bin/jq", "the machine's"),
            ("usr/lib/x86_64-linux-gnu/libc.so.6", "the machine's"),
            ("usr/lib/libold.so.1", "the machine's"),
        ] {
            fs::write(root.join(path), text).expect("written");
        }
        std::os::unix::fs::symlink("sh", root.join("usr/bin/linked")).expect("linked");
        fs::write(lists.join("dash.list"), "/.\n/bin/sh\n").expect("written");
        fs::write(lists.join("jq:amd64.list"), "/usr\n/usr/bin/jq\n").expect("written");
        let machine = Machine::at(&root, &lists);
        Scene { directory, machine }
    }

    impl Scene {
        fn file(&self, text: &str) -> Entry {
            let source = self.directory.path().join("brought");
            fs::write(&source, text).expect("written");
            Entry::File { source, executable: true, bytes: text.len() as u64 }
        }

        fn check(&self, name: &str, place: Place, target: &str, entry: &Entry) -> Result<(), String> {
            let source = Source { root: PathBuf::new(), place, name: name.to_owned() };
            self.machine.check(&source, target, entry).map_err(|error| error.to_string())
        }
    }

    #[test]
    fn a_program_or_library_that_a_layer_would_hide_is_refused() {
        let scene = scene();
        let other = scene.file("somebody else's");
        for (target, hidden) in [
            ("usr/bin/sh", "/usr/bin/sh"),
            ("usr/bin/linked", "/usr/bin/linked"),
            ("usr/bin", "/usr/bin"),
            ("usr/local/bin/sh", "/usr/bin/sh"),
            ("usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
            ("usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v3/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
            ("usr/lib/x86_64-linux-gnu/libold.so.1", "/usr/lib/libold.so.1"),
        ] {
            for place in [Place::Prefix, Place::Root] {
                let refused = scene.check("evil=1", place, target, &other).expect_err(target);
                assert!(refused.contains("evil=1") && refused.contains(&format!("{hidden} ")), "{refused}");
            }
            let link = Entry::Link { target: "../lib/evil".to_owned() };
            assert!(scene.check("evil=1", Place::Prefix, target, &link).is_err(), "{target}");
        }
        assert!(scene.check("evil=1", Place::Root, "usr/bin/sh", &Entry::Directory).is_err());
    }

    #[test]
    fn what_is_new_identical_or_the_same_packages_own_is_kept() {
        let scene = scene();
        let (same, other) = (scene.file("the machine's"), scene.file("newer"));
        let same = match same {
            Entry::File { bytes, .. } => {
                let source = scene.directory.path().join("same");
                fs::write(&source, "the machine's").expect("written");
                Entry::File { source, executable: true, bytes }
            }
            other => other,
        };
        let link = Entry::Link { target: "sh".to_owned() };
        for (name, place, target, entry) in [
            ("new=1", Place::Prefix, "usr/bin/new", &other),
            ("new=1", Place::Prefix, "usr/bin/sh/below", &other),
            ("new=1", Place::Prefix, "usr/lib", &Entry::Directory),
            ("same=1", Place::Prefix, "usr/bin/sh", &same),
            ("same=1", Place::Prefix, "usr/bin/linked", &link),
            ("dash=2", Place::Root, "usr/bin/sh", &other),
            ("jq=2", Place::Root, "usr/bin/jq", &other),
            ("libc6=2", Place::Root, "usr/lib/i386-linux-gnu/libc.so.6", &other),
        ] {
            assert_eq!(scene.check(name, place, target, entry), Ok(()), "{name} {target}");
        }
        // The name alone makes nobody the owner, and npm has no owners.
        assert!(scene.check("jq-evil=2", Place::Root, "usr/bin/jq", &other).is_err());
        assert!(scene.check("jq=2", Place::Prefix, "usr/bin/jq", &other).is_err());
    }
}
