//! The destinations of an agent.

use super::changed_entry;
use crate::gateway::decide::proof::Approved;
use crate::registry::destinations::{AGENT, Receiver, find};
use ironclaw_contract::canonical;
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{Error, WriteTx};
use ironclaw_store::tables::destinations::{self as table, NewDestination};

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
