//! Sessions, the uids that are free again, and the events that channels sent. Tables: `sessions`, `uids_free`, `events`, `outbound_rows`.

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
