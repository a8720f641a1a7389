//! Properties of a recorded change by the rules of the gateway.
//!
//! Never writes a row. See [`crate::gateway::store`] and [`ironclaw_store::tables::changes`].

use super::super::Proposed;
use super::super::kinds::{self, concerns_agent};
use crate::registry::policy::{Policy, Rule};
use ironclaw_contract::ids::AgentId;
use ironclaw_store::tables::changes::Row;

/// Returns the agent that the change concerns, if its kind concerns one.
pub fn concerned(row: &Row) -> Option<AgentId> {
    row.agent.filter(|_| concerns_agent(row.kind))
}

/// Returns the rule for its decision.
pub fn rule(row: &Row, policy: &Policy) -> Rule {
    kinds::rule(policy, &row.change, &row.before, &row.facts)
}

/// Returns the proposal as it was at the time of the request.
pub fn proposed(row: &Row) -> Proposed {
    Proposed {
        change: row.change.clone(),
        agent: row.agent,
        requester: row.requester.clone(),
        reason: row.reason.clone(),
        labels: row.labels,
    }
}
