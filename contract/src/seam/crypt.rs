//! The key of a session's queues, and the opener of the encrypted files with the pinned parameters.
//!
//! The key never prints, never clones, and wipes itself. A wrong key is an error of the open. See [`crate::seam::inbound`] and
//! [`crate::seam::outbound`].

use super::limits::LOCK_WAIT_MS_MAX;
use super::schema::{CIPHER_PAGE_SIZE, DROP_OUTBOUND_BEFORE, OUTBOUND_BEFORE};
use crate::canonical::Digest;
use rusqlite::{Connection, OpenFlags};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Once;
use std::time::Duration;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// The raw 256-bit key of both queues of a session.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct SessionKey([u8; 32]);

impl SessionKey {
    /// Makes a key from its bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads a key from 64 hex characters, its form on the link.
    pub fn from_hex(text: &str) -> Option<Self> {
        Digest::from_str(text).ok().map(|digest| Self(*digest.as_bytes()))
    }

    /// Returns its 64 hex characters, in memory that wipes itself.
    pub fn to_hex(&self) -> Zeroizing<String> {
        Zeroizing::new(Digest::from_bytes(self.0).to_string())
    }

    /// Returns its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey(..)")
    }
}

/// An error of opening or using a queue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file does not exist.
    #[error("cannot open {queue} of {path}: no such file")]
    Missing {
        /// `inbound queue` or `outbound queue`.
        queue: &'static str,
        /// Its path.
        path: PathBuf,
    },
    /// The path is a link, a directory, a pipe or another object that is not a regular file.
    #[error("cannot open {queue} of {path}: it is {found}, not a regular file")]
    NotAFile {
        /// `inbound queue` or `outbound queue`.
        queue: &'static str,
        /// Its path.
        path: PathBuf,
        /// The type of the object.
        found: &'static str,
    },
    /// The first page does not decrypt.
    #[error("cannot open {queue} of {path}: wrong key or damaged file")]
    WrongKey {
        /// `inbound queue` or `outbound queue`.
        queue: &'static str,
        /// Its path.
        path: PathBuf,
    },
    /// The schema is not the frozen one.
    #[error("cannot open {queue} of {path}: its schema is not the contract's ({found})")]
    Schema {
        /// `inbound queue` or `outbound queue`.
        queue: &'static str,
        /// Its path.
        path: PathBuf,
        /// The first difference.
        found: String,
    },
    /// A writer died and left a journal. A writer must open the file before a reader can.
    #[error("{queue} of {path} needs its writer to recover it")]
    NeedsRecovery {
        /// `inbound queue` or `outbound queue`.
        queue: &'static str,
        /// Its path.
        path: PathBuf,
    },
    /// Another process held the lock for longer than the bounded wait.
    #[error("{queue} of {path} is locked by another process")]
    Locked {
        /// `inbound queue` or `outbound queue`.
        queue: &'static str,
        /// Its path.
        path: PathBuf,
    },
    /// A row that the contract does not allow.
    #[error("{queue} of {path}: {what}")]
    Row {
        /// `inbound queue` or `outbound queue`.
        queue: &'static str,
        /// Its path.
        path: PathBuf,
        /// The violation.
        what: String,
    },
    /// Any other error of SQLite or the system.
    #[error("{queue} of {path}: {source}")]
    Sqlite {
        /// `inbound queue` or `outbound queue`.
        queue: &'static str,
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
}

/// One side of one of the two queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    InboundWrite,
    InboundRead,
    OutboundWrite,
    OutboundRead,
}

impl Access {
    const fn queue(self) -> &'static str {
        match self {
            Self::InboundWrite | Self::InboundRead => "inbound queue",
            Self::OutboundWrite | Self::OutboundRead => "outbound queue",
        }
    }

    const fn writes(self) -> bool {
        matches!(self, Self::InboundWrite | Self::OutboundWrite)
    }
}

/// Initialises the cipher library. SQLite takes itself for initialised a moment before its cipher is: a thread that opens a file
/// in that moment, while another thread makes the first connection of the process, has its key refused.
pub fn prepare_cipher() {
    static PREPARED: Once = Once::new();
    // An error is ignored here: it occurs again, with its text, for the file that the caller opens.
    PREPARED.call_once(|| drop(Connection::open_in_memory()));
}

/// An open queue file, with its path and its side for errors.
pub(super) struct Queue {
    pub(super) db: Connection,
    access: Access,
    path: PathBuf,
}

impl Queue {
    /// Opens a file with the pinned parameters and checks its schema. A writer makes a missing file.
    pub(super) fn open(path: &Path, key: &SessionKey, access: Access, schema: &str) -> Result<Self, Error> {
        check_is_file(path, access)?;
        let flags = if access.writes() {
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
        } else {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        };
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let fault = |source| fault(access, path, source);
        prepare_cipher();
        let db = Connection::open_with_flags(path, flags).map_err(fault)?;
        let queue = Self { db, access, path: path.to_owned() };
        queue.set_parameters(key).map_err(|source| queue.fault(source))?;
        if access.writes() {
            queue.make_tables(schema)?;
        }
        queue.check_schema(schema)?;
        Ok(queue)
    }

    fn set_parameters(&self, key: &SessionKey) -> rusqlite::Result<()> {
        let hex = key.to_hex();
        let statement =
            Zeroizing::new(format!("PRAGMA cipher_log_level = NONE; PRAGMA key = \"x'{}'\";", hex.as_str()));
        self.db.execute_batch(&statement)?;
        self.db.execute_batch(&format!(
            "PRAGMA cipher_page_size = {CIPHER_PAGE_SIZE}; PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF;"
        ))?;
        self.db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        // The planner ignores bound values: else SQLite would parse and plan a statement with a bound LIMIT at every run.
        self.db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        self.db.busy_timeout(Duration::from_millis(LOCK_WAIT_MS_MAX))?;
        match self.access {
            Access::InboundWrite => self
                .db
                .execute_batch("PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = OFF; PRAGMA secure_delete = ON;"),
            Access::OutboundWrite => self.db.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;"),
            Access::InboundRead => self.db.execute_batch("PRAGMA query_only = ON;"),
            Access::OutboundRead => self.db.execute_batch("PRAGMA query_only = ON; PRAGMA cell_size_check = ON;"),
        }
    }

    /// Makes the tables of a new file, and those of an outbound queue of the version before anew. Its rows that the host did not take
    /// are lost, and their turn is tried again.
    fn make_tables(&self, schema: &str) -> Result<(), Error> {
        let found = self.statements()?;
        let drop = if found.is_empty() {
            ""
        } else if Digest::of(found.join("\n").as_bytes()).to_string() == OUTBOUND_BEFORE {
            DROP_OUTBOUND_BEFORE
        } else {
            return Ok(());
        };
        let sql = format!("BEGIN IMMEDIATE;\n{drop}{schema}COMMIT;");
        self.db.execute_batch(&sql).map_err(|source| self.fault(source))
    }

    /// Reads the statements of the schema, in their order.
    fn statements(&self) -> Result<Vec<String>, Error> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.db.prepare(
                "SELECT coalesce(sql, type || ' ' || name) FROM sqlite_master \
                 WHERE NOT (type = 'index' AND name LIKE 'sqlite_autoindex_%' AND sql IS NULL) ORDER BY 1 LIMIT 64",
            )?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        read().map_err(|source| self.fault(source))
    }

    /// Refuses a schema that is not the frozen one, statement by statement. It allows no further view, trigger, index or virtual
    /// table.
    pub(super) fn check_schema(&self, schema: &str) -> Result<(), Error> {
        let mut expected: Vec<&str> =
            schema.split(";\n").map(|s| s.trim_end_matches(';').trim()).filter(|s| !s.is_empty()).collect();
        expected.sort_unstable();
        let found = self.statements()?;
        if found == expected {
            return Ok(());
        }
        let odd = found.iter().find(|sql| !expected.contains(&sql.as_str()));
        let found = match odd {
            Some(sql) => format!("unexpected: {:.60}", sql.replace(char::is_control, " ")),
            None => "a table is missing".to_owned(),
        };
        Err(Error::Schema { queue: self.access.queue(), path: self.path.clone(), found })
    }

    pub(super) fn fault(&self, source: rusqlite::Error) -> Error {
        fault(self.access, &self.path, source)
    }

    pub(super) fn bad_row(&self, what: impl Into<String>) -> Error {
        Error::Row { queue: self.access.queue(), path: self.path.clone(), what: what.into() }
    }
}

/// Refuses any object but a regular file: a pipe would block the open, and a link could name any file.
fn check_is_file(path: &Path, access: Access) -> Result<(), Error> {
    let queue = access.queue();
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(metadata) => {
            let found = match metadata.file_type() {
                kind if kind.is_symlink() => "a link",
                kind if kind.is_dir() => "a directory",
                _ => "a pipe, socket or device",
            };
            Err(Error::NotAFile { queue, path: path.to_owned(), found })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && access.writes() => Ok(()),
        Err(_) => Err(Error::Missing { queue, path: path.to_owned() }),
    }
}

fn fault(access: Access, path: &Path, source: rusqlite::Error) -> Error {
    use rusqlite::ffi;
    let (queue, path) = (access.queue(), path.to_owned());
    let code = source.sqlite_error().map_or(0, |error| error.extended_code);
    match (code & 0xff, code) {
        (ffi::SQLITE_NOTADB | ffi::SQLITE_CORRUPT, _) => Error::WrongKey { queue, path },
        (ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED, _) => Error::Locked { queue, path },
        (_, ffi::SQLITE_READONLY_ROLLBACK | ffi::SQLITE_READONLY_RECOVERY) => Error::NeedsRecovery { queue, path },
        _ => Error::Sqlite { queue, path, source },
    }
}
