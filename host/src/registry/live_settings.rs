//! The settings that a reload replaces while the host runs, in one cell that every reader shares.
//!
//! Reads no file and checks nothing: `daemon::reload` does both. A reader takes the settings anew for each decision, and never keeps them.

pub mod agents;
pub mod budget;
pub mod channels;
pub mod packages;
pub mod session;

use crate::registry::policy::Policy;
use crate::registry::quota;
use ironclaw_jail::mount_table::Mounts;
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// The settings of one moment: those of `config.toml` that need no restart, and `policy.toml`.
#[derive(Debug)]
pub struct LiveSettings {
    /// The rules for decisions.
    pub policy: Policy,
    /// The settings for checks of proposals, with `[mounts]`, `[packages]` and `[budget]`.
    pub host_policy: HostPolicy,
    /// `[approval]`
    pub approval: ApprovalConfig,
    /// `[quota]`
    pub quota: quota::Config,
    /// `[agents]`
    pub agents: agents::Config,
    /// `[session]`; the limits of awake sessions are read at the start only.
    pub session: session::Config,
    /// The settings of each kind of channel; ports and limits of requests are read at the start only.
    pub channels: channels::Config,
}

/// The cell with the present settings.
#[derive(Debug)]
pub struct Live(RwLock<Arc<LiveSettings>>);

impl Live {
    /// Makes the cell with the settings of the start.
    pub fn new(settings: LiveSettings) -> Self {
        Self(RwLock::new(Arc::new(settings)))
    }

    /// Returns the present settings. A reload changes the cell, and never this value.
    pub fn now(&self) -> Arc<LiveSettings> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the settings, and returns the former ones.
    pub fn replace(&self, next: Arc<LiveSettings>) -> Arc<LiveSettings> {
        std::mem::replace(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner), next)
    }
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
    pub packages: packages::Config,
    /// The ceilings of the settings; they hold for an agent without ceilings of its own.
    pub budget: budget::Config,
    /// The settings about hosts of the network.
    pub egress: super::egress::Config,
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

    /// Returns whether a directory is an allowed one or below one.
    pub fn allows(&self, source: &Path) -> bool {
        self.mounts.iter().any(|allowed| source.starts_with(allowed))
    }

    /// Returns whether a directory is above, below or equal to a private path of the host, in this table of mounts.
    pub fn keeps(&self, mounts: &Mounts, source: &Path) -> bool {
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

/// The bound on the hours in which a question can be answered: a year.
const QUESTION_HOURS_MAX: u32 = 8760;

/// `[approval]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalConfig {
    /// Seconds that the calls of one turn wait for people who are present; 0 for none.
    pub wait_seconds: u32,
    /// Hours in which a person can answer a question of an agent.
    pub question_hours: u32,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        Self { wait_seconds: 120, question_hours: 168 }
    }
}

impl ApprovalConfig {
    /// Refuses values outside their bounds.
    pub fn check(&self) -> Result<(), String> {
        if self.wait_seconds > 600 {
            return Err("approval.wait_seconds must be 0 to 600".to_owned());
        }
        if !(1..=QUESTION_HOURS_MAX).contains(&self.question_hours) {
            return Err(format!("approval.question_hours must be 1 to {QUESTION_HOURS_MAX}"));
        }
        Ok(())
    }
}
