//! Partial outputs of the open turns, for the clients that follow a conversation.
//!
//! A partial output is never the answer, and ends with its turn. The answer is the sealed output in the record. See
//! [`ironclaw_model::streaming`].

use ironclaw_contract::ids::{SessionId, TurnId};
use ironclaw_model::streaming::{PartialAnswer, PartialText};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The partial outputs of the sessions that made a model request in their open turn.
#[derive(Debug, Default)]
pub struct PartialOutputs(Mutex<HashMap<SessionId, Current>>);

#[derive(Debug)]
struct Current {
    turn: TurnId,
    draft: PartialAnswer,
    /// Closed when the turn is over.
    over: watch::Sender<()>,
    /// The same for its calls, which are no model requests.
    over_for_calls: watch::Sender<()>,
}

/// A turn that begins a model request.
#[derive(Debug)]
pub struct ActiveRequest {
    /// The partial output, which all requests of a turn share.
    pub draft: PartialAnswer,
    over: watch::Receiver<()>,
}

impl ActiveRequest {
    /// Waits until the turn is over.
    pub async fn over(&mut self) {
        // The sender never sends; an error means that it is dropped.
        while self.over.changed().await.is_ok() {}
    }
}

impl PartialOutputs {
    /// Begins a request of a turn. Drops the partial output of another turn of the session.
    pub fn begin(&self, session: SessionId, turn: TurnId) -> ActiveRequest {
        let mut partial_outputs = self.lock();
        let current = match partial_outputs.remove(&session) {
            Some(current) if current.turn == turn => current,
            _ => Current {
                turn,
                draft: PartialAnswer::default(),
                over: watch::Sender::new(()),
                over_for_calls: watch::Sender::new(()),
            },
        };
        let working = ActiveRequest { draft: current.draft.clone(), over: current.over.subscribe() };
        partial_outputs.insert(session, current);
        working
    }

    /// Returns the wait of a call for the end of its turn. A call follows a model request of its turn. Without one it waits for ever: a call
    /// of a turn that is over does not start.
    pub fn over_for_call(&self, session: SessionId, turn: TurnId) -> impl Future<Output = ()> + Send + use<> {
        let partial_outputs = self.lock();
        let current = partial_outputs.get(&session).filter(|current| current.turn == turn);
        let over = current.map(|current| current.over_for_calls.subscribe());
        async move {
            let Some(mut over) = over else { return std::future::pending().await };
            // The sender never sends; an error means that it is dropped.
            while over.changed().await.is_ok() {}
        }
    }

    /// Drops the partial output of a session whose turn is over or whose sandbox is gone. This ends a request in flight.
    pub fn end(&self, session: SessionId) {
        self.lock().remove(&session);
    }

    /// Returns whether this turn has a model request in flight.
    pub fn is_asking(&self, session: SessionId, turn: TurnId) -> bool {
        let partial_outputs = self.lock();
        partial_outputs.get(&session).is_some_and(|current| current.turn == turn && current.over.receiver_count() > 0)
    }

    /// Watches the partial output of a turn, if it made a model request.
    pub fn watch(&self, session: SessionId, turn: TurnId) -> Option<watch::Receiver<PartialText>> {
        let partial_outputs = self.lock();
        partial_outputs.get(&session).filter(|current| current.turn == turn).map(|current| current.draft.watch())
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
        let (partial_outputs, session, turn) = (PartialOutputs::default(), SessionId::new(), TurnId::new());
        assert!(partial_outputs.watch(session, turn).is_none());
        partial_outputs.begin(session, turn).draft.begin();
        let mut seen = partial_outputs.watch(session, turn).expect("it asked");
        assert!(partial_outputs.watch(session, TurnId::new()).is_none());
        assert!(!partial_outputs.is_asking(session, turn), "the first request is over");
        let second = partial_outputs.begin(session, turn);
        assert!(partial_outputs.is_asking(session, turn) && !partial_outputs.is_asking(session, TurnId::new()));
        second.draft.begin();
        second.draft.push("words");
        assert_eq!(*seen.borrow_and_update(), PartialText { attempt: 2, text: "words".to_owned() });
        partial_outputs.end(session);
        assert!(partial_outputs.watch(session, turn).is_none());
    }

    #[tokio::test]
    async fn the_end_of_a_turn_ends_its_request_and_no_other() {
        let (partial_outputs, session, turn) = (PartialOutputs::default(), SessionId::new(), TurnId::new());
        let (mut ours, mut other) =
            (partial_outputs.begin(session, turn), partial_outputs.begin(SessionId::new(), turn));
        let of_call = partial_outputs.over_for_call(session, turn);
        partial_outputs.end(session);
        ours.over().await;
        of_call.await;
        let pending = tokio::time::timeout(std::time::Duration::ZERO, other.over());
        assert!(pending.await.is_err(), "it continues");
    }
}
