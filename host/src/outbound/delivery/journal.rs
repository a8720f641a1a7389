//! The journal of what goes out by a network: taken up, sent, received; or later again, or dead, or unknown.
//!
//! Never sends and never forgets: each step is a row before it is made. What may have arrived is sent again only if its channel shows
//! it once, or if a person says so. Next: `outbound::dispatch`.

pub use crate::tables::deliveries::{Lost, find, intended_on, interrupted, lost_count, person_of};
pub use crate::tables::facts::doubt_deliveries;

use super::Delivery;
use crate::registry::channels;
use crate::tables::{deliveries, facts};
use ironclaw_contract::ids::{DeliveryId, PersonId};
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_ledger::Entry;
use ironclaw_model::backoff::{Backoff, Jitter};
use ironclaw_state::{ReadTx, WriteTx};
use std::time::Duration;

/// Sends at once on one channel.
const SENDS_AT_ONCE_MAX: i64 = 8;

/// Each wait is so many times as long as the one before it.
const BACKOFF_FACTOR: u32 = 4;

/// The longest wait between two attempts.
const BACKOFF_MS_MAX: u64 = 6 * 60 * 60 * 1000;

/// Undelivered ones in one list.
const LOST_MAX: i64 = 500;

/// Of those that are lost one soon after the other, a person is told of the first; this long after the last they are told anew.
const TOLD_AGAIN_MS: i64 = 60 * 60 * 1000;

/// What is to be done now, and when there will be more.
#[derive(Debug, Default)]
pub struct Due {
    /// To be taken up.
    pub now: Vec<DeliveryId>,
    /// When the next one is due, milliseconds since the epoch.
    pub next_at: Option<i64>,
}

/// How one attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is received.
    Received,
    /// It is to be sent again after this wait.
    Retry(String, Duration),
    /// It is not known whether it arrived.
    Unknown(String),
    /// It did not arrive, and is not tried again.
    Failed(String),
}

/// What is due on every channel: of each session the oldest that waits for nothing, and nothing of one that is being sent to. So
/// answers arrive in their order, and one that waits for its next attempt holds up none behind it.
pub fn due(tx: &ReadTx<'_>) -> Result<Due, ironclaw_state::Error> {
    // A wait is by the machine's clock: the record's stands still for as long as that one was ahead.
    let now = ironclaw_state::wall_clock();
    let mut due = Due::default();
    for channel in deliveries::channels_with_open(tx)? {
        let room = (SENDS_AT_ONCE_MAX - deliveries::sending_count(tx, &channel)?).max(0);
        // What has nowhere to go waits for nothing.
        let gone = channels::find(tx, &channel)?.is_none();
        due.now.extend(deliveries::ready(tx, &channel, now, gone, room)?);
    }
    due.next_at = deliveries::next_attempt(tx, now)?;
    Ok(due)
}

/// Takes one up: from here on it may have left. `None` when it is no more to be sent. With it, the number of this attempt.
pub fn take_up(tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<Option<(Delivery, u32)>, ironclaw_state::Error> {
    let attempt = deliveries::take_up(tx, id)?;
    let (Some(attempt), Some(delivery)) = (attempt, find(tx, id)?) else { return Ok(None) };
    entry(LedgerEvent::DeliverySending, &delivery).with("attempt", attempt).append(tx)?;
    Ok(Some((delivery, attempt)))
}

/// Notes how an attempt ended. False when it was settled meanwhile.
pub fn settle(tx: &mut WriteTx<'_>, delivery: &Delivery, outcome: &Outcome) -> Result<bool, ironclaw_state::Error> {
    if *outcome == Outcome::Received {
        super::receive(tx, delivery)?;
        return Ok(true);
    }
    let (id, now) = (delivery.id, tx.wall());
    let (was_open, reason) = match outcome {
        Outcome::Received => unreachable!("noted above"),
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
        Outcome::Failed(_) => of(Entry::new(LedgerEvent::DeliveryDead), delivery),
    };
    entry.reason(reason).append(tx)?;
    Ok(true)
}

/// The open ones that may have been sent before the record was put back, once.
pub fn doubtful(tx: &mut WriteTx<'_>) -> Result<Vec<Delivery>, ironclaw_state::Error> {
    match facts::take_doubtful_deliveries(tx)? {
        Some(last) => deliveries::open_up_to(tx, last),
        None => Ok(Vec::new()),
    }
}

/// Returns the wait after this many attempts, with a quarter more or less by `chance`.
pub fn backoff(attempts: u32, base_ms: u64, chance: u32) -> Duration {
    let (first, longest) = (Duration::from_millis(base_ms), Duration::from_millis(BACKOFF_MS_MAX));
    Backoff { first, factor: BACKOFF_FACTOR, longest }.jittered(attempts, Jitter::Around, chance)
}

/// The newest undelivered ones, newest first: one person's, or everybody's.
pub fn lost(tx: &ReadTx<'_>, of: Option<PersonId>) -> Result<Vec<Lost>, ironclaw_state::Error> {
    deliveries::lost(tx, of, LOST_MAX)
}

/// Whether another of this person's on this channel was lost a short time ago: then they were told.
pub fn was_told(tx: &ReadTx<'_>, lost: &Delivery, person: PersonId) -> Result<bool, ironclaw_state::Error> {
    deliveries::is_other_lost(tx, lost, person, tx.wall() - TOLD_AGAIN_MS, TOLD_AGAIN_MS)
}

/// Sends an undelivered one again because a person says so, with all its attempts. False when it is not undelivered.
pub fn again(tx: &mut WriteTx<'_>, found: &Delivery, by: PersonId) -> Result<bool, ironclaw_state::Error> {
    let changed = deliveries::send_again(tx, found.id)?;
    if changed {
        of(Entry::new(LedgerEvent::DeliveryAgain), found).with("by", by).append(tx)?;
    }
    Ok(changed)
}

/// Lets an undelivered one rest. False when it is not undelivered.
pub fn let_go(tx: &mut WriteTx<'_>, found: &Delivery, by: PersonId) -> Result<bool, ironclaw_state::Error> {
    let changed = deliveries::mark_dropped(tx, found.id)?;
    if changed {
        of(Entry::new(LedgerEvent::DeliveryDropped), found).with("by", by).append(tx)?;
    }
    Ok(changed)
}

fn entry(event: LedgerEvent, delivery: &Delivery) -> Entry {
    of(Entry::new(event), delivery)
}

fn of(entry: Entry, delivery: &Delivery) -> Entry {
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
