//! The copy of the record for a backup, and the check of a record that came out of one.
//!
//! The copy is under the same key. It is marked as restored from the beginning, so a host that starts on it begins another generation.
//! See [`crate::log`] and `backup` of the host.

use super::{Error, connect, log, open_to_look, snapshot, sql};
use crate::migrations;
use ironclaw_contract::seam::crypt::SessionKey;
use rusqlite::backup::Backup;
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// Returns the version of the schema that this program writes.
pub fn schema() -> u32 {
    u32::try_from(migrations::NEWEST).expect("a small number")
}

/// Returns the oldest version of the schema that this program opens.
pub fn oldest_schema() -> u32 {
    u32::try_from(migrations::FIRST).expect("a small number")
}

/// Copies the record at `path` to the new file `to`, whether a host runs or not. The copy is one snapshot of the committed record.
///
/// # Errors
/// As [`open_to_look`]; [`Error::NotMade`] if there is no room. No file is left then.
pub fn copy(path: &Path, key: &SessionKey, to: &Path, backup: &str) -> Result<(), Error> {
    let fault = |source: io::Error| Error::NotMade { path: to.display().to_string(), source };
    discard(to).map_err(fault)?;
    drop(fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map_err(fault)?);
    let copied = || -> Result<(), Error> {
        let original = open_to_look(path, key)?;
        let mut copy = connect(to, key)?;
        sql::disable_wal(&copy)?;
        // In one step, which reads one snapshot. In more steps, each commit of the host would begin the copy again.
        Backup::new(&original, &mut copy)?.run_to_completion(i32::MAX, Duration::ZERO, None)?;
        log::mark_restored(&copy, backup)
    };
    copied().inspect_err(|_| drop(discard(to)))
}

/// Removes a copy, if it is there.
///
/// # Errors
/// Those of the file system.
pub fn discard(copy: &Path) -> io::Result<()> {
    snapshot::discard(copy)
}

/// Checks that every page of the record opens under the key, and that SQLite finds no damage.
///
/// # Errors
/// The first damage, and the errors of [`open_to_look`].
pub fn check(path: &Path, key: &SessionKey) -> Result<(), Error> {
    sql::prove(&open_to_look(path, key)?, "the record of the backup")
}

/// Returns whether SQLite reports a full disk.
pub fn is_disk_full(error: &Error) -> bool {
    match error {
        Error::Sqlite(error) => error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull),
        Error::NotMade { source, .. } => {
            matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{create, look};

    #[test]
    fn copy_beside_a_writer_is_whole_and_marked() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (path, to) = (directory.path().join("state.db"), directory.path().join("copy.db"));
        let key = SessionKey::new([6; 32]);
        create(&path).expect("made");
        let writer = connect(&path, &key).expect("opened");
        migrations::run(&writer, &path, &key).expect("a schema");
        log::mark_open(&writer, &path, &log::inspect(&path).expect("read")).expect("noted");
        let put = "INSERT INTO meta (key, value) VALUES (?1, hex(randomblob(9000)))";
        writer.execute(put, ["committed"]).expect("written");
        sql::begin_to_write(&writer).expect("begun");
        writer.execute(put, ["open"]).expect("written");
        copy(&path, &key, &to, "b1").expect("copied");
        sql::commit(&writer).expect("committed");
        check(&to, &key).expect("whole");
        assert!(matches!(check(&to, &SessionKey::new([7; 32])), Err(Error::WrongKey(_))));
        let keys =
            |tx: &crate::ReadTx<'_>| tx.list("SELECT key FROM meta ORDER BY key", [], |row| row.get::<_, String>(0));
        let found: Vec<String> = look(&to, &key, keys).expect("read");
        assert!(found.contains(&"committed".to_owned()) && !found.contains(&"open".to_owned()), "{found:?}");
        let db = connect(&to, &key).expect("opened");
        assert_eq!(sql::mark(&db, sql::Mark::Open).expect("read"), None);
        let lost = sql::mark(&db, sql::Mark::ChangesLost).expect("read").expect("marked");
        assert!(lost.contains("restored") && lost.contains("b1"), "{lost}");
        drop(db);
        // A second copy replaces the first, with its journals.
        copy(&path, &key, &to, "b2").expect("copied");
        assert!(!directory.path().join("copy.db-wal").exists());
    }
}
