//! Which packages an agent has.
//!
//! Never looks at the layer itself. Next: `crate::packages`, which makes it.

use crate::state::{self, Tx, stored};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::AgentId;
use rusqlite::OptionalExtension;

/// The layer of one agent, if it has one.
pub fn layer_of(tx: &Tx<'_>, agent: AgentId) -> Result<Option<Digest>, state::Error> {
    let mut statement = tx.db().prepare_cached("SELECT layer FROM agent_packages WHERE agent_id = ?1")?;
    Ok(statement.query_row([agent.to_string()], |row| stored(row, "layer")).optional()?)
}
