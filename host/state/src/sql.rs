//! The SQL statements of this crate: key and settings of a connection, transactions, checkpoints, page checks, and marks in `meta`.
//!
//! The scripts of the schema and its version are in [`crate::migrations`]. The statements of the ledger are in `ironclaw-ledger`, and
//! those of all other tables in `tables` of the host.

use super::{Error, failpoint};
use ironclaw_contract::seam::crypt::SessionKey;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, ToSql};
use zeroize::Zeroizing;

/// Sets the key and the parameters of the cipher; it reads no page yet.
pub(super) fn unlock(db: &Connection, key: &SessionKey) -> Result<()> {
    // Processors have instructions for SHA-256. The contract sets the parameters of the queues; these belong to the host.
    let open = Zeroizing::new(format!(
        "PRAGMA cipher_log_level = NONE; PRAGMA key = \"x'{}'\"; PRAGMA cipher_page_size = 4096; PRAGMA cipher_hmac_algorithm = HMAC_SHA256;",
        key.to_hex().as_str()
    ));
    db.execute_batch(&open)
}

/// Encrypts every page under another key.
pub(super) fn rekey(db: &Connection, key: &SessionKey) -> Result<()> {
    let rekey = Zeroizing::new(format!("PRAGMA rekey = \"x'{}'\";", key.to_hex().as_str()));
    db.execute_batch(&rekey)
}

/// Configures a connection: write-ahead log, a sync at each commit, zeros over deleted content.
pub(super) fn configure(db: &Connection) -> Result<()> {
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; \
         PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;",
    )
}

/// Writes once through a write-ahead log, without a sync. Returns the journal mode.
pub(super) fn try_journal(db: &Connection) -> Result<String> {
    let mode = db.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    db.execute_batch("PRAGMA synchronous = OFF; BEGIN IMMEDIATE; CREATE TABLE trial (one INTEGER); COMMIT;")?;
    Ok(mode)
}

/// Makes this connection read-only.
pub(super) fn forbid_writes(db: &Connection) -> Result<()> {
    db.execute_batch("PRAGMA query_only = ON;")
}

/// Switches from the write-ahead log to a journal that SQLite deletes after each commit.
pub(super) fn disable_wal(db: &Connection) -> Result<()> {
    db.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))
}

/// Locks the file exclusively, and switches from the write-ahead log to a journal in memory. Returns the journal mode, which is
/// `memory` unless another connection has the file open.
pub(super) fn lock_exclusively(db: &Connection) -> Result<String> {
    db.execute_batch("PRAGMA locking_mode = EXCLUSIVE;")?;
    db.query_row("PRAGMA journal_mode = MEMORY", [], |row| row.get(0))
}

/// Checks each page once; returns `ok` or the first error.
pub(super) fn quick_check(db: &Connection) -> Result<String> {
    db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
}

/// Checks that every page opens under the key of this connection, and that SQLite finds no damage.
///
/// # Errors
/// The first damage.
pub(super) fn prove(db: &Connection, what: &str) -> std::result::Result<(), Error> {
    for check in ["PRAGMA cipher_integrity_check", "PRAGMA integrity_check"] {
        let mut statement = db.prepare(check)?;
        let found = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>>>()?;
        if let Some(wrong) = found.into_iter().find(|line| line != "ok") {
            return Err(Error::Stored(format!("{what} is damaged: {wrong}")));
        }
    }
    Ok(())
}

/// Reads the schema, which fails under a wrong key.
pub(super) fn read_schema(db: &Connection) -> Result<()> {
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

/// Begins a transaction that reads one snapshot, from its first statement on.
pub(super) fn begin(db: &Connection) -> Result<()> {
    db.prepare_cached("BEGIN")?.execute([]).map(drop)
}

/// Begins a transaction with the write lock.
pub(super) fn begin_to_write(db: &Connection) -> Result<()> {
    db.prepare_cached("BEGIN IMMEDIATE")?.execute([]).map(drop)
}

/// Returns whether this connection enforces foreign keys.
pub(super) fn has_foreign_keys(db: &Connection) -> Result<bool> {
    db.query_row("PRAGMA foreign_keys", [], |row| row.get(0))
}

/// Turns the enforcement of foreign keys on or off; works only outside of a transaction.
pub(super) fn set_foreign_keys(db: &Connection, on: bool) -> Result<()> {
    db.execute_batch(if on { "PRAGMA foreign_keys = ON" } else { "PRAGMA foreign_keys = OFF" })
}

/// Returns the number of rows that refer to a missing row.
pub(super) fn broken_references(db: &Connection) -> Result<i64> {
    db.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))
}

pub(super) fn commit(db: &Connection) -> Result<()> {
    db.prepare_cached("COMMIT")?.execute([]).map(drop)
}

/// Rolls the transaction back.
pub(super) fn roll_back(db: &Connection) -> Result<()> {
    db.execute_batch("ROLLBACK")
}

/// Begins a job: a savepoint in the transaction.
pub(super) fn begin_job(db: &Connection) -> Result<()> {
    db.prepare_cached("SAVEPOINT job")?.execute([]).map(drop)
}

/// Rolls back the changes of the job; [`end_job`] must still end it.
pub(super) fn roll_back_job(db: &Connection) -> Result<()> {
    db.prepare_cached("ROLLBACK TO job")?.execute([]).map(drop)
}

/// Ends the job; its changes become part of the transaction.
pub(super) fn end_job(db: &Connection) -> Result<()> {
    db.prepare_cached("RELEASE job")?.execute([]).map(drop)
}

/// Writes the changes of the log into the file, as far as no reader or writer blocks that. Returns whether all are there.
pub(super) fn checkpoint_passively(db: &Connection) -> Result<bool> {
    let counts = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], counts).map(|(in_log, copied)| in_log == copied)
}

/// Writes the changes of the log into the file; waits for other connections up to the busy timeout.
pub(super) fn checkpoint(db: &Connection) -> Result<()> {
    db.query_row("PRAGMA wal_checkpoint(FULL)", [], |_| Ok(()))
}

/// Writes the changes of the log into the file, and truncates the log. With a busy reader it is incomplete, without an error.
pub(super) fn empty_log(db: &Connection) -> Result<()> {
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Returns the time of the newest entry in the ledger, milliseconds since the epoch. Times in the ledger never go back, so the last
/// entry has it, and a start does not read the whole chain.
pub(super) fn newest_entry_at(db: &Connection) -> Result<Option<i64>> {
    db.query_row("SELECT at FROM ledger ORDER BY seq DESC LIMIT 1", [], |row| row.get(0)).optional()
}

/// A row of `meta` with a mark of this crate. The host has its own rows there under other keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Set in the database file while a host or a command has it open; then there must be a log.
    Open,
    /// Lost changes that the ledger does not name yet.
    ChangesLost,
    /// A migration that the ledger does not name yet.
    Migrated,
}

impl Mark {
    const fn key(self) -> &'static str {
        match self {
            Self::Open => "log",
            Self::ChangesLost => "changes_lost",
            Self::Migrated => "migrated",
        }
    }
}

/// Prepares a statement about rows, or takes it from the cache of the connection.
pub(super) fn prepare<'a>(db: &'a Connection, sql: &str) -> Result<CachedStatement<'a>> {
    failpoint::prepare(sql);
    db.prepare_cached(sql)
}

/// Inserts a row with these values of these columns.
pub(super) fn insert(db: &Connection, table: &str, columns: &[&str], values: &[&dyn ToSql]) -> Result<()> {
    let (names, places) = (columns.join(", "), vec!["?"; columns.len()].join(","));
    prepare(db, &format!("INSERT INTO {table} ({names}) VALUES ({places})"))?.execute(values).map(drop)
}

/// Returns the value of a row of `meta`.
pub(super) fn meta(db: &Connection, key: &str) -> Result<Option<String>> {
    prepare(db, "SELECT value FROM meta WHERE key = ?1")?.query_row([key], |row| row.get(0)).optional()
}

/// Sets a row of `meta`, and replaces its earlier value.
pub(super) fn set_meta(db: &Connection, key: &str, value: &str) -> Result<()> {
    prepare(db, "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")?.execute([key, value]).map(drop)
}

/// Removes a row of `meta`, and returns whether there was one.
pub(super) fn remove_meta(db: &Connection, key: &str) -> Result<bool> {
    Ok(prepare(db, "DELETE FROM meta WHERE key = ?1")?.execute([key])? > 0)
}

/// Returns the value of a mark, if it is set.
pub(super) fn mark(db: &Connection, mark: Mark) -> Result<Option<String>> {
    meta(db, mark.key())
}

/// Sets a mark, and replaces its earlier value.
pub(super) fn set_mark(db: &Connection, mark: Mark, value: &str) -> Result<()> {
    set_meta(db, mark.key(), value)
}

pub(super) fn remove_mark(db: &Connection, mark: Mark) -> Result<()> {
    remove_meta(db, mark.key()).map(drop)
}

/// Removes a mark, and returns its value.
pub(super) fn take_mark(db: &Connection, mark: Mark) -> Result<Option<String>> {
    let mut delete = prepare(db, "DELETE FROM meta WHERE key = ?1 RETURNING value")?;
    let mut rows = delete.query([mark.key()])?;
    rows.next()?.map(|row| row.get(0)).transpose()
}
