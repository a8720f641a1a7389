//! Sends deliveries by a network: takes each up in the record, sends it, and notes the outcome.
//!
//! Never holds up a session, never sends a delivery that is not taken up, and never polls: a new delivery wakes it, and so do the end of
//! a send and the time of the next attempt. Next: `outbound::delivery::journal`, `inbound::channel`;
//! [`crate::worker`] for the loop.

use crate::error::Error;
use crate::inbound::channel::outgoing::{self, Attempts, Body};
use crate::inbound::channel::{Config, Destination, Sender};
use crate::latch::Latch;
use crate::outbound::delivery::journal::{self, Outcome};
use crate::outbound::delivery::{self, Delivery};
use crate::record::Record;
use crate::registry::channels::{self, Channel};
use crate::registry::{self, Identity};
use crate::session::Wake;
use crate::session::store::{self, Origin};
use crate::shutdown::Shutdown;
use crate::tables::messages;
use crate::turns::items;
use crate::worker::{self, Due, Wait};
use ironclaw_contract::ids::{DeliveryId, MessageId};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_state::failpoint;
use ironclaw_state::keys;
use ironclaw_state::{ReadTx, WriteTx};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// The wait before the next try after an error of the host, such as a full disk.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The wait before a delivery is sent again whose sending broke off in the host.
const BROKEN_WAIT: Duration = Duration::from_secs(60);

/// The reason that nothing is sent on a channel that was removed.
const GONE: &str = "there is no such channel any more";

/// The deliveries of the record that go out by a network, and the way out.
pub struct Dispatch {
    record: Arc<Record>,
    /// Sessions that there can be: one more may be made to say that something did not arrive.
    sessions_max: u32,
    sender: Sender,
    bell: Notify,
}

impl Dispatch {
    /// Makes the way out of this record.
    pub fn new(record: Arc<Record>, sessions_max: u32) -> Self {
        Self { record, sessions_max, sender: Sender::default(), bell: Notify::new() }
    }

    /// Wakes the worker, which looks for what is due.
    pub fn wake(&self) {
        self.bell.notify_one();
    }

    /// Sends an event that asks for nothing, so that an operator sees what the channel says. The journal does not hold it.
    pub async fn test(&self, to: &Destination, now: i64) -> outgoing::Outcome {
        let id = DeliveryId::new().to_string();
        let text = "This is a test of the channel.";
        let body = Body { kind: "test", delivery: &id, sender: "", thread: "", message_ids: &[], text };
        self.sender.send(to, &id, now, &body).await
    }
}

/// The worker that sends.
pub struct Dispatcher {
    /// The deliveries and the way out.
    pub dispatch: Arc<Dispatch>,
    /// Keeps it from sending.
    pub latch: Arc<Latch>,
    /// Tells sessions of their receipts.
    pub wake: Arc<dyn Wake>,
    /// The settings of each kind of channel.
    pub config: Config,
}

impl Dispatcher {
    /// Sends what is due until the host is stopped, then waits a moment for the sends in flight.
    pub async fn run(self, shutdown: Shutdown) {
        let dispatch = Arc::clone(&self.dispatch);
        let sending = Sending { dispatcher: Arc::new(self), in_flight: InFlight::default(), has_swept: false };
        worker::run(sending, &dispatch.bell, &shutdown).await;
    }

    /// Sends one delivery, and notes the outcome.
    async fn send(self: Arc<Self>, outgoing: OutgoingDelivery) {
        failpoint::reach("parcel_taken");
        let id = outgoing.delivery.id.to_string();
        let body = Body {
            kind: outgoing.kind,
            delivery: &id,
            sender: &outgoing.recipient,
            thread: &outgoing.thread,
            message_ids: &outgoing.message_ids,
            text: &outgoing.text,
        };
        let outcome = if self.latch.is_shut() {
            Outcome::Retry("everything was stopped before it was sent".to_owned(), Duration::ZERO)
        } else {
            let now = ironclaw_state::wall_clock();
            let sent = self.dispatch.sender.send(&outgoing.to, &id, now, &body).await;
            failpoint::reach("parcel_sent");
            // Without random bytes all come back at once, which is no reason to lose one.
            let chance = keys::random().map_or(0, u32::from_le_bytes);
            judge(sent, outgoing.attempt, outgoing.idempotent, self.config.attempts(&outgoing.to), chance)
        };
        self.note(outgoing.delivery, outcome).await;
    }

    /// Notes the outcome of one attempt, however long the record cannot take it.
    async fn note(self: Arc<Self>, noted: Delivery, outcome: Outcome) {
        let id = noted.id;
        loop {
            let (dispatch, delivery, note) = (Arc::clone(&self.dispatch), noted.clone(), outcome.clone());
            match self.dispatch.record.state.write(move |tx| dispatch.settle(tx, &delivery, &note)).await {
                Ok(()) => {
                    self.wake.nudge(noted.session);
                    break;
                }
                // The next start finds it as one whose outcome is unknown.
                Err(Error::State(ironclaw_state::Error::Closed)) => break,
                Err(error) => {
                    tracing::error!(delivery = %id, %error, "how a delivery ended is not noted yet");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }
}

/// One delivery, ready to be sent.
struct OutgoingDelivery {
    delivery: Delivery,
    attempt: u32,
    to: Destination,
    idempotent: bool,
    kind: &'static str,
    recipient: String,
    thread: String,
    message_ids: Vec<String>,
    text: String,
}

/// The sends in flight, each with its delivery and whether it may be sent twice.
#[derive(Default)]
struct InFlight {
    tasks: JoinSet<()>,
    deliveries: HashMap<tokio::task::Id, (Delivery, bool)>,
}

impl InFlight {
    fn start(&mut self, dispatcher: &Arc<Dispatcher>, outgoing: OutgoingDelivery) {
        let about = (outgoing.delivery.clone(), outgoing.idempotent);
        let id = self.tasks.spawn(Arc::clone(dispatcher).send(outgoing)).id();
        self.deliveries.insert(id, about);
    }

    /// Waits for the end of one send; `None` when there is none. A send that broke off may have left the host, and this is noted in its
    /// place.
    async fn finish(&mut self, dispatcher: &Arc<Dispatcher>) -> Option<()> {
        match self.tasks.join_next_with_id().await? {
            Ok((id, ())) => {
                self.deliveries.remove(&id);
            }
            Err(error) => {
                if let Some((delivery, idempotent)) = self.deliveries.remove(&error.id()) {
                    tracing::error!(delivery = %delivery.id, "the sending of a delivery broke off");
                    let words = "the host failed while it was being sent".to_owned();
                    let outcome = interrupted(words, idempotent, BROKEN_WAIT);
                    self.tasks.spawn(Arc::clone(dispatcher).note(delivery, outcome));
                }
            }
        }
        Some(())
    }
}

/// The work of the dispatcher.
struct Sending {
    dispatcher: Arc<Dispatcher>,
    in_flight: InFlight,
    /// Whether the deliveries from before the start were looked at.
    has_swept: bool,
}

impl Due for Sending {
    const FAILED: &'static str = "deliveries wait a moment after an error of the host";
    const RETRY_AFTER: Duration = RETRY_AFTER;
    const LOOK_AGAIN: Duration = Duration::from_secs(300);
    const IN_FLIGHT_TIME_MAX: Duration = Duration::from_secs(5);
    const INTERRUPTED: &'static str =
        "the host stops while deliveries are being sent; the next start says that their outcome is unknown";

    async fn process_due(&mut self) -> Result<Wait, Error> {
        let Self { dispatcher, in_flight, has_swept } = self;
        let (dispatch, state) = (&dispatcher.dispatch, &dispatcher.dispatch.record.state);
        if !*has_swept {
            let dispatch = Arc::clone(dispatch);
            state.write(move |tx| dispatch.sweep(tx)).await?;
            *has_swept = true;
        }
        loop {
            if dispatcher.latch.is_shut() {
                // The record keeps what waits. It is found there after the emergency stop.
                return Ok(Wait::Bell);
            }
            let due = state.read(|tx| Ok::<_, Error>(journal::due(tx)?)).await?;
            if due.now.is_empty() {
                let now = ironclaw_state::wall_clock();
                return Ok(due.next_at.map_or(Wait::Bell, |at| Wait::until(at, now)));
            }
            let mut has_failed = false;
            // Each by itself: a fault of one delivery holds up no other.
            for id in due.now {
                let dispatch = Arc::clone(dispatch);
                match state.write(move |tx| dispatch.take_up(tx, id)).await {
                    Ok(Some(outgoing)) => in_flight.start(dispatcher, outgoing),
                    Ok(None) => {}
                    Err(Error::State(ironclaw_state::Error::Closed)) => {
                        return Err(ironclaw_state::Error::Closed.into());
                    }
                    Err(error) => {
                        tracing::error!(delivery = %id, %error, "a delivery could not be taken up");
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
        self.in_flight.finish(&self.dispatcher).await
    }
}

impl Dispatch {
    /// Gives up the open deliveries of a channel that is being removed.
    pub fn give_up(&self, tx: &mut WriteTx<'_>, channel: &str) -> Result<(), Error> {
        for delivery in journal::intended_on(tx, channel)? {
            self.settle(tx, &delivery, &Outcome::Failed(GONE.to_owned()))?;
        }
        Ok(())
    }

    /// Settles what may have been sent before the start: deliveries that were being sent when the host last ended, and the open ones of a
    /// record that was put back. They are sent again only where that shows once.
    fn sweep(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        for delivery in journal::doubtful(tx)? {
            if !channel_of(tx, &delivery)?.is_some_and(|channel| channel.idempotent) {
                let words = "the record was put back to an earlier state, and it may have been sent since".to_owned();
                self.settle(tx, &delivery, &Outcome::Unknown(words))?;
            }
        }
        for delivery in journal::interrupted(tx)? {
            let words = "the host ended while it was being sent".to_owned();
            let idempotent = channel_of(tx, &delivery)?.is_some_and(|channel| channel.idempotent);
            self.settle(tx, &delivery, &interrupted(words, idempotent, Duration::ZERO))?;
        }
        Ok(())
    }

    /// Takes a delivery up, with all that its send needs. A delivery that cannot be sent at all has failed.
    fn take_up(&self, tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<Option<OutgoingDelivery>, Error> {
        let Some(delivery) = journal::find(tx, id)? else { return Ok(None) };
        let failed = |tx: &mut WriteTx<'_>, words: &str| {
            self.settle(tx, &delivery, &Outcome::Failed(words.to_owned())).map(|()| None)
        };
        let Some(session) = store::find(tx, delivery.session)? else {
            return failed(tx, "its session is no longer there");
        };
        let Some(channel) = channel_of(tx, &delivery)? else {
            return failed(tx, GONE);
        };
        let Ok(to) = Destination::of(&channel, &self.record.wrapping) else {
            return failed(tx, "the channel's secret does not open, or its address is none");
        };
        let Some(item) = items::find(tx, delivery.item)? else {
            return failed(tx, "what was to be said is no longer kept");
        };
        let Ok(key) = session.content_key(&self.record.wrapping) else {
            return failed(tx, "the session's key does not open");
        };
        let text = match delivery::text_of(tx, &item, &key) {
            Ok(text) => text,
            // No later attempt reads it better.
            Err(items::BodyError::Key(_) | items::BodyError::State(ironclaw_state::Error::Stored(_))) => {
                return failed(tx, "what was to be said cannot be read");
            }
            Err(error) => return Err(error.into()),
        };
        let answered = delivery.turn.map(|turn| messages::asking_of_turn(tx, turn)).transpose()?.unwrap_or_default();
        let Some((delivery, attempt)) = journal::take_up(tx, id)? else { return Ok(None) };
        Ok(Some(OutgoingDelivery {
            delivery,
            attempt,
            to,
            idempotent: channel.idempotent,
            kind: if item.tuple.kind == ItemKind::Notice { "notice" } else { "reply" },
            recipient: session.origin.platform_id,
            thread: session.origin.thread_id,
            message_ids: answered.iter().map(MessageId::to_string).collect(),
            text,
        }))
    }

    /// Notes the outcome of an attempt, and tells the person another way if the delivery did not arrive.
    fn settle(&self, tx: &mut WriteTx<'_>, delivery: &Delivery, outcome: &Outcome) -> Result<(), Error> {
        if !journal::settle(tx, delivery, outcome)? {
            return Ok(());
        }
        let words = match outcome {
            Outcome::Received | Outcome::Retry(..) => return Ok(()),
            Outcome::Unknown(why) => {
                format!("may not have arrived there ({why}), and I do not send it twice by myself")
            }
            Outcome::Failed(why) => format!("did not arrive there ({why})"),
        };
        let text = format!(
            "What I had to say on {} {words}. `ironctl delivery list` shows it as {}, and with it what is lost soon after; from there it can be sent again or dropped.",
            delivery.channel, delivery.id
        );
        if let Err(error) = self.tell(tx, delivery, &text) {
            // The journal and `status` have it all the same.
            tracing::error!(delivery = %delivery.id, %error, "the person could not be told that it did not arrive");
        }
        Ok(())
    }

    /// Puts a notice into the person's own conversation with the agent on this host, which needs no network.
    fn tell(&self, tx: &mut WriteTx<'_>, delivery: &Delivery, text: &str) -> Result<(), Error> {
        let Some(session) = store::find(tx, delivery.session)? else { return Ok(()) };
        let Some(person) = journal::person_of(tx, delivery.id)? else { return Ok(()) };
        if journal::was_told(tx, delivery, person)? {
            return Ok(());
        }
        let Some(agent) = registry::agent_by_id(tx, session.agent)? else { return Ok(()) };
        let own = Identity::own(person);
        let origin = Origin { channel: own.channel, platform_id: own.sender, thread_id: String::new() };
        let session = store::of_origin_or_new(tx, &agent, &origin, (person, self.sessions_max), &self.record.wrapping)?;
        let key = session.content_key(&self.record.wrapping).map_err(items::BodyError::from)?;
        let notice = delivery::notify(tx, &session, None, text, &key, &self.record.sealer)?;
        delivery::receive(tx, &notice)?;
        items::enforce_retention(tx, session.id, &self.record.retention)?;
        Ok(())
    }
}

/// Finds the channel that a delivery is for. A channel that was made later under the same name is another one.
fn channel_of(tx: &ReadTx<'_>, delivery: &Delivery) -> Result<Option<Channel>, ironclaw_state::Error> {
    Ok(channels::find(tx, &delivery.channel)?.filter(|channel| delivery.generation == Some(channel.generation)))
}

/// Makes the outcome of an attempt that broke off: it is sent again only where that shows once.
fn interrupted(words: String, idempotent: bool, wait: Duration) -> Outcome {
    if idempotent { Outcome::Retry(words, wait) } else { Outcome::Unknown(words) }
}

/// Judges what the channel's side came to. What may have arrived is sent again only where that shows once.
fn judge(sent: outgoing::Outcome, attempt: u32, idempotent: bool, attempts: Attempts, chance: u32) -> Outcome {
    use outgoing::Outcome as Sent;
    let is_last = attempt >= attempts.most;
    let wait = journal::backoff(attempt, attempts.backoff_ms, chance);
    match sent {
        Sent::Received => Outcome::Received,
        Sent::Later(words, _) if is_last => Outcome::Failed(format!("{words}, the last of {attempt} attempts")),
        Sent::Later(words, after) => Outcome::Retry(words, wait.max(after.unwrap_or_default())),
        Sent::Unknown(words) if idempotent && !is_last => Outcome::Retry(words, wait),
        Sent::Unknown(words) => Outcome::Unknown(words),
        Sent::Refused(words) => Outcome::Failed(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outgoing::Outcome as Sent;

    #[test]
    fn unknown_outcome_is_retried_only_if_idempotent() {
        let attempts = Attempts { most: 3, backoff_ms: 1000 };
        let unknown = || Sent::Unknown("w".to_owned());
        let judged = |sent, attempt, idempotent| judge(sent, attempt, idempotent, attempts, 0);
        for attempt in 1..=4 {
            assert_eq!(judged(unknown(), attempt, false), Outcome::Unknown("w".to_owned()));
        }
        assert!(matches!(judged(unknown(), 2, true), Outcome::Retry(..)));
        assert_eq!(
            judged(unknown(), 3, true),
            Outcome::Unknown("w".to_owned()),
            "and after the last attempt it is unknown too"
        );
        let later = |after| Sent::Later("w".to_owned(), after);
        let hour = Duration::from_secs(3600);
        assert_eq!(judged(later(Some(hour)), 1, false), Outcome::Retry("w".to_owned(), hour));
        assert_eq!(judged(later(None), 3, true), Outcome::Failed("w, the last of 3 attempts".to_owned()));
        assert_eq!(judged(Sent::Refused("w".to_owned()), 1, true), Outcome::Failed("w".to_owned()));
        assert_eq!(judged(Sent::Received, 9, false), Outcome::Received);
    }
}
