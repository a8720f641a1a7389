//! The places among the awake sessions: who waits for one, who holds one, who is asked to give it back.
//!
//! Decides nothing: after each change it does what `fair` says until there is nothing more to do. Never blocks on anything but
//! its own lock. Next: `runtime::admission::fair`.

mod capacity;
mod fair;

pub use fair::Limits;

use crate::session;
use fair::{Awake, Step, Waiting};
use ironclaw_contract::ids::{AgentId, SessionId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

impl Limits {
    /// The limits that the settings name, and where they name none, what this machine can bear.
    pub fn of(config: &session::Config) -> Self {
        let awake_max = match config.awake_max {
            0 => capacity::awake_max(),
            set => set as usize,
        };
        // Half: one busy agent leaves room for a second without anybody being put to sleep.
        let awake_per_agent_max = match config.awake_per_agent_max {
            0 => awake_max.div_ceil(2),
            set => (set as usize).min(awake_max),
        };
        Self { awake_max, awake_per_agent_max }
    }
}

/// Every place of the host.
pub struct Places {
    limits: Limits,
    inner: Mutex<Inner>,
    /// How many are taken, for whoever waits until none is.
    taken: watch::Sender<usize>,
}

#[derive(Default)]
struct Inner {
    waiting: Waiting,
    awake: Awake,
    /// Who is to be told what becomes of its wish or of its place.
    told: HashMap<SessionId, watch::Sender<Stand>>,
}

/// Where a session stands with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stand {
    Waits,
    Held,
    AskedBack,
}

/// How full it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Places taken.
    pub awake: usize,
    /// Places there are.
    pub awake_max: usize,
    /// Sessions that wait for one.
    pub waiting: usize,
}

impl Places {
    /// Nobody is awake.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, inner: Mutex::default(), taken: watch::Sender::new(0) })
    }

    /// Joins those who wait for a place, for a turn on behalf of this person. A session that waits or holds one already must not join
    /// again.
    pub fn join(self: &Arc<Self>, agent: AgentId, person: &str, session: SessionId) -> Place {
        let (tell, stand) = watch::channel(Stand::Waits);
        self.change(|inner| {
            inner.told.insert(session, tell);
            inner.waiting.join(agent, person, session, &inner.awake);
        });
        Place { places: Arc::clone(self), session, stand }
    }

    /// The place in the line of a session that waits, from 1.
    pub fn line(&self, session: SessionId) -> Option<usize> {
        self.lock().waiting.order().iter().position(|waiting| *waiting == session).map(|at| at + 1)
    }

    /// How full it is now.
    pub fn room(&self) -> Room {
        let inner = self.lock();
        Room { awake: inner.awake.len(), awake_max: self.limits.awake_max, waiting: inner.waiting.len() }
    }

    /// Returns once no place is taken.
    pub async fn empty(&self) {
        // Its other end is in `self`.
        let _ = self.taken.subscribe().wait_for(|taken| *taken == 0).await;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something, then does what follows from it.
    fn change(&self, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.lock();
        change(&mut inner);
        while let Some(step) = fair::next(&inner.waiting, &inner.awake, self.limits) {
            let (session, stand) = match step {
                Step::Admit(session) => {
                    if let Some((agent, person)) = inner.waiting.leave(session, true) {
                        inner.awake.enter(agent, person, session);
                    }
                    (session, Stand::Held)
                }
                Step::AskBack(session) => {
                    inner.awake.ask_back(session);
                    (session, Stand::AskedBack)
                }
            };
            if let Some(tell) = inner.told.get(&session) {
                tell.send_replace(stand);
            }
        }
        self.taken.send_replace(inner.awake.len());
    }
}

/// A wish for a place, then the place itself. Dropping it gives up either.
pub struct Place {
    places: Arc<Places>,
    session: SessionId,
    stand: watch::Receiver<Stand>,
}

impl Place {
    /// Returns once the place is there. Can be dropped and asked again.
    pub async fn held(&mut self) {
        // Its other end lives in the map until this is dropped.
        let _ = self.stand.wait_for(|stand| *stand != Stand::Waits).await;
    }

    /// Returns once others need the place more. Can be dropped and asked again.
    pub async fn asked_back(&mut self) {
        let _ = self.stand.wait_for(|stand| *stand == Stand::AskedBack).await;
    }

    /// Whether others need it more.
    pub fn is_asked_back(&self) -> bool {
        *self.stand.borrow() == Stand::AskedBack
    }

    /// Its session has opened a turn.
    pub fn busy(&self) {
        self.places.change(|inner| inner.awake.busy(self.session));
    }

    /// Its session has ended a turn.
    pub fn turn_ended(&self) {
        self.places.change(|inner| inner.awake.turn_ended(self.session));
    }

    /// Its session has nothing to do.
    pub fn idle(&self) {
        self.places.change(|inner| inner.awake.idle(self.session));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.change(|inner| {
            inner.told.remove(&self.session);
            inner.waiting.leave(self.session, false);
            inner.awake.leave(self.session);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn released_place_goes_to_the_next_and_never_to_a_leaver() {
        let places = Places::new(Limits { awake_max: 1, awake_per_agent_max: 1 });
        let agent = AgentId::new();
        let ids: Vec<SessionId> = (0..3).map(|_| SessionId::new()).collect();
        let mut first = places.join(agent, "ann", ids[0]);
        first.held().await;
        let second = places.join(agent, "ann", ids[1]);
        let mut third = places.join(agent, "ann", ids[2]);
        assert_eq!((places.line(ids[0]), places.line(ids[1]), places.line(ids[2])), (None, Some(1), Some(2)));
        assert_eq!(places.room(), Room { awake: 1, awake_max: 1, waiting: 2 });
        drop(second);
        assert_eq!(places.line(ids[2]), Some(1));
        assert!(!first.is_asked_back(), "it is in a turn");
        first.idle();
        first.asked_back().await;
        drop(first);
        third.held().await;
        assert_eq!(places.room(), Room { awake: 1, awake_max: 1, waiting: 0 });
        drop(third);
        assert_eq!(places.room(), Room { awake: 0, awake_max: 1, waiting: 0 });
        assert!(places.lock().told.is_empty(), "nobody who has gone leaves anything");
    }
}
