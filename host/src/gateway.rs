//! The approval gateway: nothing of what an agent is or may do changes without a person who was shown exactly that.
//!
//! Checks here can only refuse; none of them ever approves, and no setting takes the person away. Next: `gateway::checks`,
//! `gateway::policy`, `gateway::decide`, and `gateway::kinds` for what each kind of change may not be and does.
//!
//! ```text
//! Proposed ──checks──▶ Checked ──store──▶ Pending ──people──▶ Approved ──apply──▶ Applied
//! ```

pub mod apply;
pub mod checks;
pub mod current_settings;
pub mod decide;
pub mod kinds;
pub mod policy;
pub mod proposals;
pub mod quorum;
pub mod review_page;
pub mod store;
pub mod voices;

pub use crate::tables::changes::{Origin, Requester};
pub use decide::proof::{Approved, Direct};

use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::{Change, ChangeKind};
use ironclaw_contract::seam::seal::Label;
use ironclaw_jail::shown::Mounts;
use serde::Deserialize;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};

/// What somebody asks for, before anybody looked at it.
#[derive(Debug, Clone)]
pub struct Proposed {
    /// To what.
    pub change: Change,
    /// The agent that asks, or the one that a person named. For a kind that concerns no agent it is the agent that asks, if an agent
    /// does.
    pub agent: Option<AgentId>,
    /// Who asks.
    pub requester: Requester,
    /// Why, in the words of whoever asks.
    pub reason: String,
    /// Of the output that asked; empty for a person.
    pub labels: Vec<Label>,
}

/// What a proposal is looked at beside: what the operator set, and what of the host no agent is ever given.
#[derive(Debug, Clone)]
pub struct Grounds {
    /// Directories below which something may be mounted, canonical.
    pub mounts: Vec<PathBuf>,
    /// Those of them that the settings name by way of a link: that name, and the canonical one.
    pub linked: Vec<(PathBuf, PathBuf)>,
    /// The host's own, as it is named and canonical: the home, sockets, settings, keys, heads. Nothing of it and nothing above it is
    /// mounted.
    pub private: Vec<PathBuf>,
    /// How packages are fetched.
    pub packages: crate::packages::Config,
    /// The ceilings of the settings, which hold where an agent has none of its own.
    pub budget: crate::turns::budget::Config,
}

impl Grounds {
    /// Whether a directory may be in a jail as the settings are now, by its path and the table of mounts: below an allowed one, and
    /// neither the host's own nor above or below it.
    ///
    /// # Errors
    /// The table of mounts cannot be read.
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
    /// Directories below which something may be mounted into a jail; empty: nothing.
    pub allow: Vec<PathBuf>,
}

/// How things stand that a change would alter.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The present setting, in the shape of the payload.
    pub before: Value,
    /// What the names in the payload mean now, e.g. which person an identity is: if that changes, it is another change.
    pub facts: Value,
}

/// A proposal that passed every check. Made by [`checks::check`] alone.
#[derive(Debug, Clone)]
pub struct Checked {
    proposed: Proposed,
    standing: Standing,
}

impl Checked {
    /// Its kind.
    pub const fn kind(&self) -> ChangeKind {
        self.proposed.change.kind()
    }

    /// Who has to approve it.
    pub fn rule(&self, policy: &policy::Policy) -> policy::Rule {
        kinds::rule(policy, &self.proposed.change, &self.standing.before, &self.standing.facts)
    }
}

#[cfg(test)]
mod tests;
