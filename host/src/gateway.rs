//! The approval gateway: a capability or a setting of an agent changes only if people approve exactly the text that they were shown.
//!
//! Checks can only refuse. No check approves a change, and no setting removes the person from a decision. See
//! [`crate::gateway::checks`], [`crate::registry::policy`], [`crate::gateway::decide`], and [`crate::gateway::kinds`] for the check and
//! the effect of each kind of change.
//!
//! ```text
//! Proposed ──checks──▶ Checked ──store──▶ Pending ──people──▶ Approved ──apply──▶ Applied
//! ```

pub mod apply;
pub mod approval;
pub mod changes;
pub mod checks;
pub mod current_settings;
pub mod decide;
pub mod generation;
pub mod independence;
pub mod kinds;
pub mod opening;
pub mod questions;
pub mod quorum;
pub mod requests;
pub mod review_page;
pub mod waiting;
pub mod writers;

pub use ironclaw_store::tables::waiting::changes::{Origin, Requester};

use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::Change;
use ironclaw_judge::provenance::Labels;
use serde_json::Value;

/// A proposed change that no check has passed yet.
#[derive(Debug, Clone)]
pub struct Proposed {
    pub change: Change,
    /// The agent that makes the request, or the agent that a person names. For a kind that concerns no agent it is the requesting agent,
    /// if an agent makes the request.
    pub agent: Option<AgentId>,
    /// The agent or the person that makes the request.
    pub requester: Requester,
    /// The reason in the words of the requester.
    pub reason: String,
    /// The labels of the output that made the request; empty for a person.
    pub labels: Labels,
}

/// The present state of the setting that a change would alter.
#[derive(Debug, Clone, PartialEq)]
pub struct CurrentSettings {
    /// The present setting, in the shape of the payload.
    pub before: Value,
    /// The present meaning of the names in the payload, such as the person of an identity. Another meaning makes another change.
    pub facts: Value,
}

/// A proposal that passed every check. Only [`checks::check`] makes it.
#[derive(Debug, Clone)]
pub struct Checked {
    proposed: Proposed,
    standing: CurrentSettings,
}

#[cfg(test)]
mod tests;
