//! The sends in flight, each with the row that it settles.
//!
//! Records the outcome in the place of a send that panicked. See [`super::Dispatcher`].

use super::attempt::interrupted;
use super::{Dispatcher, OutgoingDelivery};
use crate::channels::notifications::Stored;
use crate::channels::outbound::delivery::Delivery;
use ironclaw_contract::ids::DeliveryId;
use ironclaw_state::failpoint;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// The wait before a delivery is sent again whose task panicked in the host.
const PANIC_WAIT: Duration = Duration::from_secs(60);

/// The row that a send settles.
#[derive(Debug, Clone)]
pub(super) enum Letter {
    Delivery(Delivery),
    Notification(Stored),
}

impl Letter {
    pub(super) const fn id(&self) -> DeliveryId {
        match self {
            Self::Delivery(delivery) => delivery.id,
            Self::Notification(stored) => stored.id,
        }
    }

    /// Reaches the failpoint before it is sent.
    pub(super) fn reach_taken(&self) {
        failpoint::reach(match self {
            Self::Delivery(_) => "parcel_taken",
            Self::Notification(_) => "notification_taken",
        });
    }

    /// Reaches the failpoint after it was sent.
    pub(super) fn reach_sent(&self) {
        failpoint::reach(match self {
            Self::Delivery(_) => "parcel_sent",
            Self::Notification(_) => "notification_sent",
        });
    }
}

/// The sends in flight, each with its row and whether its channel is idempotent.
#[derive(Default)]
pub(super) struct InFlight {
    tasks: JoinSet<()>,
    letters: HashMap<tokio::task::Id, (Letter, bool)>,
}

impl InFlight {
    pub(super) fn start(&mut self, dispatcher: &Arc<Dispatcher>, outgoing: OutgoingDelivery) {
        let about = (outgoing.letter.clone(), outgoing.idempotent);
        let id = self.tasks.spawn(Arc::clone(dispatcher).send(outgoing)).id();
        self.letters.insert(id, about);
    }

    /// Waits for the end of one send; `None` if none is in flight. After a panic of the task the delivery may have left the host, so this
    /// records the outcome in its place.
    pub(super) async fn finish(&mut self, dispatcher: &Arc<Dispatcher>) -> Option<()> {
        match self.tasks.join_next_with_id().await? {
            Ok((id, ())) => {
                self.letters.remove(&id);
            }
            Err(error) => {
                if let Some((letter, idempotent)) = self.letters.remove(&error.id()) {
                    tracing::error!(delivery = %letter.id(), "the task that sent a delivery panicked");
                    let words = "the host failed while it was being sent".to_owned();
                    let outcome = interrupted(words, idempotent, PANIC_WAIT);
                    self.tasks.spawn(Arc::clone(dispatcher).note(letter, outcome));
                }
            }
        }
        Some(())
    }
}
