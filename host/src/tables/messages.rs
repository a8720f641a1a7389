//! Messages. Tables: `messages`.

use ironclaw_contract::ids::{MessageId, SessionId};
use ironclaw_contract::seam::message::Kind;
use ironclaw_state::{Error, ReadTx, WriteTx};

/// What the inbound queue of a session is told of a message, beside its item.
#[derive(Debug)]
pub struct Projected {
    /// What sort of message it is.
    pub kind: Kind,
    /// Milliseconds since the epoch.
    pub received_at: i64,
    /// The channel that it came on.
    pub channel: String,
    /// Its sender on that channel.
    pub sender: String,
    /// The person or other principal that the sender speaks for.
    pub principal: String,
}

/// Returns what the inbound queue is told of a message.
pub fn projected(tx: &ReadTx<'_>, id: MessageId) -> Result<Option<Projected>, Error> {
    let sql = "SELECT kind, received_at, channel, sender, principal FROM messages WHERE id = ?1";
    tx.find(sql, [id], |row| {
        Ok(Projected {
            kind: row.get("kind")?,
            received_at: row.get("received_at")?,
            channel: row.get("channel")?,
            sender: row.get("sender")?,
            principal: row.get("principal")?,
        })
    })
}

/// Returns the rowids of at most `most` answered messages whose item was dropped and whose turn has no delivery, as a JSON array;
/// `None` where there are none. One with an event id must also have been received before `events_from`. The newest message of
/// each sender in a session stays, because it names the person that the sender speaks for.
pub fn forgettable(tx: &ReadTx<'_>, events_from: i64, most: i64) -> Result<Option<String>, Error> {
    let sql = "SELECT nullif(json_group_array(key), '[]') FROM \
               (SELECT m.rowid AS key FROM sessions s JOIN messages m ON m.session_id = s.id \
               WHERE m.seq <= s.pruned_seq AND m.status IN ('completed','delivered') \
               AND (m.event_id IS NULL OR m.received_at < ?1) \
               AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.turn_id = m.turn_id) \
               AND m.rowid NOT IN (SELECT max(rowid) FROM messages GROUP BY session_id, sender, principal) LIMIT ?2)";
    tx.get(sql, [events_from, most], |row| row.get(0))
}

/// Deletes the answered messages among these rowids, a JSON array, and tells how many they were.
pub fn forget(tx: &mut WriteTx<'_>, keys: &str) -> Result<usize, Error> {
    let sql =
        "DELETE FROM messages WHERE status IN ('completed','delivered') AND rowid IN (SELECT value FROM json_each(?1))";
    tx.execute(sql, [keys])
}

/// Deletes all messages of a session.
pub fn delete_of(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), Error> {
    tx.execute("DELETE FROM messages WHERE session_id = ?1", [session])?;
    Ok(())
}
