//! The measurement of the directories of a session, by a walk that ends at the bound.
//!
//! It follows no symbolic link and enters no other mount, also if the agent swaps directories during the walk. A directory that it
//! cannot read counts as over the bound, because an agent could hide files there. See [`crate::runtime::workspace`].

use super::Config;
use ironclaw_jail::shortage::Shortage;
use ironclaw_store::tables::turns::TurnEnd;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{self, AtFlags, OFlag, OpenHow, ResolveFlag};
use nix::sys::stat::{Mode, SFlag, fstatat};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The bytes of one block in the result of `stat`.
const BLOCK_BYTES: u64 = 512;

/// The reason that a workspace is over its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// It takes more bytes than `quota.workspace_bytes`.
    Bytes,
    /// It has more files than `quota.workspace_files`.
    Files,
    /// It has a directory that the host cannot read.
    Unreadable,
}

impl Over {
    /// Returns the stable code of the bound.
    pub const fn code(self) -> &'static str {
        self.end().name()
    }

    /// Returns the end of a turn whose workspace is over the bound.
    pub const fn end(self) -> TurnEnd {
        match self {
            Self::Bytes => TurnEnd::WorkspaceBytes,
            Self::Files => TurnEnd::WorkspaceFiles,
            Self::Unreadable => TurnEnd::WorkspaceUnreadable,
        }
    }

    /// Returns the notice that the person reads in place of an answer. `used` is the count of now, `None` if there is none.
    pub fn notice(self, config: &Config, used: Option<Used>, session: impl std::fmt::Display) -> String {
        let holds =
            |count: fn(&Used) -> u64, most: u64, what: &str| match used.as_ref().filter(|used| count(used) > most) {
                Some(used) if used.is_whole => format!("holds {} {what}, of at most {most}", count(used)),
                Some(used) => format!("holds over {} {what}, of at most {most}", count(used)),
                None => format!("holds more than {most} {what}"),
            };
        let (what, setting) = match self {
            Self::Bytes => (
                holds(|used| used.bytes, config.workspace_bytes, "bytes"),
                "; an operator can raise quota.workspace_bytes in config.toml, with `ironctl config reload`",
            ),
            Self::Files => (
                holds(|used| used.files, config.workspace_files, "files and directories"),
                "; an operator can raise quota.workspace_files in config.toml, with `ironctl config reload`",
            ),
            Self::Unreadable => ("has a directory that the host cannot read".to_owned(), ""),
        };
        format!(
            "I stopped: my workspace {what}. `ironctl file list {session}` shows its files, and `ironctl file remove {session} PATH` \
             removes one{setting}; then write again. What was done so far stays done."
        )
    }
}

/// The contents of a directory, as far as a walk counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    pub bytes: u64,
    /// Files and directories.
    pub files: u64,
    /// False if the walk ended before it saw all of them.
    pub is_whole: bool,
}

/// A notice counts up to this many times a bound: a walk of a full directory stays as short as two within it.
const COUNTED_FACTOR: u64 = 2;

/// Counts the contents of a directory that is over a bound.
///
/// # Errors
/// Those of [`exceeded_bound`].
pub fn count(root: &Path, config: &Config) -> io::Result<Used> {
    let most = Config {
        workspace_bytes: config.workspace_bytes.saturating_mul(COUNTED_FACTOR),
        workspace_files: config.workspace_files.saturating_mul(COUNTED_FACTOR),
        ..config.clone()
    };
    let (over, used) = walk(root, &most)?;
    Ok(Used { is_whole: over.is_none(), ..used })
}

/// Returns the bound that the contents of a directory exceed, if there is one. A missing directory has no contents.
///
/// # Errors
/// Fails if the directory itself cannot be opened, or if the host has a shortage.
pub fn exceeded_bound(root: &Path, config: &Config) -> io::Result<Option<Over>> {
    Ok(walk(root, config)?.0)
}

/// Walks through a directory up to its bounds. Returns the exceeded one and the count so far.
fn walk(root: &Path, config: &Config) -> io::Result<(Option<Over>, Used)> {
    let root = match fcntl::open(root, DIRECTORY, Mode::empty()) {
        Ok(root) => root,
        Err(Errno::ENOENT) => return Ok((None, Used::default())),
        Err(error) => return Err(error.into()),
    };
    let mut walk = Walk { root, left: vec![PathBuf::from(".")], bytes: 0, files: 0, config };
    let over = walk.enter_all()?;
    Ok((over, Used { bytes: walk.bytes, files: walk.files, is_whole: false }))
}

/// The flags with which each directory is opened.
const DIRECTORY: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// A walk through every directory below a root.
struct Walk<'a> {
    root: OwnedFd,
    /// Directories that the walk has not entered yet, each by its path below the root.
    left: Vec<PathBuf>,
    bytes: u64,
    files: u64,
    config: &'a Config,
}

impl Walk<'_> {
    /// Enters every directory, until a bound is exceeded.
    fn enter_all(&mut self) -> io::Result<Option<Over>> {
        while let Some(directory) = self.left.pop() {
            match self.directory(&directory) {
                Ok(None) => {}
                Ok(Some(over)) => return Ok(Some(over)),
                // The agent may remove a directory, or put something else in its place, at any moment.
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EXDEV) => {}
                Err(error) if is_ours(error) => return Err(error.into()),
                Err(_) => return Ok(Some(Over::Unreadable)),
            }
        }
        Ok(None)
    }

    /// Counts the entries of a directory, and queues the directories among them.
    fn directory(&mut self, at: &Path) -> nix::Result<Option<Over>> {
        // One call resolves the whole path, because an agent may swap any directory of the path for a link out of the workspace.
        let below = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_XDEV;
        let opened = fcntl::openat2(&self.root, at, OpenHow::new().flags(DIRECTORY).resolve(below))?;
        let mut entries = Dir::openat(&opened, ".", DIRECTORY, Mode::empty())?;
        for entry in entries.iter() {
            let entry = entry?;
            let name = entry.file_name();
            if [c".", c".."].contains(&name) {
                continue;
            }
            let found = match fstatat(&opened, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(found) => found,
                Err(Errno::ENOENT) => continue,
                Err(error) => return Err(error),
            };
            self.files += 1;
            // A file with several names takes its space once.
            #[allow(clippy::useless_conversion, reason = "the count has 32 bits on other processors")]
            let bytes = found.st_blocks.unsigned_abs() * BLOCK_BYTES / u64::from(found.st_nlink).max(1);
            self.bytes = self.bytes.saturating_add(bytes);
            if self.files > self.config.workspace_files {
                return Ok(Some(Over::Files));
            }
            if self.bytes > self.config.workspace_bytes {
                return Ok(Some(Over::Bytes));
            }
            if SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR {
                self.left.push(at.join(OsStr::from_bytes(name.to_bytes())));
            }
        }
        Ok(None)
    }
}

/// Returns whether the cause is a shortage of the host or a broken disk, which no agent causes.
fn is_ours(error: Errno) -> bool {
    error == Errno::EIO || Shortage::from_errno(error as i32).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn directory_swapped_for_a_link_is_not_entered() {
        let (directory, outside) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("another one"));
        fs::create_dir_all(directory.path().join("a/b")).expect("made");
        fs::create_dir(outside.path().join("b")).expect("made");
        let config = Config::default();
        let root = fcntl::open(directory.path(), DIRECTORY, Mode::empty()).expect("opened");
        let mut walk = Walk { root, left: Vec::new(), bytes: 0, files: 0, config: &config };
        assert_eq!(walk.directory(Path::new(".")), Ok(None));
        assert_eq!(walk.directory(Path::new("./a")), Ok(None));
        assert_eq!((walk.files, walk.left.len()), (2, 2));
        // After the walk listed the names, and before it enters the directories.
        fs::remove_dir_all(directory.path().join("a")).expect("removed");
        symlink(outside.path(), directory.path().join("a")).expect("linked");
        for at in ["./a", "./a/b"] {
            let entered = walk.directory(Path::new(at));
            assert!(matches!(entered, Err(Errno::ELOOP | Errno::ENOTDIR)), "{at}: {entered:?}");
        }
        assert_eq!(walk.directory(Path::new("..")), Err(Errno::EXDEV));
        assert_eq!(exceeded_bound(directory.path(), &config).expect("measured"), None);
    }

    #[test]
    fn workspace_over_its_bounds_is_reported_with_the_bound() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        let config = Config { workspace_files: 3, workspace_bytes: 64 * 1024, ..Config::default() };
        let bound = || exceeded_bound(root, &config).expect("readable");
        assert_eq!(super::exceeded_bound(&root.join("none"), &config).expect("it is not there"), None);
        fs::create_dir(root.join("a")).expect("made");
        fs::write(root.join("a/b"), "x").expect("written");
        symlink("/usr", root.join("link")).expect("linked");
        assert_eq!(bound(), None, "a link counts as one file and is not followed");
        fs::write(root.join("c"), "").expect("written");
        assert_eq!(bound(), Some(Over::Files));
        fs::remove_file(root.join("c")).expect("removed");
        fs::write(root.join("a/b"), vec![1; 128 * 1024]).expect("written");
        assert_eq!(bound(), Some(Over::Bytes));
    }

    #[test]
    fn notice_says_the_count_of_a_full_workspace() {
        let directory = tempfile::tempdir().expect("a directory");
        let config = Config { workspace_files: 3, ..Config::default() };
        let notice = |files: usize| {
            (0..files).for_each(|n| fs::write(directory.path().join(n.to_string()), "").expect("written"));
            let used = count(directory.path(), &config).expect("readable");
            (used.files, used.is_whole, Over::Files.notice(&config, Some(used), "ses_1"))
        };
        let (files, is_whole, words) = notice(5);
        assert_eq!((files, is_whole), (5, true));
        assert!(words.contains("holds 5 files and directories, of at most 3"), "{words}");
        let (files, is_whole, words) = notice(9);
        assert_eq!((files, is_whole), (7, false), "the walk ends beyond twice the bound");
        assert!(words.contains("holds over 7 files"), "{words}");
        let removed = Used { files: 1, bytes: 0, is_whole: true };
        for used in [None, Some(removed)] {
            let words = Over::Files.notice(&config, used, "ses_1");
            assert!(words.contains("more than 3 files"), "files may be removed before they are counted: {words}");
        }
    }

    #[test]
    fn deeply_nested_directories_hide_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let name = "d".repeat(200);
        // A directory beyond the bound on the length of a path is reached only step by step.
        let mut at = fcntl::open(directory.path(), DIRECTORY, Mode::empty()).expect("opened");
        for _ in 0..25 {
            nix::sys::stat::mkdirat(&at, name.as_str(), Mode::S_IRWXU).expect("made");
            at = fcntl::openat(&at, name.as_str(), DIRECTORY, Mode::empty()).expect("opened");
        }
        assert_eq!(exceeded_bound(directory.path(), &Config::default()).expect("measured"), Some(Over::Unreadable));
    }
}
