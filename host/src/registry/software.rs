//! The software in an agent's jail: the requested packages, and the layer made from them.
//!
//! Never makes a layer. See [`crate::reach::packages`].

pub use ironclaw_store::tables::agents::{Software, software_of as for_agent};

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::AgentId;
use ironclaw_state::ReadTx;
use ironclaw_state::home::LayerOwner;
use ironclaw_store::tables::{agents, mcp};

/// Returns the layer of an agent, if it has one.
pub fn layer_of(tx: &ReadTx<'_>, agent: AgentId) -> Result<Option<Digest>, ironclaw_state::Error> {
    Ok(for_agent(tx, agent)?.map(|software| software.layer))
}

pub fn layers(tx: &ReadTx<'_>) -> Result<Vec<(LayerOwner, Digest)>, ironclaw_state::Error> {
    let of_agents = agents::layers(tx)?.into_iter().map(|(agent, layer)| (LayerOwner::Agent(agent), layer));
    let of_servers = mcp::layers(tx)?.into_iter().map(|(server, layer)| (LayerOwner::Server(server), layer));
    Ok(of_agents.chain(of_servers).collect())
}
