//! Replies on this host that no client of their person got.

use super::Delivery;
use crate::rows::rows;
use ironclaw_contract::ids::{AgentId, DeliveryId, PersonId, SessionId, TurnId};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;

/// Deliveries in a block; the size is a part of the schema. The unseen ones of a complete block are in an index; the newer ones are found by their number. So a reply that
/// is read soon changes no index.
pub const UNSEEN_BLOCK: i64 = 256;

/// Adds the unseen deliveries of a block to the index, if this delivery is the last of its block.
pub(super) fn record_inserted(tx: &mut WriteTx<'_>, number: i64) -> Result<(), Error> {
    if number % UNSEEN_BLOCK == 0 {
        let sql = "UPDATE deliveries SET unseen = 1 WHERE rowid > ?1 AND rowid <= ?2 AND over_network = 0 AND seen_at IS NULL";
        tx.execute(sql, [number - UNSEEN_BLOCK, number])?;
    }
    Ok(())
}

/// Returns the condition for replies in conversations of the person `?1` on this host that no client of theirs got.
fn is_unseen() -> String {
    format!(
        "deliveries.rowid IN (SELECT deliveries.rowid FROM sessions CROSS JOIN deliveries ON session_id = sessions.id \
                      WHERE sessions.person_id = ?1 AND sessions.state <> 'removed' AND unseen = 1 UNION \
                      SELECT rowid FROM deliveries WHERE rowid > (SELECT max(rowid) / {UNSEEN_BLOCK} * {UNSEEN_BLOCK} FROM deliveries)) \
                      AND sessions.person_id = ?1 AND sessions.state <> 'removed' AND deliveries.over_network = 0 \
                      AND deliveries.state = 'received' AND deliveries.seen_at IS NULL AND EXISTS (SELECT 1 FROM identities \
                      WHERE identities.channel = sessions.channel AND identities.sender = sessions.platform_id \
                      AND identities.person_id = ?1)"
    )
}

rows! {
    /// The unseen replies of one session.
    #[derive(Debug, Clone)]
    pub struct Unseen {
        pub session: SessionId = "session_id",
        /// Their number.
        pub count: u64,
        /// The time of the newest one, milliseconds since the epoch.
        pub newest_at: i64,
    }
}

/// Returns the number of a person's unseen replies for each session that has some.
pub fn unseen_by_session(tx: &ReadTx<'_>, person: PersonId) -> Result<Vec<Unseen>, Error> {
    let is_unseen = is_unseen();
    let sql = format!(
        "SELECT session_id, count(*) AS count, max(deliveries.created_at) AS newest_at FROM deliveries \
         CROSS JOIN sessions ON sessions.id = session_id WHERE {is_unseen} GROUP BY session_id ORDER BY newest_at"
    );
    tx.list(&sql, [person], Unseen::read)
}

/// Returns at most `limit` unseen replies of an agent to a person, oldest first.
pub fn unseen(tx: &ReadTx<'_>, person: PersonId, agent: AgentId, limit: usize) -> Result<Vec<Delivery>, Error> {
    let is_unseen = is_unseen();
    let sql = format!(
        "SELECT deliveries.* FROM deliveries CROSS JOIN sessions ON sessions.id = session_id \
         WHERE {is_unseen} AND agent_id = ?2 ORDER BY deliveries.rowid LIMIT ?3"
    );
    tx.list(&sql, params![person, agent, limit as i64], Delivery::read)
}

/// Records that the person got a reply.
pub fn mark_seen(tx: &mut WriteTx<'_>, id: DeliveryId, at: i64) -> Result<(), Error> {
    tx.execute("UPDATE deliveries SET seen_at = ?2, unseen = NULL WHERE id = ?1", params![id, at]).map(drop)
}

/// Records that the person got the reply of a turn.
pub fn mark_seen_of_turn(tx: &mut WriteTx<'_>, turn: TurnId, at: i64) -> Result<(), Error> {
    let sql = "UPDATE deliveries SET seen_at = ?2, unseen = NULL \
               WHERE id IN (SELECT value FROM turns, json_each(delivery_ids) WHERE turns.id = ?1) \
               AND state = 'received' AND seen_at IS NULL";
    tx.execute(sql, params![turn, at]).map(drop)
}
