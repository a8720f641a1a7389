//! The approval gateway: a capability or a setting of an agent changes only if people approve exactly the text that they were shown.
//!
//! Checks can only refuse. No check approves a change, and no setting removes the person from a decision. See
//! [`crate::gateway::checks`], [`crate::gateway::policy`], [`crate::gateway::decide`], and [`crate::gateway::kinds`] for the check and
//! the effect of each kind of change.
//!
//! ```text
//! Proposed ──checks──▶ Checked ──store──▶ Pending ──people──▶ Approved ──apply──▶ Applied
//! ```

pub mod apply;
pub mod checks;
pub mod current_settings;
pub mod decide;
pub mod independence;
pub mod kinds;
pub mod live_settings;
pub mod policy;
pub mod proposals;
pub mod quorum;
pub mod review_page;
pub mod store;
pub mod told;

pub use crate::tables::changes::{Origin, Requester};
pub use decide::proof::{Approved, Direct};
pub use kinds::schedule::{Lost as LostRight, lost as lost_right};

use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::{Change, ChangeKind};
use ironclaw_contract::seam::seal::Label;
use ironclaw_jail::mount_table::Mounts;
use serde::Deserialize;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};

/// A proposed change that no check has passed yet.
#[derive(Debug, Clone)]
pub struct Proposed {
    /// The wanted change.
    pub change: Change,
    /// The agent that makes the request, or the agent that a person names. For a kind that concerns no agent it is the requesting agent,
    /// if an agent makes the request.
    pub agent: Option<AgentId>,
    /// The agent or the person that makes the request.
    pub requester: Requester,
    /// The reason in the words of the requester.
    pub reason: String,
    /// The labels of the output that made the request; empty for a person.
    pub labels: Vec<Label>,
}

/// The settings of the operator for the check of a proposal, and the directories that no agent gets.
#[derive(Debug, Clone)]
pub struct HostPolicy {
    /// Canonical directories; a source of a mount is one of them or below one.
    pub mounts: Vec<PathBuf>,
    /// The allowed directories that the settings name by a link: that name, and the canonical path.
    pub linked: Vec<(PathBuf, PathBuf)>,
    /// Paths of the host itself, as named and canonical: the home, sockets, settings, keys, heads. No mount contains one of them, or a
    /// part of one.
    pub private: Vec<PathBuf>,
    /// The settings for fetching packages.
    pub packages: crate::packages::Config,
    /// The ceilings of the settings; they hold for an agent without ceilings of its own.
    pub budget: crate::turns::budget::Config,
    /// The settings about hosts of the network.
    pub egress: crate::registry::egress::Config,
}

impl HostPolicy {
    /// Returns whether the present settings admit a directory into a jail, by its path and the table of mounts. Such a directory is one
    /// of the allowed directories or below one, and is not above, below or equal to a private path of the host.
    ///
    /// # Errors
    /// Fails if the table of mounts cannot be read.
    pub fn admits(&self, source: &Path) -> io::Result<bool> {
        Ok(self.allows(source) && !self.keeps(&Mounts::read()?, source))
    }

    fn allows(&self, source: &Path) -> bool {
        self.mounts.iter().any(|allowed| source.starts_with(allowed))
    }

    fn keeps(&self, mounts: &Mounts, source: &Path) -> bool {
        self.private.iter().any(|own| mounts.is_within(source, own) || mounts.is_within(own, source))
    }
}

/// `[mounts]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MountsConfig {
    /// Directories that mounts into a jail are of or below; an empty list allows no mount.
    pub allow: Vec<PathBuf>,
}

/// `[approval]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalConfig {
    /// Seconds that the calls of one turn wait for people who are present; 0 for none.
    pub wait_seconds: u32,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        Self { wait_seconds: 120 }
    }
}

impl ApprovalConfig {
    /// Refuses values outside their bounds.
    pub fn check(&self) -> Result<(), String> {
        if self.wait_seconds <= 600 { Ok(()) } else { Err("approval.wait_seconds must be 0 to 600".to_owned()) }
    }
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

impl Checked {
    /// Returns the kind of the change.
    pub const fn kind(&self) -> ChangeKind {
        self.proposed.change.kind()
    }

    /// Returns the rule for its decision.
    pub fn rule(&self, policy: &policy::Policy) -> policy::Rule {
        kinds::rule(policy, &self.proposed.change, &self.standing.before, &self.standing.facts)
    }
}

#[cfg(test)]
mod tests;
