//! Agents, and what each of them has: roles, software, directories. Tables: `agents`, `agent_roles`, `agent_packages`, `agent_mounts`.

use ironclaw_contract::ids::AgentId;
use ironclaw_state::{Error, WriteTx};
use rusqlite::params;

/// Sets the model endpoint of an agent, and whether it goes over to another one when that becomes the default.
pub fn set_model(tx: &mut WriteTx<'_>, agent: AgentId, model: &str, follows_default: bool) -> Result<(), Error> {
    tx.execute(
        "UPDATE agents SET model = ?2, follows_default = ?3 WHERE id = ?1",
        params![agent, model, follows_default],
    )?;
    Ok(())
}
