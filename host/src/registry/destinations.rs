//! The addresses and the other agents to which agents may send messages, and the bound on their number.
//!
//! Never sends a message. An address is usable only while it is linked to the person on the page that people approved, and another agent
//! only while a trust group has both. See
//! [`crate::turns::calls`] for the judgement of a message.

use super::changed_entry;
use crate::gateway::decide::proof::Approved;
use crate::refusal::{Denied, Refusal};
use crate::tables::destinations::{self as table, NewDestination};
use ironclaw_contract::canonical;
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_contract::seam::change;
use ironclaw_state::{Error, ReadTx, WriteTx};

pub use crate::tables::destinations::{AGENT, Destination, State, all, has_any, of};

/// Destinations of one agent.
const DESTINATIONS_MAX: usize = 64;

impl Destination {
    /// Returns the identity at its address: `CHANNEL:ADDRESS`.
    pub fn recipient(&self) -> String {
        format!("{}:{}", self.channel, self.address)
    }

    /// Returns the change that makes it.
    pub fn payload(&self) -> change::Destination {
        if self.to_agent.is_some() {
            let agent = Some(self.to_agent_name.clone());
            let name = self.name.clone();
            return change::Destination { name, agent, remove: None, ..change::Destination::default() };
        }
        change::Destination {
            name: self.name.clone(),
            channel: Some(self.channel.clone()),
            address: Some(self.address.clone()),
            thread: Some(self.thread.clone()).filter(|thread| !thread.is_empty()),
            ..change::Destination::default()
        }
    }
}

/// Returns the destination of an agent with this name.
pub fn find(tx: &ReadTx<'_>, agent: AgentId, name: &str) -> Result<Option<Destination>, Error> {
    Ok(of(tx, agent)?.into_iter().find(|destination| destination.name == name))
}

/// Refuses one more destination than an agent may have.
pub fn check_room(tx: &ReadTx<'_>, agent: AgentId, name: &str) -> Result<(), Denied> {
    let held = of(tx, agent)?;
    if held.len() < DESTINATIONS_MAX || held.iter().any(|destination| destination.name == name) {
        return Ok(());
    }
    let message = format!("the agent has {DESTINATIONS_MAX} destinations already");
    let refusal = Refusal::new(DenialCode::DestinationTooMany, message);
    Err(refusal.hint("remove one: `ironctl destination remove AGENT NAME`").into())
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
    /// Another agent.
    Agent(AgentId),
}

/// Sets a destination of an agent with its receiver, or removes it without one.
pub fn set(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: AgentId,
    wanted: &change::Destination,
    receiver: Option<Receiver>,
) -> Result<(), Error> {
    let had = find(tx, agent, &wanted.name)?;
    let before = had.map(|had| canonical::to_string(&had.payload())).unwrap_or_default();
    let (name, thread) = (wanted.name.as_str(), wanted.thread.as_deref().unwrap_or_default());
    let channel = wanted.channel.as_deref().unwrap_or_default();
    let new = NewDestination { agent, name, channel, generation: 0, address: "", thread, person: None, to_agent: None };
    let after = match receiver {
        Some(Receiver::Address { generation, person }) => {
            let address = wanted.address.as_deref().unwrap_or_default();
            table::put(tx, NewDestination { generation, address, person: Some(person), ..new })?;
            canonical::to_string(wanted)
        }
        Some(Receiver::Agent(to)) => {
            let address = to.to_string();
            table::put(tx, NewDestination { channel: AGENT, address: &address, to_agent: Some(to), ..new })?;
            canonical::to_string(wanted)
        }
        None => {
            table::delete(tx, agent, name)?;
            String::new()
        }
    };
    changed_entry(LedgerEvent::DestinationSet, approved, agent, before.as_bytes(), after.as_bytes())
        .with("channel", if matches!(receiver, Some(Receiver::Agent(_))) { AGENT } else { channel })
        .append(tx)?;
    Ok(())
}
