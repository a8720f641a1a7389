//! The directories that a person calls theirs: whether a declaration still has its effect.
//!
//! It has none for a directory that overlaps one which an agent or an MCP server could write at any time, because their text stays there.
//! Reads the record and the table of mounts, and never a file. See [`crate::calls::model_socket`], which reads the files.

use super::Mount;
use ironclaw_jail::mount_table::Mounts;
use ironclaw_state::{Error, ReadTx, WriteTx};
use ironclaw_store::tables::agents as table;
use std::path::Path;

pub use ironclaw_store::tables::agents::{Written, written_directories as written};

/// The reason why the text of a directory is text of others, although a person declared it theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// The agent may write to it.
    Writable,
    /// It overlaps a directory that an agent or an MCP server could write.
    Written(Written),
    /// The table of mounts cannot be read, so bind mounts are unknown.
    Unknown,
}

impl Lost {
    /// Returns the reason, for the end of a sentence.
    pub fn words(&self) -> String {
        match self {
            Self::Writable => "the agent may write to it".to_owned(),
            Self::Written(Written { path, writer }) => format!("{writer} could write to {}", path.display()),
            Self::Unknown => "the table of mounts cannot be read".to_owned(),
        }
    }
}

/// Returns the reason why the declaration of a directory has no effect.
pub fn lost(mount: &Mount, written: &[Written]) -> Option<Lost> {
    if !mount.read_only {
        return Some(Lost::Writable);
    }
    let Ok(mounts) = Mounts::read() else { return Some(Lost::Unknown) };
    overlapping(&mount.source, written, &mounts).map(|found| Lost::Written(found.clone()))
}

/// Returns the first directory that could be written and that contains this one, or is in it, also by a bind mount.
pub fn overlapping<'a>(directory: &Path, written: &'a [Written], mounts: &Mounts) -> Option<&'a Written> {
    let is_same = |other: &Path| {
        overlaps(other, directory) || mounts.is_within(other, directory) || mounts.is_within(directory, other)
    };
    written.iter().find(|written| is_same(&written.path))
}

/// Returns whether one of two directories contains the other, by their names.
pub fn overlaps(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Returns the declared directories, with the names of their agents, whose effect ends once these directories are writable.
pub fn ended_by<'a>(tx: &ReadTx<'_>, sources: impl Iterator<Item = &'a str>) -> Result<Vec<(String, Mount)>, Error> {
    let writer = String::new();
    let new: Vec<Written> = sources.map(|path| Written { path: path.into(), writer: writer.clone() }).collect();
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let now = written(tx)?;
    let mut ended = table::declared_mounts(tx)?;
    ended.retain(|(_, mount)| lost(mount, &now).is_none() && lost(mount, &new).is_some());
    Ok(ended)
}

/// Records directories that someone can write from now on.
pub fn record_written<'a>(
    tx: &mut WriteTx<'_>,
    writer: &str,
    sources: impl Iterator<Item = &'a str>,
) -> Result<(), Error> {
    for source in sources {
        table::insert_written(tx, source, writer)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_at(path: &str) -> [Written; 1] {
        [Written { path: path.into(), writer: "agent helper".to_owned() }]
    }

    #[test]
    fn directory_that_anyone_could_write_is_no_longer_a_persons() {
        let mut mount = Mount { source: "/srv/notes".into(), target: "/notes".to_owned(), read_only: true, mine: None };
        for path in ["/srv/notes", "/srv", "/srv/notes/drafts", "/"] {
            assert!(matches!(lost(&mount, &written_at(path)), Some(Lost::Written(_))), "{path}");
        }
        for path in ["/srv/note", "/srv/notes2", "/home"] {
            assert_eq!(lost(&mount, &written_at(path)), None, "{path}");
        }
        mount.read_only = false;
        assert_eq!(lost(&mount, &[]), Some(Lost::Writable));
    }

    #[test]
    fn bind_mount_of_a_writable_directory_overlaps_it() {
        let mounts = Mounts::from_text(
            "21 1 254:0 / / rw shared:1 - ext4 /dev/vda rw\n22 21 254:0 /srv/notes /mnt/same rw - ext4 /dev/vda rw\n",
        );
        for (directory, path) in [
            ("/srv/notes", "/mnt/same"),
            ("/srv/notes", "/mnt/same/drafts"),
            ("/srv/notes/drafts", "/mnt/same"),
            ("/mnt/same", "/srv"),
        ] {
            assert!(overlapping(Path::new(directory), &written_at(path), &mounts).is_some(), "{directory} {path}");
        }
        assert_eq!(overlapping(Path::new("/srv/other"), &written_at("/mnt/same"), &mounts), None);
    }

    #[test]
    fn directories_overlap_by_whole_names() {
        let overlap = |one: &str, other: &str| overlaps(Path::new(one), Path::new(other));
        assert!(overlap("/home/a", "/home/a/notes") && overlap("/home/a/notes/x", "/home/a/notes"));
        assert!(overlap("/home/a/notes", "/home/a/notes") && overlap("/", "/home/a"));
        assert!(!overlap("/home/a/note", "/home/a/notes") && !overlap("/home/b", "/home/a"));
    }
}
