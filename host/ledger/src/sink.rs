//! The destination of the ledger's heads: a directory outside of the home, or none, with the reason.
//!
//! It is never inside of the home: an attacker who can change the ledger could change the heads there as well. By default, each
//! ledger has a directory under its own id. So a home that moved finds its heads, and a copy of it finds the same. See
//! `maintenance` in the host's crate.

use super::Config;
use super::head;
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::HeadsKept;
use ironclaw_state::home::{self, Home};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// End of the name of the file that names the home of a ledger. Its name begins with a dot, so it is never read as a head.
const HOME_FILE: &str = "home";

/// Longest path, in bytes.
const PATH_BYTES_MAX: u64 = 4096;

/// The destination of heads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    /// A directory that the operator named; it must exist.
    Named(PathBuf),
    /// A directory in the user's data directory, made if it is missing.
    Default {
        /// The directory that has a directory for each ledger.
        root: PathBuf,
        /// The name of this home's directory in earlier versions, which derived it from the path of the home.
        by_path: String,
    },
    /// No destination, with the reason.
    None(&'static str),
}

/// Another home that keeps heads of the same ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Other {
    /// The other home is gone: this home was moved.
    Moved(PathBuf),
    /// The other home still exists: one of the two is a copy.
    Copy(PathBuf),
}

impl Sink {
    /// Returns the named directory; otherwise one for the ledger below `ironclaw/heads` in the XDG data directory.
    ///
    /// # Errors
    /// A sentence, if the named directory is in the home: an attacker who can change the ledger could change the heads as well.
    pub fn choose(config: &Config, home: &Home) -> Result<Self, String> {
        match &config.heads {
            Some(path) if !path.is_absolute() => Err("ledger.heads must be an absolute path".to_owned()),
            Some(path) if inside(path, home) => Err(format!(
                "ledger.heads is {}, inside of the home: name a directory that does not change together with the home",
                path.display()
            )),
            Some(path) => Ok(Self::Named(path.clone())),
            None => Ok(match directories::BaseDirs::new().map(|base| base.data_dir().join("ironclaw/heads")) {
                Some(root) if inside(&root, home) => Self::None("the user's data directory is inside of the home"),
                Some(root) => Self::Default { root, by_path: short(home) },
                None => Self::None("the user has no data directory"),
            }),
        }
    }

    /// Returns the directory above all directories of heads, if there is one.
    pub fn root(&self) -> Option<&Path> {
        match self {
            Self::Named(path) | Self::Default { root: path, .. } => Some(path),
            Self::None(_) => None,
        }
    }

    /// Returns the directory of this ledger, if there is one.
    pub fn directory(&self, ledger: &str) -> Option<PathBuf> {
        match self {
            Self::Named(path) => Some(path.clone()),
            Self::Default { root, .. } => Some(root.join(head::short(ledger))),
            Self::None(_) => None,
        }
    }

    /// Returns the existing directories that may have heads of this ledger, or heads that this home kept of another ledger.
    pub fn sources(&self, ledger: &str, home: &Home) -> Vec<PathBuf> {
        let Some(own) = self.directory(ledger) else { return Vec::new() };
        let mut sources = vec![own];
        if let Self::Default { root, by_path } = self {
            let concerns = |path: &PathBuf| {
                path.ends_with(by_path)
                    || head::newest(path, ledger).is_some()
                    || homes(path).any(|named| named == home.path())
            };
            let mut others: Vec<PathBuf> =
                directories(root).filter(|path| *path != sources[0]).filter(concerns).collect();
            others.sort();
            sources.extend(others);
        }
        sources.retain(|path| path.is_dir());
        sources
    }

    /// Returns the existing directories that have heads of this home alone, by the files that name it. Opens no record.
    pub fn directories_for(&self, home: &Home) -> Vec<PathBuf> {
        let Self::Default { root, .. } = self else { return Vec::new() };
        let is_its = |path: &PathBuf| {
            let mut named = homes(path).peekable();
            named.peek().is_some() && named.all(|named| named == home.path())
        };
        let mut found: Vec<PathBuf> = directories(root).filter(is_its).collect();
        found.sort();
        found
    }

    /// Moves the heads of this ledger from directories of other names into its own. Returns their number.
    ///
    /// # Errors
    /// The error of the first head that cannot be moved.
    pub fn adopt(&self, ledger: &str, home: &Home) -> io::Result<usize> {
        let (Self::Default { .. }, Some(own)) = (self, self.directory(ledger)) else { return Ok(0) };
        let mut moved = 0;
        for other in self.sources(ledger, home).into_iter().filter(|other| *other != own) {
            for name in head::names(&other, ledger)? {
                self.ready(ledger, home)?;
                let to = own.join(&name);
                if to.exists() {
                    continue;
                }
                std::fs::rename(other.join(&name), to)?;
                moved += 1;
            }
            let (from, to) = (home_file(&other, ledger), home_file(&own, ledger));
            if from.exists() {
                match to.exists() {
                    true => std::fs::remove_file(from)?,
                    false => std::fs::rename(from, to)?,
                }
            }
            // This fails if heads of another ledger remain in it.
            let _ = std::fs::remove_dir(&other);
        }
        Ok(moved)
    }

    /// Records that this home keeps the heads of this ledger; returns another home that did so before.
    ///
    /// # Errors
    /// Those of the file. A directory that takes only new files keeps the first record.
    pub fn claim(&self, ledger: &str, home: &Home) -> io::Result<Option<Other>> {
        let Some(directory) = self.directory(ledger) else { return Ok(None) };
        let file = home_file(&directory, ledger);
        let other = read_home(&file).filter(|other| other != home.path());
        match other {
            Some(other) if other.join("state.db").exists() => Ok(Some(Other::Copy(other))),
            other => {
                self.ready(ledger, home)?;
                home::write_private(&file, home.path().as_os_str().as_bytes()).map_err(io::Error::other)?;
                Ok(other.map(Other::Moved))
            }
        }
    }

    /// Makes the directory of this ledger if necessary, checks that it is outside of the home, and returns it.
    pub fn ready(&self, ledger: &str, home: &Home) -> io::Result<PathBuf> {
        let path = match (self, self.directory(ledger)) {
            (Self::Default { .. }, Some(path)) => {
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
                path
            }
            (Self::None(why), _) => return Err(io::Error::other(*why)),
            (_, Some(path)) => path,
            (_, None) => return Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        // The target of a link may have changed since the start.
        if inside(&path, home) {
            return Err(io::Error::other("the directory of heads is inside of the home"));
        }
        Ok(path)
    }

    /// Returns the state of the directory of heads, for the API.
    pub fn look(&self, ledger: &str) -> HeadsKept {
        let directory = self.directory(ledger);
        HeadsKept {
            seq: directory.as_deref().and_then(|path| head::newest(path, ledger)),
            trouble: match (self, &directory) {
                (Self::None(why), _) => Some(no_destination(why)),
                (Self::Named(_), Some(path)) if !path.is_dir() => Some(format!("{} is no directory", path.display())),
                (Self::Named(_) | Self::Default { .. }, _) => None,
            },
            directory: directory.map(|path| path.display().to_string()),
        }
    }
}

/// Returns the path of the file that names the home of a ledger.
fn home_file(directory: &Path, ledger: &str) -> PathBuf {
    directory.join(format!(".{}.{HOME_FILE}", head::short(ledger)))
}

fn directories(root: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

/// Returns the homes that keep heads in this directory, from their files.
fn homes(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_note = |name: &str| name.starts_with('.') && name.ends_with(&format!(".{HOME_FILE}"));
    entries
        .filter(move |entry| entry.file_name().to_str().is_some_and(is_note))
        .filter_map(|entry| read_home(&entry.path()))
}

fn read_home(file: &Path) -> Option<PathBuf> {
    let small = file.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() <= PATH_BYTES_MAX);
    let bytes = small.then(|| std::fs::read(file).ok()).flatten()?;
    Some(OsString::from_vec(bytes).into())
}

/// Returns the name of a home's directory that is derived from its path.
fn short(home: &Home) -> String {
    Digest::of(home.path().as_os_str().as_encoded_bytes()).to_string()[..12].to_owned()
}

/// Returns the sentence for a ledger without a directory for its heads, with the reason.
pub fn no_destination(why: &str) -> String {
    format!("heads of the ledger are kept nowhere ({why}): name a directory with ledger.heads")
}

/// Returns whether a path is inside of the home, with the links of its existing part resolved.
fn inside(path: &Path, home: &Home) -> bool {
    let there = path.ancestors().find_map(|part| part.canonicalize().ok().map(|real| (part, real)));
    let real = there.map(|(part, real)| match path.strip_prefix(part) {
        Ok(rest) => real.join(rest),
        Err(_) => real,
    });
    path.starts_with(home.path()) || real.is_some_and(|real| real.starts_with(home.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_inside_of_the_home_is_refused_by_any_path() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = Home::create(&directory.path().join("home")).expect("made");
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(home.path(), &link).expect("linked");
        let choose = |path: PathBuf| Sink::choose(&Config { heads: Some(path), ..Config::default() }, &home);
        for path in [home.path().join("heads"), link.join("ledger"), link.join("not/there/yet"), "heads".into()] {
            assert!(choose(path.clone()).is_err(), "{}", path.display());
        }
        let outside = directory.path().join("heads");
        assert_eq!(choose(outside.clone()), Ok(Sink::Named(outside)));
    }

    #[test]
    fn directory_named_by_path_is_adopted_and_other_heads_stay() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = Home::create(&directory.path().join("home")).expect("made");
        let (root, ledger, other) = (directory.path().join("heads"), "ab".repeat(32), "cd".repeat(32));
        let sink = Sink::Default { root: root.clone(), by_path: short(&home) };
        let old = root.join(short(&home));
        // The directory of another home, named by the path that this home had before.
        let moved = root.join("000000000000");
        for (path, ledger, seq) in [(&old, &ledger, 3), (&old, &other, 4), (&moved, &ledger, 5)] {
            std::fs::create_dir_all(path).expect("made");
            std::fs::write(path.join(format!("{}-{seq:012}-0123456789abcdef.json", &ledger[..16])), "{}")
                .expect("written");
        }
        assert_eq!(sink.sources(&ledger, &home).len(), 2, "its own is not there yet");
        assert_eq!(sink.adopt(&ledger, &home).expect("moved"), 2);
        let own = sink.directory(&ledger).expect("usual");
        assert_eq!(head::newest(&own, &ledger), Some(5));
        assert_eq!((head::newest(&old, &other), moved.exists()), (Some(4), false));
        assert_eq!(sink.adopt(&ledger, &home).expect("nothing to do"), 0);
    }

    #[test]
    fn claim_tells_a_moved_home_from_a_copy() {
        let directory = tempfile::tempdir().expect("a directory");
        let make = |name: &str| {
            let home = Home::create(&directory.path().join(name)).expect("made");
            std::fs::write(home.state_db(), "x").expect("written");
            home
        };
        let (one, two) = (make("one"), make("two"));
        let sink = Sink::Default { root: directory.path().join("heads"), by_path: short(&one) };
        let ledger = "ab".repeat(32);
        assert_eq!(sink.claim(&ledger, &one).expect("noted"), None);
        assert_eq!(sink.claim(&ledger, &one).expect("noted"), None);
        let own = sink.directory(&ledger).expect("usual");
        assert_eq!((sink.directories_for(&one), sink.directories_for(&two)), (vec![own], Vec::new()));
        let copy = Some(Other::Copy(one.path().to_owned()));
        assert_eq!(sink.claim(&ledger, &two).expect("read"), copy);
        assert_eq!(sink.claim(&ledger, &two).expect("read"), copy, "the first home remains recorded");
        std::fs::remove_file(one.state_db()).expect("removed");
        assert_eq!(sink.claim(&ledger, &two).expect("noted"), Some(Other::Moved(one.path().to_owned())));
        assert_eq!(sink.claim(&ledger, &two).expect("noted"), None);
    }
}
