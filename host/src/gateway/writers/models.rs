//! The default model endpoint, and the endpoint of an agent.

use super::approved_entry;
use crate::gateway::decide::proof::Approved;
use crate::registry::models::{choose, known};
use crate::registry::{Agent, agents};
use ironclaw_contract::ids::AgentId;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::refusal::Denied;
use ironclaw_store::tables::agents as table;
use ironclaw_store::tables::facts::{self, Fact};

/// Makes an endpoint the default, and moves the agents that follow the default to it. Returns their names.
///
/// # Errors
/// Refuses an endpoint that does not exist.
pub fn set_default(tx: &mut WriteTx<'_>, approved: &Approved, name: &str) -> Result<Vec<String>, Denied> {
    known(tx, name)?;
    facts::set(tx, Fact::DefaultModel, name)?;
    approved_entry(LedgerEvent::ModelDefaultSet, approved).with("name", name).append(tx)?;
    let moving: Vec<Agent> =
        agents(tx)?.into_iter().filter(|agent| agent.follows_default && agent.model != name).collect();
    for agent in &moving {
        assign(tx, approved, agent.id, name, true)?;
    }
    Ok(moving.into_iter().map(|agent| agent.name).collect())
}

/// Sets the endpoint of an agent; with `default` the agent follows the default. Returns the endpoint's name.
///
/// # Errors
/// Refuses an endpoint that does not exist.
pub fn set_model(tx: &mut WriteTx<'_>, approved: &Approved, agent: AgentId, wanted: &str) -> Result<String, Denied> {
    let (model, follows) = choose(tx, Some(wanted))?;
    assign(tx, approved, agent, &model, follows)?;
    Ok(model)
}

fn assign(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: AgentId,
    model: &str,
    follows: bool,
) -> Result<(), ironclaw_state::Error> {
    table::set_model(tx, agent, model, follows)?;
    approved_entry(LedgerEvent::AgentModelSet, approved)
        .with("agent", agent)
        .with("model", model)
        .with("follows_default", follows)
        .append(tx)?;
    Ok(())
}
