//! Which packages an agent has: what was asked for, and the layer that came of it.
//!
//! Never looks at the layer itself. Next: `crate::packages`, which makes it.

use crate::state::{self, Tx, stored, stored_json};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::Packages;
use rusqlite::{OptionalExtension, Row, params};

/// The packages of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// As they were asked for.
    pub packages: Packages,
    /// Of everything in the layer, and the name of its directory.
    pub layer: Digest,
    /// Milliseconds since the epoch.
    pub made_at: i64,
}

fn installed(row: &Row<'_>) -> rusqlite::Result<Installed> {
    Ok(Installed {
        packages: stored_json(row, "packages")?,
        layer: stored(row, "layer")?,
        made_at: row.get("made_at")?,
    })
}

/// Those of one agent; `None` when it has none.
pub fn of(tx: &Tx<'_>, agent: AgentId) -> Result<Option<Installed>, state::Error> {
    let mut statement = tx.db().prepare_cached("SELECT * FROM agent_packages WHERE agent_id = ?1")?;
    Ok(statement.query_row([agent.to_string()], installed).optional()?)
}

/// The layer of one agent, if it has one.
pub fn layer_of(tx: &Tx<'_>, agent: AgentId) -> Result<Option<Digest>, state::Error> {
    Ok(of(tx, agent)?.map(|installed| installed.layer))
}

/// Every agent's.
pub fn all(tx: &Tx<'_>) -> Result<Vec<(AgentId, Installed)>, state::Error> {
    let mut statement = tx.db().prepare_cached("SELECT * FROM agent_packages ORDER BY agent_id")?;
    let rows = statement.query_map([], |row| Ok((stored(row, "agent_id")?, installed(row)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Gives an agent these packages in the place of those that it had. Whoever calls writes the entry of the ledger.
pub fn set(tx: &mut Tx<'_>, agent: AgentId, packages: &Packages, layer: &Digest) -> Result<(), state::Error> {
    tx.db().execute(
        "INSERT INTO agent_packages (agent_id, packages, layer, made_at) VALUES (?1,?2,?3,?4) \
         ON CONFLICT (agent_id) DO UPDATE SET packages = ?2, layer = ?3, made_at = ?4",
        params![agent.to_string(), canonical::to_string(packages), layer.to_string(), tx.now()],
    )?;
    Ok(())
}

/// Takes an agent's packages away. Whoever calls writes the entry of the ledger.
pub fn clear(tx: &mut Tx<'_>, agent: AgentId) -> Result<(), state::Error> {
    tx.db().execute("DELETE FROM agent_packages WHERE agent_id = ?1", [agent.to_string()])?;
    Ok(())
}
