//! Deliveries. Tables: `deliveries`.

use ironclaw_contract::ids::{ItemId, TurnId};
use ironclaw_state::{Error, ReadTx};
use rusqlite::params;

/// Returns how many deliveries that have not arrived for certain are in each state.
pub fn unsettled_count_by_state(tx: &ReadTx<'_>) -> Result<std::collections::BTreeMap<String, u64>, Error> {
    tx.list(
        "SELECT state, count(*) FROM deliveries WHERE state IN ('intent','sending') GROUP BY state UNION ALL \
         SELECT state, count(*) FROM deliveries WHERE state IN ('unknown','dead') GROUP BY state",
        [],
        |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())),
    )
}

/// Returns whether this item was delivered, or is about to be, for this turn.
pub fn is_of_turn(tx: &ReadTx<'_>, turn: TurnId, item: ItemId) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM deliveries WHERE turn_id = ?1 AND item = ?2)";
    tx.get(sql, params![turn, item], |row| row.get(0))
}
