//! Tells listeners of ledger entries that are committed: all of them, or those about one session.
//!
//! Keeps nothing: a listener that lags behind has to look for itself. See [`crate`].

use super::Committed;
use ironclaw_contract::ids::SessionId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Committed entries that a slow listener may lag behind before it has to look for itself.
const EVENTS_MAX: usize = 1024;

/// The same for a listener to one session, which has fewer.
const EVENTS_OF_ONE_MAX: usize = 64;

type Sender = broadcast::Sender<Arc<Committed>>;
type BySession = HashMap<SessionId, Sender>;

/// The listeners.
#[derive(Clone)]
pub(super) struct Events {
    pub(super) every: Sender,
    /// With many sessions at work, each entry concerns hardly any of those who wait for an answer.
    sessions: Arc<Mutex<BySession>>,
}

impl Default for Events {
    fn default() -> Self {
        Self { every: broadcast::channel(EVENTS_MAX).0, sessions: Arc::default() }
    }
}

impl Events {
    /// Tells every listener that an entry concerns; one about no session concerns all.
    pub(super) fn tell(&self, entries: Vec<Committed>) {
        let sessions = lock(&self.sessions);
        for entry in entries {
            let entry = Arc::new(entry);
            // There may be no listener.
            match entry.session {
                Some(session) => drop(sessions.get(&session).map(|one| one.send(Arc::clone(&entry)))),
                None => sessions.values().for_each(|one| drop(one.send(Arc::clone(&entry)))),
            }
            let _ = self.every.send(entry);
        }
    }

    pub(super) fn of(&self, session: SessionId) -> EventsOf {
        let mut sessions = lock(&self.sessions);
        let sender = sessions.entry(session).or_insert_with(|| broadcast::channel(EVENTS_OF_ONE_MAX).0);
        EventsOf { session, receiver: Some(sender.subscribe()), sessions: Arc::clone(&self.sessions) }
    }
}

/// The entries about one session, and those about none, from now on.
pub struct EventsOf {
    session: SessionId,
    /// None only once it is dropped.
    receiver: Option<broadcast::Receiver<Arc<Committed>>>,
    sessions: Arc<Mutex<BySession>>,
}

impl EventsOf {
    /// Waits for the next one.
    ///
    /// # Errors
    /// When some were missed, or none will come after it.
    pub async fn recv(&mut self) -> Result<Arc<Committed>, RecvError> {
        match &mut self.receiver {
            Some(receiver) => receiver.recv().await,
            None => Err(RecvError::Closed),
        }
    }
}

impl Drop for EventsOf {
    fn drop(&mut self) {
        let mut sessions = lock(&self.sessions);
        // Under the lock, so that of two that go at once the second sees that it is the last.
        drop(self.receiver.take());
        if sessions.get(&self.session).is_some_and(|sender| sender.receiver_count() == 0) {
            sessions.remove(&self.session);
        }
    }
}

fn lock(sessions: &Mutex<BySession>) -> MutexGuard<'_, BySession> {
    sessions.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_listeners_that_go_at_once_none_is_left_in_the_list() {
        let (events, session) = (Events::default(), SessionId::new());
        for _ in 0..2_000 {
            let (one, other) = (events.of(session), events.of(session));
            std::thread::scope(|scope| {
                scope.spawn(move || drop(one));
                scope.spawn(move || drop(other));
            });
            assert!(lock(&events.sessions).is_empty());
        }
    }
}
