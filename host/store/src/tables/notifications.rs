//! Notifications of people, and the places where people are told. Tables: `notifications`, `notification_places`.

use super::people::Identity;
use crate::rows::rows;
use ironclaw_contract::ids::{DeliveryId, PersonId};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::{Row, params};

/// A wait of more than eight hours is of a clock that was ahead. These statements name the state twice, because SQLite uses the index of open notifications only if they repeat its condition.
const SENDING: &str = "SELECT count(*) FROM notifications WHERE channel = ?1 AND state IN ('waiting','sending') \
                       AND state = 'sending'";
const READY: &str = "SELECT id FROM notifications WHERE channel = ?1 AND state IN ('waiting','sending') \
                     AND state = 'waiting' AND (coalesce(next_at, 0) <= ?2 OR next_at > ?2 + 28800000) ORDER BY ordinal LIMIT ?3";
const CHANNELS: &str = "SELECT DISTINCT channel FROM notifications WHERE state IN ('waiting','sending') \
                        AND state = 'waiting'";
const NEXT_AT: &str = "SELECT min(next_at) FROM notifications WHERE state IN ('waiting','sending') \
                       AND state = 'waiting' AND next_at > ?1";
const INTERRUPTED: &str = "SELECT * FROM notifications WHERE state IN ('waiting','sending') AND state = 'sending' \
                           ORDER BY created_at, id";

ironclaw_contract::words! {
    /// The reason for a notification.
    pub enum About {
        /// A call, a question or a change waits for the person.
        Waits = "waits",
        /// What waits for the person ends soon.
        EndsSoon = "ends_soon",
        /// An approved call was not made.
        ApprovalUnused = "approval_unused",
        /// The outcome of an approved call is unknown.
        CallUnknown = "call_unknown",
        /// A task of the person stops at a bound.
        TaskStopped = "task_stopped",
        /// A session is parked or quarantined.
        SessionIncident = "session_incident",
        /// A run of a schedule answered its person on this host, and the person did not read it.
        ScheduleReply = "schedule_reply",
        ScheduleIncident = "schedule_incident",
        /// A schedule that failed runs again.
        ScheduleRecovery = "schedule_recovery",
        /// The schedules are paused, because the record was restored.
        SchedulesPaused = "schedules_paused",
        /// The login at an MCP server ended.
        LoginEnded = "login_ended",
        /// The record was restored from an earlier state.
        RecordRestored = "record_restored",
        /// Senders of a channel wait for a person.
        SenderWaits = "sender_waits",
        /// A head of the ledger could not be kept outside of the home.
        HeadNotKept = "head_not_kept",
    }
}

impl About {
    /// Returns whether a person is told only once about an object for this reason. For the others, a person is not told again while an
    /// earlier notification waits.
    pub const fn is_once(self) -> bool {
        match self {
            Self::Waits | Self::EndsSoon | Self::ApprovalUnused | Self::CallUnknown | Self::TaskStopped => true,
            Self::SessionIncident
            | Self::ScheduleReply
            | Self::ScheduleIncident
            | Self::ScheduleRecovery
            | Self::SchedulesPaused
            | Self::LoginEnded
            | Self::RecordRestored
            | Self::SenderWaits
            | Self::HeadNotKept => false,
        }
    }
}

ironclaw_contract::stored_as_text!(About);

rows! {
    /// The address of a notification: an identity on one generation of a channel.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Place {
        /// The identity of the person.
        pub identity: Identity as row,
        /// The generation of the channel, which tells channels of the same name apart.
        pub generation: i64,
    }
}

ironclaw_contract::words! {
    pub enum State {
        /// It waits to be sent.
        Waiting = "waiting",
        /// It is in flight.
        Sending = "sending",
        /// The channel confirmed it.
        Delivered = "delivered",
        /// It did not arrive, and is not retried.
        Failed = "failed",
        /// It is unknown whether it arrived.
        Unknown = "unknown",
        /// The person has no place.
        NoPlace = "no_place",
        /// Its reason ended before it was sent.
        Withdrawn = "withdrawn",
    }
}

ironclaw_contract::stored_as_text!(State);

rows! {
    /// The row of a notification.
    #[derive(Debug, Clone)]
    pub struct Stored {
        /// Its id, which is also its idempotency key on the channel.
        pub id: DeliveryId,
        pub person: PersonId = "person_id",
        pub about: About,
        /// The id or name of the object.
        pub subject: String,
        /// The place at which it was sent last, or is to be sent.
        pub place: Option<Place> as place_if_any,
        pub state: State,
        /// The number of attempts that began.
        pub attempts: u32,
    }
}

fn place_if_any(row: &Row<'_>) -> rusqlite::Result<Option<Place>> {
    let has_place = row.get::<_, Option<String>>("channel")?.is_some();
    has_place.then(|| Place::read(row)).transpose()
}

pub fn place_of(tx: &ReadTx<'_>, person: PersonId) -> Result<Option<Place>, Error> {
    let sql = "SELECT channel, sender, generation FROM notification_places JOIN channels ON name = channel \
               WHERE person_id = ?1";
    tx.find(sql, [person], Place::read)
}

/// Returns the people who have a place, each with the identity.
pub fn places(tx: &ReadTx<'_>) -> Result<Vec<(PersonId, Identity)>, Error> {
    tx.list("SELECT * FROM notification_places ORDER BY person_id", [], |row| {
        Ok((row.get("person_id")?, Identity::read(row)?))
    })
}

/// Sets the place of a person, and replaces the earlier one.
pub fn set_place(tx: &mut WriteTx<'_>, person: PersonId, place: &Identity) -> Result<(), Error> {
    let sql = "INSERT INTO notification_places (person_id, channel, sender) VALUES (?1,?2,?3) \
               ON CONFLICT (person_id) DO UPDATE SET channel = ?2, sender = ?3";
    tx.execute(sql, params![person, place.channel, place.sender]).map(drop)
}

/// Removes the place of a person, and returns whether there was one.
pub fn remove_place(tx: &mut WriteTx<'_>, person: PersonId) -> Result<bool, Error> {
    Ok(tx.execute("DELETE FROM notification_places WHERE person_id = ?1", [person])? > 0)
}

/// The times of a new notification, in milliseconds since the epoch.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The time of its reason.
    pub now: i64,
    /// The earliest time of its first attempt; `None` for at once.
    pub not_before: Option<i64>,
}

/// Inserts a notification: it waits, or it is settled if there is no place.
pub fn insert(
    tx: &mut WriteTx<'_>,
    id: DeliveryId,
    person: PersonId,
    about: About,
    subject: &str,
    place: Option<&Place>,
    Times { now, not_before }: Times,
) -> Result<(), Error> {
    let sql = "INSERT INTO notifications (id, person_id, about, subject, channel, generation, sender, state, attempts, \
               created_at, settled_at, next_at) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,0,?9,?10,?11)";
    let (state, settled_at, next_at) = match place {
        Some(_) => (State::Waiting, None, not_before),
        None => (State::NoPlace, Some(now), None),
    };
    let channel = place.map(|place| &place.identity.channel);
    let sender = place.map(|place| &place.identity.sender);
    let generation = place.map(|place| place.generation);
    let values = params![id, person, about, subject, channel, generation, sender, state, now, settled_at, next_at];
    tx.execute(sql, values).map(drop)
}

/// Returns the notifications of a person for this reason and object, oldest first.
pub fn list_for_subject(tx: &ReadTx<'_>, person: PersonId, about: About, subject: &str) -> Result<Vec<Stored>, Error> {
    let sql = "SELECT * FROM notifications WHERE subject = ?3 AND about = ?2 AND person_id = ?1 ORDER BY ordinal";
    tx.list(sql, params![person, about, subject], Stored::read)
}

/// Withdraws the notifications about an object that wait, and returns their ids. One in flight gets no further attempt.
pub fn withdraw(tx: &mut WriteTx<'_>, subject: &str, now: i64) -> Result<Vec<DeliveryId>, Error> {
    let sql = "SELECT id FROM notifications WHERE subject = ?1 AND state = 'waiting' ORDER BY ordinal";
    let ids: Vec<DeliveryId> = tx.list(sql, [subject], |row| row.get(0))?;
    let sql = "UPDATE notifications SET state = 'withdrawn', settled_at = ?2 WHERE subject = ?1 AND state = 'waiting'";
    tx.execute(sql, params![subject, now])?;
    let sql = "UPDATE notifications SET is_obsolete = 1 WHERE subject = ?1 AND state = 'sending'";
    tx.execute(sql, [subject])?;
    Ok(ids)
}

pub fn find(tx: &ReadTx<'_>, id: DeliveryId) -> Result<Option<Stored>, Error> {
    tx.find("SELECT * FROM notifications WHERE id = ?1", [id], Stored::read)
}

/// Returns the channels that have a waiting notification.
pub fn channels_with_waiting(tx: &ReadTx<'_>) -> Result<Vec<String>, Error> {
    tx.list(CHANNELS, [], |row| row.get(0))
}

/// Returns the number of notifications in flight on a channel.
pub fn sending_count(tx: &ReadTx<'_>, channel: &str) -> Result<i64, Error> {
    tx.get(SENDING, [channel], |row| row.get(0))
}

/// Returns at most `limit` notifications on a channel that may be sent now, oldest first.
pub fn ready(tx: &ReadTx<'_>, channel: &str, now: i64, limit: i64) -> Result<Vec<DeliveryId>, Error> {
    tx.list(READY, params![channel, now, limit], |row| row.get(0))
}

/// Returns the earliest end of a current backoff, milliseconds since the epoch.
pub fn next_attempt(tx: &ReadTx<'_>, now: i64) -> Result<Option<i64>, Error> {
    tx.get(NEXT_AT, [now], |row| row.get(0))
}

/// Returns the notifications in flight. At a start of the host these were interrupted, and their outcome is unknown.
pub fn interrupted(tx: &ReadTx<'_>) -> Result<Vec<Stored>, Error> {
    tx.list(INTERRUPTED, [], Stored::read)
}

/// Returns the open notifications, oldest first.
pub fn open(tx: &ReadTx<'_>) -> Result<Vec<Stored>, Error> {
    tx.list("SELECT * FROM notifications WHERE state IN ('waiting','sending') ORDER BY ordinal", [], Stored::read)
}

/// Sets the place of a waiting notification.
pub fn move_to(tx: &mut WriteTx<'_>, id: DeliveryId, place: &Place) -> Result<(), Error> {
    let sql = "UPDATE notifications SET channel = ?2, sender = ?3, generation = ?4 WHERE id = ?1 AND state = 'waiting'";
    tx.execute(sql, params![id, place.identity.channel, place.identity.sender, place.generation]).map(drop)
}

/// Marks a waiting notification as in flight, and returns the number of this attempt; `None` if it no longer waits.
pub fn take_up(tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<Option<u32>, Error> {
    let sql = "UPDATE notifications SET state = 'sending', attempts = attempts + 1 \
               WHERE id = ?1 AND state = 'waiting' RETURNING attempts";
    tx.returning(sql, [id], |row| row.get(0))
}

/// Schedules the next attempt of an open notification, or withdraws it if its object ended. Returns the new state; `None` if it was not
/// open.
pub fn postpone(
    tx: &mut WriteTx<'_>,
    id: DeliveryId,
    next_at: i64,
    reason: &str,
    now: i64,
) -> Result<Option<State>, Error> {
    let sql = "UPDATE notifications SET state = iif(is_obsolete, 'withdrawn', 'waiting'), \
               next_at = iif(is_obsolete, NULL, ?2), reason = ?3, settled_at = iif(is_obsolete, ?4, NULL) \
               WHERE id = ?1 AND state IN ('waiting','sending') RETURNING state";
    tx.returning(sql, params![id, next_at, reason, now], |row| row.get(0))
}

/// Settles an open notification, and returns whether it was open.
pub fn settle(
    tx: &mut WriteTx<'_>,
    id: DeliveryId,
    state: State,
    reason: Option<&str>,
    now: i64,
) -> Result<bool, Error> {
    let sql = "UPDATE notifications SET state = ?2, next_at = NULL, reason = ?3, settled_at = ?4 \
               WHERE id = ?1 AND state IN ('waiting','sending')";
    Ok(tx.execute(sql, params![id, state, reason, now])? > 0)
}

/// Deletes at most `most` notifications that were settled at `until` or before.
pub fn forget(tx: &mut WriteTx<'_>, until: i64, most: i64) -> Result<usize, Error> {
    let sql = "DELETE FROM notifications WHERE ordinal IN \
               (SELECT ordinal FROM notifications WHERE settled_at IS NOT NULL AND settled_at <= ?1 LIMIT ?2)";
    tx.execute(sql, params![until, most])
}

#[cfg(test)]
mod tests {
    use super::super::tests::steps_on;
    use super::*;

    #[test]
    fn due_notifications_are_found_by_an_index() {
        for sql in [SENDING, READY, CHANNELS, NEXT_AT, INTERRUPTED] {
            let steps = steps_on(&["notifications"], sql);
            let by_index = |step: &String| step.contains("INDEX notifications_open");
            assert!(!steps.is_empty() && steps.iter().all(by_index), "{sql}: {steps:?}");
        }
    }
}
