//! The approval requests of a host: where they are recorded, and who learns that one changed.
//!
//! Decides nothing. See [`super`].

use super::presence::Presence;
use crate::registry::live_settings::Live;
use ironclaw_state::keys::ApprovalRoot;
use ironclaw_store::record::Record;
use std::sync::Arc;
use tokio::sync::{Notify, watch};

/// The approval requests of this host.
pub struct Requests {
    pub record: Arc<Record>,
    pub settings: Arc<Live>,
    /// The people who follow a message and can decide there.
    pub presence: Presence,
    /// The root of the keys of approvals.
    root: ApprovalRoot,
    /// Changes whenever a request changes, or its call has run.
    changed: watch::Sender<u64>,
    pub bell: Notify,
}

impl Requests {
    pub fn new(record: Arc<Record>, settings: Arc<Live>, root: ApprovalRoot) -> Self {
        let changed = watch::Sender::default();
        Self { record, settings, presence: Presence::default(), root, changed, bell: Notify::new() }
    }

    /// Returns the root of the keys of approvals.
    pub(crate) const fn root(&self) -> &ApprovalRoot {
        &self.root
    }

    /// Watches for changes of requests.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Announces that a request changed: to calls that wait, to followers, and to the worker.
    pub fn announce(&self) {
        self.announce_end();
        self.bell.notify_one();
    }

    /// Announces the end of a request or a call, after which the worker has nothing to do, to calls that wait and to followers.
    pub fn announce_end(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }
}
