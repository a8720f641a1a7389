//! The only truth: `state.db`, behind one writing thread, one reading thread, and one for searches.
//!
//! No other module opens the file. A change and its ledger entries share a transaction, or neither happened. See
//! `ironclaw-ledger`.
//!
//! The feature `threads` (default) holds the threads and `State`, their handle. Without it the crate links no task runtime.

// The one exception is `locked`, which locks the memory of a secret.
#![deny(unsafe_code)]
// The threads use what nothing else does.
#![cfg_attr(not(feature = "threads"), allow(dead_code))]

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
pub mod rekey;
pub mod seal;
pub mod snapshot;
mod sql;
mod stored;
#[cfg(feature = "threads")]
mod threads;
mod tx;

pub use clock::wall_clock;
#[cfg(feature = "threads")]
pub use events::EventsOf;
#[cfg(feature = "threads")]
pub use handle::State;
pub use opening::{View, look, open_to_look};
pub use stored::{bad, stored_json};
pub use tx::{Committed, ReadTx, WriteTx};

use opening::{connect, create, remove_log};
use std::cell::Cell;
use std::time::Instant;

thread_local! {
    /// End of the time for the search that this thread makes.
    static SEARCH_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Looks at that time since this thread began: a count of the work of its searches.
    static SEARCH_LOOKS: Cell<u64> = const { Cell::new(0) };
    /// Whether SQLite found damage in a request of this thread; whatever the change made of that error, its thread hears of it.
    static DAMAGE: Cell<bool> = const { Cell::new(false) };
}

/// The reason that the state could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file does not open under this master key.
    #[error(
        "cannot open {0}: wrong master key or damaged file; put back the key that it was made under, or the newest backup of the home"
    )]
    WrongKey(String),
    /// The file belongs to a newer version.
    #[error(
        "{path} has schema {found}, and this version knows up to {known}: install the newer version again; {way_back}"
    )]
    Newer {
        /// The file.
        path: String,
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
        /// The command to type to go back, if there is a way.
        way_back: String,
    },
    /// The schema could not be brought up to date.
    #[error(
        "cannot bring {path} from schema {from} to {to}: {source}; it stays as it was{kept}: install the version before this one"
    )]
    Migration {
        /// The file.
        path: String,
        /// Its version.
        from: i64,
        /// Ours.
        to: i64,
        /// Names the snapshot.
        kept: String,
        /// SQLite's report.
        source: Box<rusqlite::Error>,
    },
    /// No room for the snapshot and for the change of the schema.
    #[error(
        "no room to bring the state up to date: {path} and the change itself need {needed} bytes, and {free} are free"
    )]
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
    Snapshot {
        /// The file.
        path: String,
        /// The reason.
        why: String,
    },
    /// Its pages are not what this program wrote.
    #[error(
        "{path} is damaged ({why}): nothing was changed in it; keep a copy of it, and put back the newest backup of the home, or \
         where there is one a snapshot from before an upgrade ({path}.before-vN)"
    )]
    Damaged {
        /// The file.
        path: String,
        /// The fault.
        why: String,
    },
    /// The same, found while the host ran: earlier commits are kept, and there was none afterwards.
    #[error(
        "{0} is damaged (found while the host ran): nothing was written to it from then on; keep a copy of it and of {0}-wal, and \
         put back the newest backup of the home, or where there is one a snapshot from before an upgrade ({0}.before-vN)"
    )]
    DamagedMeanwhile(String),
    /// The file could not be made.
    #[error("cannot make {path}: {source}")]
    NotMade {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The write-ahead log could not be read.
    #[error("cannot read {path}: {source}")]
    Log {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// SQLite's report.
    #[error("state database: {0}")]
    Sqlite(#[source] rusqlite::Error),
    /// A change that was undone because it could not be written, such as on a full disk. Nothing of it is kept.
    #[error("the change was not written: {0}")]
    Unwritten(String),
    /// A stored value that no version of ours wrote.
    #[error("state database: {0}")]
    Stored(String),
    /// A statement that changes rows or ends the transaction, in a transaction that reads: a defect of the host.
    #[error("state database: a reading transaction may not run: {0}")]
    NotReading(String),
    /// Another process has the file open.
    #[error("{0} is in use by another process: let it end, and try again")]
    InUse(String),
    /// The daemon is stopping.
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
