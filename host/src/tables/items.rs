//! Items of conversations, and summaries. Tables: `items`, `summaries`.

use ironclaw_contract::ids::ItemId;
use ironclaw_state::{Error, ReadTx};

/// Returns the state of the delivery of an item; `None` if it was not meant for a person.
pub fn delivery_state(tx: &ReadTx<'_>, item: ItemId) -> Result<Option<String>, Error> {
    let sql = "SELECT deliveries.state FROM items JOIN deliveries ON deliveries.turn_id IS items.turn_id AND deliveries.item = items.id \
               WHERE items.id = ?1";
    tx.find(sql, [item], |row| row.get(0))
}
