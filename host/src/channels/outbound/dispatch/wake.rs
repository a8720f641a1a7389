//! The wake-ups by new entries of the ledger: of the worker, and of the sessions with a message of another agent.

use super::Dispatch;
use crate::sessions::Wake;
use crate::turns::turn;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::Committed;
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// The entries about a message between agents that a session has.
const OF_AGENTS: [LedgerEvent; 3] = [LedgerEvent::AgentSent, LedgerEvent::AgentAnswered, LedgerEvent::AgentRefused];

impl Dispatch {
    /// Wakes the worker for each new notification and each message to a destination, and the session of each message between agents, until
    /// the record is closed.
    pub(super) async fn wake_for_intents(&self, mut events: broadcast::Receiver<Arc<Committed>>, wake: &Arc<dyn Wake>) {
        loop {
            match events.recv().await {
                Ok(entry) if OF_AGENTS.contains(&entry.event) => {
                    if let Some(session) = entry.session {
                        wake.wake(session);
                    }
                }
                Ok(entry) if [LedgerEvent::NotificationIntended, LedgerEvent::SendIntended].contains(&entry.event) => {
                    self.wake();
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => {
                    self.wake();
                    let read = self.record.state.read(turn::sessions_with_work).await;
                    read.unwrap_or_default().into_iter().for_each(|session| wake.wake(session));
                }
                // The worker notices it too, and ends.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
