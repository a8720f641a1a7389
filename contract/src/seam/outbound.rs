//! Both sides of the outbound queue: the sandbox appends rows, and the jailed reader of the host reads them.
//!
//! Never trusts the queue: the reader returns bounded, raw rows, and the host judges them. See [`crate::seam::action`].

use super::crypt::{Access, Error, Queue, SessionKey};
use super::limits::{NAME_BYTES_MAX, PROGRESS_ROWS_MAX, ROW_BYTES_MAX, UNDRAINED_ROWS_MAX};
use super::message::{Kind, Status};
use super::schema;
use super::untrusted::Untrusted;
use crate::canonical::{self, Digest};
use crate::ids::{CallId, ItemId, MessageId, TurnId};
use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};

/// The content of a row of kind `chat`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Chat {
    /// This sealed output is the answer of the turn.
    Reply(ItemId),
    /// The turn ends without an answer.
    End(EndReason),
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
    /// The row's id.
    pub id: MessageId,
    /// The message that it answers, if any.
    pub in_reply_to: Option<MessageId>,
    /// Milliseconds since the epoch, by the clock of the sandbox.
    pub timestamp: i64,
    /// `chat` or `system`.
    pub kind: Kind,
    /// Address, copied from the routing.
    pub platform_id: Option<String>,
    /// Channel, copied from the routing.
    pub channel_type: Option<String>,
    /// Thread, copied from the routing.
    pub thread_id: Option<String>,
    /// [`Chat`] or an action, as JSON.
    pub content: String,
    /// The open turn.
    pub turn: TurnId,
    /// The recorded call, for an action or a send.
    pub call_id: Option<CallId>,
}

/// A row exactly as the sandbox wrote it, with bounded sizes and no other check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRow {
    /// `messages_out.id`
    pub id: String,
    /// `messages_out.seq`, odd.
    pub seq: u64,
    /// `messages_out.in_reply_to`
    pub in_reply_to: Option<String>,
    /// `messages_out.timestamp`
    pub timestamp: i64,
    /// `messages_out.kind`
    pub kind: String,
    /// `messages_out.platform_id`
    pub platform_id: Option<String>,
    /// `messages_out.channel_type`
    pub channel_type: Option<String>,
    /// `messages_out.thread_id`
    pub thread_id: Option<String>,
    /// `messages_out.content`
    pub content: String,
    /// `messages_out.turn`
    pub turn: String,
    /// `messages_out.call_id`
    pub call_id: Option<String>,
}

impl RawRow {
    /// Computes the digest over all fields, which detects a change of the row.
    pub fn digest(&self) -> Digest {
        Digest::of(&canonical::to_vec(self))
    }
}

/// A statement of a sandbox about its progress. `why` shows it; it has no authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// The id of a message, or a key of the session state.
    pub key: String,
    /// A status, or a value.
    pub value: String,
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

    /// Appends a row durably and returns its number. The INSERT makes the number: odd, above all earlier ones and above `cursor`.
    /// Of the statuses of messages it keeps the newest, at most half of [`PROGRESS_ROWS_MAX`].
    pub fn append(&mut self, row: &NewRow, cursor: u64) -> Result<u64, Error> {
        let append = || -> rusqlite::Result<i64> {
            let tx = self.0.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            tx.prepare_cached("DELETE FROM messages_out WHERE seq <= ?1")?.execute([cursor as i64])?;
            let seq = tx
                .prepare_cached(
                    "INSERT INTO messages_out (id, seq, in_reply_to, timestamp, kind, platform_id, channel_type, thread_id, content, turn, call_id) \
                     SELECT ?1, (max(coalesce((SELECT max(seq) FROM messages_out), 0), ?2) + 1) | 1, ?3,?4,?5,?6,?7,?8,?9,?10,?11 RETURNING seq",
                )?
                .query_row(
                    params![
                        row.id.to_string(),
                        cursor as i64,
                        row.in_reply_to.map(|id| id.to_string()),
                        row.timestamp,
                        row.kind.name(),
                        row.platform_id,
                        row.channel_type,
                        row.thread_id,
                        row.content,
                        row.turn.to_string(),
                        row.call_id.map(|id| id.to_string()),
                    ],
                    |row| row.get(0),
                )?;
            if let Some(message) = row.in_reply_to {
                tx.prepare_cached(
                    "INSERT INTO processing_ack (message_id, status, status_changed) VALUES (?1,?2,?3) \
                     ON CONFLICT (message_id) DO UPDATE SET status = excluded.status, status_changed = excluded.status_changed",
                )?
                .execute(params![message.to_string(), Status::Completed.name(), row.timestamp])?;
                keep_newest_statuses(&tx)?;
            }
            tx.commit()?;
            Ok(seq)
        };
        let mut append = append;
        let seq = append();
        seq.map(|seq| seq as u64).map_err(|source| self.0.fault(source))
    }

    /// Records the status of a message and one value of the session state, in one transaction. Of the statuses it keeps the newest,
    /// at most half of [`PROGRESS_ROWS_MAX`].
    pub fn progress(&mut self, message: &MessageId, status: Status, state: (&str, &str), at: i64) -> Result<(), Error> {
        let mut note = || -> rusqlite::Result<()> {
            let tx = self.0.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            tx.execute(
                "INSERT INTO processing_ack (message_id, status, status_changed) VALUES (?1,?2,?3) \
                 ON CONFLICT (message_id) DO UPDATE SET status = excluded.status, status_changed = excluded.status_changed",
                params![message.to_string(), status.name(), at],
            )?;
            keep_newest_statuses(&tx)?;
            tx.execute(
                "INSERT INTO session_state (key, value, updated_at) VALUES (?1,?2,?3) \
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
                params![state.0, state.1, at],
            )?;
            tx.commit()
        };
        let noted = note();
        noted.map_err(|source| self.0.fault(source))
    }
}

/// Deletes the statuses of messages that no look reads. A look sorts all of them.
fn keep_newest_statuses(tx: &Connection) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "DELETE FROM processing_ack WHERE message_id NOT IN (SELECT message_id FROM processing_ack ORDER BY status_changed DESC LIMIT ?1)",
    )?
    .execute([PROGRESS_ROWS_MAX as i64 / 2])?;
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
        let mut statement = tx
            .prepare_cached(
                "SELECT id, seq, in_reply_to, timestamp, kind, platform_id, channel_type, thread_id, content, turn, call_id \
                 FROM messages_out ORDER BY seq LIMIT ?1",
            )
            .map_err(fault)?;
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
        let mut progress = Vec::new();
        for sql in [
            "SELECT message_id, status, status_changed FROM processing_ack ORDER BY status_changed DESC LIMIT ?1",
            "SELECT key, value, updated_at FROM session_state ORDER BY updated_at DESC LIMIT ?1",
        ] {
            let mut statement = tx.prepare_cached(sql).map_err(fault)?;
            let mut found = statement.query([PROGRESS_ROWS_MAX as i64 / 2]).map_err(fault)?;
            while let Some(row) = found.next().map_err(fault)? {
                let read = || -> rusqlite::Result<Progress> {
                    Ok(Progress { key: row.get(0)?, value: row.get(1)?, at: row.get(2)? })
                };
                let note = read().map_err(|error| self.malformed(error))?;
                if note.key.len() <= NAME_BYTES_MAX && note.value.len() <= NAME_BYTES_MAX {
                    progress.push(note);
                }
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
        let names = [&row.in_reply_to, &row.platform_id, &row.channel_type, &row.thread_id, &row.call_id];
        let short = row.id.len() <= NAME_BYTES_MAX
            && row.kind.len() <= NAME_BYTES_MAX
            && row.turn.len() <= NAME_BYTES_MAX
            && names.into_iter().flatten().all(|name| name.len() <= NAME_BYTES_MAX);
        if !short || row.content.len() > ROW_BYTES_MAX {
            return Err(self.queue.bad_row(format!("row {} has a value over its limit", row.seq)));
        }
        Ok(())
    }
}

fn raw(row: &Row<'_>) -> rusqlite::Result<RawRow> {
    Ok(RawRow {
        id: row.get(0)?,
        seq: row.get::<_, i64>(1)? as u64,
        in_reply_to: row.get(2)?,
        timestamp: row.get(3)?,
        kind: row.get(4)?,
        platform_id: row.get(5)?,
        channel_type: row.get(6)?,
        thread_id: row.get(7)?,
        content: row.get(8)?,
        turn: row.get(9)?,
        call_id: row.get(10)?,
    })
}

/// Reads the version number of the schema, which every change of the schema increments.
fn version(queue: &Queue) -> Result<i64, Error> {
    let read = || queue.db.prepare_cached("PRAGMA schema_version")?.query_row([], |row| row.get(0));
    read().map_err(|source| queue.fault(source))
}
