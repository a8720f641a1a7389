//! What waits for people, in one life, whatever its kind.
//!
//! A kind brings its checks, its facts, its page and its effect ([`Kind`]); the rest is here, once: who is told, who may decide, how
//! approvals count, how something ends, and who learns of it. Decides nothing by itself.
//!
//! ```text
//! asked ──▶ Pending ──people──▶ Approved ──▶ Running ──▶ Done | Queued | Failed | Unknown
//!              ├──▶ Rejected | Expired | Withdrawn          └──▶ Expired | Withdrawn
//!              └──a restore──▶ Doubtful
//! ```

pub mod counted;
pub mod decide;
mod due;
mod ending;
mod kind;
mod notices;
mod presence;

pub use due::EndWorker;
pub use ending::{Doubted, doubt_all, end, end_active, erase, inform};
pub(in crate::gateway) use ending::{close, outcome};
pub use ironclaw_store::tables::waiting::{Ending, Filter, Scope, Status, Waiting, WaitingId, find, open_count};
pub use kind::{Kind, Rights, Shown, Sight, Step, Words, kind_of};
pub use notices::asked;
pub use presence::Presence;

use crate::registry::live_settings::{Live, LiveSettings};
use ironclaw_ledger::Entry;
use ironclaw_state::keys::ApprovalRoot;
use ironclaw_store::record::Record;
use std::sync::Arc;
use tokio::sync::{Notify, watch};

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
    pub fn new(record: Arc<Record>, settings: Arc<Live>, root: ApprovalRoot) -> Self {
        let (changed, bells) = (watch::Sender::default(), Bells::default());
        Self { record, settings, presence: Presence::default(), root, changed, bells }
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

/// Returns the ledger entry of a step in the life of what waits.
fn entry(of: &Waiting, step: Step) -> Entry {
    let words = kind_of(of.id).words();
    let mut entry = Entry::new((words.event)(step)).with(words.key, of.id);
    if let Some(session) = of.session {
        entry = entry.session(session);
    }
    match of.turn {
        Some(turn) => entry.turn(turn),
        None => entry,
    }
}
