//! The copies of the files that agents send. Tables: `sent_files`. Reads `deliveries`.

use crate::rows::rows;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{CallId, ItemId, SessionId};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;

rows! {
    /// The row of a copy, without its content.
    #[derive(Debug, Clone)]
    pub struct SentFileRow {
        /// The name under which the content is encrypted.
        pub item: ItemId,
        pub name: String,
        pub media_type: String,
        pub bytes: u64,
        /// The digest of its content.
        pub digest: Digest,
    }
}

/// Inserts the copy of a call with its encrypted content.
pub fn insert_file(
    tx: &mut WriteTx<'_>,
    call: CallId,
    session: SessionId,
    new: &SentFileRow,
    content: &[u8],
) -> Result<(), Error> {
    let sql = "INSERT INTO sent_files (call_id, session_id, item, name, media_type, bytes, digest, content) \
               VALUES (?1,?2,?3,?4,?5,?6,?7,?8)";
    let bytes = i64::try_from(new.bytes).unwrap_or(i64::MAX);
    tx.execute(sql, params![call, session, new.item, new.name, new.media_type, bytes, new.digest, content]).map(drop)
}

/// Returns the copy of a call.
pub fn find_file(tx: &ReadTx<'_>, call: CallId) -> Result<Option<SentFileRow>, Error> {
    let sql = "SELECT item, name, media_type, bytes, digest FROM sent_files WHERE call_id = ?1";
    tx.find(sql, [call], SentFileRow::read)
}

/// Returns the encrypted content of the copy of a call.
pub fn file_content(tx: &ReadTx<'_>, call: CallId) -> Result<Option<Vec<u8>>, Error> {
    tx.find("SELECT content FROM sent_files WHERE call_id = ?1", [call], |row| row.get("content"))
}

/// Returns the number of copies of a session whose delivery is not settled.
pub fn open_file_count(tx: &ReadTx<'_>, session: SessionId) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM sent_files WHERE session_id = ?1 AND NOT EXISTS (SELECT 1 FROM deliveries \
               WHERE deliveries.call_id = sent_files.call_id AND state IN ('received','dropped'))";
    tx.get(sql, [session], |row| row.get(0))
}

/// Deletes the oldest copies of a session whose delivery is settled, until at most `kept` copies are left or none of them is settled.
pub fn delete_oldest_files(tx: &mut WriteTx<'_>, session: SessionId, kept: u64) -> Result<(), Error> {
    let sql = "DELETE FROM sent_files WHERE call_id IN (SELECT f.call_id FROM sent_files f \
               JOIN deliveries d ON d.call_id = f.call_id WHERE f.session_id = ?1 AND d.state IN ('received','dropped') \
               ORDER BY f.rowid LIMIT max(0, (SELECT count(*) FROM sent_files WHERE session_id = ?1) - ?2))";
    tx.execute(sql, params![session, i64::try_from(kept).unwrap_or(i64::MAX)]).map(drop)
}

/// Deletes the copy of a call.
pub fn delete_file(tx: &mut WriteTx<'_>, call: CallId) -> Result<(), Error> {
    tx.execute("DELETE FROM sent_files WHERE call_id = ?1", [call]).map(drop)
}
