//! Properties of a recorded change by the rules of the gateway.
//!
//! Never writes a row. See [`crate::gateway::store`] and [`crate::store::tables::changes`].

use super::super::Proposed;
use super::super::kinds::{self, concerns_agent};
use crate::registry::policy::{Policy, Rule};
use crate::store::tables::changes::Row;
use ironclaw_contract::ids::AgentId;

impl Row {
    /// Returns the agent that the change concerns, if its kind concerns one.
    pub fn concerned(&self) -> Option<AgentId> {
        self.agent.filter(|_| concerns_agent(self.kind))
    }

    /// Returns the rule for its decision.
    pub fn rule(&self, policy: &Policy) -> Rule {
        kinds::rule(policy, &self.change, &self.before, &self.facts)
    }

    /// Returns the proposal as it was at the time of the request.
    pub fn proposed(&self) -> Proposed {
        Proposed {
            change: self.change.clone(),
            agent: self.agent,
            requester: self.requester.clone(),
            reason: self.reason.clone(),
            labels: self.labels.clone(),
        }
    }
}
