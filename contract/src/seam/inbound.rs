//! Both sides of the inbound queue: the host writes a projection of its record into it, and the sandbox reads it.
//!
//! The side of the sandbox opens read-only and cannot write. The host never reads the queue back. See [`crate::seam::outbound`].

use super::crypt::{Access, Error, Queue, SessionKey};
use super::message::{Kind, Span};
use super::schema;
use super::seal::Ref;
use crate::canonical;
use crate::ids::{MessageId, SessionId, TurnId};
use rusqlite::{Row, params};
use std::path::Path;

/// A row of `messages_in`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageIn {
    /// The message.
    pub id: MessageId,
    /// Its even number.
    pub seq: u64,
    /// The kind of the message.
    pub kind: Kind,
    /// The time at which the host recorded it, milliseconds since the epoch.
    pub timestamp: i64,
    /// Address on its channel.
    pub platform_id: Option<String>,
    /// Its channel.
    pub channel_type: Option<String>,
    /// Thread on its channel.
    pub thread_id: Option<String>,
    /// Its text.
    pub content: String,
    /// The session that sent it, for a message of an agent.
    pub source_session_id: Option<SessionId>,
    /// True if the host received it before the session woke.
    pub on_wake: bool,
    /// True for a message of the turn, false for context.
    pub trigger: bool,
    /// Full identity of the sender, `channel:id`.
    pub sender: String,
    /// The person on whose behalf it is, or `host`.
    pub principal: String,
    /// The authors of its parts.
    pub spans: Vec<Span>,
    /// The number of agents that it passed through.
    pub hop: u32,
    /// Its seal.
    pub seal: Ref,
}

/// A row of `turns`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The turn.
    pub turn: TurnId,
    /// The messages that it answers.
    pub messages: Vec<MessageId>,
    /// The time at which it ends at the latest, milliseconds since the epoch.
    pub deadline: i64,
    /// True if it is open.
    pub open: bool,
}

/// The row of `session_routing`: the address for replies, and the cursor of the outbound queue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routing {
    /// Channel of the session's origin.
    pub channel_type: String,
    /// Address of the session's origin.
    pub platform_id: String,
    /// Thread of the session's origin.
    pub thread_id: Option<String>,
    /// The number of the last outbound row that the host took; rows up to it may be deleted.
    pub outbound_cursor: u64,
}

/// The side of the host, which writes.
pub struct InboundWriter(Queue);

/// One transaction of the host. The sandbox sees nothing of it before the commit.
pub struct Projection<'a> {
    tx: rusqlite::Transaction<'a>,
}

impl InboundWriter {
    /// Opens read-write, recovers the journal of a writer that died, and makes a missing file.
    ///
    /// # Errors
    /// [`Error`], for a file that is not the inbound queue of this session.
    pub fn open(path: &Path, key: &SessionKey) -> Result<Self, Error> {
        Queue::open(path, key, Access::InboundWrite, schema::INBOUND).map(Self)
    }

    /// Runs `write` in one transaction, and rolls back if it fails.
    pub fn project<T>(&mut self, write: impl FnOnce(&Projection<'_>) -> rusqlite::Result<T>) -> Result<T, Error> {
        let result = (|| {
            let tx = self.0.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let projection = Projection { tx };
            let value = write(&projection)?;
            projection.tx.commit()?;
            Ok(value)
        })();
        result.map_err(|source| self.0.fault(source))
    }
}

impl Projection<'_> {
    /// Adds a message, or leaves an existing one unchanged.
    pub fn message(&self, message: &MessageIn) -> rusqlite::Result<()> {
        self.tx
            .prepare_cached(
                "INSERT OR IGNORE INTO messages_in (id, seq, kind, timestamp, platform_id, channel_type, thread_id, content, \
                 source_session_id, on_wake, trigger, sender, principal, spans, hop, seal) \
                 VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)",
            )?
            .execute(params![
                message.id.to_string(),
                message.seq as i64,
                message.kind.name(),
                message.timestamp,
                message.platform_id,
                message.channel_type,
                message.thread_id,
                message.content,
                message.source_session_id.map(|id| id.to_string()),
                message.on_wake,
                message.trigger,
                message.sender,
                message.principal,
                canonical::to_string(&message.spans),
                message.hop,
                canonical::to_string(&message.seal),
            ])
            .map(drop)
    }

    /// Adds a turn, or updates its state.
    pub fn turn(&self, turn: &Turn) -> rusqlite::Result<()> {
        self.tx
            .prepare_cached(
                "INSERT INTO turns (turn, messages, deadline, state) VALUES (?1,?2,?3,?4) \
                 ON CONFLICT (turn) DO UPDATE SET state = excluded.state, deadline = excluded.deadline",
            )?
            .execute(params![
                turn.turn.to_string(),
                canonical::to_string(&turn.messages),
                turn.deadline,
                if turn.open { "open" } else { "closed" },
            ])
            .map(drop)
    }

    /// Removes all turns, messages and receipts. The host projects the needed ones anew; its record keeps all of them.
    pub fn clear(&self) -> rusqlite::Result<()> {
        for table in ["turns", "messages_in", "delivered"] {
            // Row by row: without a condition, SQLite would also write the pages of an empty table.
            self.tx.prepare_cached(&format!("DELETE FROM {table} WHERE true"))?.execute([])?;
        }
        Ok(())
    }

    /// Sets the address for replies and the cursor of the outbound queue.
    pub fn routing(&self, routing: &Routing) -> rusqlite::Result<()> {
        self.tx
            .prepare_cached(
                "INSERT INTO session_routing (id, channel_type, platform_id, thread_id, outbound_cursor) VALUES (1,?1,?2,?3,?4) \
                 ON CONFLICT (id) DO UPDATE SET channel_type = excluded.channel_type, platform_id = excluded.platform_id, \
                 thread_id = excluded.thread_id, outbound_cursor = excluded.outbound_cursor",
            )?
            .execute(params![routing.channel_type, routing.platform_id, routing.thread_id, routing.outbound_cursor as i64])
            .map(drop)
    }

    /// Records the receipt of the delivery that an outbound row caused.
    pub fn delivered(&self, message_out_id: &MessageId, status: &str, at: i64) -> rusqlite::Result<()> {
        self.tx
            .prepare_cached(
                "INSERT INTO delivered (message_out_id, status, delivered_at) VALUES (?1,?2,?3) \
                 ON CONFLICT (message_out_id) DO UPDATE SET status = excluded.status, delivered_at = excluded.delivered_at",
            )?
            .execute(params![message_out_id.to_string(), status, at])
            .map(drop)
    }
}

/// The side of the sandbox, which reads.
pub struct InboundReader(Queue);

impl InboundReader {
    /// Opens read-only.
    ///
    /// # Errors
    /// Those of [`InboundWriter::open`], and [`Error::Missing`] for a missing file.
    pub fn open(path: &Path, key: &SessionKey) -> Result<Self, Error> {
        Queue::open(path, key, Access::InboundRead, schema::INBOUND).map(Self)
    }

    /// Reads the open turn, if there is one.
    pub fn open_turn(&self) -> Result<Option<Turn>, Error> {
        let mut turns =
            self.rows("SELECT turn, messages, deadline FROM turns WHERE state = 'open' LIMIT 1", [], |row| {
                Ok(Turn { turn: text(row, 0)?, messages: json(row, 1)?, deadline: row.get(2)?, open: true })
            })?;
        Ok(turns.pop())
    }

    /// Reads at most `limit` messages with numbers above `after_seq`, the oldest first.
    pub fn messages(&self, after_seq: u64, limit: usize) -> Result<Vec<MessageIn>, Error> {
        self.rows(
            "SELECT id, seq, kind, timestamp, platform_id, channel_type, thread_id, content, source_session_id, on_wake, trigger, \
             sender, principal, spans, hop, seal FROM messages_in WHERE seq > ?1 ORDER BY seq LIMIT ?2",
            [after_seq as i64, limit as i64],
            |row| {
                Ok(MessageIn {
                    id: text(row, 0)?,
                    seq: row.get::<_, i64>(1)? as u64,
                    kind: text(row, 2)?,
                    timestamp: row.get(3)?,
                    platform_id: row.get(4)?,
                    channel_type: row.get(5)?,
                    thread_id: row.get(6)?,
                    content: row.get(7)?,
                    source_session_id: row.get::<_, Option<String>>(8)?.map(|id| parsed(8, &id)).transpose()?,
                    on_wake: row.get(9)?,
                    trigger: row.get(10)?,
                    sender: row.get(11)?,
                    principal: row.get(12)?,
                    spans: json(row, 13)?,
                    hop: row.get(14)?,
                    seal: json(row, 15)?,
                })
            },
        )
    }

    /// Reads the address for replies and the cursor of the outbound queue.
    pub fn routing(&self) -> Result<Option<Routing>, Error> {
        let mut rows = self.rows(
            "SELECT channel_type, platform_id, thread_id, outbound_cursor FROM session_routing",
            [],
            |row| {
                Ok(Routing {
                    channel_type: row.get(0)?,
                    platform_id: row.get(1)?,
                    thread_id: row.get(2)?,
                    outbound_cursor: row.get::<_, i64>(3)? as u64,
                })
            },
        )?;
        Ok(rows.pop())
    }

    /// Reads status and time of the receipt of an outbound row, if there is one.
    pub fn delivered(&self, message_out_id: &MessageId) -> Result<Option<(String, i64)>, Error> {
        let id = message_out_id.to_string();
        let mut rows =
            self.rows("SELECT status, delivered_at FROM delivered WHERE message_out_id = ?1", [id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        Ok(rows.pop())
    }

    fn rows<T, P: rusqlite::Params>(
        &self,
        sql: &str,
        params: P,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        let collect = || self.0.db.prepare_cached(sql)?.query_map(params, read)?.collect();
        let rows: rusqlite::Result<Vec<T>> = collect();
        rows.map_err(|source| self.0.fault(source))
    }
}

pub(super) fn parsed<T: std::str::FromStr>(column: usize, text: &str) -> rusqlite::Result<T>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let wrong = |error| rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error));
    text.parse().map_err(wrong)
}

fn text<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    parsed(column, row.get_ref(column)?.as_str()?)
}

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let wrong = |error| rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error));
    serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(wrong)
}
