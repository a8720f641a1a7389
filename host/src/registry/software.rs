//! The software in an agent's jail: the requested packages, and the layer made from them.
//!
//! Never makes a layer. See [`crate::packages`].

pub use crate::tables::agents::{Software, software_of as of};

use super::changed_entry;
use crate::gateway::decide::proof::Approved;
use crate::tables::{self, agents, channels};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_contract::seam::change::Packages;
use ironclaw_state::home::LayerOwner;
use ironclaw_state::{ReadTx, WriteTx};

/// Returns the layer of an agent, if it has one.
pub fn layer_of(tx: &ReadTx<'_>, agent: AgentId) -> Result<Option<Digest>, ironclaw_state::Error> {
    Ok(of(tx, agent)?.map(|software| software.layer))
}

/// Returns every layer with its owner.
pub fn layers(tx: &ReadTx<'_>) -> Result<Vec<(LayerOwner, Digest)>, ironclaw_state::Error> {
    let of_agents = agents::layers(tx)?.into_iter().map(|(agent, layer)| (LayerOwner::Agent(agent), layer));
    let of_servers = channels::layers(tx)?.into_iter().map(|(server, layer)| (LayerOwner::Server(server), layer));
    Ok(of_agents.chain(of_servers).collect())
}

/// Sets the packages of an agent and the layer with them; `None` removes all.
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
        Some((packages, layer)) => tables::agents::set_software(tx, agent, packages, layer, now)?,
        None => tables::agents::delete_software(tx, agent)?,
    }
    changed_entry(LedgerEvent::AgentPackages, approved, agent, before.as_bytes(), after.as_bytes())
        .with("layer", software.map(|(_, layer)| *layer))
        .append(tx)?;
    Ok(())
}
