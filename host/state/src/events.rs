//! Notifies subscribers of committed ledger entries: of all entries, or of those about one session.
//!
//! Keeps no entries: a subscriber that lags behind must read the record. See [`crate`].

use super::Committed;
use ironclaw_contract::ids::SessionId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Entries that a subscriber may lag behind before it must read the record.
const EVENTS_MAX: usize = 1024;

/// The same bound for a subscriber of one session, which gets fewer entries.
const EVENTS_OF_ONE_MAX: usize = 64;

type Sender = broadcast::Sender<Arc<Committed>>;
type BySession = HashMap<SessionId, Sender>;

#[derive(Clone)]
pub(super) struct Events {
    pub(super) every: Sender,
    /// With many sessions at work, an entry concerns only a few of the subscribers.
    sessions: Arc<Mutex<BySession>>,
}

impl Default for Events {
    fn default() -> Self {
        Self { every: broadcast::channel(EVENTS_MAX).0, sessions: Arc::default() }
    }
}

impl Events {
    /// Notifies every subscriber that an entry concerns. An entry about no session concerns all subscribers.
    pub(super) fn notify(&self, entries: Vec<Committed>) {
        let sessions = lock(&self.sessions);
        for entry in entries {
            let entry = Arc::new(entry);
            // An error only means that there is no subscriber.
            match entry.session {
                Some(session) => drop(sessions.get(&session).map(|one| one.send(Arc::clone(&entry)))),
                None => sessions.values().for_each(|one| drop(one.send(Arc::clone(&entry)))),
            }
            let _ = self.every.send(entry);
        }
    }

    pub(super) fn subscribe(&self, session: SessionId) -> EventsOf {
        let mut sessions = lock(&self.sessions);
        let sender = sessions.entry(session).or_insert_with(|| broadcast::channel(EVENTS_OF_ONE_MAX).0);
        EventsOf { session, receiver: Some(sender.subscribe()), sessions: Arc::clone(&self.sessions) }
    }
}

/// A subscription to the entries about one session and to those about none.
pub struct EventsOf {
    session: SessionId,
    /// `None` only while it is dropped.
    receiver: Option<broadcast::Receiver<Arc<Committed>>>,
    sessions: Arc<Mutex<BySession>>,
}

impl EventsOf {
    /// Waits for the next entry.
    ///
    /// # Errors
    /// [`RecvError::Lagged`] when entries were missed, [`RecvError::Closed`] when no more entries follow.
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
        // Under the lock: when two subscriptions are dropped at once, the second one sees that it is the last.
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
    fn subscriptions_dropped_at_once_leave_no_sender() {
        let (events, session) = (Events::default(), SessionId::new());
        for _ in 0..2_000 {
            let (one, other) = (events.subscribe(session), events.subscribe(session));
            std::thread::scope(|scope| {
                scope.spawn(move || drop(one));
                scope.spawn(move || drop(other));
            });
            assert!(lock(&events.sessions).is_empty());
        }
    }
}
