//! Connections to the file of the record: cipher, journal mode, and a check of all pages.
//!
//! Never creates a missing file when it opens one, and never removes the log of a record that is marked as open. See [`crate::log`].

use super::{Error, SEARCH_CHECKS, SEARCH_UNTIL, is_damage, sql};
use ironclaw_contract::seam::crypt::{SessionKey, prepare_cipher};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest file whose pages a start checks: with a longer one, the start would take too long.
const CHECKED_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Steps of SQLite between two checks of the deadline of a search.
const STEPS_BETWEEN_CHECKS: i32 = 1000;

/// Makes an empty file of mode 0600, unless there is one.
pub(super) fn create(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::OpenOptionsExt;
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(source) if source.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Error::NotMade { path: path.display().to_string(), source })
        }
        _ => Ok(()),
    }
}

/// Opens an existing file; a missing one is not created. The log stays when the connection closes, unless [`remove_log`] is called.
pub(super) fn connect(path: &Path, key: &SessionKey) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    prepare_cipher();
    let db = Connection::open_with_flags(path, flags)?;
    sql::unlock(&db, key)?;
    keep_log(&db);
    db.busy_timeout(Duration::from_secs(5))?;
    // Query plans ignore bound values. Otherwise SQLite plans a statement with a bound LIMIT again at each run.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.set_prepared_statement_cache_capacity(128);
    match sql::configure(&db) {
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

/// Checks every page once, so that a start finds damage before a change does.
pub(super) fn check_pages(db: &Connection, path: &Path) -> Result<(), Error> {
    if std::fs::metadata(path).is_ok_and(|found| found.len() > CHECKED_BYTES_MAX) {
        return Ok(());
    }
    let damaged = |why: String| Error::Damaged { path: path.display().to_string(), why };
    match sql::quick_check(db) {
        Ok(found) if found == "ok" => Ok(()),
        Ok(wrong) => Err(damaged(wrong.lines().last().unwrap_or_default().to_owned())),
        Err(error) if is_damage(&error) => Err(damaged(error.to_string())),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
            Err(Error::InUse(path.display().to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Leaves the log unchanged if this connection closes last. The setting affects this connection only.
pub(super) fn keep_log(db: &Connection) {
    set_keeps_log(db, true);
}

/// Lets SQLite write the log into the file and remove it if this connection closes last.
pub(super) fn remove_log(db: &Connection) {
    set_keeps_log(db, false);
}

fn set_keeps_log(db: &Connection, keeps: bool) {
    // It fails only if SQLite lacks the setting, and the bundled version has it.
    let _ = db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keeps);
}

/// Opens a read-only connection.
pub(super) fn connect_to_read(path: &Path, key: &SessionKey) -> Result<Connection, Error> {
    let db = connect(path, key)?;
    sql::forbid_writes(&db)?;
    Ok(db)
}

/// Opens a read-only connection whose statements are interrupted at the deadline of their search.
pub(super) fn connect_for_searches(path: &Path, key: &SessionKey) -> Result<Connection, Error> {
    let mut db = connect_to_read(path, key)?;
    let is_over = || {
        SEARCH_CHECKS.set(SEARCH_CHECKS.get() + 1);
        SEARCH_UNTIL.get().is_some_and(|until| Instant::now() >= until)
    };
    db.progress_handler(STEPS_BETWEEN_CHECKS, Some(is_over))?;
    Ok(db)
}
