//! Both sides of the outbound queue: the sandbox appends rows, and the jailed reader of the host reads them.
//!
//! Never trusts the queue: the reader returns bounded, raw rows, and the host judges them. See [`crate::seam::socket`].

use super::crypt::{Access, Error, Queue, SessionKey};
use super::limits::{NAME_BYTES_MAX, PROGRESS_ROWS_MAX, ROW_BYTES_MAX, UNDRAINED_ROWS_MAX};
use super::message::Status;
use super::schema;
use super::untrusted::Untrusted;
use crate::canonical::{self, Digest};
use crate::ids::{CallId, ItemId, MessageId, TurnId};
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};

/// The content of a row. It names what the host recorded, and has no words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// This sealed output is the answer of the turn.
    Reply(ItemId),
    /// The turn ends without an answer.
    End(EndReason),
    /// The host acts on this recorded call of the turn.
    Call(CallId),
}

/// The reason why a sandbox ends a turn without a reply. The host writes the notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Too many tool calls.
    ToolCalls,
    /// Too many requests to the model.
    ModelCalls,
    /// Too many bytes of results.
    Bytes,
    /// The deadline passed.
    Time,
    /// The model's endpoint failed.
    Model,
    /// The output of the model was empty.
    Empty,
    /// The agent's process failed.
    Failed,
}

/// A row to append; the queue assigns its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRow {
    /// The open turn.
    pub turn: TurnId,
    /// [`Content`], as JSON.
    pub content: String,
    /// The statement about the last message of the turn that goes with the row.
    pub note: Option<Note>,
}

/// A statement of a sandbox about its progress with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// The message.
    pub message: MessageId,
    /// `processing` or `completed`.
    pub status: Status,
    /// Milliseconds since the epoch, by the clock of the sandbox.
    pub at: i64,
}

/// A row exactly as the sandbox wrote it, with bounded sizes and no other check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRow {
    /// `messages_out.seq`, odd.
    pub seq: u64,
    /// `messages_out.turn`
    pub turn: String,
    /// `messages_out.content`
    pub content: String,
}

impl RawRow {
    /// Computes the digest over all fields, which detects a change of the row.
    pub fn digest(&self) -> Digest {
        Digest::of(&canonical::to_vec(self))
    }
}

/// A [`Note`] exactly as the sandbox wrote it. `why` shows it; it has no authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// The id of a message.
    pub message: String,
    /// A status.
    pub status: String,
    /// Milliseconds since the epoch, by the clock of the sandbox.
    pub at: i64,
}

/// The side of the sandbox, which appends rows.
pub struct OutboundWriter(Queue);

impl OutboundWriter {
    /// Opens read-write, recovers the journal of a writer that died, and makes a missing file.
    ///
    /// # Errors
    /// [`Error`], for a file that is not the outbound queue of this session.
    pub fn open(path: &Path, key: &SessionKey) -> Result<Self, Error> {
        Queue::open(path, key, Access::OutboundWrite, schema::OUTBOUND).map(Self)
    }

    /// Appends a row durably, with its note, and returns its number. The INSERT makes the number: odd, above all earlier ones and above
    /// `cursor`.
    pub fn append(&mut self, row: &NewRow, cursor: u64) -> Result<u64, Error> {
        self.write(|tx| {
            tx.prepare_cached("DELETE FROM messages_out WHERE seq <= ?1")?.execute([cursor as i64])?;
            let seq: i64 = tx
                .prepare_cached(
                    "INSERT INTO messages_out (seq, turn, content) \
                     SELECT (max(coalesce((SELECT max(seq) FROM messages_out), 0), ?1) + 1) | 1, ?2, ?3 RETURNING seq",
                )?
                .query_row(params![cursor as i64, row.turn.to_string(), row.content], |row| row.get(0))?;
            row.note.as_ref().map_or(Ok(()), |note| insert_note(tx, note))?;
            Ok(seq as u64)
        })
    }

    /// Records a note alone.
    pub fn note(&mut self, note: &Note) -> Result<(), Error> {
        self.write(|tx| insert_note(tx, note))
    }

    fn write<T>(&mut self, write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T, Error> {
        let written = (|| {
            let tx = self.0.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = write(&tx)?;
            tx.commit()?;
            Ok(value)
        })();
        written.map_err(|source| self.0.fault(source))
    }
}

/// Records the status of a message, and deletes the statuses that no look reads. A look sorts all of them.
fn insert_note(tx: &Transaction<'_>, note: &Note) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO processing_ack (message_id, status, status_changed) VALUES (?1,?2,?3) \
         ON CONFLICT (message_id) DO UPDATE SET status = excluded.status, status_changed = excluded.status_changed",
    )?
    .execute(params![note.message.to_string(), note.status.name(), note.at])?;
    tx.prepare_cached(
        "DELETE FROM processing_ack WHERE message_id NOT IN (SELECT message_id FROM processing_ack ORDER BY status_changed DESC LIMIT ?1)",
    )?
    .execute([PROGRESS_ROWS_MAX as i64])?;
    Ok(())
}

/// The side of the host, which only the jailed reader opens.
pub struct OutboundReader {
    queue: Queue,
    /// The version of the schema that passed the check.
    schema_version: i64,
}

/// The result of one look at the queue.
#[derive(Debug)]
pub struct Found {
    /// Rows above the cursor, in their order.
    pub rows: Vec<Untrusted<RawRow>>,
    /// Statements of the sandbox about its progress.
    pub progress: Vec<Progress>,
    /// Number and digest of the rows at or below the cursor that are still there. The host compares them with the accepted rows.
    pub taken: Vec<(u64, Digest)>,
}

impl OutboundReader {
    /// The time after which a query is stopped.
    pub const QUERY_TIME_MAX: Duration = Duration::from_secs(2);

    /// Opens read-only, checks the schema, and bounds values and time.
    ///
    /// # Errors
    /// [`Error::NeedsRecovery`] if only the writer can recover a journal. Any other [`Error`] means that the file is not a valid
    /// outbound queue.
    pub fn open(path: &Path, key: &SessionKey) -> Result<Self, Error> {
        let queue = Queue::open(path, key, Access::OutboundRead, schema::OUTBOUND)?;
        let bound = |limit, value| queue.db.set_limit(limit, value).map(drop).map_err(|source| queue.fault(source));
        bound(rusqlite::limits::Limit::SQLITE_LIMIT_LENGTH, (ROW_BYTES_MAX + 16 * NAME_BYTES_MAX) as i32)?;
        let schema_version = version(&queue)?;
        queue.check_schema(schema::OUTBOUND)?;
        Ok(Self { queue, schema_version })
    }

    /// Reads all rows above `cursor`, bounded in number, size and time.
    pub fn look(&mut self, cursor: u64) -> Result<Found, Error> {
        let started = Instant::now();
        let over = move || started.elapsed() > Self::QUERY_TIME_MAX;
        let set = self.queue.db.progress_handler(10_000, Some(over));
        set.map_err(|source| self.queue.fault(source))?;
        self.look_within(cursor)
    }

    fn look_within(&self, cursor: u64) -> Result<Found, Error> {
        let fault = |source| self.queue.fault(source);
        let tx = self.queue.db.unchecked_transaction().map_err(fault)?;
        // In the same snapshot: a process with the key may have changed the schema since the open. A changed schema with an
        // old version number has no effect: SQLite continues with the one that passed the check.
        let schema_version = version(&self.queue)?;
        if schema_version != self.schema_version {
            self.queue.check_schema(schema::OUTBOUND)?;
        }
        let mut found = self.rows(&tx, cursor)?;
        found.progress = self.progress(&tx)?;
        Ok(found)
    }

    /// Reads the rows above the cursor, and number and digest of the others. Leaves the progress empty.
    fn rows(&self, tx: &Connection, cursor: u64) -> Result<Found, Error> {
        let fault = |source| self.queue.fault(source);
        let mut rows = Vec::new();
        let mut taken = Vec::new();
        let mut statement =
            tx.prepare_cached("SELECT seq, turn, content FROM messages_out ORDER BY seq LIMIT ?1").map_err(fault)?;
        let mut found = statement.query([2 * UNDRAINED_ROWS_MAX as i64 + 1]).map_err(fault)?;
        while let Some(row) = found.next().map_err(fault)? {
            let row = raw(row).map_err(|error| self.malformed(error))?;
            self.check(&row)?;
            if row.seq <= cursor {
                taken.push((row.seq, row.digest()));
            } else {
                rows.push(Untrusted::new(row));
            }
        }
        if rows.len() > UNDRAINED_ROWS_MAX || taken.len() > UNDRAINED_ROWS_MAX {
            return Err(self.queue.bad_row(format!("more than {UNDRAINED_ROWS_MAX} rows are in the queue")));
        }
        Ok(Found { rows, progress: Vec::new(), taken })
    }

    /// Reads the statements of the sandbox about its progress, and leaves out those that are too long.
    fn progress(&self, tx: &Connection) -> Result<Vec<Progress>, Error> {
        let fault = |source| self.queue.fault(source);
        let mut statement = tx
            .prepare_cached(
                "SELECT message_id, status, status_changed FROM processing_ack ORDER BY status_changed DESC LIMIT ?1",
            )
            .map_err(fault)?;
        let mut found = statement.query([PROGRESS_ROWS_MAX as i64]).map_err(fault)?;
        let mut progress = Vec::new();
        while let Some(row) = found.next().map_err(fault)? {
            let read = || -> rusqlite::Result<Progress> {
                Ok(Progress { message: row.get(0)?, status: row.get(1)?, at: row.get(2)? })
            };
            let note = read().map_err(|error| self.malformed(error))?;
            if note.message.len() <= NAME_BYTES_MAX && note.status.len() <= NAME_BYTES_MAX {
                progress.push(note);
            }
        }
        Ok(progress)
    }

    /// Turns a stored type that a STRICT table cannot hold into an error about the row: the file was not written through SQLite.
    fn malformed(&self, error: rusqlite::Error) -> Error {
        match error {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => {
                self.queue.bad_row("a row holds a value of a type that its table does not allow")
            }
            other => self.queue.fault(other),
        }
    }

    fn check(&self, row: &RawRow) -> Result<(), Error> {
        if row.seq.is_multiple_of(2) || i64::try_from(row.seq).is_err() {
            return Err(self.queue.bad_row(format!("row number {} is not odd", row.seq)));
        }
        if row.turn.len() > NAME_BYTES_MAX || row.content.len() > ROW_BYTES_MAX {
            return Err(self.queue.bad_row(format!("row {} has a value over its limit", row.seq)));
        }
        Ok(())
    }
}

fn raw(row: &Row<'_>) -> rusqlite::Result<RawRow> {
    Ok(RawRow { seq: row.get::<_, i64>(0)? as u64, turn: row.get(1)?, content: row.get(2)? })
}

/// Reads the version number of the schema, which every change of the schema increments.
fn version(queue: &Queue) -> Result<i64, Error> {
    let read = || queue.db.prepare_cached("PRAGMA schema_version")?.query_row([], |row| row.get(0));
    read().map_err(|source| queue.fault(source))
}
