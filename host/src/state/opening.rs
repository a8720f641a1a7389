//! Opens the file of the record: its cipher, its journal, and a look through all pages.
//!
//! Never makes a file in passing. Next: `state::log`.

use super::{Error, is_damage};
use ironclaw_contract::seam::crypt::SessionKey;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;
use zeroize::Zeroizing;

/// A file that is longer is not looked through at the start: that would take longer than an operator waits.
const LOOKED_THROUGH_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// An empty file of mode 0600, unless there is one.
pub(super) fn create(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::OpenOptionsExt;
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(source) if source.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Error::NotMade { path: path.display().to_string(), source })
        }
        _ => Ok(()),
    }
}

/// Opens a file that is there: one that is missing is never made in passing.
pub(super) fn connect(path: &Path, key: &SessionKey) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    unlock(&db, key)?;
    db.busy_timeout(Duration::from_secs(5))?;
    // A plan does not look at values: with a bound LIMIT, a statement would be parsed and planned anew each time it runs.
    db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.set_prepared_statement_cache_capacity(128);
    let opened = db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; \
         PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;",
    );
    match opened {
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            Err(Error::WrongKey(path.display().to_string()))
        }
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
            Err(Error::InUse(path.display().to_string()))
        }
        Err(error) if is_damage(&error) => {
            Err(Error::Damaged { path: path.display().to_string(), why: error.to_string() })
        }
        other => Ok(other.map(|()| db)?),
    }
}

/// Gives the cipher its key and parameters; nothing is read yet.
pub(super) fn unlock(db: &Connection, key: &SessionKey) -> rusqlite::Result<()> {
    // Processors have instructions for this hash; the queues' parameters are the contract's, these are ours.
    let open = Zeroizing::new(format!(
        "PRAGMA cipher_log_level = NONE; PRAGMA key = \"x'{}'\"; PRAGMA cipher_page_size = 4096; PRAGMA cipher_hmac_algorithm = HMAC_SHA256;",
        key.to_hex().as_str()
    ));
    db.execute_batch(&open)
}

/// Reads every page once: damage is found here, and not by whoever comes upon it in the middle of something.
pub(super) fn look_through(db: &Connection, path: &Path) -> Result<(), Error> {
    if std::fs::metadata(path).is_ok_and(|found| found.len() > LOOKED_THROUGH_BYTES_MAX) {
        return Ok(());
    }
    let damaged = |why: String| Error::Damaged { path: path.display().to_string(), why };
    match db.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)) {
        Ok(found) if found == "ok" => Ok(()),
        Ok(wrong) => Err(damaged(wrong.lines().last().unwrap_or_default().to_owned())),
        Err(error) if is_damage(&error) => Err(damaged(error.to_string())),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
            Err(Error::InUse(path.display().to_string()))
        }
        Err(error) => Err(error.into()),
    }
}
