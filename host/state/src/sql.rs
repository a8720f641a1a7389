//! The statements of this crate: the key and the settings of a connection, transactions, checkpoints, checks of all pages, and the
//! marks in `meta`.
//!
//! The scripts of the schema and its version are in [`crate::migrations`]. The statements of the ledger are in `ironclaw-ledger`, and
//! those of all other tables in `tables` of the host.

use ironclaw_contract::seam::crypt::SessionKey;
use rusqlite::{Connection, OptionalExtension, Result};
use zeroize::Zeroizing;

/// Gives the cipher its key and parameters; nothing is read yet.
pub(super) fn unlock(db: &Connection, key: &SessionKey) -> Result<()> {
    // Processors have instructions for this hash; the queues' parameters are the contract's, these are ours.
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

/// Sets how a connection writes: to a write-ahead log, synced with each commit, with zeros over what is deleted.
pub(super) fn configure(db: &Connection) -> Result<()> {
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; \
         PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;",
    )
}

/// Forbids this connection to write.
pub(super) fn forbid_writes(db: &Connection) -> Result<()> {
    db.execute_batch("PRAGMA query_only = ON;")
}

/// Leaves the write-ahead log, and deletes the journal after each commit.
pub(super) fn leave_log(db: &Connection) -> Result<()> {
    db.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))
}

/// Locks the file for this connection alone and leaves the write-ahead log for a journal in memory. Returns the mode of the journal,
/// which is `memory` unless another connection has the file open.
pub(super) fn take_alone(db: &Connection) -> Result<String> {
    db.execute_batch("PRAGMA locking_mode = EXCLUSIVE;")?;
    db.query_row("PRAGMA journal_mode = MEMORY", [], |row| row.get(0))
}

/// Returns what SQLite says of the pages when it looks at each of them once: `ok`, or the first fault.
pub(super) fn quick_check(db: &Connection) -> Result<String> {
    db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
}

/// Returns the first fault that the cipher or SQLite finds in any page.
pub(super) fn first_fault(db: &Connection) -> Result<Option<String>> {
    for check in ["PRAGMA cipher_integrity_check", "PRAGMA integrity_check"] {
        let mut statement = db.prepare(check)?;
        let found = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>>>()?;
        if let Some(wrong) = found.into_iter().find(|line| line != "ok") {
            return Ok(Some(wrong));
        }
    }
    Ok(None)
}

/// Reads the schema, which fails under a wrong key.
pub(super) fn read_schema(db: &Connection) -> Result<()> {
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

/// Begins a transaction, which reads one snapshot from its first statement on.
pub(super) fn begin(db: &Connection) -> Result<()> {
    db.prepare_cached("BEGIN")?.execute([]).map(drop)
}

/// Begins a transaction that may write at once.
pub(super) fn begin_to_write(db: &Connection) -> Result<()> {
    db.prepare_cached("BEGIN IMMEDIATE")?.execute([]).map(drop)
}

/// Returns whether this connection enforces foreign keys.
pub(super) fn has_foreign_keys(db: &Connection) -> Result<bool> {
    db.query_row("PRAGMA foreign_keys", [], |row| row.get(0))
}

/// Has this connection enforce foreign keys, or not; outside of a transaction only.
pub(super) fn set_foreign_keys(db: &Connection, on: bool) -> Result<()> {
    db.execute_batch(if on { "PRAGMA foreign_keys = ON" } else { "PRAGMA foreign_keys = OFF" })
}

/// Returns how many rows refer to a row that is not there.
pub(super) fn broken_references(db: &Connection) -> Result<i64> {
    db.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))
}

/// Ends a transaction and keeps its changes.
pub(super) fn commit(db: &Connection) -> Result<()> {
    db.prepare_cached("COMMIT")?.execute([]).map(drop)
}

/// Ends a transaction and takes back its changes.
pub(super) fn roll_back(db: &Connection) -> Result<()> {
    db.execute_batch("ROLLBACK")
}

/// Begins a job in a transaction.
pub(super) fn begin_job(db: &Connection) -> Result<()> {
    db.prepare_cached("SAVEPOINT job")?.execute([]).map(drop)
}

/// Takes back the changes of the job, which [`end_job`] ends.
pub(super) fn roll_back_job(db: &Connection) -> Result<()> {
    db.prepare_cached("ROLLBACK TO job")?.execute([]).map(drop)
}

/// Ends the job; its changes belong to the transaction.
pub(super) fn end_job(db: &Connection) -> Result<()> {
    db.prepare_cached("RELEASE job")?.execute([]).map(drop)
}

/// Writes changes of the log into the file, as far as no reader and no writer is in the way.
pub(super) fn checkpoint_passively(db: &Connection) -> Result<()> {
    db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// Writes the changes of the log into the file; waits for other connections that use them, up to the timeout of this one.
pub(super) fn checkpoint(db: &Connection) -> Result<()> {
    db.query_row("PRAGMA wal_checkpoint(FULL)", [], |_| Ok(()))
}

/// Writes the changes of the log into the file, and truncates the log. A busy reader makes it incomplete, which is no error.
pub(super) fn empty_log(db: &Connection) -> Result<()> {
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Returns the time of the newest entry in the ledger, milliseconds since the epoch.
pub(super) fn newest_entry_at(db: &Connection) -> Result<Option<i64>> {
    db.query_row("SELECT max(at) FROM ledger", [], |row| row.get(0))
}

/// A row of `meta` in which this crate keeps a mark. The host keeps its own rows there under other keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Set in the record's own file while a host or a command has it open, so that a log has to be beside it.
    Open,
    /// Changes that were found to be lost, until the ledger names them.
    ChangesLost,
    /// A change of the schema, until the ledger names it.
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

/// Returns the value of a mark that is set.
pub(super) fn mark(db: &Connection, mark: Mark) -> Result<Option<String>> {
    db.query_row("SELECT value FROM meta WHERE key = ?1", [mark.key()], |row| row.get(0)).optional()
}

/// Sets a mark, in the place of its earlier value.
pub(super) fn set_mark(db: &Connection, mark: Mark, value: &str) -> Result<()> {
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", [mark.key(), value]).map(drop)
}

/// Removes a mark.
pub(super) fn remove_mark(db: &Connection, mark: Mark) -> Result<()> {
    db.execute("DELETE FROM meta WHERE key = ?1", [mark.key()]).map(drop)
}

/// Removes a mark, and returns the value that it had.
pub(super) fn take_mark(db: &Connection, mark: Mark) -> Result<Option<String>> {
    let mut delete = db.prepare_cached("DELETE FROM meta WHERE key = ?1 RETURNING value")?;
    let mut rows = delete.query([mark.key()])?;
    rows.next()?.map(|row| row.get(0)).transpose()
}
