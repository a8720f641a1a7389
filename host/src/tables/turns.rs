//! Turns and their calls. Tables: `turns`, `calls`.

/// Returns the id of the turn of a session that is open.
pub fn open_id(
    tx: &ironclaw_state::ReadTx<'_>,
    session: ironclaw_contract::ids::SessionId,
) -> Result<Option<ironclaw_contract::ids::TurnId>, ironclaw_state::Error> {
    let sql = "SELECT id FROM turns WHERE session_id = ?1 AND state = 'open'";
    tx.find(sql, [session], |row| row.get(0))
}

/// Returns how many turns are open.
pub fn open_count(tx: &ironclaw_state::ReadTx<'_>) -> Result<u64, ironclaw_state::Error> {
    let sql = "SELECT count(*) FROM turns WHERE state = 'open'";
    tx.get(sql, [], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
}
