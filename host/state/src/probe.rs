//! The trial of a directory: whether its file system has the locks and the shared memory map that a record needs.
//!
//! Opens a database of its own, and leaves no file behind. See [`crate::home`].

use crate::sql;
use rusqlite::{Connection, ffi};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// The reason that a directory cannot hold a record.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("it has no shared memory maps")]
    NoMaps,
    #[error("it has no locks on files")]
    NoLocks,
    /// Another error of the database or of the directory.
    #[error("a trial of the database failed: {0}")]
    Other(String),
}

/// Makes a database in the directory, with the journal of a record, and removes it.
///
/// # Errors
/// The missing feature.
pub fn try_record(directory: &Path) -> Result<(), Error> {
    let other = |error: io::Error| Error::Other(error.to_string());
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| Error::Other(error.to_string()))?;
    let place = directory.join(format!(".ironclaw-trial-{:016x}", u64::from_ne_bytes(random)));
    DirBuilder::new().mode(0o700).create(&place).map_err(other)?;
    let tried = Connection::open(place.join("trial.db")).and_then(|db| sql::try_journal(&db));
    let removed = std::fs::remove_dir_all(&place);
    match tried {
        Ok(mode) if mode == "wal" => removed.map_err(other),
        // SQLite keeps another journal if a file system has no shared memory.
        Ok(_) => Err(Error::NoMaps),
        Err(error) => Err(missing(&error)),
    }
}

/// Returns the feature whose absence an error of SQLite means.
fn missing(error: &rusqlite::Error) -> Error {
    let rusqlite::Error::SqliteFailure(failure, _) = error else { return Error::Other(error.to_string()) };
    match failure.extended_code {
        ffi::SQLITE_IOERR_SHMOPEN | ffi::SQLITE_IOERR_SHMSIZE | ffi::SQLITE_IOERR_SHMMAP | ffi::SQLITE_IOERR_MMAP => {
            Error::NoMaps
        }
        ffi::SQLITE_IOERR_LOCK
        | ffi::SQLITE_IOERR_UNLOCK
        | ffi::SQLITE_IOERR_RDLOCK
        | ffi::SQLITE_IOERR_CHECKRESERVEDLOCK
        | ffi::SQLITE_IOERR_SHMLOCK
        | ffi::SQLITE_BUSY => Error::NoLocks,
        _ => Error::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trial_passes_here_and_leaves_no_file() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        try_record(directory.path()).expect("this machine keeps records");
        assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 0);
        assert!(matches!(try_record(&directory.path().join("none")), Err(Error::Other(_))));
    }

    #[test]
    fn errors_of_the_database_name_the_missing_feature() {
        let failure = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        for code in [ffi::SQLITE_IOERR_SHMMAP, ffi::SQLITE_IOERR_SHMOPEN, ffi::SQLITE_IOERR_SHMSIZE] {
            assert!(matches!(missing(&failure(code)), Error::NoMaps), "{code}");
        }
        for code in [ffi::SQLITE_IOERR_LOCK, ffi::SQLITE_IOERR_SHMLOCK, ffi::SQLITE_BUSY] {
            assert!(matches!(missing(&failure(code)), Error::NoLocks), "{code}");
        }
        assert!(matches!(missing(&failure(ffi::SQLITE_IOERR_WRITE)), Error::Other(_)));
    }
}
