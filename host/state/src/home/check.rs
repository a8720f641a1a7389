//! The checks of a home before a host uses it; each error names the file and the remedy.
//!
//! Repairs only missing directories, and opens no database. See `daemon` of the host.

use super::{Error, Home, Own, make_private};
use std::fs;
use std::io;
use std::path::Path;

/// Free bytes that a start needs. With fewer, its first entries would fail half-way.
pub(super) const START_ROOM_BYTES_MIN: u64 = 1024 * 1024;

/// Free inodes that a start needs.
pub(super) const START_ROOM_FILES_MIN: u64 = 16;

/// Directories of a home.
const DIRECTORIES: [Own; 4] = [Own::Sessions, Own::Agents, Own::Ledger, Own::Logs];

/// Files of the record.
const RECORD: [Own; 3] = [Own::StateDb, Own::StateDbLog, Own::StateDbShared];

/// The remedy for a file that the next start makes again.
pub(super) const MADE_ANEW: &str = "move it away; the next start makes it again";

/// The remedy for a directory in the place of a file that is not needed.
pub(super) const NOT_NEEDED: &str = "move it away; its content is not needed";

/// The remedy for a file system that takes no changes: the file itself is whole.
pub const REMOUNT: &str = "mount the file system of the home read-write; `dmesg` says why it changed";

const PUT_BACK: &str = "move it away, and put back the file from a backup";

const DIRECTORY_MADE_ANEW: &str = "move it away; the next start makes an empty directory in its place";

const LET_ME_IN: &str = "give its owner all rights to it: `chmod 700`";

impl Home {
    /// Makes the directories that a start needs, and removes the run file of a killed host. The caller holds the lock of the home.
    ///
    /// # Errors
    /// [`Error::Damaged`] with a remedy.
    pub fn prepare_start(&self) -> Result<(), Error> {
        self.clear_run_file()?;
        self.make_directories()
    }

    /// Makes the missing directories, and refuses one that cannot be used.
    pub(super) fn make_directories(&self) -> Result<(), Error> {
        for name in DIRECTORIES {
            let path = self.own(name);
            let there = path.symlink_metadata();
            if there.as_ref().is_ok_and(|found| !found.is_dir()) {
                return Err(Error::Damaged {
                    path,
                    what: "is not a directory".to_owned(),
                    remedy: DIRECTORY_MADE_ANEW,
                });
            }
            if there.is_err() && self.state_db().exists() {
                tracing::warn!(path = %path.display(), "the directory was missing and is made again");
            }
            make_private(&path)?;
            fs::read_dir(&path).map_err(|source| unusable(&path, &source, LET_ME_IN))?;
        }
        Ok(())
    }

    /// Refuses a special file in the place of a file of the record: SQLite would open it and wait.
    pub(super) fn check_files(&self) -> Result<(), Error> {
        let paths = RECORD.map(|name| self.own(name));
        match paths.iter().find(|path| path.metadata().is_ok_and(|found| !found.is_file())) {
            Some(path) => Err(not_a_file(path, PUT_BACK)),
            None => Ok(()),
        }
    }

    /// Refuses a disk that is too full for a start, before the host writes to it.
    ///
    /// # Errors
    /// [`Error::NoRoom`].
    pub fn check_room(&self) -> Result<(), Error> {
        let Some(room) = self.free_space() else { return Ok(()) };
        let (free_bytes, free_files) = (room.free_bytes, room.free_inodes.unwrap_or(u64::MAX));
        match free_bytes < START_ROOM_BYTES_MIN || free_files < START_ROOM_FILES_MIN {
            true => Err(Error::NoRoom { path: self.0.clone(), free_bytes, free_files }),
            false => Ok(()),
        }
    }

    /// Refuses a directory in the place of the owner's token, because a fresh token could not replace it.
    pub fn check_owner_token(&self) -> Result<(), Error> {
        let path = self.owner_token();
        match path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            true => Err(not_a_file(&path, MADE_ANEW)),
            false => Ok(()),
        }
    }

    /// Removes the run file of a killed host, even if it is an empty directory.
    fn clear_run_file(&self) -> Result<(), Error> {
        let path = self.run_file();
        let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let removed = if is_directory { fs::remove_dir(&path) } else { fs::remove_file(&path) };
        match removed {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(unusable(&path, &source, MADE_ANEW)),
            _ => Ok(()),
        }
    }
}

/// Makes the error for a path of a file that is not a regular file.
pub(super) fn not_a_file(path: &Path, remedy: &'static str) -> Error {
    Error::Damaged { path: path.to_owned(), what: "is not a regular file".to_owned(), remedy }
}

/// Makes the error for a file that this process may not use.
pub(super) fn unusable(path: &Path, source: &io::Error, remedy: &'static str) -> Error {
    let remedy = if source.kind() == io::ErrorKind::ReadOnlyFilesystem { REMOUNT } else { remedy };
    Error::Damaged { path: path.to_owned(), what: format!("cannot be used: {source}"), remedy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    fn home() -> (tempfile::TempDir, Home) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home::create(&directory.path().join("h")).expect("made");
        (directory, home)
    }

    #[test]
    fn missing_directory_is_made_and_a_file_in_its_place_is_named() {
        let (_directory, home) = home();
        for name in DIRECTORIES {
            let path = home.own(name);
            fs::remove_dir(&path).expect("removed");
            home.prepare_start().expect("made again");
            assert!(path.is_dir(), "{name}");
            fs::remove_dir(&path).expect("removed");
            fs::write(&path, "").expect("written");
            let refused = home.prepare_start().expect_err("it is no directory");
            assert!(matches!(&refused, Error::Damaged { path: named, .. } if *named == path), "{refused}");
            fs::remove_file(&path).expect("removed");
        }
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_refused_at_once() {
        let (_directory, home) = home();
        let pipe = |path: &Path| nix::unistd::mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).expect("made");
        pipe(&home.lock());
        assert!(matches!(home.hold(), Err(Error::Damaged { .. })));
        pipe(&home.state_db());
        assert!(matches!(Home::open(home.path()), Err(Error::Damaged { .. })));
        pipe(&home.policy());
        assert!(super::super::read_text(&home.policy(), 10).is_err());
    }

    #[test]
    fn a_run_file_of_any_kind_is_cleared_before_a_start() {
        let (_directory, home) = home();
        let path = home.run_file();
        fs::write(&path, [0xff]).expect("written");
        home.prepare_start().expect("garbage goes");
        fs::create_dir(&path).expect("made");
        home.prepare_start().expect("an empty directory goes");
        assert!(path.symlink_metadata().is_err());
        fs::create_dir_all(path.join("of-an-operator")).expect("made");
        let refused = home.prepare_start().expect_err("an operator's files are in it");
        assert!(matches!(&refused, Error::Damaged { path: named, .. } if *named == path), "{refused}");
    }

    #[test]
    fn file_on_a_read_only_file_system_is_not_to_be_moved_away() {
        let refused = |kind: io::ErrorKind| match unusable(Path::new("h/host.lock"), &kind.into(), MADE_ANEW) {
            Error::Damaged { remedy, .. } => remedy,
            other => panic!("{other}"),
        };
        assert_eq!(refused(io::ErrorKind::ReadOnlyFilesystem), REMOUNT);
        assert_eq!(refused(io::ErrorKind::PermissionDenied), MADE_ANEW);
    }

    #[test]
    fn a_home_is_held_without_its_lock_file_too() {
        let (_directory, home) = home();
        let held = home.hold().expect("free");
        fs::remove_file(home.lock()).expect("removed");
        assert!(matches!(home.hold(), Err(Error::Running(_))));
        drop(held);
        home.hold().expect("free again");
    }
}
