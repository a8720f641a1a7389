//! The software in an agent's jail.

use super::changed_entry;
use crate::gateway::decide::proof::Approved;
use crate::registry::software::for_agent;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::Packages;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::tables;

/// Sets the packages of an agent and the layer with them; `None` removes all.
pub fn set(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: AgentId,
    software: Option<(&Packages, &Digest)>,
) -> Result<(), ironclaw_state::Error> {
    let named = |packages: &Packages, layer: &Digest| format!("{} {layer}", canonical::to_string(packages));
    let before = for_agent(tx, agent)?.map(|had| named(&had.packages, &had.layer)).unwrap_or_default();
    let after = software.map(|(packages, layer)| named(packages, layer)).unwrap_or_default();
    let now = tx.now();
    match software {
        Some((packages, layer)) => tables::agents::set_software(tx, agent, packages, layer, now)?,
        None => tables::agents::delete_software(tx, agent)?,
    }
    changed_entry(LedgerEvent::AgentPackages, approved, agent, before.as_bytes(), after.as_bytes())
        .with("layer", software.map(|(_, layer)| *layer))
        .append(tx)?;
    Ok(())
}
