//! The roles of people with an agent, and the rule of who may talk to it.

use super::{approved_entry, changed_entry};
use crate::gateway::decide::proof::Approved;
use crate::registry::roles::role_of;
use crate::registry::{Agent, allowances};
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_contract::seam::change::{Access, AgentRole};
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::tables;

/// Sets the role of a person with an agent, or removes it.
pub fn set(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: AgentId,
    person: PersonId,
    role: Option<AgentRole>,
) -> Result<(), ironclaw_state::Error> {
    let before = role_of(tx, agent, person)?;
    match role {
        Some(role) => tables::agents::set_role(tx, agent, person, role)?,
        None => tables::agents::delete_role(tx, agent, person)?,
    }
    let seq = approved_entry(LedgerEvent::AgentRoles, approved)
        .with("agent", agent)
        .with("person", person)
        .with("before", before.map(AgentRole::name))
        .with("after", role.map(AgentRole::name))
        .append(tx)?;
    let is_lower = before.is_some_and(|before| role != Some(before) && role != Some(AgentRole::Admin));
    if is_lower {
        allowances::end_of_role(tx, person, Some(agent))?;
    }
    if before != role {
        tables::agents::record_role_giver(tx, agent, person, seq, approved.givers())?;
    }
    Ok(())
}

/// Sets the access rule of an agent.
pub fn set_access(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: &Agent,
    access: Access,
) -> Result<(), ironclaw_state::Error> {
    tables::agents::set_access(tx, agent.id, access)?;
    let (before, after) = (agent.access.name(), access.name());
    changed_entry(LedgerEvent::AgentAccess, approved, agent.id, before.as_bytes(), after.as_bytes()).append(tx)?;
    Ok(())
}
