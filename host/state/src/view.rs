//! The state as it is read from outside of the host.
//!
//! Writes nothing: a file of an older version is not migrated. See [`crate::migrations`].

use super::opening::{connect, remove_log};
use super::{Error, ReadTx, log, migrations, sql, wall_clock};
use ironclaw_contract::seam::crypt::SessionKey;
use rusqlite::Connection;
use std::path::Path;

/// Opens the state for reading, whether a host runs or not.
///
/// # Errors
/// As `State::open`. A file of an older version is not migrated, because nothing is written.
pub fn open_to_look(path: &Path, key: &SessionKey) -> Result<Connection, Error> {
    // The log of a crashed host stays for the next start. If there is none, SQLite makes an empty log and must remove it: otherwise the
    // next start would take it for the log after an erasure.
    let has_log = std::fs::metadata(log::path_of(path)).is_ok_and(|found| found.len() > 0);
    let db = connect(path, key)?;
    migrations::check(&db, path, key)?;
    sql::forbid_writes(&db)?;
    if !has_log {
        remove_log(&db);
    }
    Ok(db)
}

/// One snapshot of the state, whether a host runs or not.
pub struct View {
    db: Connection,
    now: i64,
}

impl View {
    /// Opens the state for reading. The snapshot begins with the first statement.
    ///
    /// # Errors
    /// As [`open_to_look`].
    pub fn open(path: &Path, key: &SessionKey) -> Result<Self, Error> {
        let db = open_to_look(path, key)?;
        sql::begin(&db)?;
        Ok(Self { db, now: wall_clock() })
    }

    /// Returns the transaction on the snapshot.
    pub const fn tx(&self) -> ReadTx<'_> {
        ReadTx { db: &self.db, now: self.now, wall: self.now, prune: self.now, expiry: self.now }
    }
}

/// Calls `look` with a transaction on one snapshot of the state, whether a host runs or not.
///
/// # Errors
/// As [`open_to_look`], and the errors of `look`.
pub fn look<T>(path: &Path, key: &SessionKey, look: impl FnOnce(&ReadTx<'_>) -> Result<T, Error>) -> Result<T, Error> {
    look(&View::open(path, key)?.tx())
}
