//! Deliveries. Tables: `deliveries`.

use ironclaw_contract::ids::SessionId;
use ironclaw_state::{Error, ReadTx, WriteTx};

/// Returns the rowids of at most `most` settled deliveries whose answer was dropped, as a JSON array; `None` where there are none.
pub fn forgettable(tx: &ReadTx<'_>, most: i64) -> Result<Option<String>, Error> {
    let sql = "SELECT nullif(json_group_array(key), '[]') FROM \
               (SELECT d.rowid AS key FROM sessions s JOIN deliveries d ON d.session_id = s.id \
               WHERE s.pruned_seq > 0 AND d.state IN ('received','dropped') \
               AND NOT EXISTS (SELECT 1 FROM items WHERE items.id = d.item) LIMIT ?1)";
    tx.get(sql, [most], |row| row.get(0))
}

/// Deletes the settled deliveries among these rowids, a JSON array, and tells how many they were.
pub fn forget(tx: &mut WriteTx<'_>, keys: &str) -> Result<usize, Error> {
    let sql =
        "DELETE FROM deliveries WHERE state IN ('received','dropped') AND rowid IN (SELECT value FROM json_each(?1))";
    tx.execute(sql, [keys])
}

/// Deletes all deliveries of a session.
pub fn delete_of(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), Error> {
    tx.execute("DELETE FROM deliveries WHERE session_id = ?1", [session])?;
    Ok(())
}
