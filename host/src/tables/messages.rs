//! Messages. Tables: `messages`.

use ironclaw_contract::ids::TurnId;
use ironclaw_state::{Error, WriteTx};

/// Marks the completed messages that a turn answered as delivered.
pub fn mark_delivered(tx: &mut WriteTx<'_>, turn: TurnId) -> Result<(), Error> {
    tx.execute("UPDATE messages SET status = 'delivered' WHERE turn_id = ?1 AND status = 'completed'", [turn])?;
    Ok(())
}
