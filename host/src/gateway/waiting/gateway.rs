//! The gateway of this host: its record, its rules, its kinds and its bells.

use super::kind::Kind;
use super::presence::Presence;
use crate::registry::live_settings::{Live, LiveSettings};
use ironclaw_operator::WaitingId;
use ironclaw_state::keys::ApprovalRoot;
use ironclaw_store::record::Record;
use std::sync::Arc;
use tokio::sync::{Notify, watch};

/// Returns the kind of an id.
pub type KindOf = fn(WaitingId) -> &'static dyn Kind;

/// The gateway of this host: where what waits is recorded, the rules for it, and who learns that it changed.
pub struct Gateway {
    pub record: Arc<Record>,
    pub settings: Arc<Live>,
    /// The people who follow a message and can decide there.
    pub presence: Presence,
    /// The root of the keys of approvals.
    root: ApprovalRoot,
    /// Changes whenever something waits, is decided or ends, or an approved call has run.
    changed: watch::Sender<u64>,
    pub bells: Bells,
    kind_of: KindOf,
}

/// The bells of the workers.
#[derive(Debug, Default)]
pub struct Bells {
    /// Applies approved changes.
    pub changes: Notify,
    /// Runs approved calls for which no turn waits.
    pub calls: Notify,
    /// Ends what was not decided in time, and reminds people.
    pub ends: Notify,
}

impl Gateway {
    pub fn new(record: Arc<Record>, settings: Arc<Live>, root: ApprovalRoot, kind_of: KindOf) -> Self {
        let (changed, bells) = (watch::Sender::default(), Bells::default());
        Self { record, settings, presence: Presence::default(), root, changed, bells, kind_of }
    }

    /// Returns the kind of this id.
    pub fn kind(&self, id: WaitingId) -> &'static dyn Kind {
        (self.kind_of)(id)
    }

    /// Returns the root of the keys of approvals.
    pub(in crate::gateway) const fn root(&self) -> &ApprovalRoot {
        &self.root
    }

    /// Returns the present rules for decisions, and the other settings that a reload replaces.
    pub fn now(&self) -> Arc<LiveSettings> {
        self.settings.now()
    }

    /// Watches for what waits, is decided or ends.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Announces that something waits or is decided: to calls that wait, to followers, and to the workers.
    pub fn announce(&self) {
        self.announce_end();
        for bell in [&self.bells.changes, &self.bells.calls, &self.bells.ends] {
            bell.notify_one();
        }
    }

    /// Announces an end, after which the workers have nothing to do, to calls that wait and to followers.
    pub fn announce_end(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }
}
