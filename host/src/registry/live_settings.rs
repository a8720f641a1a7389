//! The settings that a reload replaces while the host runs, in one cell that every reader shares.
//!
//! Reads no file and checks nothing: `daemon::reload` does both. A reader takes the settings anew for each decision, and never keeps them.

pub mod agents;
pub mod budget;
pub mod channels;
pub mod packages;
pub mod session;
pub mod time;
pub mod turn;

use crate::registry::policy::Policy;
use crate::registry::quota;
use ironclaw_jail::mount_table::Mounts;
use ironclaw_judge::ReceiverPolicy;
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
    /// `[turn]`; the bytes of a context are read at the start only.
    pub turn: turn::Config,
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
    /// The time zone of the host.
    pub zone: time::HostZone,
    /// The classes that each kind of author may ever ask an agent for, by `policy.toml`.
    pub receiver: ReceiverPolicy,
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

ironclaw_operator::settings! {
    /// `[mounts]`
    pub struct MountsConfig for mounts {
        /// Agents may be granted these directories of the machine, and directories below them.
        allow: Vec<PathBuf> = Vec::new(), Rule("absolute paths"), Live;
    }
}

ironclaw_operator::settings! {
    /// `[approval]`
    pub struct ApprovalConfig for approval {
        /// The longest time that the calls of one turn wait for people who are present; after it the model continues without them.
        wait_seconds: u32 = 120, Range(0, 600, "seconds"), Live;
        /// The time in which a person can answer a question of an agent; a reminder comes after half of it.
        question_hours: u32 = 168, Range(1, 8760, "hours"), Live;
        /// The most requests of one agent on behalf of one person that wait at once.
        requests_waiting_max: u32 = 5, Range(1, 100, "requests"), Live;
        /// The most of these that ask for more than a grant of the agent covers.
        requests_without_grant_max: u32 = 1, Range(1, 100, "requests"), Live;
        /// The most requests of one agent on behalf of one person in 24 hours that wait, expired or were rejected.
        requests_unapproved_per_day: u32 = 20, Range(1, 10_000, "requests"), Live;
        /// The most calls of one tool by one agent on behalf of one person that are rejected in 24 hours without an approval between them.
        rejected_in_a_row_max: u32 = 10, Range(1, 1000, "calls"), Live;
    }
}
