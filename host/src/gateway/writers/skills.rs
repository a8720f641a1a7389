//! The skills of an agent.

use super::approved_entry;
use crate::gateway::decide::proof::Approved;
use crate::registry::skills::{Brought, Installed, Package, find};
use ironclaw_contract::ids::AgentId;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{Error, WriteTx};
use ironclaw_store::tables::skills as table;

/// Gives an agent a version of a skill, in place of its present one.
pub fn install(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: AgentId,
    package: &Package,
    brought: &Brought,
) -> Result<(), Error> {
    let before = find(tx, agent, &package.name)?.map(|held| held.package.version).unwrap_or_default();
    table::put(tx, agent, (&package.name, package.digest), brought, approved.id())?;
    approved_entry(LedgerEvent::SkillInstalled, approved)
        .with("agent", agent)
        .with("skill", package.name.clone())
        .with("version", package.version.clone())
        .with("digest", package.digest.to_string())
        .with("signer", package.signer.clone())
        .with("before", before)
        .append(tx)?;
    Ok(())
}

/// Takes a skill from an agent.
pub fn remove(tx: &mut WriteTx<'_>, approved: &Approved, agent: AgentId, held: &Installed) -> Result<(), Error> {
    table::delete(tx, agent, &held.package.name)?;
    approved_entry(LedgerEvent::SkillRemoved, approved)
        .with("agent", agent)
        .with("skill", held.package.name.clone())
        .with("before", held.package.version.clone())
        .append(tx)?;
    Ok(())
}
