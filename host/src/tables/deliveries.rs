//! Deliveries. Tables: `deliveries`.

use ironclaw_contract::ids::{ItemId, TurnId};
use ironclaw_state::{Error, ReadTx};
use rusqlite::params;

/// Returns whether this item was delivered, or is about to be, for this turn.
pub fn is_of_turn(tx: &ReadTx<'_>, turn: TurnId, item: ItemId) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM deliveries WHERE turn_id = ?1 AND item = ?2)";
    tx.get(sql, params![turn, item], |row| row.get(0))
}
