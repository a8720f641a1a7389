//! The worker of the outbox: it takes each delivery up in the record, sends it, and records the outcome.
//!
//! Never blocks a session, never sends a delivery that is not taken up, and never polls: a new delivery, the end of a send, or the time of
//! the next attempt wakes it. See [`crate::channels::outbound::journal`], [`crate::channels::inbound::channel`], and
//! [`ironclaw_store::worker`] for the loop.

mod take_up;
mod wake;

use crate::channels::agent_messages::{self, AGENT, answer};
use crate::channels::inbound::channel::outgoing::{self, Body};
use crate::channels::inbound::channel::{Receiver, Sender};
use crate::channels::outbound::attempts::{Outcome, PANIC_WAIT, RETRY_AFTER, interrupted, judge};
use crate::channels::outbound::delivery;
use crate::channels::outbound::journal;
use crate::registry::latch::Latch;
use crate::registry::live_settings::Live;
use crate::registry::{self, Identity};
use crate::sessions::Wake;
use crate::sessions::store::{self, Origin, Session};
use crate::turns::items;
use ironclaw_contract::ids::DeliveryId;
use ironclaw_state::{WriteTx, failpoint, keys};
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::refusal::Denied;
use ironclaw_store::shutdown::Shutdown;
use ironclaw_store::tables::deliveries::{self, Delivery, DeliveryState, SentItem};
use ironclaw_store::times::HOUR_MS;
use ironclaw_store::worker::{self, Due, Wait};
use std::sync::Arc;
use std::time::Duration;
use take_up::{ASKING_REMOVED, Outgoing, channel_of};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// The host notifies a person of the first of several dead letters; it notifies again after this time without another one.
const NOTIFY_AGAIN_MS: i64 = HOUR_MS;

/// The deliveries of the record that go over a network, and the clients that send them.
pub struct Dispatch {
    record: Arc<Record>,
    /// The bound on sessions: a notice about a lost delivery may need a new session.
    sessions_max: u32,
    sender: Sender,
    bell: Notify,
}

impl Dispatch {
    pub fn new(record: Arc<Record>, sessions_max: u32) -> Self {
        Self { record, sessions_max, sender: Sender::default(), bell: Notify::new() }
    }

    /// Wakes the worker, which looks for due deliveries.
    pub fn wake(&self) {
        self.bell.notify_one();
    }

    /// Sends a test event, so that an operator sees the outcome. The journal does not have it.
    pub async fn test(&self, to: &Receiver, now: i64) -> outgoing::Outcome {
        let id = DeliveryId::new().to_string();
        let text = "This is a test of the channel.";
        let body =
            Body { kind: "test", delivery: &id, sender: "", group: "", thread: "", message_ids: &[], text, files: &[] };
        self.sender.send(to, &id, now, &body).await
    }
}

/// The worker that sends deliveries.
pub struct Dispatcher {
    /// The deliveries and the clients.
    pub dispatch: Arc<Dispatch>,
    /// Stops the sending during an emergency stop.
    pub latch: Arc<Latch>,
    /// Wakes sessions that have a message of another agent.
    pub wake: Arc<dyn Wake>,
    /// Have the settings of each kind of channel.
    pub settings: Arc<Live>,
}

impl Dispatcher {
    /// Sends due deliveries until the host stops, then waits a moment for the sends in flight.
    pub async fn run(self, shutdown: Shutdown) {
        let dispatch = Arc::clone(&self.dispatch);
        let (events, wake) = (dispatch.record.state.events(), Arc::clone(&self.wake));
        let work = SendWork { dispatcher: Arc::new(self), in_flight: JoinSet::new(), has_settled_old: false };
        tokio::select! {
            () = worker::run(work, &dispatch.bell, &shutdown) => {}
            () = dispatch.wake_for_intents(events, &wake) => {}
        }
    }

    /// Sends one delivery, and records the outcome. After a panic of the attempt the delivery may have left the host.
    async fn send(self: Arc<Self>, outgoing: Outgoing) {
        let (sent, idempotent) = (outgoing.delivery.clone(), outgoing.idempotent);
        // A task of its own, which may panic.
        let attempt = tokio::spawn(Arc::clone(&self).attempt(outgoing));
        let outcome = attempt.await.unwrap_or_else(|_| {
            tracing::error!(delivery = %sent.id, "the attempt of a delivery panicked");
            interrupted("the host failed while it was being sent", idempotent, PANIC_WAIT)
        });
        self.note(sent, outcome).await;
    }

    async fn attempt(self: Arc<Self>, outgoing: Outgoing) -> Outcome {
        let Outgoing { delivery, attempt, to, idempotent, content } = outgoing;
        failpoint::reach("delivery_taken");
        let id = delivery.id.to_string();
        let body = Body {
            kind: content.kind,
            delivery: &id,
            sender: &delivery.recipient,
            group: &delivery.group,
            thread: &delivery.thread,
            message_ids: &content.message_ids,
            text: &content.text,
            files: &content.files,
        };
        if self.latch.is_shut() {
            return Outcome::Retry("an emergency stop came before it was sent".to_owned(), Duration::ZERO);
        }
        let sent = self.dispatch.sender.send(&to, &id, ironclaw_state::wall_clock(), &body).await;
        failpoint::reach("delivery_sent");
        // Without random bytes the retries have no jitter, which is no reason to lose a delivery.
        let chance = keys::random().map_or(0, u32::from_le_bytes);
        judge(sent, attempt, idempotent, to.attempts(&self.settings.now().channels), chance)
    }

    /// Records the outcome of one attempt, and retries until the record takes it.
    async fn note(&self, sent: Delivery, outcome: Outcome) {
        loop {
            let (dispatch, delivery, note) = (Arc::clone(&self.dispatch), sent.clone(), outcome.clone());
            match self.dispatch.record.state.write(move |tx| dispatch.settle(tx, &delivery, &note)).await {
                // After a closed record, the next start settles the delivery as unknown.
                Ok(()) | Err(Error::State(ironclaw_state::Error::Closed)) => break,
                Err(error) => {
                    tracing::error!(delivery = %sent.id, %error, "cannot record the outcome of the delivery yet");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }
}

/// The state of the running dispatcher.
struct SendWork {
    dispatcher: Arc<Dispatcher>,
    in_flight: JoinSet<()>,
    /// `true` after the deliveries from before the start were settled.
    has_settled_old: bool,
}

impl Due for SendWork {
    const FAILED: &'static str = "deliveries pause after an error of the host";
    const RETRY_AFTER: Duration = RETRY_AFTER;
    const PAUSE_MAX: Duration = Duration::from_secs(300);
    const IN_FLIGHT_TIME_MAX: Duration = Duration::from_secs(5);
    const INTERRUPTED: &'static str =
        "the host stops with deliveries in flight; the next start records their outcome as unknown";

    async fn process_due(&mut self) -> Result<Wait, Error> {
        let Self { dispatcher, in_flight, has_settled_old } = self;
        let (dispatch, state) = (&dispatcher.dispatch, &dispatcher.dispatch.record.state);
        if !*has_settled_old {
            let dispatch = Arc::clone(dispatch);
            state.write(move |tx| dispatch.settle_old(tx)).await?;
            *has_settled_old = true;
        }
        loop {
            if dispatcher.latch.is_shut() {
                // Waiting deliveries remain in the record until after the emergency stop.
                return Ok(Wait::Bell);
            }
            // A wait uses the machine's clock: the record's clock stops for as long as it is ahead of the machine's.
            let now = ironclaw_state::wall_clock();
            let due = state.read(move |tx| journal::due(tx, now)).await?;
            if due.now.is_empty() {
                let now = ironclaw_state::wall_clock();
                return Ok(due.next_at.map_or(Wait::Bell, |at| Wait::until(at, now)));
            }
            let mut has_failed = false;
            // Each in its own transaction: a failure of one delivery delays no other.
            for id in due.now {
                let dispatch = Arc::clone(dispatch);
                match state.write(move |tx| dispatch.take_up(tx, id)).await {
                    Ok(Some(outgoing)) => drop(in_flight.spawn(Arc::clone(dispatcher).send(outgoing))),
                    Ok(None) => {}
                    Err(Error::State(ironclaw_state::Error::Closed)) => {
                        return Err(ironclaw_state::Error::Closed.into());
                    }
                    Err(error) => {
                        tracing::error!(delivery = %id, %error, "cannot take up the delivery");
                        has_failed = true;
                    }
                }
            }
            if has_failed {
                return Ok(Wait::AtMost(RETRY_AFTER));
            }
        }
    }

    async fn finish_one(&mut self) -> Option<()> {
        self.in_flight.join_next().await.map(drop)
    }
}

impl Dispatch {
    /// Settles deliveries that may have been sent before the start: those that were in flight when the host last ended, and the open ones
    /// of a restored record. Only those of idempotent channels are sent again.
    fn settle_old(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        let (old, why) = journal::possibly_sent(tx)?;
        for delivery in old {
            let idempotent = channel_of(tx, &delivery)?.is_some_and(|channel| channel.idempotent);
            if delivery.state == DeliveryState::Sending || !idempotent {
                self.settle(tx, &delivery, &interrupted(why, idempotent, Duration::ZERO))?;
            }
        }
        Ok(())
    }

    /// Settles the answers in a session that is removed and that no turn took as failed, and ends the requests that it has not answered.
    pub fn end_of_session(&self, tx: &mut WriteTx<'_>, session: &Session) -> Result<(), Error> {
        for delivery in answer::untaken(tx, session.id)? {
            self.settle(tx, &delivery, &Outcome::Failed(ASKING_REMOVED.to_owned()))?;
        }
        agent_messages::request::end_of_session(tx, session, self.keys())
    }

    /// Records the outcome of an attempt, and notifies the person another way if words of a conversation did not arrive.
    fn settle(&self, tx: &mut WriteTx<'_>, delivery: &Delivery, outcome: &Outcome) -> Result<(), Error> {
        let was_open = journal::settle(tx, delivery, outcome)?;
        let (true, Some(lost)) = (was_open, delivery.sent()) else { return Ok(()) };
        let words = match outcome {
            Outcome::Received | Outcome::Retry(..) | Outcome::Unplaced(_) | Outcome::Withdrawn => return Ok(()),
            Outcome::Unknown(why) => {
                format!("may not have arrived ({why}). I do not send it again without your request")
            }
            Outcome::Failed(why) => format!("did not arrive ({why})"),
        };
        let what = if delivery.channel == AGENT {
            "My answer to another agent".to_owned()
        } else {
            format!("My message on {}", delivery.channel)
        };
        let text = format!(
            "{what} {words}. `ironctl delivery list` shows it as {}, with any that fail soon after. You can send it again or drop it from there.",
            delivery.id
        );
        if let Err(error) = self.notify(tx, delivery, lost, &text) {
            // The journal and `status` still show it.
            tracing::error!(delivery = %delivery.id, %error, "cannot notify the person of the lost delivery");
        }
        Ok(())
    }

    /// Adds a notice to the person's own conversation with the agent on this host, which needs no network.
    fn notify(
        &self,
        tx: &mut WriteTx<'_>,
        delivery: &Delivery,
        lost: &SentItem,
        text: &str,
    ) -> Result<(), Denied<Error>> {
        let Some(session) = store::find(tx, lost.session)? else { return Ok(()) };
        let Some(person) = journal::person_of(tx, delivery.id)? else { return Ok(()) };
        let is_told = deliveries::is_other_lost(tx, delivery, person, tx.wall() - NOTIFY_AGAIN_MS, NOTIFY_AGAIN_MS)?;
        // A guest has no conversation on this host.
        if is_told || registry::person_by_id(tx, person)?.is_none() {
            return Ok(());
        }
        let Some(agent) = registry::agent_by_id(tx, session.agent)? else { return Ok(()) };
        let own = Identity::own(person);
        let origin = Origin::from_sender(own.channel, own.sender, String::new());
        let session = store::find_or_create(tx, &agent, &origin, person, self.sessions_max, &self.record.wrapping)?;
        let key = session.content_key(&self.record.wrapping)?;
        let notice = delivery::notify(tx, &session, None, text, &key, &self.record.sealer)?;
        delivery::receive(tx, &notice)?;
        items::enforce_retention(tx, session.id, &self.record.retention)?;
        Ok(())
    }
}
