//! Turns and their calls. Tables: `turns`, `calls`.

use ironclaw_contract::ids::SessionId;
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;

/// Returns the ordinals of at most `most` closed turns that no row refers to, as a JSON array; `None` where there are none. The
/// newest turn stays, because the next one is numbered after it.
pub fn forgettable(tx: &ReadTx<'_>, most: i64) -> Result<Option<String>, Error> {
    let sql = "SELECT nullif(json_group_array(key), '[]') FROM \
               (SELECT t.ordinal AS key FROM sessions s JOIN turns t ON t.session_id = s.id \
               WHERE s.pruned_seq > 0 AND t.state = 'closed' AND t.ordinal < (SELECT max(ordinal) FROM turns) \
               AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.turn_id = t.id) \
               AND NOT EXISTS (SELECT 1 FROM deliveries WHERE deliveries.turn_id = t.id) \
               AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.turn_id = t.id) \
               AND NOT EXISTS (SELECT 1 FROM items WHERE items.turn_id = t.id) LIMIT ?1)";
    tx.get(sql, [most], |row| row.get(0))
}

/// Deletes the turns of no message among these ordinals, a JSON array, and tells how many they were.
pub fn forget(tx: &mut WriteTx<'_>, keys: &str) -> Result<usize, Error> {
    let sql = "DELETE FROM turns WHERE ordinal IN (SELECT value FROM json_each(?1)) \
               AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.turn_id = turns.id)";
    tx.execute(sql, [keys])
}

/// Deletes all turns of a session.
pub fn delete_of(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), Error> {
    tx.execute("DELETE FROM turns WHERE session_id = ?1", [session])?;
    Ok(())
}

/// Deletes the session's calls that are part of an output numbered up to `upto`.
pub fn delete_calls_upto(tx: &mut WriteTx<'_>, session: SessionId, upto: i64) -> Result<(), Error> {
    let sql = "DELETE FROM calls WHERE session_id = ?1 AND output_item IN (SELECT id FROM items WHERE session_id = ?1 AND seq <= ?2)";
    tx.execute(sql, params![session, upto])?;
    Ok(())
}

/// Deletes all calls of a session.
pub fn delete_calls_of(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), Error> {
    tx.execute("DELETE FROM calls WHERE session_id = ?1", [session])?;
    Ok(())
}
