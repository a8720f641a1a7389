//! Messages that agents send to destinations: the intent is recorded with the start of the call, and the call waits for the first attempt.
//! A message to another agent is in its session with the start of the call, and its answer comes later.
//!
//! Never sends one itself: the journal of deliveries does, with its retries. A message that waits is never reported as delivered. See
//! [`crate::channels::outbound::delivery`].

use super::{Executor, Place};
use crate::channels::agent_messages::Keys;
use crate::channels::agent_messages::request::{self, Request};
use crate::channels::outbound::delivery;
use crate::gateway::requests::facts::{Facts, Message};
use crate::turns::calls::{CallOutcome, ResultBody};
use crate::turns::turn::Position;
use ironclaw_contract::ids::{AgentId, CallId, DeliveryId, ItemId, MessageId};
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::deliveries::{self, Delivery, DeliveryState, SentItem};
use ironclaw_store::tables::destinations::ReplyAddress;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};

/// The longest wait for the first attempt: it is longer than one attempt may take.
const WAIT_MAX: Duration = Duration::from_secs(25);

/// A message or a file of a judged call, to a destination or into the conversation.
pub(super) struct Order {
    call: CallId,
    /// The output that has the call.
    output: ItemId,
    /// The agent's name for the destination.
    to: String,
    /// The approved channel of the destination.
    pub(super) channel: String,
    address: String,
    thread: String,
    /// The agent that sends, and the other agent that receives.
    sender: AgentId,
    receiver: Option<AgentId>,
    text: String,
    /// The intent, once it is recorded.
    intent: Intent,
}

/// What is recorded of a message at the start of its call.
enum Intent {
    None,
    /// A delivery on a channel.
    Delivery(DeliveryId),
    /// A message in the session of another agent.
    Message(MessageId),
    /// The host refused it.
    Refused(Refusal),
}

impl Order {
    /// Returns the order of a message or a file to the address of its facts.
    pub(super) fn to_address(call: CallId, output: ItemId, sender: AgentId, facts: &Facts, message: &Message) -> Self {
        let text = facts.arguments().get("text").and_then(Value::as_str).unwrap_or_default();
        let Message { to, channel, registered: _, address, thread, receiver, file: _ } = message.clone();
        Self {
            call,
            output,
            to,
            channel,
            address,
            thread,
            sender,
            receiver,
            text: text.to_owned(),
            intent: Intent::None,
        }
    }

    /// Records the intent of the delivery, or the message in the session of the other agent.
    pub(super) fn intend(
        &mut self,
        tx: &mut WriteTx<'_>,
        executor: &Executor,
        place: &Place,
        position: Option<&Position>,
    ) -> Result<(), Error> {
        request::count(tx, self.sender, self.call)?;
        let Some(receiver) = self.receiver else {
            let Self { call, output, channel, address, thread, .. } = &*self;
            // The turn has a delivery of its own: its answer.
            let message = SentItem { session: place.session, turn: None, item: *output, call: Some(*call) };
            let (sender, thread) = (address.clone(), thread.clone());
            let to = ReplyAddress { channel: channel.clone(), sender, group: String::new(), thread };
            self.intent = Intent::Delivery(delivery::intend_message(tx, place.turn, message, &to)?.id);
            return Ok(());
        };
        let position = position.ok_or_else(|| {
            ironclaw_state::Error::Stored(format!("{} sends without a position in its chain", place.turn))
        })?;
        let from = (place.session, self.call);
        let request = Request { from, sender: self.sender, receiver, position, text: &self.text };
        let keys = Keys { wrapping: &executor.record.wrapping, sealer: &executor.record.sealer };
        let settings = executor.settings.now();
        self.intent = match request::send(tx, &request, &settings.quota, executor.sessions_max, keys) {
            Ok(message) => Intent::Message(message),
            Err(Denied::Refused(refusal)) => Intent::Refused(refusal),
            Err(Denied::Failed(error)) => return Err(error),
        };
        Ok(())
    }
}

impl Executor {
    /// Waits for the first attempt of a message, at most as long as `left`, and returns what is known of it.
    pub(super) async fn send(&self, order: &Order, left: Duration) -> ResultBody {
        let until = Instant::now() + left.min(WAIT_MAX);
        let id = match &order.intent {
            Intent::Delivery(id) => *id,
            Intent::Message(message) => return told_of_agent(order, *message),
            Intent::Refused(refusal) => {
                return ResultBody::failed(format!("not sent: {} ({})", refusal.message, refusal.code));
            }
            Intent::None => return told(order, None),
        };
        let found = self.first_attempt(id, until).await.unwrap_or_else(|error| {
            tracing::error!(delivery = %id, %error, "cannot read the progress of a message");
            None
        });
        told(order, found.map(|found| (found.state, found.reason)))
    }

    async fn first_attempt(&self, id: DeliveryId, until: Instant) -> Result<Option<Delivery>, Error> {
        let mut events = self.record.state.events();
        loop {
            let found = self.record.state.read(move |tx| deliveries::find(tx, id)).await?;
            let waits = found.as_ref().is_some_and(|found| {
                found.state == DeliveryState::Sending || found.state == DeliveryState::Intent && found.attempts == 0
            });
            if !waits {
                return Ok(found);
            }
            match timeout_at(until, events.recv()).await {
                Ok(Ok(_) | Err(RecvError::Lagged(_))) => {}
                Ok(Err(RecvError::Closed)) | Err(_) => return Ok(found),
            }
        }
    }
}

/// Returns the words about a message for the model, by the state of its delivery and the reason of the last attempt that failed.
fn told(order: &Order, found: Option<(DeliveryState, Option<String>)>) -> ResultBody {
    let to = &order.to;
    let id = match order.intent {
        Intent::Delivery(id) => format!(" ({id})"),
        Intent::None | Intent::Message(_) | Intent::Refused(_) => String::new(),
    };
    let unknown = |because: &str| format!("it is unknown whether it reached {to}{id}{because}; do not send it again");
    let Some((state, reason)) = found else {
        return ResultBody::unknown(unknown(""));
    };
    let because = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    let (outcome, text) = match state {
        DeliveryState::Received => (CallOutcome::Done, format!("delivered to {to}{id}")),
        DeliveryState::Intent | DeliveryState::Sending => (
            CallOutcome::Queued,
            format!("not delivered to {to} yet{id}{because}; the host tries again by itself, so do not send it again"),
        ),
        DeliveryState::Dead | DeliveryState::Withdrawn | DeliveryState::Unplaced => {
            (CallOutcome::Failed, format!("not delivered to {to}{id}{because}"))
        }
        DeliveryState::Unknown | DeliveryState::Dropped => (CallOutcome::Unknown, unknown(&because)),
    };
    ResultBody::with_outcome(outcome, text)
}

/// Returns the words about a message to another agent for the model.
fn told_of_agent(order: &Order, message: MessageId) -> ResultBody {
    let text = format!(
        "agent {} has your message ({}); its answer comes later as a message of its own, so do not wait for it or send again",
        order.to, message
    );
    ResultBody::done(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_that_waits_is_not_reported_as_delivered() {
        let order = Order {
            call: CallId::new(),
            output: ItemId::new(),
            to: "ana".to_owned(),
            channel: "desk".to_owned(),
            address: "ana".to_owned(),
            thread: String::new(),
            sender: AgentId::new(),
            receiver: None,
            text: "hi".to_owned(),
            intent: Intent::Delivery(DeliveryId::new()),
        };
        for (state, outcome) in [
            (Some(DeliveryState::Received), CallOutcome::Done),
            (Some(DeliveryState::Intent), CallOutcome::Queued),
            (Some(DeliveryState::Sending), CallOutcome::Queued),
            (Some(DeliveryState::Dead), CallOutcome::Failed),
            (Some(DeliveryState::Unknown), CallOutcome::Unknown),
            (Some(DeliveryState::Dropped), CallOutcome::Unknown),
            (None, CallOutcome::Unknown),
        ] {
            let told = told(&order, state.map(|state| (state, Some("it answered 503".to_owned()))));
            assert_eq!(told.outcome, outcome, "{state:?}");
            assert_eq!(told.text.starts_with("delivered"), outcome == CallOutcome::Done, "{state:?}");
        }
    }
}
