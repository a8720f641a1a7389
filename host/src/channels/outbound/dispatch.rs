//! The worker that sends deliveries over a network: it takes each up in the record, sends it, and records the outcome.
//!
//! Also sends the notifications of people. Never blocks a session, never sends a delivery that is not taken up, and never polls: a new
//! delivery or notification, the end of a send, or the time of the next attempt wakes it. See [`crate::channels::outbound::delivery::journal`],
//! [`crate::channels::inbound::channel`], and [`ironclaw_store::worker`] for the loop.

mod answers;
mod attempt;
mod in_flight;
mod wake;

use crate::channels::agent_messages::AGENT;
use crate::channels::inbound::channel::outgoing::{self, Body};
use crate::channels::inbound::channel::{Receiver, Sender};
use crate::channels::notifications::{self, Stored};
use crate::channels::outbound::delivery::journal::{self, Outcome};
use crate::channels::outbound::delivery::notifications as notified;
use crate::channels::outbound::delivery::{self, Delivery};
use crate::registry::channels::{self, Channel};
use crate::registry::destinations::{self, State};
use crate::registry::latch::Latch;
use crate::registry::live_settings::Live;
use crate::registry::{self, Identity};
use crate::sessions::Wake;
use crate::sessions::store::{self, Origin, Session};
use crate::turns::items;
use attempt::{interrupted, judge};
use in_flight::{InFlight, Letter};
use ironclaw_contract::ids::{DeliveryId, MessageId};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_state::keys;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::refusal::Denied;
use ironclaw_store::shutdown::Shutdown;
use ironclaw_store::tables::messages;
use ironclaw_store::tables::waiting;
use ironclaw_store::worker::{self, Due, Wait};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The wait before the next try after an error of the host, such as a full disk.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The reason for a failed delivery on a removed channel.
const CHANNEL_REMOVED: &str = "the channel was removed";

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
    /// Wakes sessions that have a new receipt.
    pub wake: Arc<dyn Wake>,
    /// Have the settings of each kind of channel.
    pub settings: Arc<Live>,
}

impl Dispatcher {
    /// Sends due deliveries until the host stops, then waits a moment for the sends in flight.
    pub async fn run(self, shutdown: Shutdown) {
        let dispatch = Arc::clone(&self.dispatch);
        let (events, wake) = (dispatch.record.state.events(), Arc::clone(&self.wake));
        let work = SendWork { dispatcher: Arc::new(self), in_flight: InFlight::default(), has_settled_old: false };
        tokio::select! {
            () = worker::run(work, &dispatch.bell, &shutdown) => {}
            () = dispatch.wake_for_intents(events, &wake) => {}
        }
    }

    /// Sends one delivery, and records the outcome.
    async fn send(self: Arc<Self>, outgoing: OutgoingDelivery) {
        outgoing.letter.reach_taken();
        let id = outgoing.letter.id().to_string();
        let body = Body {
            kind: outgoing.kind,
            delivery: &id,
            sender: &outgoing.recipient,
            group: &outgoing.group,
            thread: &outgoing.thread,
            message_ids: &outgoing.message_ids,
            text: &outgoing.text,
            files: &outgoing.files,
        };
        let outcome = if self.latch.is_shut() {
            Outcome::Retry("an emergency stop came before it was sent".to_owned(), Duration::ZERO)
        } else {
            let now = ironclaw_state::wall_clock();
            let sent = self.dispatch.sender.send(&outgoing.to, &id, now, &body).await;
            outgoing.letter.reach_sent();
            // Without random bytes the retries have no jitter, which is no reason to lose a delivery.
            let attempts = outgoing.to.attempts(&self.settings.now().channels);
            let chance = keys::random().map_or(0, u32::from_le_bytes);
            judge(sent, outgoing.attempt, outgoing.idempotent, attempts, chance)
        };
        self.note(outgoing.letter, outcome).await;
    }

    /// Records the outcome of one attempt, and retries until the record takes it.
    async fn note(self: Arc<Self>, noted: Letter, outcome: Outcome) {
        let id = noted.id();
        loop {
            let (dispatch, letter, note) = (Arc::clone(&self.dispatch), noted.clone(), outcome.clone());
            match self.dispatch.record.state.write(move |tx| dispatch.settle_letter(tx, &letter, &note)).await {
                Ok(()) => {
                    if let Letter::Delivery(delivery) = &noted {
                        self.wake.nudge(delivery.session);
                    }
                    break;
                }
                // The next start settles the delivery as unknown.
                Err(Error::State(ironclaw_state::Error::Closed)) => break,
                Err(error) => {
                    tracing::error!(delivery = %id, %error, "cannot record the outcome of the delivery yet");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }
}

/// One delivery or notification, ready to be sent.
struct OutgoingDelivery {
    letter: Letter,
    attempt: u32,
    to: Receiver,
    idempotent: bool,
    kind: &'static str,
    recipient: String,
    thread: String,
    group: String,
    message_ids: Vec<String>,
    text: String,
    files: Vec<outgoing::File>,
}

/// The state of the running dispatcher.
struct SendWork {
    dispatcher: Arc<Dispatcher>,
    in_flight: InFlight,
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
            let look = move |tx: &ReadTx<'_>| notified::add_due(tx, journal::due(tx, now)?, now);
            let due = state.read(look).await?;
            if due.now.is_empty() && due.notifications.is_empty() {
                let now = ironclaw_state::wall_clock();
                return Ok(due.next_at.map_or(Wait::Bell, |at| Wait::until(at, now)));
            }
            let mut has_failed = false;
            // Each in its own transaction: a failure of one delivery delays no other.
            let notifications = due.notifications.into_iter().map(|id| (id, true));
            for (id, is_notification) in due.now.into_iter().map(|id| (id, false)).chain(notifications) {
                let dispatch = Arc::clone(dispatch);
                let take_up = move |tx: &mut WriteTx<'_>| match is_notification {
                    true => dispatch.take_up_notification(tx, id),
                    false => dispatch.take_up(tx, id),
                };
                match state.write(take_up).await {
                    Ok(Some(outgoing)) => in_flight.start(dispatcher, outgoing),
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
        self.in_flight.finish(&self.dispatcher).await
    }
}

impl Dispatch {
    /// Settles the open deliveries of a removed channel as failed.
    pub fn give_up(&self, tx: &mut WriteTx<'_>, channel: &str) -> Result<(), Error> {
        for delivery in journal::intended_on(tx, channel)? {
            self.settle(tx, &delivery, &Outcome::Failed(CHANNEL_REMOVED.to_owned()))?;
        }
        Ok(())
    }

    /// Settles deliveries that may have been sent before the start: those that were in flight when the host last ended, and the open ones
    /// of a restored record. Only those of idempotent channels are sent again.
    fn settle_old(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        for delivery in journal::possibly_sent(tx)? {
            if !channel_of(tx, &delivery)?.is_some_and(|channel| channel.idempotent) {
                let words =
                    "the record was restored from an earlier state, and the delivery may have been sent since then"
                        .to_owned();
                self.settle(tx, &delivery, &Outcome::Unknown(words))?;
            }
        }
        for delivery in journal::interrupted(tx)? {
            let words = "the host ended while it was being sent".to_owned();
            let idempotent = channel_of(tx, &delivery)?.is_some_and(|channel| channel.idempotent);
            self.settle(tx, &delivery, &interrupted(words, idempotent, Duration::ZERO))?;
        }
        for stored in notified::interrupted(tx)? {
            let words = "the host ended while it was being sent".to_owned();
            let place = stored.place.as_ref().map(|place| &place.identity.channel);
            let channel = place.map(|name| channels::find(tx, name)).transpose()?.flatten();
            let idempotent = channel.is_some_and(|channel| channel.idempotent);
            notified::settle(tx, &stored, &interrupted(words, idempotent, Duration::ZERO))?;
        }
        Ok(())
    }

    /// Takes a notification up, with everything that its send needs. Settles one that can never be sent as failed.
    fn take_up_notification(&self, tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<Option<OutgoingDelivery>, Error> {
        let Some(taken) = notified::take_up(tx, id)? else { return Ok(None) };
        let Ok(to) = Receiver::new(&taken.channel, &self.record.wrapping) else {
            let words = "cannot open the channel's secret, or its address is invalid".to_owned();
            notified::settle(tx, &taken.stored, &Outcome::Failed(words))?;
            return Ok(None);
        };
        let text = notifications::line(taken.stored.about, &taken.stored.subject);
        Ok(Some(OutgoingDelivery {
            letter: Letter::Notification(taken.stored),
            attempt: taken.attempt,
            to,
            idempotent: taken.channel.idempotent,
            kind: "notification",
            recipient: taken.place.identity.sender,
            thread: String::new(),
            group: String::new(),
            message_ids: Vec::new(),
            text,
            files: Vec::new(),
        }))
    }

    /// Takes a delivery up, with everything that its send needs. Settles a delivery that can never be sent as failed.
    fn take_up(&self, tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<Option<OutgoingDelivery>, Error> {
        let Some(delivery) = journal::find(tx, id)? else { return Ok(None) };
        let failed = |tx: &mut WriteTx<'_>, words: &str| {
            self.settle(tx, &delivery, &Outcome::Failed(words.to_owned())).map(|()| None)
        };
        let Some(session) = store::find(tx, delivery.session)? else {
            return failed(tx, "its session no longer exists");
        };
        if delivery.channel == AGENT {
            return self.answer(tx, &delivery, &session).map(|()| None);
        }
        let Some(channel) = channel_of(tx, &delivery)? else {
            return failed(tx, CHANNEL_REMOVED);
        };
        let Ok(to) = Receiver::new(&channel, &self.record.wrapping) else {
            return failed(tx, "cannot open the channel's secret, or its address is invalid");
        };
        let Some(item) = items::find(tx, delivery.item)? else {
            return failed(tx, "its text is no longer kept");
        };
        let Ok(key) = session.content_key(&self.record.wrapping) else {
            return failed(tx, "cannot open the session's key");
        };
        if let Some(why) = ended(tx, &delivery, &session)? {
            return failed(tx, why);
        }
        let text = match delivery::text_to_send(tx, &delivery, &item, &key) {
            Ok(text) => text,
            // A later attempt cannot read it either.
            Err(Error::Key(_) | Error::State(ironclaw_state::Error::Stored(_))) => {
                return failed(tx, "cannot read its text");
            }
            Err(error) => return Err(error),
        };
        let copied = delivery.call.map(|call| delivery::sent_files::read(tx, call, &key)).transpose()?.flatten();
        let files = copied.map(|(file, content)| outgoing::File::new(file, &content)).into_iter().collect();
        let answered = delivery.turn.map(|turn| messages::asking_of_turn(tx, turn)).transpose()?.unwrap_or_default();
        let Some((delivery, attempt)) = journal::take_up(tx, id)? else { return Ok(None) };
        let kind = match (delivery.call, item.tuple.kind) {
            (Some(_), _) => "message",
            (None, ItemKind::Notice) => "notice",
            (None, _) => "reply",
        };
        let (recipient, thread) = (delivery.recipient.clone(), delivery.thread.clone());
        let group = delivery.group.clone();
        Ok(Some(OutgoingDelivery {
            letter: Letter::Delivery(delivery),
            attempt,
            to,
            idempotent: channel.idempotent,
            kind,
            recipient,
            thread,
            group,
            message_ids: answered.iter().map(MessageId::to_string).collect(),
            text,
            files,
        }))
    }

    /// Records the outcome of an attempt.
    fn settle_letter(&self, tx: &mut WriteTx<'_>, letter: &Letter, outcome: &Outcome) -> Result<(), Error> {
        match letter {
            Letter::Delivery(delivery) => self.settle(tx, delivery, outcome),
            Letter::Notification(stored) => {
                notified::settle(tx, stored, outcome)?;
                match outcome {
                    Outcome::Received => record_notified(tx, stored),
                    Outcome::Retry(..) | Outcome::Unknown(_) | Outcome::Failed(_) => Ok(()),
                }
            }
        }
    }

    /// Records the outcome of an attempt, and notifies the person another way if the delivery did not arrive.
    fn settle(&self, tx: &mut WriteTx<'_>, delivery: &Delivery, outcome: &Outcome) -> Result<(), Error> {
        if !journal::settle(tx, delivery, outcome)? {
            return Ok(());
        }
        let words = match outcome {
            Outcome::Received | Outcome::Retry(..) => return Ok(()),
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
        if let Err(error) = self.notify(tx, delivery, &text) {
            // The journal and `status` still show it.
            tracing::error!(delivery = %delivery.id, %error, "cannot notify the person of the lost delivery");
        }
        Ok(())
    }

    /// Adds a notice to the person's own conversation with the agent on this host, which needs no network.
    fn notify(&self, tx: &mut WriteTx<'_>, delivery: &Delivery, text: &str) -> Result<(), Denied<Error>> {
        let Some(session) = store::find(tx, delivery.session)? else { return Ok(()) };
        let Some(person) = journal::person_of(tx, delivery.id)? else { return Ok(()) };
        if journal::was_notified(tx, delivery, person)? {
            return Ok(());
        }
        // A guest has no conversation on this host.
        if registry::person_by_id(tx, person)?.is_none() {
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

/// Records at what waits that people were told of it on the channel of a notification.
fn record_notified(tx: &mut WriteTx<'_>, stored: &Stored) -> Result<(), Error> {
    let (Ok(id), Some(place)) = (stored.subject.parse(), &stored.place) else { return Ok(()) };
    Ok(waiting::record_notified(tx, id, &place.identity.channel)?)
}

/// Returns the reason against the sending of a message to a destination that ended; `None` for other deliveries.
fn ended(
    tx: &ReadTx<'_>,
    delivery: &Delivery,
    session: &Session,
) -> Result<Option<&'static str>, ironclaw_state::Error> {
    let Origin { channel, platform_id, thread_id, .. } = &session.origin;
    let is_of_origin = (channel, platform_id, thread_id) == (&delivery.channel, &delivery.recipient, &delivery.thread);
    if delivery.call.is_none() || is_of_origin {
        return Ok(None);
    }
    let is_same = |held: &destinations::Destination| {
        held.channel == delivery.channel && held.address == delivery.recipient && held.state == State::Active
    };
    let is_held = destinations::list_for_agent(tx, session.agent)?.iter().any(is_same);
    Ok((!is_held).then_some("the destination was removed, or its address is no longer linked to the same person"))
}

/// Finds the channel of a delivery. A channel that was made later under the same name is a different one.
fn channel_of(tx: &ReadTx<'_>, delivery: &Delivery) -> Result<Option<Channel>, ironclaw_state::Error> {
    Ok(channels::find(tx, &delivery.channel)?.filter(|channel| delivery.generation == Some(channel.generation)))
}
