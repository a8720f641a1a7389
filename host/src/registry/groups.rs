//! Trust groups: the agents that may send messages to each other, and the tools that they may ask each other to use.
//!
//! Never sends a message, and gives no agent a tool: a member uses at a request only tools that it has itself.

use super::approved_entry;
use crate::gateway::decide::proof::Approved;
use crate::refusal::{Denied, Refusal};
use crate::tables::groups as table;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_contract::seam::change;
use ironclaw_state::{Error, ReadTx, WriteTx};

pub use crate::tables::groups::{Group, all, find, shared_tools};

/// Groups of the host.
const GROUPS_MAX: usize = 64;

impl Group {
    /// Returns the change that makes it.
    pub fn payload(&self) -> change::Group {
        change::Group { name: self.name.clone(), agents: self.agents.clone(), tools: self.tools.clone(), remove: None }
    }
}

/// Refuses one more group than the host may have.
pub fn check_room(tx: &ReadTx<'_>, name: &str) -> Result<(), Denied> {
    let held = all(tx)?;
    if held.len() < GROUPS_MAX || held.iter().any(|group| group.name == name) {
        return Ok(());
    }
    let refusal = Refusal::new(DenialCode::GroupTooMany, format!("the host has {GROUPS_MAX} groups already"));
    Err(refusal.hint("remove one: `ironctl group remove NAME`").into())
}

/// Sets a group with these members, or removes it without them.
pub fn set(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    wanted: &change::Group,
    members: Option<&[AgentId]>,
) -> Result<(), Error> {
    let before = find(tx, &wanted.name)?.map(|had| canonical::to_string(&had.payload())).unwrap_or_default();
    let after = match members {
        Some(members) => {
            table::put(tx, &wanted.name, &wanted.tools, members)?;
            canonical::to_string(wanted)
        }
        None => {
            table::delete(tx, &wanted.name)?;
            String::new()
        }
    };
    approved_entry(LedgerEvent::GroupSet, approved)
        .with("group", wanted.name.clone())
        .with("before", Digest::of(before.as_bytes()).to_string())
        .with("after", Digest::of(after.as_bytes()).to_string())
        .append(tx)?;
    Ok(())
}
