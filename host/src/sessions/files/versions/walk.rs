//! The regular files of a workspace with the facts by which the host recognises a change.
//!
//! Follows no link and opens no file. The agent may change the workspace meanwhile. See [`super::take`].

use super::index::Stamp;
use super::limits::Reason;
use super::store::Report;
use crate::sessions::files::{DIRECTORY, FilePath, Files, Kind, kind_of, shown};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{Mode, fstat, fstatat};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The bytes of one block in the result of `stat`.
const STAT_BLOCK_BYTES: u64 = 512;

#[derive(Debug, Default)]
pub struct Walked {
    /// The regular files, by path.
    pub files: BTreeMap<String, Stamp>,
    /// Directories that keep the host out, each with a slash at its end.
    closed: Vec<String>,
    /// The space of all entries on the disk.
    pub bytes: u64,
    /// Their number.
    pub entries: u64,
    /// False if the time ended before the walk.
    pub is_whole: bool,
}

impl Walked {
    /// Returns whether the host knows that a path has no regular file.
    pub fn lacks(&self, path: &str) -> bool {
        let is_hidden = || self.closed.iter().any(|closed| path.starts_with(closed.as_str()));
        self.is_whole && !self.files.contains_key(path) && !is_hidden()
    }
}

/// Looks at every entry of a workspace; `report` gets the entries that cannot be copied.
///
/// # Errors
/// Fails if the host has a shortage.
pub fn walk(files: &Files, until: Instant, report: &mut Report) -> io::Result<Walked> {
    let mut found = Walked::default();
    let mut left = vec![PathBuf::new()];
    while let Some(directory) = left.pop() {
        if Instant::now() >= until {
            report.leave_out("the rest of the workspace".to_owned(), Reason::Time);
            return Ok(found);
        }
        match level(files, &directory, &mut found, &mut left, report) {
            Ok(()) => {}
            // The agent removed the directory, or put something else in its place.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EXDEV) => {}
            Err(Errno::EACCES | Errno::EPERM) => {
                let path = directory.to_string_lossy();
                report.leave_out(shown(&path), Reason::Unreadable);
                found.closed.push(if path.is_empty() { String::new() } else { format!("{path}/") });
            }
            Err(error) => return Err(error.into()),
        }
    }
    found.is_whole = true;
    Ok(found)
}

/// Looks at the entries of one directory, and queues the directories among them.
fn level(
    files: &Files,
    at: &Path,
    found: &mut Walked,
    left: &mut Vec<PathBuf>,
    report: &mut Report,
) -> nix::Result<()> {
    let opened = files.resolve(at, DIRECTORY)?;
    for entry in Dir::openat(&opened, ".", DIRECTORY, Mode::empty())?.iter() {
        let entry = entry?;
        let name = entry.file_name();
        if [c".", c".."].contains(&name) {
            continue;
        }
        let stat = match fstatat(&opened, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Err(Errno::ENOENT) => continue,
            stat => stat?,
        };
        found.entries += 1;
        #[allow(clippy::useless_conversion, reason = "the count has 32 bits on other processors")]
        let bytes = stat.st_blocks.unsigned_abs() * STAT_BLOCK_BYTES / u64::from(stat.st_nlink).max(1);
        found.bytes = found.bytes.saturating_add(bytes);
        let kind = kind_of(&stat);
        if !matches!(kind, Kind::File | Kind::Directory) {
            continue;
        }
        let path = at.join(OsStr::from_bytes(name.to_bytes()));
        match path.to_str().filter(|text| FilePath::parse(text).is_ok()) {
            None => report.leave_out(shown(&path.to_string_lossy()), Reason::Name),
            Some(text) if kind == Kind::File => {
                found.files.insert(text.to_owned(), Stamp::from_stat(&stat));
            }
            Some(_) => left.push(path),
        }
    }
    Ok(())
}

/// Returns the facts of the file at a path; `None` if there is no regular file, or the host cannot know it.
pub fn stamp_at(files: &Files, path: &str) -> Option<Stamp> {
    let (found, _) = files.find(&FilePath::parse(path).ok()?).ok()?;
    fstat(&found).ok().map(|stat| Stamp::from_stat(&stat))
}
