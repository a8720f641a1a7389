//! Both sides of the inbound queue: the host writes a projection of its record into it, and the sandbox reads it.
//!
//! The side of the sandbox opens read-only and cannot write. The host never reads the queue back. See [`crate::seam::outbound`].

use super::crypt::{Access, Error, Queue, SessionKey};
use super::schema;
use super::seal::Ref;
use crate::canonical;
use crate::ids::{MessageId, TurnId};
use rusqlite::{Row, Transaction, TransactionBehavior, params};
use std::path::Path;

/// A row of `messages_in`: a message without its text. Its number is that of the ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageIn {
    /// The number of bytes of its text.
    pub bytes: u64,
    /// The ref that names it.
    pub seal: Ref,
}

/// The row of `turns`: the newest turn. The host does not project its end: a sandbox whose turn the host ends is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The turn.
    pub turn: TurnId,
    /// The messages that it answers.
    pub messages: Vec<MessageId>,
    /// The time at which it ends at the latest, milliseconds since the epoch.
    pub deadline: i64,
    /// The number of the last outbound row that the host took when it opened the turn; rows up to it may be deleted.
    pub cursor: u64,
}

/// The side of the host, which writes. The sandbox sees nothing of a change before its commit.
pub struct InboundWriter(Queue);

impl InboundWriter {
    /// Opens read-write, recovers the journal of a writer that died, and makes a missing file.
    ///
    /// # Errors
    /// [`Error`], for a file that is not the inbound queue of this session.
    pub fn open(path: &Path, key: &SessionKey) -> Result<Self, Error> {
        Queue::open(path, key, Access::InboundWrite, schema::INBOUND).map(Self)
    }

    /// Replaces the content of the queue by this turn with its messages and those of its context.
    pub fn open_turn(&mut self, turn: &Turn, messages: &[MessageIn]) -> Result<(), Error> {
        self.write(|tx| {
            clear(tx)?;
            let mut insert = tx.prepare_cached("INSERT INTO messages_in (seq, bytes, seal) VALUES (?1,?2,?3)")?;
            for MessageIn { bytes, seal } in messages {
                insert.execute(params![seal.seq as i64, *bytes as i64, canonical::to_string(seal)])?;
            }
            tx.prepare_cached("INSERT INTO turns (turn, messages, deadline, cursor) VALUES (?1,?2,?3,?4)")?
                .execute(params![
                    turn.turn.to_string(),
                    canonical::to_string(&turn.messages),
                    turn.deadline,
                    turn.cursor as i64
                ])
                .map(drop)
        })
    }

    /// Moves the deadline of the open turn.
    pub fn move_deadline(&mut self, deadline: i64) -> Result<(), Error> {
        self.write(|tx| tx.prepare_cached("UPDATE turns SET deadline = ?1")?.execute([deadline]).map(drop))
    }

    /// Removes the turn and all messages. The host projects the needed ones anew; its record keeps all of them.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.write(clear)
    }

    fn write(&mut self, write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>) -> Result<(), Error> {
        let written = (|| {
            let tx = self.0.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            write(&tx)?;
            tx.commit()
        })();
        written.map_err(|source| self.0.fault(source))
    }
}

fn clear(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    for table in ["turns", "messages_in"] {
        // Row by row: without a condition, SQLite would also write the pages of an empty table.
        tx.prepare_cached(&format!("DELETE FROM {table} WHERE true"))?.execute([])?;
    }
    Ok(())
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

    /// Reads the newest turn, if the host opened one in this launch.
    pub fn open_turn(&self) -> Result<Option<Turn>, Error> {
        let mut turns = self.rows("SELECT turn, messages, deadline, cursor FROM turns LIMIT 1", |row| {
            Ok(Turn {
                turn: text(row, 0)?,
                messages: json(row, 1)?,
                deadline: row.get(2)?,
                cursor: row.get::<_, i64>(3)? as u64,
            })
        })?;
        Ok(turns.pop())
    }

    /// Reads all messages, in the order of their numbers.
    pub fn messages(&self) -> Result<Vec<MessageIn>, Error> {
        self.rows("SELECT bytes, seal FROM messages_in ORDER BY seq", |row| {
            Ok(MessageIn { bytes: row.get::<_, i64>(0)? as u64, seal: json(row, 1)? })
        })
    }

    fn rows<T>(&self, sql: &str, read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>) -> Result<Vec<T>, Error> {
        let collect = || self.0.db.prepare_cached(sql)?.query_map([], read)?.collect();
        let rows: rusqlite::Result<Vec<T>> = collect();
        rows.map_err(|source| self.0.fault(source))
    }
}

fn text<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    row.get_ref(column)?.as_str()?.parse().map_err(|error| malformed(column, error))
}

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|error| malformed(column, error))
}

fn malformed(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}
