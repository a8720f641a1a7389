//! The addresses and the other agents to which agents may send messages, and the bound on their number.
//!
//! Never sends a message. An address is usable only while it is linked to the person on the page that people approved, and another agent
//! only while a trust group has both. See
//! [`crate::turns::calls`] for the judgement of a message.

use super::Agent;
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_state::{Error, ReadTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::people;

pub use ironclaw_store::tables::destinations::{AGENT, Destination, State, all, has_any, list_for_agent};

/// Destinations of one agent.
const DESTINATIONS_MAX: usize = 64;

/// Returns the destination of an agent with this name.
pub fn find(tx: &ReadTx<'_>, agent: AgentId, name: &str) -> Result<Option<Destination>, Error> {
    Ok(list_for_agent(tx, agent)?.into_iter().find(|destination| destination.name == name))
}

/// Refuses one more destination than an agent may have.
pub fn check_room(tx: &ReadTx<'_>, agent: AgentId, name: &str) -> Result<(), Denied> {
    let held = list_for_agent(tx, agent)?;
    if held.len() < DESTINATIONS_MAX || held.iter().any(|destination| destination.name == name) {
        return Ok(());
    }
    let remedy = "remove one: `ironctl destination remove AGENT NAME`";
    let bound = Bound::new("destinations of the agent", DESTINATIONS_MAX, held.len(), remedy);
    Err(Refusal::over(DenialCode::DestinationTooMany, bound).into())
}

/// The receiver behind a destination when people approve it.
#[derive(Debug, Clone, Copy)]
pub enum Receiver {
    /// An address of a channel.
    Address {
        /// The generation of the channel.
        generation: i64,
        /// The person who is linked to the address.
        person: PersonId,
    },
    Agent(AgentId),
}
/// Returns the names that the host knows and that a message may have: of people, of agents, and of the destinations of an agent.
pub fn known_names(tx: &ReadTx<'_>, agent: &Agent) -> Result<Vec<String>, ironclaw_state::Error> {
    let mut all: Vec<String> = people::people(tx)?.into_iter().map(|person| person.name).collect();
    all.extend(super::agents(tx)?.into_iter().map(|agent| agent.name));
    all.extend(list_for_agent(tx, agent.id)?.into_iter().map(|destination| destination.name));
    all.sort_unstable();
    all.dedup();
    Ok(all)
}
