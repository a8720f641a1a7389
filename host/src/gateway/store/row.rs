//! What the rules of the gateway say about a change by its row.
//!
//! Never writes one. Next: `gateway::store`, `tables::changes`.

use super::super::Proposed;
use super::super::kinds::{self, concerns_agent};
use super::super::policy::{Policy, Rule};
use crate::tables::changes::Row;
use ironclaw_contract::ids::AgentId;

impl Row {
    /// Whom it concerns, if it is an agent.
    pub fn concerned(&self) -> Option<AgentId> {
        self.agent.filter(|_| concerns_agent(self.kind))
    }

    /// Returns who has to approve it.
    pub fn rule(&self, policy: &Policy) -> Rule {
        kinds::rule(policy, &self.change, &self.before, &self.facts)
    }

    /// What was asked for, as it was when it was asked.
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
