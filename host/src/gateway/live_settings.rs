//! The settings that a reload replaces while the host runs, in one cell that every reader shares.
//!
//! Reads no file and checks nothing: `daemon::reload` does both. A reader takes the settings anew for each decision, and never keeps them.

use super::policy::Policy;
use super::{ApprovalConfig, HostPolicy};
use crate::inbound::channel;
use crate::{agent_messages, quota, session};
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
    pub agents: agent_messages::Config,
    /// `[session]`; the limits of awake sessions are read at the start only.
    pub session: session::Config,
    /// The settings of each kind of channel; ports and limits of requests are read at the start only.
    pub channels: channel::Config,
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
