//! Sessions, the uids that are free again, and the events that channels sent. Tables: `sessions`, `uids_free`, `events`, `outbound_rows`.

use ironclaw_contract::ids::PersonId;
use ironclaw_state::{Error, ReadTx};

/// Returns how many conversations of a person are not removed.
pub fn count_of_person(tx: &ReadTx<'_>, person: PersonId) -> Result<u64, Error> {
    // `state <> …` is the condition of the index, without which every row would be read.
    let sql = "SELECT count(*) FROM sessions WHERE person_id = ?1 AND state <> 'removed'";
    Ok(tx.get(sql, [person], |row| row.get::<_, i64>(0))?.unsigned_abs())
}

/// Returns how many conversations on a channel are not removed.
pub fn count_on_channel(tx: &ReadTx<'_>, channel: &str) -> Result<u64, Error> {
    // `state <> …` is the condition of the index, as above.
    let sql = "SELECT count(*) FROM sessions WHERE channel = ?1 AND state <> 'removed'";
    Ok(tx.get(sql, [channel], |row| row.get::<_, i64>(0))?.unsigned_abs())
}

/// Returns the bytes of all items in the conversations of a person that are not removed.
pub fn bytes_of_person(tx: &ReadTx<'_>, person: PersonId) -> Result<u64, Error> {
    // `state <> …` is the condition of the index, as above.
    let sql = "SELECT coalesce(sum(item_bytes), 0) FROM sessions WHERE person_id = ?1 AND state <> 'removed'";
    Ok(tx.get(sql, [person], |row| row.get::<_, i64>(0))?.unsigned_abs())
}

/// Returns how many sessions are in each state, without those that were removed.
pub fn count_by_state(
    tx: &ironclaw_state::ReadTx<'_>,
) -> Result<std::collections::BTreeMap<String, u64>, ironclaw_state::Error> {
    let sql = "SELECT state, count(*) FROM sessions WHERE state <> 'removed' GROUP BY state";
    tx.list(sql, [], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))
}

/// Marks the sessions of an agent that can write to a granted directory: files there may belong to their uids.
/// Reads the grants, so it is called before they go.
pub fn mark_uids_shared(
    tx: &mut ironclaw_state::WriteTx<'_>,
    agent: ironclaw_contract::ids::AgentId,
) -> Result<(), ironclaw_state::Error> {
    let sql = "UPDATE sessions SET uid_shared = 1 WHERE agent_id = ?1 \
               AND EXISTS (SELECT 1 FROM agent_mounts WHERE agent_id = ?1 AND read_only = 0)";
    tx.execute(sql, [agent])?;
    Ok(())
}
