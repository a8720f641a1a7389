//! The record, `state.db`: one thread writes it, one reads it, and one searches it.
//!
//! No other crate opens the file. A change and its ledger entries share one transaction. See `ironclaw-ledger`.
//!
//! The feature `threads` (default) adds the threads and `State`, their handle. Without it the crate links no task runtime.

// The one exception is `locked`: it locks the memory of a secret.
#![deny(unsafe_code)]
// The crates of this workspace alone read this one, so only what a name does not say is documented.
#![allow(missing_docs)]
// Only the threads use some of the functions.
#![cfg_attr(not(feature = "threads"), allow(dead_code))]

pub mod backup;
mod clock;
#[cfg(feature = "threads")]
mod events;
pub mod failpoint;
#[cfg(feature = "threads")]
mod handle;
pub mod home;
pub mod keys;
pub mod locked;
pub mod log;
pub mod metrics;
pub mod migrations;
mod opening;
pub mod probe;
pub mod rekey;
pub mod seal;
pub mod snapshot;
mod sql;
mod stored;
#[cfg(feature = "threads")]
mod threads;
mod tx;
mod view;

pub use clock::{STEADY_AFTER, TRUSTED_STOP_MS, wall_clock};
#[cfg(feature = "threads")]
pub use events::EventsOf;
#[cfg(feature = "threads")]
pub use handle::{Outcome, State};
pub use stored::{bad, stored_json, stored_text};
#[cfg(feature = "threads")]
pub use threads::DEFERRED_MAX;
pub use tx::{Committed, ReadTx, WriteTx};
pub use view::{View, look, open_to_look};

use opening::{connect, create, remove_log};
use std::cell::Cell;
use std::time::Instant;

thread_local! {
    /// Deadline of the search that this thread runs.
    static SEARCH_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Number of checks of that deadline since this thread began: a measure of the work of its searches.
    static SEARCH_CHECKS: Cell<u64> = const { Cell::new(0) };
    /// Flag: SQLite found damage in a request of this thread. It is set even if the caller swallows the error.
    static DAMAGE: Cell<bool> = const { Cell::new(false) };
}

/// The reason that the state could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file does not open under this master key.
    #[error(
        "cannot open {0}: wrong master key or damaged file; put the right master key back, or restore the newest backup of the home"
    )]
    WrongKey(String),
    /// The file belongs to a newer version.
    #[error(
        "{path} has schema {found}, and this version knows up to {known}: install the newer version again; {way_back}"
    )]
    Newer {
        path: String,
        /// Version of the file.
        found: i64,
        /// Version of this program.
        known: i64,
        /// The commands that go back to a snapshot, or the reason that there are none.
        way_back: String,
    },
    /// The file belongs to an older version, whose schema this program does not migrate.
    #[error(
        "{path} has schema {found}, and this version reads schema {oldest} and later; the file is unchanged: start the host once with an \
         earlier build of IronClaw 0.1.0 that has schema {oldest}, and then with this version"
    )]
    Older {
        path: String,
        /// Version of the file.
        found: i64,
        /// Oldest version that this program reads.
        oldest: i64,
    },
    /// A migration of the schema failed.
    #[error(
        "cannot migrate {path} from schema {from} to {to}: {source}; the file is unchanged{kept}: install the earlier version"
    )]
    Migration {
        path: String,
        /// Version of the file.
        from: i64,
        /// Version of this program.
        to: i64,
        /// Half a sentence that names the snapshot.
        kept: String,
        source: Box<rusqlite::Error>,
    },
    /// The disk has too little space for the snapshot and for the change of the schema.
    #[error("no room to migrate the state: {path} and the migration need {needed} bytes, and {free} are free")]
    NoRoom {
        /// The snapshot that would be made.
        path: String,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// A snapshot could not be made or removed.
    #[error("the snapshot {path} {why}")]
    Snapshot { path: String, why: String },
    /// Pages of the file are damaged.
    #[error(
        "{path} is damaged ({why}): it was not changed; keep a copy of it, and restore the newest backup of the home, or \
         a snapshot from before an upgrade ({path}.before-vN) if there is one"
    )]
    Damaged { path: String, why: String },
    /// Damage that SQLite found while the host ran. Earlier commits are kept, and the host stopped writing.
    #[error(
        "{0} is damaged (found while the host ran): nothing was written to it from then on; keep a copy of it and of {0}-wal, and \
         restore the newest backup of the home, or a snapshot from before an upgrade ({0}.before-vN) if there is one"
    )]
    DamagedMeanwhile(String),
    /// The file could not be made.
    #[error("cannot make {path}: {source}")]
    NotMade { path: String, source: std::io::Error },
    /// The write-ahead log could not be read.
    #[error("cannot read {path}: {source}")]
    Log { path: String, source: std::io::Error },
    #[error("state database: {0}")]
    Sqlite(#[source] rusqlite::Error),
    /// A change that was rolled back because it could not be written, such as on a full disk.
    #[error("the change was not written: {0}")]
    Unwritten(String),
    /// A stored value that no version of this program writes.
    #[error("state database: {0}")]
    Stored(String),
    /// A statement that changes rows or ends the transaction, in a read transaction: a bug of the host.
    #[error("state database: a reading transaction may not run: {0}")]
    NotReading(String),
    /// Another process has the file open.
    #[error("{0} is in use by another process: end that process, and try again")]
    InUse(String),
    #[error("the state database is closed")]
    Closed,
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        if is_damage(&error) {
            DAMAGE.set(true);
        }
        Self::Sqlite(error)
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}
