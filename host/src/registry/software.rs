//! Software in an agent's jail: what was asked for, and the layer that came of it.
//!
//! Never makes a layer. Next: `packages`.

use super::changed_entry;
use crate::gateway::decide::proof::Approved;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_contract::seam::change::Packages;
use ironclaw_state::{ReadTx, WriteTx, stored_json};
use rusqlite::{OptionalExtension, Row, params};

/// What an agent has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Software {
    /// By name, as somebody asked for it.
    pub packages: Packages,
    /// Digest of everything in the layer, and the name of its directory.
    pub layer: Digest,
    /// Milliseconds since the epoch.
    pub made_at: i64,
}

/// What an agent has beyond what every jail has.
pub fn of(tx: &ReadTx<'_>, agent: AgentId) -> Result<Option<Software>, ironclaw_state::Error> {
    let sql = "SELECT packages, layer, made_at FROM agent_packages WHERE agent_id = ?1";
    let read = |row: &Row<'_>| {
        Ok(Software { packages: stored_json(row, "packages")?, layer: row.get("layer")?, made_at: row.get("made_at")? })
    };
    Ok(tx.db().prepare_cached(sql)?.query_row([agent], read).optional()?)
}

/// The layer of one agent, if it has one.
pub fn layer_of(tx: &ReadTx<'_>, agent: AgentId) -> Result<Option<Digest>, ironclaw_state::Error> {
    Ok(of(tx, agent)?.map(|software| software.layer))
}

/// Every layer that an agent has.
pub fn layers(tx: &ReadTx<'_>) -> Result<Vec<(AgentId, Digest)>, ironclaw_state::Error> {
    let mut statement = tx.db().prepare_cached("SELECT agent_id, layer FROM agent_packages ORDER BY agent_id")?;
    let layers = statement.query_map([], |row| Ok((row.get("agent_id")?, row.get("layer")?)))?;
    Ok(layers.collect::<rusqlite::Result<_>>()?)
}

/// Says what an agent has from now on: these packages, which are in this layer; `None` takes all away.
pub fn set(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: AgentId,
    software: Option<(&Packages, &Digest)>,
) -> Result<(), ironclaw_state::Error> {
    let named = |packages: &Packages, layer: &Digest| format!("{} {layer}", canonical::to_string(packages));
    let before = of(tx, agent)?.map(|had| named(&had.packages, &had.layer)).unwrap_or_default();
    let after = software.map(|(packages, layer)| named(packages, layer)).unwrap_or_default();
    let now = tx.now();
    match software {
        Some((packages, layer)) => tx.db().execute(
            "INSERT INTO agent_packages (agent_id, packages, layer, made_at) VALUES (?1,?2,?3,?4) ON CONFLICT (agent_id) \
             DO UPDATE SET packages = excluded.packages, layer = excluded.layer, made_at = excluded.made_at",
            params![agent, canonical::to_string(packages), layer, now],
        )?,
        None => tx.db().execute("DELETE FROM agent_packages WHERE agent_id = ?1", [agent])?,
    };
    changed_entry(LedgerEvent::AgentPackages, approved, agent, before.as_bytes(), after.as_bytes())
        .with("layer", software.map(|(_, layer)| *layer))
        .append(tx)?;
    Ok(())
}
