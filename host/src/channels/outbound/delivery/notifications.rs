//! The journal of notifications: each is taken up and sent; then it is delivered, due again later, failed, or unknown.
//!
//! The rules are those of the journal of replies. A notification has no session and no content, and a lost one is not sent again by a
//! person: its object is in `ironctl inbox`. See [`super::journal`] and [`crate::channels::notifications`].

use super::journal::{Due, Outcome, SENDS_AT_ONCE_MAX};
use crate::channels::notifications::{Place, State, Stored};
use crate::registry::channels::{self, Channel};
use ironclaw_contract::ids::DeliveryId;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{Error, ReadTx, WriteTx};
use ironclaw_store::tables::notifications as table;

pub use ironclaw_store::tables::notifications::interrupted;

/// A notification that was taken up, with the channel and the number of the attempt.
pub struct TakenUp {
    pub stored: Stored,
    /// The place at which it is sent.
    pub place: Place,
    pub channel: Channel,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

/// Adds the notifications that are due on every channel, oldest first.
pub fn add_due(tx: &ReadTx<'_>, mut due: Due, now: i64) -> Result<Due, Error> {
    for channel in table::channels_with_waiting(tx)? {
        let room = (SENDS_AT_ONCE_MAX - table::sending_count(tx, &channel)?).max(0);
        due.notifications.extend(table::ready(tx, &channel, now, room)?);
    }
    let next = table::next_attempt(tx, now)?;
    due.next_at = [due.next_at, next].into_iter().flatten().min();
    Ok(due)
}

/// Takes a notification up. From here on it may have left the host. Settles one whose place ended, and returns `None`.
pub fn take_up(tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<Option<TakenUp>, Error> {
    let Some(stored) = table::find(tx, id)?.filter(|stored| stored.state == State::Waiting) else { return Ok(None) };
    let Some(place) = table::place_of(tx, stored.person)? else {
        end(tx, &stored, State::NoPlace, "the person has no place")?;
        return Ok(None);
    };
    if stored.place.as_ref() != Some(&place) {
        if stored.attempts > 0 {
            // The earlier place may have it.
            end(tx, &stored, State::Failed, "the person has another place now")?;
            return Ok(None);
        }
        table::move_to(tx, id, &place)?;
    }
    let Some(channel) = channels::find(tx, &place.identity.channel)? else {
        end(tx, &stored, State::NoPlace, "the channel was removed")?;
        return Ok(None);
    };
    let Some(attempt) = table::take_up(tx, id)? else { return Ok(None) };
    let entry = entry(LedgerEvent::NotificationSending, &stored).with("channel", channel.name.clone());
    entry.with("attempt", attempt).append(tx)?;
    let stored = Stored { place: Some(place.clone()), ..stored };
    Ok(Some(TakenUp { stored, place, channel, attempt }))
}

/// Records the outcome of an attempt.
pub fn settle(tx: &mut WriteTx<'_>, stored: &Stored, outcome: &Outcome) -> Result<(), Error> {
    let now = tx.wall();
    match outcome {
        Outcome::Received => {
            if table::settle(tx, stored.id, State::Delivered, None, now)? {
                entry(LedgerEvent::NotificationReceived, stored).append(tx)?;
            }
        }
        Outcome::Retry(reason, wait) => {
            let next_at = ironclaw_state::wall_clock() + i64::try_from(wait.as_millis()).unwrap_or(0);
            match table::postpone(tx, stored.id, next_at, reason, now)? {
                Some(State::Withdrawn) => {
                    let entry = Entry::new(LedgerEvent::NotificationWithdrawn).with("delivery", stored.id);
                    entry.with("subject", stored.subject.clone()).append(tx)?;
                }
                Some(_) => {
                    entry(LedgerEvent::NotificationRetried, stored).reason(reason).append(tx)?;
                }
                None => {}
            }
        }
        Outcome::Unknown(reason) => end(tx, stored, State::Unknown, reason)?,
        Outcome::Failed(reason) => end(tx, stored, State::Failed, reason)?,
    }
    Ok(())
}

/// Settles the open notifications of a restored record as unknown: they may have been sent in the other history.
pub fn doubt(tx: &mut WriteTx<'_>) -> Result<(), Error> {
    for stored in table::open(tx)? {
        end(tx, &stored, State::Unknown, "the record was restored from an earlier state")?;
    }
    Ok(())
}

/// Settles an open notification that did not arrive, or may not have arrived.
fn end(tx: &mut WriteTx<'_>, stored: &Stored, state: State, reason: &str) -> Result<(), Error> {
    let now = tx.wall();
    if !table::settle(tx, stored.id, state, Some(reason), now)? {
        return Ok(());
    }
    let entry = entry(LedgerEvent::NotificationFailed, stored)
        .with("about", stored.about.name())
        .with("subject", stored.subject.clone())
        .with("outcome", state.name());
    entry.reason(reason).append(tx)?;
    Ok(())
}

fn entry(event: LedgerEvent, stored: &Stored) -> Entry {
    Entry::new(event).with("delivery", stored.id).with("person", stored.person)
}
