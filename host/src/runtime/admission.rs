//! The slots of awake sessions: the sessions that wait for one, hold one, or are asked to give it back.
//!
//! Decides nothing: after each change it applies the steps of `fair` until there is none. Never blocks except on its own lock. See
//! `runtime::admission::fair`.

mod capacity;
mod fair;

pub use fair::Limits;

use crate::sessions;
use fair::{Awake, Step, Waiting};
use ironclaw_contract::ids::{AgentId, SessionId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

impl Limits {
    /// Returns the limits of the settings. A limit that is not set is derived from this machine.
    pub fn from_config(config: &sessions::Config) -> Self {
        let awake_max = match config.awake_max {
            0 => capacity::awake_max(),
            set => set as usize,
        };
        // Half: so one busy agent leaves slots for a second one without an eviction.
        let awake_per_agent_max = match config.awake_per_agent_max {
            0 => awake_max.div_ceil(2),
            set => (set as usize).min(awake_max),
        };
        Self { awake_max, awake_per_agent_max }
    }
}

/// All slots of the host.
pub struct Admission {
    limits: Limits,
    inner: Mutex<Inner>,
    /// The number of held slots, for callers that wait until it is 0.
    taken: watch::Sender<usize>,
}

#[derive(Default)]
struct Inner {
    waiting: Waiting,
    awake: Awake,
    /// Notifies each session of a change of its slot.
    watchers: HashMap<SessionId, watch::Sender<SlotState>>,
}

/// The state of a session's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotState {
    Waits,
    Held,
    AskedBack,
}

/// The numbers of held slots and of waiting sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    pub awake: usize,
    pub awake_max: usize,
    /// Sessions that wait for a slot.
    pub waiting: usize,
}

impl Admission {
    /// Makes the slots; no session is awake.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, inner: Mutex::default(), taken: watch::Sender::new(0) })
    }

    /// Queues a session for a slot, for a turn on behalf of this person. A session that already waits or holds a slot must not join
    /// again.
    pub fn join(self: &Arc<Self>, agent: AgentId, person: &str, session: SessionId) -> Slot {
        let (sender, state) = watch::channel(SlotState::Waits);
        self.change(|inner| {
            inner.watchers.insert(session, sender);
            inner.waiting.join(agent, person, session, &inner.awake);
        });
        Slot { admission: Arc::clone(self), session, state }
    }

    /// Takes a slot for a session without work, if one is free under `fair::may_take_free`. The slot is idle: other sessions may ask it
    /// back at any time. A session that already waits or holds a slot must not take one.
    pub fn take_free(self: &Arc<Self>, agent: AgentId, person: &str, session: SessionId) -> Option<Slot> {
        let mut taken = None;
        self.change(|inner| {
            if !fair::may_take_free(agent, &inner.waiting, &inner.awake, self.limits) {
                return;
            }
            inner.awake.enter(agent, person.to_owned(), session);
            inner.awake.idle(session);
            let (sender, state) = watch::channel(SlotState::Held);
            inner.watchers.insert(session, sender);
            taken = Some(state);
        });
        taken.map(|state| Slot { admission: Arc::clone(self), session, state })
    }

    /// Returns the position of a waiting session in the queue, from 1.
    pub fn queue_position(&self, session: SessionId) -> Option<usize> {
        self.lock().waiting.order().iter().position(|waiting| *waiting == session).map(|at| at + 1)
    }

    /// Returns the current numbers.
    pub fn occupancy(&self) -> Occupancy {
        let inner = self.lock();
        Occupancy { awake: inner.awake.len(), awake_max: self.limits.awake_max, waiting: inner.waiting.len() }
    }

    /// Returns once no slot is held.
    pub async fn empty(&self) {
        // The sender is in `self`.
        let _ = self.taken.subscribe().wait_for(|taken| *taken == 0).await;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a change, then every step that follows from it.
    fn change(&self, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.lock();
        change(&mut inner);
        while let Some(step) = fair::next(&inner.waiting, &inner.awake, self.limits) {
            let (session, state) = match step {
                Step::Admit(session) => {
                    if let Some((agent, person)) = inner.waiting.leave(session, true) {
                        inner.awake.enter(agent, person, session);
                    }
                    (session, SlotState::Held)
                }
                Step::AskBack(session) => {
                    inner.awake.ask_back(session);
                    (session, SlotState::AskedBack)
                }
            };
            if let Some(sender) = inner.watchers.get(&session) {
                sender.send_replace(state);
            }
        }
        self.taken.send_replace(inner.awake.len());
    }
}

/// A queued request for a slot, then the slot itself. Dropping it gives up either.
pub struct Slot {
    admission: Arc<Admission>,
    session: SessionId,
    state: watch::Receiver<SlotState>,
}

impl Slot {
    /// Returns once the slot is held. Cancel safe.
    pub async fn held(&mut self) {
        // The sender is in the map until this slot is dropped.
        let _ = self.state.wait_for(|state| *state != SlotState::Waits).await;
    }

    /// Returns once other sessions need the slot more. Cancel safe.
    pub async fn asked_back(&mut self) {
        let _ = self.state.wait_for(|state| *state == SlotState::AskedBack).await;
    }

    /// Returns whether other sessions need the slot more.
    pub fn is_asked_back(&self) -> bool {
        *self.state.borrow() == SlotState::AskedBack
    }

    /// Records that the session has opened a turn.
    pub fn busy(&self) {
        self.admission.change(|inner| inner.awake.busy(self.session));
    }

    /// Records that the session has ended a turn.
    pub fn turn_ended(&self) {
        self.admission.change(|inner| inner.awake.turn_ended(self.session));
    }

    /// Records that the session has no work.
    pub fn idle(&self) {
        self.admission.change(|inner| inner.awake.idle(self.session));
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.admission.change(|inner| {
            inner.watchers.remove(&self.session);
            inner.waiting.leave(self.session, false);
            inner.awake.leave(self.session);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slot_without_work_keeps_the_bounds() {
        let admission = Admission::new(Limits { awake_max: 4, awake_per_agent_max: 2 });
        let (first, second, third) = (AgentId::new(), AgentId::new(), AgentId::new());
        let take = |agent| admission.take_free(agent, "ann", SessionId::new());
        let of_first = take(first).expect("every slot is free");
        assert!(take(first).is_none(), "half of the slots of one agent");
        let of_second = take(second).expect("half of the slots are free");
        assert!(take(third).is_none(), "half of all slots");
        drop((of_first, of_second));
        assert_eq!(admission.occupancy(), Occupancy { awake: 0, awake_max: 4, waiting: 0 });
        assert!(admission.lock().watchers.is_empty(), "no watcher is left");
        let only = Admission::new(Limits { awake_max: 1, awake_per_agent_max: 1 });
        assert!(only.take_free(first, "ann", SessionId::new()).is_none(), "the only slot is for work");
    }

    #[tokio::test]
    async fn a_slot_without_work_gives_way_to_work() {
        let admission = Admission::new(Limits { awake_max: 2, awake_per_agent_max: 2 });
        let agent = AgentId::new();
        let mut free = admission.take_free(agent, "ann", SessionId::new()).expect("half of the slots are free");
        let mut working: Vec<_> = (0..2).map(|_| admission.join(agent, "ann", SessionId::new())).collect();
        working[0].held().await;
        free.asked_back().await;
        assert!(admission.take_free(agent, "ann", SessionId::new()).is_none(), "a session waits");
        drop(free);
        working[1].held().await;
    }

    #[tokio::test]
    async fn released_slot_goes_to_the_next_waiting_session() {
        let admission = Admission::new(Limits { awake_max: 1, awake_per_agent_max: 1 });
        let agent = AgentId::new();
        let ids: Vec<SessionId> = (0..3).map(|_| SessionId::new()).collect();
        let mut first = admission.join(agent, "ann", ids[0]);
        first.held().await;
        let second = admission.join(agent, "ann", ids[1]);
        let mut third = admission.join(agent, "ann", ids[2]);
        assert_eq!(
            (admission.queue_position(ids[0]), admission.queue_position(ids[1]), admission.queue_position(ids[2])),
            (None, Some(1), Some(2))
        );
        assert_eq!(admission.occupancy(), Occupancy { awake: 1, awake_max: 1, waiting: 2 });
        drop(second);
        assert_eq!(admission.queue_position(ids[2]), Some(1));
        assert!(!first.is_asked_back(), "it is in a turn");
        first.idle();
        first.asked_back().await;
        drop(first);
        third.held().await;
        assert_eq!(admission.occupancy(), Occupancy { awake: 1, awake_max: 1, waiting: 0 });
        drop(third);
        assert_eq!(admission.occupancy(), Occupancy { awake: 0, awake_max: 1, waiting: 0 });
        assert!(admission.lock().watchers.is_empty(), "no watcher is left");
    }
}
