//! Partial outputs of the open turns, for the clients that follow a conversation.
//!
//! A partial output is never the answer, and ends with its turn. The answer is the sealed output in the record. See
//! [`ironclaw_model::draft`].

use ironclaw_contract::ids::{SessionId, TurnId};
use ironclaw_model::draft::{Draft, Words};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The partial outputs of the sessions that made a model request in their open turn.
#[derive(Debug, Default)]
pub struct Drafts(Mutex<HashMap<SessionId, Current>>);

#[derive(Debug)]
struct Current {
    turn: TurnId,
    draft: Draft,
    /// Closed when the turn is over.
    over: watch::Sender<()>,
}

/// A turn that begins a model request.
#[derive(Debug)]
pub struct Working {
    /// The partial output, which all requests of a turn share.
    pub draft: Draft,
    over: watch::Receiver<()>,
}

impl Working {
    /// Waits until the turn is over.
    pub async fn over(&mut self) {
        // The sender never sends; an error means that it is dropped.
        while self.over.changed().await.is_ok() {}
    }
}

impl Drafts {
    /// Begins a request of a turn. Drops the partial output of another turn of the session.
    pub fn begin(&self, session: SessionId, turn: TurnId) -> Working {
        let mut drafts = self.lock();
        let current = match drafts.remove(&session) {
            Some(current) if current.turn == turn => current,
            _ => Current { turn, draft: Draft::default(), over: watch::Sender::new(()) },
        };
        let working = Working { draft: current.draft.clone(), over: current.over.subscribe() };
        drafts.insert(session, current);
        working
    }

    /// Drops the partial output of a session whose turn is over or whose sandbox is gone. This ends a request in flight.
    pub fn end(&self, session: SessionId) {
        self.lock().remove(&session);
    }

    /// Returns whether this turn has a model request in flight.
    pub fn is_asking(&self, session: SessionId, turn: TurnId) -> bool {
        let drafts = self.lock();
        drafts.get(&session).is_some_and(|current| current.turn == turn && current.over.receiver_count() > 0)
    }

    /// Watches the partial output of a turn, if it made a model request.
    pub fn watch(&self, session: SessionId, turn: TurnId) -> Option<watch::Receiver<Words>> {
        let drafts = self.lock();
        drafts.get(&session).filter(|current| current.turn == turn).map(|current| current.draft.watch())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Current>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn draft_is_shared_by_the_requests_of_one_turn_only() {
        let (drafts, session, turn) = (Drafts::default(), SessionId::new(), TurnId::new());
        assert!(drafts.watch(session, turn).is_none());
        drafts.begin(session, turn).draft.begin();
        let mut seen = drafts.watch(session, turn).expect("it asked");
        assert!(drafts.watch(session, TurnId::new()).is_none());
        assert!(!drafts.is_asking(session, turn), "the first request is over");
        let second = drafts.begin(session, turn);
        assert!(drafts.is_asking(session, turn) && !drafts.is_asking(session, TurnId::new()));
        second.draft.begin();
        second.draft.push("words");
        assert_eq!(*seen.borrow_and_update(), Words { attempt: 2, text: "words".to_owned() });
        drafts.end(session);
        assert!(drafts.watch(session, turn).is_none());
    }

    #[tokio::test]
    async fn the_end_of_a_turn_ends_its_request_and_no_other() {
        let (drafts, session, turn) = (Drafts::default(), SessionId::new(), TurnId::new());
        let (mut ours, mut other) = (drafts.begin(session, turn), drafts.begin(SessionId::new(), turn));
        drafts.end(session);
        ours.over().await;
        let pending = tokio::time::timeout(std::time::Duration::ZERO, other.over());
        assert!(pending.await.is_err(), "it continues");
    }
}
