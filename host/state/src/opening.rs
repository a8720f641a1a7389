//! Opens the file of the record: its cipher, its journal, and a look through all pages.
//!
//! Never makes a file in passing, and never removes the log of a record that says that it is open. See [`crate::log`].

use super::{Error, ReadTx, SEARCH_LOOKS, SEARCH_UNTIL, is_damage, log, migrations, sql, wall_clock};
use ironclaw_contract::seam::crypt::SessionKey;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::Once;
use std::time::{Duration, Instant};

/// A file that is longer is not looked through at the start: that would take longer than an operator waits.
const LOOKED_THROUGH_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Steps of SQLite between two looks at the time of a search.
const STEPS_BETWEEN_LOOKS: i32 = 1000;

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

/// Prepares the cipher library. A thread that opens a file while another thread makes the first connection of the process finds the
/// library unprepared, and its key is refused.
pub(super) fn prepare_cipher() {
    static PREPARED: Once = Once::new();
    // A library that cannot be prepared fails again, with its error, for the file that is to be opened.
    PREPARED.call_once(|| drop(Connection::open_in_memory()));
}

/// Opens a file that is there: one that is missing is never made in passing. Its log stays when the connection is closed, unless
/// [`remove_log`] is called.
pub(super) fn connect(path: &Path, key: &SessionKey) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    prepare_cipher();
    let db = Connection::open_with_flags(path, flags)?;
    sql::unlock(&db, key)?;
    keep_log(&db);
    db.busy_timeout(Duration::from_secs(5))?;
    // A plan does not look at values: with a bound LIMIT, a statement would be parsed and planned anew each time it runs.
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

/// Reads every page once, so that damage is found at the start and not in the middle of a change.
pub(super) fn look_through(db: &Connection, path: &Path) -> Result<(), Error> {
    if std::fs::metadata(path).is_ok_and(|found| found.len() > LOOKED_THROUGH_BYTES_MAX) {
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

/// Leaves the log as it is when this connection is the last to be closed; the setting concerns this connection alone.
pub(super) fn keep_log(db: &Connection) {
    set_keeps_log(db, true);
}

/// Lets SQLite write the log into the file and remove it when this connection is the last to be closed.
pub(super) fn remove_log(db: &Connection) {
    set_keeps_log(db, false);
}

fn set_keeps_log(db: &Connection, keeps: bool) {
    // It may fail only where SQLite lacks the setting, and ours has it.
    let _ = db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keeps);
}

/// Opens the state to look at it, beside a running host or without one.
///
/// # Errors
/// As `State::open`; a file of an older version is not brought up to date, as nothing is written.
pub fn open_to_look(path: &Path, key: &SessionKey) -> Result<Connection, Error> {
    // The log that a crash left stays for the next start. Where there is none, SQLite makes an empty one and has to remove it: the
    // next start would take it for one that an erasure emptied.
    let has_log = std::fs::metadata(log::path_of(path)).is_ok_and(|found| found.len() > 0);
    let db = connect(path, key)?;
    migrations::check(&db, path, key)?;
    sql::forbid_writes(&db)?;
    if !has_log {
        remove_log(&db);
    }
    Ok(db)
}

/// The state as it was at one moment, beside a running host or without one.
pub struct View {
    db: Connection,
    now: i64,
}

impl View {
    /// Opens the state to look at one snapshot of it, which begins with the first statement.
    ///
    /// # Errors
    /// As [`open_to_look`].
    pub fn open(path: &Path, key: &SessionKey) -> Result<Self, Error> {
        let db = open_to_look(path, key)?;
        sql::begin(&db)?;
        Ok(Self { db, now: wall_clock() })
    }

    /// Returns the transaction that reads the snapshot.
    pub const fn tx(&self) -> ReadTx<'_> {
        ReadTx { db: &self.db, now: self.now, wall: self.now, prune: self.now }
    }
}

/// Looks at the state by the functions that a transaction is handed to, beside a running host or without one.
///
/// # Errors
/// As [`open_to_look`], and those of `look`.
pub fn look<T>(path: &Path, key: &SessionKey, look: impl FnOnce(&ReadTx<'_>) -> Result<T, Error>) -> Result<T, Error> {
    look(&View::open(path, key)?.tx())
}

/// Opens a connection that cannot write.
pub(super) fn connect_to_read(path: &Path, key: &SessionKey) -> Result<Connection, Error> {
    let db = connect(path, key)?;
    sql::forbid_writes(&db)?;
    Ok(db)
}

/// Opens a connection whose statements end when the time of their search is over.
pub(super) fn connect_for_searches(path: &Path, key: &SessionKey) -> Result<Connection, Error> {
    let mut db = connect_to_read(path, key)?;
    let is_over = || {
        SEARCH_LOOKS.set(SEARCH_LOOKS.get() + 1);
        SEARCH_UNTIL.get().is_some_and(|until| Instant::now() >= until)
    };
    db.progress_handler(STEPS_BETWEEN_LOOKS, Some(is_over))?;
    Ok(db)
}
