//! The operator's own chat: what `ironctl chat` speaks.
//!
//! Sending the same delivery twice shows it once, so after a crash it is simply sent again. Next: `delivery`.

use ironclaw_contract::ids::{DeliveryId, SessionId};
use std::sync::Arc;
use tokio::sync::broadcast;

pub use crate::registry::LOOPBACK as NAME;

/// Replies that a listener may lag behind before it reads them from the record.
const BACKLOG_MAX: usize = 256;

/// A reply that was handed to whoever listens.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The idempotency key.
    pub delivery: DeliveryId,
    /// The session.
    pub session: SessionId,
}

/// The channel.
#[derive(Clone)]
pub struct Loopback(broadcast::Sender<Arc<Sent>>);

impl Default for Loopback {
    fn default() -> Self {
        Self(broadcast::channel(BACKLOG_MAX).0)
    }
}

impl Loopback {
    /// Hands a delivery to whoever listens. It arrives even if nobody does: the conversation is read from the record.
    pub fn send(&self, delivery: DeliveryId, session: SessionId) {
        // No listener is no failure: the person reads it when they come back.
        let _ = self.0.send(Arc::new(Sent { delivery, session }));
    }

    /// Listens from now on.
    pub fn listen(&self) -> broadcast::Receiver<Arc<Sent>> {
        self.0.subscribe()
    }
}
