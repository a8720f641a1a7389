//! Sessions, the uids that are free again, and the events that channels sent. Tables: `sessions`, `uids_free`, `events`, `outbound_rows`.

/// Returns how many sessions are in each state, without those that were removed.
pub fn count_by_state(
    tx: &ironclaw_state::ReadTx<'_>,
) -> Result<std::collections::BTreeMap<String, u64>, ironclaw_state::Error> {
    let sql = "SELECT state, count(*) FROM sessions WHERE state <> 'removed' GROUP BY state";
    tx.list(sql, [], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))
}
