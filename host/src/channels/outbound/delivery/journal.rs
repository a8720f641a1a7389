//! The journal of deliveries over a network. Each is taken up and sent; then it is received, due again later, dead, or unknown.
//!
//! Never sends a delivery itself, and never loses one: each step is a row before it happens. A delivery that may have arrived is sent
//! again only if its channel is idempotent or a person asks for it. See [`crate::channels::outbound::dispatch`].

pub use ironclaw_store::tables::deliveries::{Lost, find, intended_on, interrupted, lost_count, person_of};
pub use ironclaw_store::tables::facts::{doubt_deliveries, is_in_doubt};

use super::Delivery;
use crate::registry::channels;
use ironclaw_contract::ids::{DeliveryId, PersonId};
use ironclaw_ledger::Entry;
use ironclaw_net::backoff::{Backoff, Jitter};
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::tables::{deliveries, facts};
use std::time::Duration;

/// Sends in flight on one channel.
pub(super) const SENDS_AT_ONCE_MAX: i64 = 8;

/// Answers to other agents that one pass records.
const TO_AGENTS_MAX: i64 = 64;

/// The factor from one wait to the next.
const BACKOFF_FACTOR: u32 = 4;

/// The longest wait between two attempts.
const BACKOFF_MS_MAX: u64 = 6 * 60 * 60 * 1000;

/// Dead letters in one list.
const LOST_MAX: i64 = 500;

/// The host notifies a person of the first of several dead letters; it notifies again after this time without another one.
const NOTIFY_AGAIN_MS: i64 = 60 * 60 * 1000;

/// The deliveries that are due now, and the time of the next one.
#[derive(Debug, Default)]
pub struct Due {
    /// The deliveries to take up.
    pub now: Vec<DeliveryId>,
    /// The notifications to take up.
    pub notifications: Vec<DeliveryId>,
    /// The time when the next one is due, milliseconds since the epoch.
    pub next_at: Option<i64>,
}

/// The outcome of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The delivery is received.
    Received,
    /// The delivery is sent again after this wait.
    Retry(String, Duration),
    /// It is unknown whether the delivery arrived.
    Unknown(String),
    /// The delivery did not arrive, and is not retried.
    Failed(String),
}

/// Returns the deliveries that are due on every channel: of each session the oldest without a pending backoff, and none of a
/// session with a send in flight. So answers arrive in order, and a delivery in backoff delays none behind it.
pub fn due(tx: &ReadTx<'_>, now: i64) -> Result<Due, ironclaw_state::Error> {
    let mut due = Due { now: deliveries::to_agents(tx, TO_AGENTS_MAX)?, ..Due::default() };
    for channel in deliveries::channels_with_open(tx)? {
        let room = (SENDS_AT_ONCE_MAX - deliveries::sending_count(tx, &channel)?).max(0);
        // A delivery without a channel fails at once, so it does not wait for its backoff.
        let gone = channels::find(tx, &channel)?.is_none();
        due.now.extend(deliveries::ready(tx, &channel, now, gone, room)?);
    }
    due.next_at = deliveries::next_attempt(tx, now)?;
    Ok(due)
}

/// Takes a delivery up, and returns it with the number of this attempt. From here on it may have left the host. Returns `None` if
/// the delivery is no longer due.
pub fn take_up(tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<Option<(Delivery, u32)>, ironclaw_state::Error> {
    let attempt = deliveries::take_up(tx, id)?;
    let (Some(attempt), Some(delivery)) = (attempt, find(tx, id)?) else { return Ok(None) };
    entry(LedgerEvent::DeliverySending, &delivery).with("attempt", attempt).append(tx)?;
    Ok(Some((delivery, attempt)))
}

/// Records the outcome of an attempt. Returns `false` if the delivery was already settled.
pub fn settle(tx: &mut WriteTx<'_>, delivery: &Delivery, outcome: &Outcome) -> Result<bool, ironclaw_state::Error> {
    if *outcome == Outcome::Received {
        super::receive(tx, delivery)?;
        return Ok(true);
    }
    let (id, now) = (delivery.id, tx.wall());
    let (was_open, reason) = match outcome {
        Outcome::Received => unreachable!("recorded above"),
        Outcome::Retry(reason, wait) => {
            let next_at = ironclaw_state::wall_clock() + i64::try_from(wait.as_millis()).unwrap_or(0);
            (deliveries::postpone(tx, id, next_at, reason)?, reason)
        }
        Outcome::Unknown(reason) => (deliveries::mark_unknown(tx, id, reason, now)?, reason),
        Outcome::Failed(reason) => (deliveries::mark_dead(tx, id, reason, now)?, reason),
    };
    if !was_open {
        return Ok(false);
    }
    let entry = match outcome {
        Outcome::Received | Outcome::Retry(..) => entry(LedgerEvent::DeliveryRetried, delivery),
        Outcome::Unknown(_) => entry(LedgerEvent::DeliveryUnknown, delivery).with("outcome", "unknown"),
        Outcome::Failed(_) => about(Entry::new(LedgerEvent::DeliveryDead), delivery),
    };
    entry.reason(reason).append(tx)?;
    Ok(true)
}

/// Returns the open deliveries that may have been sent before a restore of the record; later calls return none.
pub fn possibly_sent(tx: &mut WriteTx<'_>) -> Result<Vec<Delivery>, ironclaw_state::Error> {
    match facts::take_doubtful_deliveries(tx)? {
        Some(last) => deliveries::open_up_to(tx, last),
        None => Ok(Vec::new()),
    }
}

/// Returns the wait after this many attempts, with a jitter of up to a quarter from `chance`.
pub fn backoff(attempts: u32, base_ms: u64, chance: u32) -> Duration {
    let (first, longest) = (Duration::from_millis(base_ms), Duration::from_millis(BACKOFF_MS_MAX));
    Backoff { first, factor: BACKOFF_FACTOR, longest }.jittered(attempts, Jitter::Around, chance)
}

/// A part of the dead letters.
#[derive(Debug)]
pub struct DeadLetters {
    /// The oldest first.
    pub found: Vec<Lost>,
    /// True if there are more.
    pub more: bool,
}

/// Returns the dead letters that wait longest, oldest first: those of one person, or all.
pub fn dead_letters(tx: &ReadTx<'_>, of: Option<PersonId>) -> Result<DeadLetters, ironclaw_state::Error> {
    let mut found = deliveries::lost(tx, of, LOST_MAX + 1)?;
    let more = found.len() as i64 > LOST_MAX;
    found.truncate(LOST_MAX as usize);
    Ok(DeadLetters { found, more })
}

/// Returns whether the person was notified a short time ago, because another delivery to them on this channel was lost.
pub fn was_notified(tx: &ReadTx<'_>, lost: &Delivery, person: PersonId) -> Result<bool, ironclaw_state::Error> {
    deliveries::is_other_lost(tx, lost, person, tx.wall() - NOTIFY_AGAIN_MS, NOTIFY_AGAIN_MS)
}

/// Marks a dead letter for sending again at a person's request, with all its attempts. Returns `false` if it is no dead letter.
pub fn send_again(tx: &mut WriteTx<'_>, found: &Delivery, by: PersonId) -> Result<bool, ironclaw_state::Error> {
    let changed = deliveries::send_again(tx, found.id)?;
    if changed {
        about(Entry::new(LedgerEvent::DeliveryAgain), found).with("by", by).append(tx)?;
    }
    Ok(changed)
}

/// Drops a dead letter. Returns `false` if it is no dead letter.
pub fn drop_dead_letter(tx: &mut WriteTx<'_>, found: &Delivery, by: PersonId) -> Result<bool, ironclaw_state::Error> {
    let changed = deliveries::mark_dropped(tx, found.id)?;
    if changed {
        about(Entry::new(LedgerEvent::DeliveryDropped), found).with("by", by).append(tx)?;
    }
    Ok(changed)
}

fn entry(event: LedgerEvent, delivery: &Delivery) -> Entry {
    about(Entry::new(event), delivery)
}

fn about(entry: Entry, delivery: &Delivery) -> Entry {
    let entry = entry.session(delivery.session).with("delivery", delivery.id);
    match delivery.turn {
        Some(turn) => entry.turn(turn),
        None => entry,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_to_its_bound_with_at_most_a_quarter_jitter() {
        let wait = |attempts, chance| backoff(attempts, 1000, chance).as_millis();
        assert_eq!((wait(1, 0), wait(1, u32::MAX)), (750, 1250));
        assert_eq!((wait(2, u32::MAX / 2) + 1) / 1000, 4);
        assert_eq!(wait(100, 0), u128::from(BACKOFF_MS_MAX) * 3 / 4);
        assert_eq!(backoff(u32::MAX, u64::MAX, u32::MAX).as_millis(), u128::from(BACKOFF_MS_MAX) * 5 / 4);
        let waits: Vec<u128> = (1..12).map(|attempts| wait(attempts, 7)).collect();
        assert!(waits.is_sorted());
    }
}
