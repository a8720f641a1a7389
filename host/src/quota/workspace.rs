//! Measures what the directories of a session hold, by a walk that ends at the bound.
//!
//! Follows no symbolic link and never leaves the file system of the directory. What it cannot read counts as over the bound: an agent
//! could hide files there. Next: `pipeline::workspace`.

use super::Config;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of one block in what `stat` reports.
const BLOCK_BYTES: u64 = 512;

/// Why a workspace is over its bound.
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
    /// A stable word for the ledger.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Bytes => "workspace_bytes",
            Self::Files => "workspace_files",
            Self::Unreadable => "workspace_unreadable",
        }
    }

    /// What the person reads in place of an answer.
    pub fn notice(self, config: &Config, session: impl std::fmt::Display) -> String {
        let (what, setting) = match self {
            Self::Bytes => (
                format!("holds more than {} bytes", config.workspace_bytes),
                ", or raises quota.workspace_bytes in config.toml",
            ),
            Self::Files => (
                format!("holds more than {} files", config.workspace_files),
                ", or raises quota.workspace_files in config.toml",
            ),
            Self::Unreadable => ("has a directory that the host cannot read".to_owned(), ""),
        };
        format!(
            "I stopped: my workspace {what}. An operator of this host removes files from the workspace of {session}{setting}; then write \
             again. What was done so far stays done."
        )
    }
}

/// Whether what lies below a directory is over the bounds; a directory that is not there holds nothing.
///
/// # Errors
/// What the system reports of the directory itself.
pub fn look(root: &Path, config: &Config) -> io::Result<Option<Over>> {
    let device = match fs::symlink_metadata(root) {
        Ok(found) => found.dev(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let (mut bytes, mut files) = (0u64, 0u64);
    let mut left: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            // The agent may remove it in this moment.
            Err(error) if is_gone(&error) => continue,
            Err(error) if is_ours(&error) => return Err(error),
            Err(_) => return Ok(Some(Over::Unreadable)),
        };
        for entry in entries {
            let found = match entry.and_then(|entry| Ok((entry.path(), fs::symlink_metadata(entry.path())?))) {
                Ok(found) => found,
                Err(error) if is_gone(&error) => continue,
                Err(error) if is_ours(&error) => return Err(error),
                Err(_) => return Ok(Some(Over::Unreadable)),
            };
            let (path, found) = found;
            files += 1;
            // A file with several names takes its room once.
            bytes = bytes.saturating_add(found.blocks() * BLOCK_BYTES / found.nlink().max(1));
            if files > config.workspace_files {
                return Ok(Some(Over::Files));
            }
            if bytes > config.workspace_bytes {
                return Ok(Some(Over::Bytes));
            }
            if found.is_dir() && found.dev() == device {
                left.push(path);
            }
        }
    }
    Ok(None)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A shortage of the host is no agent's doing.
fn is_ours(error: &io::Error) -> bool {
    use nix::errno::Errno::{EIO, EMFILE, ENFILE, ENOMEM};
    error.raw_os_error().is_some_and(|code| [EMFILE, ENFILE, ENOMEM, EIO].iter().any(|errno| *errno as i32 == code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_over_its_bounds_is_told_by_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        let config = Config { workspace_files: 3, workspace_bytes: 64 * 1024, ..Config::default() };
        let look = || look(root, &config).expect("readable");
        assert_eq!(super::look(&root.join("none"), &config).expect("it is not there"), None);
        fs::create_dir(root.join("a")).expect("made");
        fs::write(root.join("a/b"), "x").expect("written");
        std::os::unix::fs::symlink("/usr", root.join("link")).expect("linked");
        assert_eq!(look(), None, "a link counts as one file and is not followed");
        fs::write(root.join("c"), "").expect("written");
        assert_eq!(look(), Some(Over::Files));
        fs::remove_file(root.join("c")).expect("removed");
        fs::write(root.join("a/b"), vec![1; 128 * 1024]).expect("written");
        assert_eq!(look(), Some(Over::Bytes));
    }

    #[test]
    fn deeply_nested_directories_hide_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let name = "d".repeat(200);
        let mut path = directory.path().to_owned();
        // Beyond the length that a path may have, a directory is reached only step by step.
        for _ in 0..25 {
            let at = nix::fcntl::open(&path, nix::fcntl::OFlag::O_DIRECTORY, nix::sys::stat::Mode::empty());
            let Ok(at) = at else { break };
            nix::sys::stat::mkdirat(&at, name.as_str(), nix::sys::stat::Mode::S_IRWXU).expect("made");
            path.push(&name);
        }
        assert_eq!(look(directory.path(), &Config::default()).expect("a look"), Some(Over::Unreadable));
    }
}
