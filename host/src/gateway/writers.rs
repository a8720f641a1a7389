//! The functions that change what an agent is or may do. Each takes a proof, so none runs without the decision of people.
//!
//! Each works in the transaction of its decision, and writes one entry of the ledger. See [`super::decide::proof`] and [`super::kinds`].

pub(crate) mod agents;
pub(crate) mod budget;
pub(crate) mod channels;
pub(crate) mod destinations;
pub(crate) mod egress;
pub(crate) mod groups;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod mounts;
pub(crate) mod roles;
pub(crate) mod schedules;
pub(crate) mod skills;
pub(crate) mod software;

use super::decide::proof::{Approved, Authority};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::AgentId;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use serde_json::Value;

/// Returns the ledger entry about an applied change.
pub(crate) fn approved_entry(event: LedgerEvent, approved: &Approved) -> Entry {
    let by: Vec<Value> = approved.givers().iter().map(|giver| giver.person.into()).collect();
    Entry::new(event).with("change", approved.id()).with("by", by)
}

/// Returns the ledger entry about an applied change or a command.
fn authorised_entry(event: LedgerEvent, authority: Authority<'_>) -> Entry {
    match authority {
        Authority::Approved(approved) => approved_entry(event, approved),
        Authority::Direct(direct) => Entry::new(event).with("by", direct.by()),
    }
}

/// Returns the ledger entry about a changed setting of an agent, with the digests of the old and the new value.
fn changed_entry(event: LedgerEvent, approved: &Approved, agent: AgentId, before: &[u8], after: &[u8]) -> Entry {
    approved_entry(event, approved)
        .with("agent", agent)
        .with("before", Digest::of(before).to_string())
        .with("after", Digest::of(after).to_string())
}
