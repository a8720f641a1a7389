//! The journal of the outbox: replies, messages, notifications and answers to agents. Each delivery is intended, taken up and sent; then
//! it is received, due again later, or settled without a receipt.
//!
//! Never sends a delivery itself, and never loses one: each step is a row before it happens, with its ledger entry. A delivery that may
//! have arrived is sent again only if its channel is idempotent or a person asks for it. See [`super::dispatch`] and [`super::attempts`].

pub use ironclaw_store::tables::deliveries::{find, lost, lost_count, person_of};

use super::attempts::{Outcome, SENDS_AT_ONCE_MAX, TO_AGENTS_MAX, WAIT_MS_MAX};
use ironclaw_contract::ids::{DeliveryId, PersonId, TurnId};
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{Error, ReadTx, WriteTx};
use ironclaw_store::tables::deliveries::{self, Delivery, DeliveryState, NewDelivery, Payload, SentItem, Told};
use ironclaw_store::tables::{facts, messages, waiting};

/// The reason for the unknown outcome of a delivery that was open in a restored record.
const RESTORED: &str = "the record was restored from an earlier state, and the delivery may have been sent since then";

/// The deliveries that are due now, and the time of the next one.
#[derive(Debug)]
pub struct Due {
    /// The deliveries to take up.
    pub now: Vec<DeliveryId>,
    /// The time when the next one is due, milliseconds since the epoch.
    pub next_at: Option<i64>,
}

/// Records the intent of a delivery, or one that is settled with its row. `turn` is the turn that asks for it.
pub fn intend(tx: &mut WriteTx<'_>, new: NewDelivery<'_>, turn: Option<TurnId>) -> Result<Delivery, Error> {
    let delivery = deliveries::insert(tx, new)?;
    let entry = match &delivery.payload {
        Payload::Item(SentItem { call: Some(call), .. }) => {
            about(LedgerEvent::SendIntended, &delivery).with("call", *call).with("channel", delivery.channel.clone())
        }
        Payload::Item(sent) => about(LedgerEvent::DeliveryIntended, &delivery).with("item", sent.item),
        Payload::Notification(told) => {
            let is_placed = delivery.state == DeliveryState::Intent;
            let event = if is_placed { LedgerEvent::NotificationIntended } else { LedgerEvent::NotificationUnplaced };
            about(event, &delivery).with("about", told.about.name()).with("subject", told.subject.clone())
        }
    };
    match turn {
        Some(turn) => entry.turn(turn).append(tx)?,
        None => entry.append(tx)?,
    };
    Ok(delivery)
}

/// Returns the deliveries that are due on every channel: of each session the oldest without a pending backoff, and none of a
/// session with a send in flight. So answers arrive in order, and a delivery in backoff delays none behind it.
pub fn due(tx: &ReadTx<'_>, now: i64) -> Result<Due, Error> {
    let mut due = deliveries::to_agents(tx, TO_AGENTS_MAX)?;
    for channel in deliveries::channels_with_open(tx)? {
        due.extend(deliveries::ready(tx, &channel, now, WAIT_MS_MAX, SENDS_AT_ONCE_MAX)?);
    }
    Ok(Due { now: due, next_at: deliveries::next_attempt(tx, now)? })
}

/// Takes a delivery up, and returns the number of this attempt. From here on it may have left the host. Returns `None` if the delivery
/// no longer waits.
pub fn take_up(tx: &mut WriteTx<'_>, delivery: &Delivery) -> Result<Option<u32>, Error> {
    let attempt = deliveries::take_up(tx, delivery.id)?;
    if let Some(attempt) = attempt {
        entry(delivery, DeliveryState::Sending).with("attempt", attempt).append(tx)?;
    }
    Ok(attempt)
}

/// Records the outcome of an attempt, or the end of a delivery. Returns `false` if the delivery was already settled.
pub fn settle(tx: &mut WriteTx<'_>, delivery: &Delivery, outcome: &Outcome) -> Result<bool, Error> {
    let (state, reason, at) = match outcome {
        Outcome::Received => (DeliveryState::Received, None, tx.now()),
        Outcome::Retry(..) if deliveries::is_obsolete(tx, delivery.id)? => (DeliveryState::Withdrawn, None, tx.wall()),
        Outcome::Retry(reason, wait) => {
            let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(0);
            (DeliveryState::Intent, Some(reason), ironclaw_state::wall_clock() + wait_ms)
        }
        Outcome::Unknown(reason) => (DeliveryState::Unknown, Some(reason), tx.wall()),
        Outcome::Failed(reason) => (DeliveryState::Dead, Some(reason), tx.wall()),
        Outcome::Unplaced(reason) => (DeliveryState::Unplaced, Some(reason), tx.wall()),
        Outcome::Withdrawn => (DeliveryState::Withdrawn, None, tx.wall()),
    };
    if !deliveries::settle(tx, delivery.id, state, reason.map(String::as_str), at)? {
        return Ok(false);
    }
    match reason {
        None if state == DeliveryState::Received => record_receipt(tx, delivery)?,
        None => entry(delivery, state).append(tx).map(drop)?,
        Some(reason) => entry(delivery, state).reason(reason).append(tx).map(drop)?,
    }
    Ok(true)
}

/// Records the receipt of a delivery. Returns `false` if the delivery was already settled.
pub fn receive(tx: &mut WriteTx<'_>, delivery: &Delivery) -> Result<bool, Error> {
    settle(tx, delivery, &Outcome::Received)
}

/// Adds the receipt of a received delivery to the ledger, and to the messages or what waits that it is about.
pub fn record_receipt(tx: &mut WriteTx<'_>, delivery: &Delivery) -> Result<(), Error> {
    entry(delivery, DeliveryState::Received).append(tx)?;
    match &delivery.payload {
        Payload::Item(sent) => sent.turn.map_or(Ok(()), |turn| messages::mark_delivered(tx, turn)),
        Payload::Notification(told) => match told.subject.parse() {
            Ok(id) => waiting::record_notified(tx, id, &delivery.channel),
            Err(_) => Ok(()),
        },
    }
}

/// Withdraws the notifications about an object that wait. One in flight gets no further attempt.
pub fn withdraw(tx: &mut WriteTx<'_>, subject: &str) -> Result<(), Error> {
    for delivery in deliveries::waiting_about(tx, subject)? {
        settle(tx, &delivery, &Outcome::Withdrawn)?;
    }
    deliveries::mark_obsolete(tx, subject)
}

/// Records for a restored record that its open deliveries may have been sent in the other history. Its notifications are settled at once,
/// because their objects end next. One restore may begin two generations in one start, by the backup and by the heads outside. Nothing is
/// sent in between, so the second one leaves the notifications of the first.
pub fn doubt(tx: &mut WriteTx<'_>) -> Result<(), Error> {
    let settled = if facts::is_in_doubt(tx)? { Vec::new() } else { deliveries::possibly_sent(tx, i64::MAX)? };
    for delivery in settled.iter().filter(|delivery| delivery.sent().is_none()) {
        settle(tx, delivery, &Outcome::Unknown("the record was restored from an earlier state".to_owned()))?;
    }
    facts::doubt_deliveries(tx)
}

/// Returns the deliveries that may have been sent before this start, and the reason. Later calls return those in flight only.
pub fn possibly_sent(tx: &mut WriteTx<'_>) -> Result<(Vec<Delivery>, &'static str), Error> {
    let (doubtful, interrupted) = (facts::take_doubtful_deliveries(tx)?, "the host ended while it was being sent");
    let mut found = deliveries::possibly_sent(tx, doubtful.unwrap_or(0))?;
    // A notification that waits is of this history: see `doubt`.
    found.retain(|delivery| delivery.state == DeliveryState::Sending || delivery.sent().is_some());
    Ok((found, if doubtful.is_some() { RESTORED } else { interrupted }))
}

/// Marks a dead letter for sending again at a person's request, with all its attempts. Returns `false` if it is no dead letter.
pub fn send_again(tx: &mut WriteTx<'_>, found: &Delivery, by: PersonId) -> Result<bool, Error> {
    let changed = deliveries::send_again(tx, found.id)?;
    if changed {
        about(LedgerEvent::DeliveryAgain, found).with("by", by).append(tx)?;
    }
    Ok(changed)
}

/// Drops a dead letter. Returns `false` if it is no dead letter.
pub fn drop_dead_letter(tx: &mut WriteTx<'_>, found: &Delivery, by: PersonId) -> Result<bool, Error> {
    let changed = deliveries::mark_dropped(tx, found.id)?;
    if changed {
        entry(found, DeliveryState::Dropped).with("by", by).append(tx)?;
    }
    Ok(changed)
}

/// Returns the entry for the step that gave a delivery this state.
fn entry(delivery: &Delivery, state: DeliveryState) -> Entry {
    use DeliveryState::{Dead, Dropped, Intent, Received, Sending, Unknown, Unplaced, Withdrawn};
    let about = |event| about(event, delivery);
    let failed = |told: &Told, outcome| {
        let entry = about(LedgerEvent::NotificationFailed).with("about", told.about.name());
        entry.with("subject", told.subject.clone()).with("outcome", outcome)
    };
    match (&delivery.payload, state) {
        (Payload::Item(_), Intent) => about(LedgerEvent::DeliveryRetried),
        (Payload::Item(_), Sending) => about(LedgerEvent::DeliverySending),
        (Payload::Item(_), Received) => about(LedgerEvent::DeliveryReceived),
        (Payload::Item(_), Unknown) => about(LedgerEvent::DeliveryUnknown).with("outcome", "unknown"),
        (Payload::Item(_), Dead | Withdrawn | Unplaced) => about(LedgerEvent::DeliveryDead),
        (Payload::Item(_), Dropped) => about(LedgerEvent::DeliveryDropped),
        (Payload::Notification(_), Intent) => about(LedgerEvent::NotificationRetried),
        (Payload::Notification(_), Sending) => {
            about(LedgerEvent::NotificationSending).with("channel", delivery.channel.clone())
        }
        (Payload::Notification(_), Received) => about(LedgerEvent::NotificationReceived),
        (Payload::Notification(told), Unknown) => failed(told, "unknown"),
        (Payload::Notification(told), Dead | Dropped) => failed(told, "failed"),
        (Payload::Notification(told), Unplaced) => failed(told, "no_place"),
        (Payload::Notification(told), Withdrawn) => Entry::new(LedgerEvent::NotificationWithdrawn)
            .with("delivery", delivery.id)
            .with("subject", told.subject.clone()),
    }
}

/// Returns an entry of this event with the conversation or the person of a delivery.
fn about(event: LedgerEvent, delivery: &Delivery) -> Entry {
    let entry = Entry::new(event).with("delivery", delivery.id);
    match &delivery.payload {
        Payload::Item(SentItem { session, turn: Some(turn), .. }) => entry.session(*session).turn(*turn),
        Payload::Item(sent) => entry.session(sent.session),
        Payload::Notification(told) => entry.with("person", told.person),
    }
}
