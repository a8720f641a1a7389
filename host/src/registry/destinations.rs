//! The addresses to which agents may send messages, and the bound on their number.
//!
//! Never sends a message. An address is usable only while it is linked to the person on the page that people approved. See
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

pub use crate::tables::destinations::{Destination, State, all, has_any, of};

/// Destinations of one agent.
const DESTINATIONS_MAX: usize = 64;

impl Destination {
    /// Returns the identity at its address: `CHANNEL:ADDRESS`.
    pub fn recipient(&self) -> String {
        format!("{}:{}", self.channel, self.address)
    }

    /// Returns the change that makes it.
    pub fn payload(&self) -> change::Destination {
        change::Destination {
            name: self.name.clone(),
            channel: Some(self.channel.clone()),
            address: Some(self.address.clone()),
            thread: Some(self.thread.clone()).filter(|thread| !thread.is_empty()),
            remove: None,
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

/// The channel and the person of an address.
#[derive(Debug, Clone, Copy)]
pub struct Linked {
    /// The generation of the channel.
    pub generation: i64,
    /// The person.
    pub person: PersonId,
}

/// Sets a destination of an agent with the channel and the person of its address, or removes it without them.
pub fn set(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: AgentId,
    wanted: &change::Destination,
    linked: Option<Linked>,
) -> Result<(), Error> {
    let had = find(tx, agent, &wanted.name)?;
    let before = had.map(|had| canonical::to_string(&had.payload())).unwrap_or_default();
    let (channel, address) =
        (wanted.channel.as_deref().unwrap_or_default(), wanted.address.as_deref().unwrap_or_default());
    let after = match linked {
        Some(Linked { generation, person }) => {
            let thread = wanted.thread.as_deref().unwrap_or_default();
            table::put(tx, NewDestination { agent, name: &wanted.name, channel, generation, address, thread, person })?;
            canonical::to_string(wanted)
        }
        None => {
            table::delete(tx, agent, &wanted.name)?;
            String::new()
        }
    };
    changed_entry(LedgerEvent::DestinationSet, approved, agent, before.as_bytes(), after.as_bytes())
        .with("channel", channel)
        .append(tx)?;
    Ok(())
}
