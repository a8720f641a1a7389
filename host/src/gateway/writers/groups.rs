//! The trust groups of agents.

use super::approved_entry;
use crate::gateway::decide::proof::Approved;
use crate::registry::groups::find;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{Error, WriteTx};
use ironclaw_store::tables::groups as table;

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
