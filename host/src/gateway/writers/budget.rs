//! The ceilings of one agent.

use super::approved_entry;
use crate::gateway::decide::proof::Approved;
use crate::turns::budget::book::COUNT_MAX;
use ironclaw_contract::ids::AgentId;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::tables::models::{self as table, OwnCeilings};

/// Sets an agent's own ceilings.
pub fn set_own(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: AgentId,
    own: OwnCeilings,
) -> Result<(), ironclaw_state::Error> {
    let [tokens, cost] =
        [own.tokens_per_day, own.cost_per_day_micros].map(|limit| limit.map(|limit| limit.min(COUNT_MAX)));
    table::put_own_ceilings(tx, agent, OwnCeilings { tokens_per_day: tokens, cost_per_day_micros: cost })?;
    approved_entry(LedgerEvent::AgentBudget, approved)
        .with("agent", agent)
        .with("tokens_per_day", tokens)
        .with("cost_per_day_micros", cost)
        .append(tx)?;
    Ok(())
}
