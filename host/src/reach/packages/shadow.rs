//! Protection against a package that would replace a file of this machine: a layer is mounted over `/usr`.
//!
//! Reads the machine's files and dpkg's lists of them; changes nothing. See [`crate::reach::packages::layer`].

use super::error::{Error, unfit};
use super::source::{Entry, Place, Source, TOP, copy};
use ironclaw_jail::system::LINKS;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Directory in which dpkg keeps the list of files of each package.
const DPKG_LISTS: &str = "/var/lib/dpkg/info";
/// A directory of programs, and one that comes after it in the `PATH` of a command.
const PROGRAMS_FIRST: [(&str, &str); 1] = [("usr/local/bin", "usr/bin")];
/// Directories in which the loader searches libraries after the directory of the machine's architecture.
const LIBRARIES_LAST: [&str; 2] = ["usr/lib", "usr/lib64"];
/// Directories in which commands search programs.
const PROGRAMS: [&str; 2] = ["usr/local/bin", "usr/bin"];
/// The directory of programs of a layer that a command finds by their whole path alone, in the place of each of [`PROGRAMS`].
const BEHIND: &str = "behind";
/// Directories of libraries for certain processors, which the loader searches first. All but the first belong to glibc before 2.37.
const HARDWARE: [&str; 10] =
    ["glibc-hwcaps", "tls", "haswell", "xeon_phi", "avx512_1", "x86_64", "i686", "sse2", "aarch64", "atomics"];

/// The machine over whose `/usr` a layer is mounted.
#[derive(Debug)]
pub(super) struct Machine {
    root: PathBuf,
    lists: PathBuf,
    /// The files of each looked-up package, as dpkg lists them.
    owned: HashMap<String, HashSet<Vec<u8>>>,
}

impl Default for Machine {
    fn default() -> Self {
        Self::at(Path::new("/"), Path::new(DPKG_LISTS))
    }
}

impl Machine {
    fn at(root: &Path, lists: &Path) -> Self {
        Self { root: root.to_owned(), lists: lists.to_owned(), owned: HashMap::new() }
    }

    /// Refuses an entry of a layer that hides a different file of the machine, and a link in place of a searched directory. The target of
    /// such a link could hide files of the machine without having their names.
    pub(super) fn check(&mut self, source: &Source, target: &str, entry: &Entry) -> Result<(), Error> {
        if let Entry::Link { target: to } = entry
            && is_searched(target)
            && !is_link_to(&self.root.join(target), to)
        {
            return Err(unfit(format!(
                "{} brings the link {target:?} in a place where every command of the agent looks for programs or libraries",
                source.name
            )));
        }
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

    /// Returns the place behind the programs of the machine for a program that hides one of them; `None` if it hides none.
    pub(super) fn behind(&mut self, source: &Source, target: &str, entry: &Entry) -> Result<Option<String>, Error> {
        let Some((directory, name)) = target.rsplit_once('/').filter(|(above, _)| PROGRAMS.contains(above)) else {
            return Ok(None);
        };
        if matches!(entry, Entry::Directory) {
            return Ok(None);
        }
        for hidden in hidden_by(target) {
            if self.differs(&hidden, entry)? && !self.owns(source, &hidden) {
                // As deep as before, so that a relative link leads to the same file.
                let above = directory.strip_suffix("bin").unwrap_or(directory);
                return Ok(Some(format!("{above}{BEHIND}/{name}")));
            }
        }
        Ok(None)
    }

    /// Returns true if the machine has a different file at this path.
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
            // Directories of both merge.
            Entry::Directory => !found.is_dir(),
            Entry::Link { target } => !is_link_to(&path, target),
            Entry::File { source, bytes, .. } => {
                let is_same = found.is_file() && found.len() == *bytes && {
                    let brought = copy(source, *bytes, None).map_err(Error::io(source))?;
                    copy(&path, *bytes, None).is_ok_and(|own| own == brought)
                };
                !is_same
            }
        })
    }

    /// Returns true if the Debian package that brings a file also owns it on this machine.
    fn owns(&mut self, source: &Source, path: &str) -> bool {
        if source.place != Place::Root {
            return false;
        }
        let package = source.name.split('=').next().unwrap_or_default();
        let lists = &self.lists;
        let owned = self.owned.entry(package.to_owned()).or_insert_with(|| files_of(lists, package));
        let merged = path.strip_prefix(TOP).unwrap_or(path);
        owned.contains(format!("/{path}").as_bytes()) || owned.contains(merged.as_bytes())
    }
}

fn is_link_to(path: &Path, target: &str) -> bool {
    fs::read_link(path).is_ok_and(|there| there == Path::new(target))
}

/// Returns the files of a package, of any architecture, as dpkg lists them in this directory.
fn files_of(lists: &Path, package: &str) -> HashSet<Vec<u8>> {
    let lists = fs::read_dir(lists).into_iter().flatten().flatten();
    let lists = lists.filter(|list| is_list_of(&list.file_name().to_string_lossy(), package));
    let lines = |text: Vec<u8>| text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    lists.flat_map(|list| lines(fs::read(list.path()).unwrap_or_default())).collect()
}

/// Returns true if a file of dpkg lists the files of this package, of any architecture.
fn is_list_of(file: &str, package: &str) -> bool {
    let Some(name) = file.strip_suffix(".list") else { return false };
    !package.is_empty() && name.split(':').next() == Some(package)
}

/// Returns the paths that an entry at `target` hides: its own, and those of lower precedence in a search.
fn hidden_by(target: &str) -> Vec<String> {
    let mut hidden = vec![target.to_owned()];
    let Some((directory, name)) = target.rsplit_once('/') else { return hidden };
    let behind = PROGRAMS_FIRST.iter().filter(|(first, _)| *first == directory);
    hidden.extend(behind.map(|(_, last)| format!("{last}/{name}")));
    if name.contains(".so") {
        // `usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v3`
        let plain = library_directory(directory).filter(|plain| *plain != directory);
        hidden.extend(plain.map(|plain| format!("{plain}/{name}")));
        let is_of_architecture = directory.strip_prefix("usr/lib/").is_some_and(|rest| rest.contains("-linux-"));
        if is_of_architecture {
            hidden.extend(LIBRARIES_LAST.map(|last| format!("{last}/{name}")));
        }
    }
    hidden
}

/// Returns true if commands or the loader search this directory, or one below it.
fn is_searched(path: &str) -> bool {
    let is_above = |directory: &&str| directory.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    let is_library = path.rsplit('/').next().is_some_and(|name| name.contains(".so"));
    PROGRAMS.iter().any(|directory| *directory == path || is_above(directory))
        || library_directory(path).is_some() && !is_library
}

/// Returns the directory of libraries that the loader searches together with this one: itself, or the one above those for certain
/// processors.
fn library_directory(path: &str) -> Option<&str> {
    let parts: Vec<&str> = path.split('/').collect();
    let depth = match parts[..] {
        ["usr", "lib", architecture, ..] if architecture.contains("-linux-") => 3,
        ["usr", lib, ..] if lib.starts_with("lib") && LINKS.contains(&lib) => 2,
        _ => return None,
    };
    let is_searched = parts.get(depth).is_none_or(|first| HARDWARE.contains(first));
    let end = path.match_indices('/').nth(depth - 1).map_or(path.len(), |(end, _)| end);
    is_searched.then(|| &path[..end])
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
        fn file(&self, name: &str, text: &str) -> Entry {
            let source = self.directory.path().join(name);
            fs::write(&source, text).expect("written");
            Entry::File { source, executable: true, bytes: text.len() as u64 }
        }

        fn check(&mut self, name: &str, place: Place, target: &str, entry: &Entry) -> Result<(), String> {
            let source = Source { root: PathBuf::new(), place, name: name.to_owned() };
            self.machine.check(&source, target, entry).map_err(|error| error.to_string())
        }
    }

    #[test]
    fn a_program_or_library_that_a_layer_would_hide_is_refused() {
        let mut scene = scene();
        let other = scene.file("brought", "another program");
        for (target, hidden) in [
            ("usr/bin/sh", "/usr/bin/sh"),
            ("usr/bin/linked", "/usr/bin/linked"),
            ("usr/bin", "/usr/bin"),
            ("usr/local/bin/sh", "/usr/bin/sh"),
            ("usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
            ("usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v3/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
            ("usr/lib/x86_64-linux-gnu/tls/haswell/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
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
    fn new_identical_or_own_files_are_kept() {
        let mut scene = scene();
        let (same, other) = (scene.file("same", "the machine's"), scene.file("brought", "newer"));
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
        // A name with the owner's name as its beginning is not the owner, and npm has no owners.
        assert!(scene.check("jq-evil=2", Place::Root, "usr/bin/jq", &other).is_err());
        assert!(scene.check("jq=2", Place::Prefix, "usr/bin/jq", &other).is_err());
    }

    #[test]
    fn link_over_a_searched_directory_is_refused() {
        let mut scene = scene();
        fs::remove_dir(scene.machine.root.join("usr/local/bin")).expect("removed");
        fs::remove_dir(scene.machine.root.join("usr/local")).expect("removed");
        let link = |target: &str| Entry::Link { target: target.to_owned() };
        for target in [
            "usr/local",
            "usr/local/bin",
            "usr/lib64",
            "usr/lib64/glibc-hwcaps",
            "usr/lib/aarch64-linux-gnu",
            "usr/lib/x86_64-linux-gnu/glibc-hwcaps",
            "usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v3",
            "usr/lib/x86_64-linux-gnu/tls",
        ] {
            for place in [Place::Prefix, Place::Root] {
                let refused = scene.check("evil=1", place, target, &link("../evil")).expect_err(target);
                assert!(refused.contains("evil=1") && refused.contains(&format!("{target:?}")), "{refused}");
            }
        }
        std::os::unix::fs::symlink("lib", scene.machine.root.join("usr/lib64")).expect("linked");
        for target in [
            "usr/lib64",
            "usr/lib/new",
            "usr/local/lib",
            "usr/lib/x86_64-linux-gnu/new",
            "usr/lib/x86_64-linux-gnu/libnew.so.1",
            "usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v3/libnew.so.1",
        ] {
            assert_eq!(scene.check("new=1", Place::Root, target, &link("lib")), Ok(()), "{target}");
        }
    }

    #[test]
    fn lists_of_a_package_are_read_once() {
        let mut scene = scene();
        let newer = scene.file("brought", "newer");
        assert_eq!(scene.check("jq=2", Place::Root, "usr/bin/jq", &newer), Ok(()));
        fs::remove_dir_all(&scene.machine.lists).expect("removed");
        assert_eq!(scene.check("jq=2", Place::Root, "usr/bin/jq", &newer), Ok(()));
        assert!(scene.check("dash=2", Place::Root, "usr/bin/sh", &newer).is_err(), "it is of another package");
    }
}
