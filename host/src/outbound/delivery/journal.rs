//! The journal of what goes out by a network: taken up, sent, received; or later again, or dead, or nobody knows.
//!
//! Never sends and never forgets: each step is a row before it is made. What may have arrived is sent again only if its channel shows
//! it once, or if a person says so. Next: `outbound::dispatch`.

use super::{Delivery, delivery};
use crate::registry::channels;
use ironclaw_contract::ids::{DeliveryId, PersonId};
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_ledger::Entry;
use ironclaw_model::backoff::{Backoff, Jitter};
use ironclaw_state::{ReadTx, WriteTx};
use rusqlite::{OptionalExtension, params};
use std::time::Duration;

/// Sends at once on one channel.
const SENDS_AT_ONCE_MAX: i64 = 8;

/// Each wait is so many times as long as the one before it.
const BACKOFF_FACTOR: u32 = 4;

/// The longest wait between two attempts.
const BACKOFF_MS_MAX: u64 = 6 * 60 * 60 * 1000;

/// Undelivered ones in one list.
const LOST_MAX: i64 = 500;

/// The state stands there twice: what SQLite reads an index of open ones for has to say that it is one.
const SENDING: &str = "SELECT count(*) FROM deliveries WHERE channel = ?1 AND channel <> 'loopback' \
                       AND state IN ('intent','sending') AND state = 'sending'";
const READY: &str = "SELECT id, min(rowid) AS place FROM deliveries WHERE channel = ?1 AND channel <> 'loopback' \
                     AND state IN ('intent','sending') AND state = 'intent' \
                     AND (coalesce(next_at, 0) <= ?2 OR ?4) AND session_id NOT IN \
                     (SELECT session_id FROM deliveries WHERE channel = ?1 AND channel <> 'loopback' \
                     AND state IN ('intent','sending') AND state = 'sending') \
                     GROUP BY session_id ORDER BY place LIMIT ?3";
const NEXT_AT: &str = "SELECT min(next_at) FROM deliveries WHERE state IN ('intent','sending') AND state = 'intent' \
                       AND channel <> 'loopback' AND next_at > ?1";
const CUT_SHORT: &str = "SELECT * FROM deliveries WHERE state IN ('intent','sending') AND state = 'sending' \
                         AND channel <> 'loopback' ORDER BY created_at, id";

/// Of those that are lost one soon after the other, a person is told of the first; this long after the last they are told anew.
const TOLD_AGAIN_MS: i64 = 60 * 60 * 1000;

/// Where the record keeps up to which one the open deliveries may have been sent in another history of it.
const DOUBTFUL: &str = "deliveries_doubtful";
const OF_DOUBT: &str = "SELECT * FROM deliveries WHERE state IN ('intent','sending') AND channel <> 'loopback' AND rowid <= ?1 \
                        ORDER BY created_at, id";

/// Whose a delivery is: of the person for whom the turn worked; without one, of whoever is linked to where it goes.
const WHOSE: &str = "coalesce((SELECT principal FROM turns WHERE turns.id = deliveries.turn_id), \
                     (SELECT person_id FROM identities WHERE identities.channel = deliveries.channel \
                     AND identities.sender = deliveries.platform_id))";

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
    /// Nobody knows whether it arrived.
    Unknown(String),
    /// It did not arrive, and is not tried again.
    Failed(String),
}

/// An undelivered one, with what a person needs to judge it.
#[derive(Debug, Clone)]
pub struct Lost {
    /// The delivery.
    pub delivery: Delivery,
    /// Whom it was for, on its channel.
    pub recipient: String,
    /// In which thread.
    pub thread: String,
    /// How often it was tried.
    pub attempts: u32,
    /// Why it did not arrive.
    pub reason: String,
    /// Milliseconds since the epoch.
    pub settled_at: i64,
}

/// What is due on every channel: of each session the oldest that waits for nothing, and nothing of one that is being sent to. So
/// answers arrive in their order, and one that waits for its next attempt holds up none behind it.
pub fn due(tx: &ReadTx<'_>) -> Result<Due, ironclaw_state::Error> {
    // A wait is by the machine's clock: the record's stands still for as long as that one was ahead.
    let (db, now) = (tx.db(), ironclaw_state::wall_clock());
    let mut due = Due::default();
    let mut channels = db.prepare_cached(
        "SELECT DISTINCT channel FROM deliveries WHERE state IN ('intent','sending') AND channel <> 'loopback'",
    )?;
    let channels: Vec<String> = channels.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for channel in channels {
        let sending: i64 = db.prepare_cached(SENDING)?.query_row([&channel], |row| row.get(0))?;
        let mut ready = db.prepare_cached(READY)?;
        let room = (SENDS_AT_ONCE_MAX - sending).max(0);
        // What has nowhere to go waits for nothing.
        let gone = channels::find(tx, &channel)?.is_none();
        let ready = ready.query_map(params![channel, now, room, gone], |row| row.get("id"))?;
        for id in ready {
            due.now.push(id?);
        }
    }
    due.next_at = db.prepare_cached(NEXT_AT)?.query_row([now], |row| row.get(0))?;
    Ok(due)
}

/// Takes one up: from here on it may have left. `None` when it is no more to be sent. With it, the number of this attempt.
pub fn take_up(tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<Option<(Delivery, u32)>, ironclaw_state::Error> {
    let sql = "UPDATE deliveries SET state = 'sending', attempts = attempts + 1 WHERE id = ?1 AND state = 'intent' RETURNING attempts";
    let attempt: Option<u32> = tx.db().prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()?;
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
    let now = tx.wall();
    let (state, next_at, reason) = match outcome {
        Outcome::Received => unreachable!("noted above"),
        Outcome::Retry(reason, wait) => {
            ("intent", Some(ironclaw_state::wall_clock() + i64::try_from(wait.as_millis()).unwrap_or(0)), reason)
        }
        Outcome::Unknown(reason) => ("unknown", None, reason),
        Outcome::Failed(reason) => ("dead", None, reason),
    };
    let settled_at = next_at.is_none().then_some(now);
    let sql = "UPDATE deliveries SET state = ?2, next_at = ?3, reason = ?4, settled_at = ?5 WHERE id = ?1 AND state IN ('intent','sending')";
    let changed = tx.db().prepare_cached(sql)?.execute(params![delivery.id, state, next_at, reason, settled_at])?;
    if changed == 0 {
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

/// What was being sent when the host last ended: whether it arrived, nobody here knows.
pub fn cut_short(tx: &ReadTx<'_>) -> Result<Vec<Delivery>, ironclaw_state::Error> {
    let mut statement = tx.db().prepare_cached(CUT_SHORT)?;
    let found = statement.query_map([], delivery)?.collect::<rusqlite::Result<_>>()?;
    Ok(found)
}

/// Notes that the record was put back: whatever is open now may have been sent meanwhile.
pub fn doubt(tx: &mut WriteTx<'_>) -> Result<(), ironclaw_state::Error> {
    let sql = "INSERT OR REPLACE INTO meta (key, value) SELECT ?1, coalesce(max(rowid), 0) FROM deliveries";
    tx.db().execute(sql, [DOUBTFUL])?;
    Ok(())
}

/// The open ones that may have been sent before the record was put back, once.
pub fn doubtful(tx: &mut WriteTx<'_>) -> Result<Vec<Delivery>, ironclaw_state::Error> {
    let mut take = tx.db().prepare_cached("DELETE FROM meta WHERE key = ?1 RETURNING CAST(value AS INTEGER)")?;
    let mut rows = take.query([DOUBTFUL])?;
    let Some(last) = rows.next()?.map(|row| row.get::<_, i64>(0)).transpose()? else { return Ok(Vec::new()) };
    let mut statement = tx.db().prepare_cached(OF_DOUBT)?;
    let found = statement.query_map([last], delivery)?.collect::<rusqlite::Result<_>>()?;
    Ok(found)
}

/// What is still to be sent on a channel, and is not being sent.
pub fn intended_on(tx: &ReadTx<'_>, channel: &str) -> Result<Vec<Delivery>, ironclaw_state::Error> {
    let sql = "SELECT * FROM deliveries WHERE channel = ?1 AND channel <> 'loopback' AND state IN ('intent','sending') \
               AND state = 'intent' ORDER BY rowid";
    let mut statement = tx.db().prepare_cached(sql)?;
    let found = statement.query_map([channel], delivery)?.collect::<rusqlite::Result<_>>()?;
    Ok(found)
}

/// Returns the wait after this many attempts, with a quarter more or less by `chance`.
pub fn backoff(attempts: u32, base_ms: u64, chance: u32) -> Duration {
    let (first, longest) = (Duration::from_millis(base_ms), Duration::from_millis(BACKOFF_MS_MAX));
    Backoff { first, factor: BACKOFF_FACTOR, longest }.jittered(attempts, Jitter::Around, chance)
}

/// The delivery of this id.
pub fn find(tx: &ReadTx<'_>, id: DeliveryId) -> Result<Option<Delivery>, ironclaw_state::Error> {
    let sql = "SELECT * FROM deliveries WHERE id = ?1";
    Ok(tx.db().prepare_cached(sql)?.query_row([id], delivery).optional()?)
}

/// How many are undelivered, of everybody.
pub fn lost_count(tx: &ReadTx<'_>) -> Result<u64, ironclaw_state::Error> {
    let sql = "SELECT count(*) FROM deliveries WHERE state IN ('unknown','dead')";
    Ok(tx.db().prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0))? as u64)
}

/// The newest undelivered ones, newest first: one person's, or everybody's.
pub fn lost(tx: &ReadTx<'_>, of: Option<PersonId>) -> Result<Vec<Lost>, ironclaw_state::Error> {
    let sql = format!(
        "SELECT * FROM deliveries WHERE state IN ('unknown','dead') AND (?1 IS NULL OR {WHOSE} = ?1) \
         ORDER BY created_at DESC, rowid DESC LIMIT ?2"
    );
    let mut statement = tx.db().prepare_cached(&sql)?;
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Lost {
            delivery: delivery(row)?,
            recipient: row.get("platform_id")?,
            thread: row.get("thread_id")?,
            attempts: row.get("attempts")?,
            reason: row.get::<_, Option<String>>("reason")?.unwrap_or_default(),
            settled_at: row.get::<_, Option<i64>>("settled_at")?.unwrap_or_default(),
        })
    };
    let found = statement.query_map(params![of, LOST_MAX], read)?.collect::<rusqlite::Result<_>>()?;
    Ok(found)
}

/// Whose a delivery is, by the one rule of [`WHOSE`].
pub fn person_of(tx: &ReadTx<'_>, id: DeliveryId) -> Result<Option<PersonId>, ironclaw_state::Error> {
    let sql = format!("SELECT {WHOSE} AS person FROM deliveries WHERE id = ?1");
    let read = |row: &rusqlite::Row<'_>| row.get::<_, Option<String>>("person");
    let found = tx.db().prepare_cached(&sql)?.query_row([id], read).optional()?.flatten();
    Ok(found.and_then(|person| person.parse().ok()))
}

/// Whether another of this person's on this channel was lost a short time ago: then they were told.
pub fn was_told(tx: &ReadTx<'_>, lost: &Delivery, person: PersonId) -> Result<bool, ironclaw_state::Error> {
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM deliveries WHERE state IN ('unknown','dead') AND channel = ?1 AND id <> ?2 \
         AND settled_at > ?3 AND settled_at <= ?3 + ?5 AND {WHOSE} = ?4)"
    );
    let since = tx.wall() - TOLD_AGAIN_MS;
    let asked = params![lost.channel, lost.id, since, person, TOLD_AGAIN_MS];
    Ok(tx.db().prepare_cached(&sql)?.query_row(asked, |row| row.get(0))?)
}

/// Sends an undelivered one again because a person says so, with all its attempts. False when it is not undelivered.
pub fn again(tx: &mut WriteTx<'_>, found: &Delivery, by: PersonId) -> Result<bool, ironclaw_state::Error> {
    let sql = "UPDATE deliveries SET state = 'intent', attempts = 0, next_at = NULL, reason = NULL, settled_at = NULL \
               WHERE id = ?1 AND state IN ('unknown','dead')";
    let changed = tx.db().prepare_cached(sql)?.execute([found.id])?;
    if changed > 0 {
        of(Entry::new(LedgerEvent::DeliveryAgain), found).with("by", by).append(tx)?;
    }
    Ok(changed > 0)
}

/// Lets an undelivered one rest. False when it is not undelivered.
pub fn let_go(tx: &mut WriteTx<'_>, found: &Delivery, by: PersonId) -> Result<bool, ironclaw_state::Error> {
    let sql = "UPDATE deliveries SET state = 'dropped' WHERE id = ?1 AND state IN ('unknown','dead')";
    let changed = tx.db().prepare_cached(sql)?.execute([found.id])?;
    if changed > 0 {
        of(Entry::new(LedgerEvent::DeliveryDropped), found).with("by", by).append(tx)?;
    }
    Ok(changed > 0)
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
    fn what_is_due_is_found_without_reading_what_was_settled() {
        let db = rusqlite::Connection::open_in_memory().expect("made");
        for version in ironclaw_state::migrations::VERSIONS {
            db.execute_batch(version).expect("a version of the schema");
        }
        for sql in [SENDING, READY, NEXT_AT, CUT_SHORT, OF_DOUBT] {
            let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("it is SQL");
            let nothing = vec![rusqlite::types::Null; statement.parameter_count()];
            let plan = statement.query_map(rusqlite::params_from_iter(nothing), |row| row.get::<_, String>("detail"));
            let plan: Vec<String> = plan.expect("a plan").collect::<Result<_, _>>().expect("its steps");
            let tables: Vec<&String> = plan.iter().filter(|step| step.contains(" deliveries")).collect();
            let by_index = |step: &&String| step.contains("INDEX deliveries_o");
            assert!(!tables.is_empty() && tables.iter().all(by_index), "{sql}: {plan:?}");
        }
    }

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
