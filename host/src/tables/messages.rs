//! Messages. Tables: `messages`.

/// Returns how many messages of all sessions wait or are worked on.
pub fn unfinished_count(tx: &ironclaw_state::ReadTx<'_>) -> Result<u64, ironclaw_state::Error> {
    let sql = "SELECT count(*) FROM messages WHERE status IN ('queued','processing')";
    tx.get(sql, [], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
}
