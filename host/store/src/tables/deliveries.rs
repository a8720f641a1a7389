//! Deliveries. Tables: `deliveries`.

mod unseen;

pub use unseen::{UNSEEN_BLOCK, mark_seen, mark_seen_of_turn, unseen, unseen_by_session};

use crate::rows::rows;
use ironclaw_contract::ids::{CallId, DeliveryId, ItemId, MessageId, PersonId, SessionId, TurnId};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;
use std::collections::HashSet;

/// A wait of more than eight hours is of a clock that was ahead. These statements name the state twice, because SQLite uses the index of open deliveries only if they repeat its condition.
/// `+rowid` keeps SQLite from a search by number.
const SENDING: &str = "SELECT count(*) FROM deliveries WHERE channel = ?1 AND over_network = 1 \
                       AND state IN ('intent','sending') AND state = 'sending'";
const READY: &str = "SELECT id, min(rowid) AS place FROM deliveries WHERE channel = ?1 AND over_network = 1 \
                     AND state IN ('intent','sending') AND state = 'intent' \
                     AND (coalesce(next_at, 0) <= ?2 OR next_at > ?2 + 28800000 OR ?4) AND session_id NOT IN \
                     (SELECT session_id FROM deliveries WHERE channel = ?1 AND over_network = 1 \
                     AND state IN ('intent','sending') AND state = 'sending') \
                     GROUP BY session_id ORDER BY place LIMIT ?3";
const NEXT_AT: &str = "SELECT min(next_at) FROM deliveries WHERE state IN ('intent','sending') AND state = 'intent' \
                       AND over_network = 1 AND next_at > ?1";
const INTERRUPTED: &str = "SELECT * FROM deliveries WHERE state IN ('intent','sending') AND state = 'sending' \
                           AND over_network = 1 AND channel <> 'agent' ORDER BY created_at, id";
const DOUBTFUL: &str = "SELECT * FROM deliveries WHERE state IN ('intent','sending') AND over_network = 1 \
                        AND channel <> 'agent' AND +rowid <= ?1 ORDER BY created_at, id";

const TO_AGENTS: &str = "SELECT id FROM deliveries WHERE channel = 'agent' AND over_network = 1 \
                         AND state IN ('intent','sending') AND state = 'intent' ORDER BY rowid LIMIT ?1";

/// The person of a delivery: the principal of its turn or of the turn of its call; without both, the person who is linked to its address.
const WHOSE: &str = "CASE WHEN call_id IS NULL THEN \
                     coalesce((SELECT principal FROM turns WHERE turns.id = deliveries.turn_id), \
                     (SELECT person_id FROM identities WHERE identities.channel = deliveries.channel \
                     AND identities.sender = deliveries.platform_id)) \
                     ELSE (SELECT turns.principal FROM calls JOIN turns ON turns.id = calls.turn_id \
                     WHERE calls.id = deliveries.call_id) END";

ironclaw_contract::words! {
    /// The state of a delivery.
    pub enum DeliveryState {
        /// It waits for an attempt.
        Intent = "intent",
        /// An attempt runs.
        Sending = "sending",
        Received = "received",
        /// It may have arrived.
        Unknown = "unknown",
        /// It did not arrive, and the host makes no further attempt.
        Dead = "dead",
        /// A person ended it after that.
        Dropped = "dropped",
    }
}

ironclaw_contract::stored_as_text!(DeliveryState);

rows! {
    #[derive(Debug, Clone)]
    pub struct Delivery {
        /// Its id, which is also its idempotency key on the channel.
        pub id: DeliveryId,
        pub session: SessionId = "session_id",
        /// The turn that it answers.
        pub turn: Option<TurnId> = "turn_id",
        pub item: ItemId,
        /// The outbound row that requested it, if any.
        pub row_id: Option<MessageId>,
        /// The call of a message that the agent sends to a destination. Its text is in the output `item`.
        pub call: Option<CallId> = "call_id",
        /// Address of the recipient on its channel.
        pub recipient: String = "platform_id",
        /// Thread at that address; empty if there is none.
        pub thread: String = "thread_id",
        /// The group at that address; empty outside of one.
        pub group: String = "group_id",
        pub channel: String,
        /// True if it leaves this host.
        pub over_network: bool,
        /// The generation of that channel, which tells channels of the same name apart.
        pub generation: Option<i64>,
        pub state: DeliveryState,
        /// Milliseconds since the epoch.
        pub created_at: i64,
    }
}

/// A delivery to insert.
#[derive(Debug, Clone, Copy)]
pub struct NewDelivery<'a> {
    pub id: DeliveryId,
    pub session: SessionId,
    /// The turn that it answers.
    pub turn: Option<TurnId>,
    pub item: ItemId,
    /// The outbound row that requested it, if any.
    pub row_id: Option<MessageId>,
    /// The call of a message to a destination, if it is one.
    pub call: Option<CallId>,
    pub channel: &'a str,
    /// Address of the recipient on its channel.
    pub platform_id: &'a str,
    /// Thread at that address; empty if there is none.
    pub thread_id: &'a str,
    /// Group at that address; empty outside of one.
    pub group_id: &'a str,
    /// True if it leaves this host.
    pub over_network: bool,
    /// True if the same transaction records its receipt.
    pub is_received: bool,
}

/// A dead letter, with the facts that a person needs for a decision.
#[derive(Debug, Clone)]
pub struct Lost {
    pub delivery: Delivery,
    /// Its number of attempts.
    pub attempts: u32,
    /// The reason why it may not have arrived.
    pub reason: String,
    /// Milliseconds since the epoch.
    pub settled_at: i64,
}

rows! {
    /// The state of a delivery, and the time when it was settled.
    #[derive(Debug, Clone)]
    pub struct Progress {
        pub state: DeliveryState,
        /// Its number of attempts.
        pub attempts: u32,
        /// The reason of the last attempt that failed.
        pub reason: Option<String>,
        /// Milliseconds since the epoch; `None` while it is open.
        pub settled_at: Option<i64>,
    }
}

/// Inserts the intent of a delivery for the current channel of this name, or a received delivery, and returns its row.
pub fn insert(tx: &mut WriteTx<'_>, new: NewDelivery<'_>) -> Result<Delivery, Error> {
    let now = tx.now();
    let sql = "INSERT INTO deliveries (id, session_id, turn_id, item, row_id, channel, generation, platform_id, thread_id, state, attempts, \
               created_at, call_id, group_id, over_network, settled_at) \
               VALUES (?1,?2,?3,?4,?5,?6,(SELECT generation FROM channels WHERE name = ?6),?7,?8,iif(?13,'received','intent'),\
               ?13,?9,?10,?11,?12,iif(?13,?9,NULL)) \
               RETURNING *, rowid AS number";
    let NewDelivery { id, session, turn, item, row_id, call, .. } = new;
    let NewDelivery { channel, platform_id, thread_id, group_id, over_network, is_received, .. } = new;
    let to = params![
        id,
        session,
        turn,
        item,
        row_id,
        channel,
        platform_id,
        thread_id,
        now,
        call,
        group_id,
        over_network,
        is_received
    ];
    let (inserted, number) =
        tx.returning_one(sql, to, |row| Ok((Delivery::read(row)?, row.get::<_, i64>("number")?)))?;
    if let Some(turn) = turn {
        let sql = "UPDATE turns SET delivery_ids = json_insert(delivery_ids, '$[#]', ?1) WHERE id = ?2";
        if tx.execute(sql, params![id, turn])? != 1 {
            return Err(Error::Stored(format!("{turn} of {id} has no row")));
        }
    }
    unseen::record_inserted(tx, number)?;
    Ok(inserted)
}

/// Returns the number of the newest delivery, or 0.
pub fn last_rowid(tx: &ReadTx<'_>) -> Result<i64, Error> {
    tx.get("SELECT coalesce(max(rowid), 0) FROM deliveries", [], |row| row.get(0))
}

pub fn find(tx: &ReadTx<'_>, id: DeliveryId) -> Result<Option<Delivery>, Error> {
    tx.find("SELECT * FROM deliveries WHERE id = ?1", [id], Delivery::read)
}

/// Returns the delivery that answers a turn.
pub fn for_turn(tx: &ReadTx<'_>, turn: TurnId) -> Result<Option<Delivery>, Error> {
    let sql = "SELECT * FROM deliveries WHERE id IN (SELECT value FROM turns, json_each(delivery_ids) WHERE turns.id = ?1) \
               ORDER BY created_at DESC, rowid DESC LIMIT 1";
    tx.find(sql, [turn], Delivery::read)
}

/// Returns the deliveries of a session without a receipt, at most 64: first those on this host, and each kind oldest first.
pub fn open_of(tx: &ReadTx<'_>, session: SessionId) -> Result<Vec<Delivery>, Error> {
    let sql = "SELECT * FROM deliveries WHERE session_id = ?1 AND state IN ('intent','sending') ORDER BY over_network, created_at, id LIMIT 64";
    tx.list(sql, [session], Delivery::read)
}

/// Returns whether a session has a delivery on this host without a receipt.
pub fn is_any_open_here(tx: &ReadTx<'_>, session: SessionId) -> Result<bool, Error> {
    let sql =
        "SELECT 1 FROM deliveries WHERE session_id = ?1 AND state IN ('intent','sending') AND over_network = 0 LIMIT 1";
    Ok(tx.find(sql, [session], |_| Ok(()))?.is_some())
}

/// Returns the sessions that have a delivery on this host without a receipt.
pub fn sessions_with_open(tx: &ReadTx<'_>) -> Result<Vec<SessionId>, Error> {
    let sql = "SELECT DISTINCT session_id FROM deliveries WHERE state IN ('intent','sending') AND over_network = 0";
    tx.list(sql, [], |row| row.get("session_id"))
}

/// Returns the items of a session that were delivered to its own conversation.
pub fn received_of(tx: &ReadTx<'_>, session: SessionId) -> Result<HashSet<ItemId>, Error> {
    let sql = "SELECT item FROM deliveries WHERE session_id = ?1 AND state = 'received' AND call_id IS NULL";
    tx.list(sql, [session], |row| row.get("item"))
}

/// Returns the progress of the delivery of this id.
pub fn progress(tx: &ReadTx<'_>, id: DeliveryId) -> Result<Option<Progress>, Error> {
    let sql = "SELECT state, attempts, reason, settled_at FROM deliveries WHERE id = ?1";
    tx.find(sql, [id], Progress::read)
}

/// Returns at most `limit` answers to other agents that are not in the session that asked, oldest first.
pub fn to_agents(tx: &ReadTx<'_>, limit: i64) -> Result<Vec<DeliveryId>, Error> {
    tx.list(TO_AGENTS, [limit], |row| row.get("id"))
}

/// Returns the channels with an open delivery over a network.
pub fn channels_with_open(tx: &ReadTx<'_>) -> Result<Vec<String>, Error> {
    let sql = "SELECT DISTINCT channel FROM deliveries WHERE state IN ('intent','sending') AND over_network = 1 \
               AND channel <> 'agent'";
    tx.list(sql, [], |row| row.get(0))
}

/// Returns the number of deliveries in flight on a channel.
pub fn sending_count(tx: &ReadTx<'_>, channel: &str) -> Result<i64, Error> {
    tx.get(SENDING, [channel], |row| row.get(0))
}

/// Returns at most `limit` deliveries on a channel that may be sent now. Of each session it returns the oldest one whose backoff is
/// over or ignored, and none if the session has a delivery in flight.
pub fn ready(
    tx: &ReadTx<'_>,
    channel: &str,
    now: i64,
    ignore_waits: bool,
    limit: i64,
) -> Result<Vec<DeliveryId>, Error> {
    tx.list(READY, params![channel, now, limit, ignore_waits], |row| row.get("id"))
}

/// Returns the earliest end of a current backoff, milliseconds since the epoch.
pub fn next_attempt(tx: &ReadTx<'_>, now: i64) -> Result<Option<i64>, Error> {
    tx.get(NEXT_AT, [now], |row| row.get(0))
}

/// Returns the deliveries in flight over a network, oldest first. At a start of the host these were interrupted, and their outcome is
/// unknown.
pub fn interrupted(tx: &ReadTx<'_>) -> Result<Vec<Delivery>, Error> {
    tx.list(INTERRUPTED, [], Delivery::read)
}

/// Returns the open deliveries up to this number, oldest first.
pub fn open_up_to(tx: &ReadTx<'_>, last: i64) -> Result<Vec<Delivery>, Error> {
    tx.list(DOUBTFUL, [last], Delivery::read)
}

/// Returns the deliveries on a channel that wait and are not in flight.
pub fn intended_on(tx: &ReadTx<'_>, channel: &str) -> Result<Vec<Delivery>, Error> {
    let sql = "SELECT * FROM deliveries WHERE channel = ?1 AND over_network = 1 AND state IN ('intent','sending') \
               AND state = 'intent' ORDER BY rowid";
    tx.list(sql, [channel], Delivery::read)
}

/// Marks an intended delivery as in flight, and returns the number of this attempt; `None` if it no longer waits.
pub fn take_up(tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<Option<u32>, Error> {
    let sql = "UPDATE deliveries SET state = 'sending', attempts = attempts + 1 WHERE id = ?1 AND state = 'intent' RETURNING attempts";
    tx.returning(sql, [id], |row| row.get(0))
}

/// Marks an open delivery as received, and returns whether it was open.
pub fn mark_received(tx: &mut WriteTx<'_>, id: DeliveryId, settled_at: i64) -> Result<bool, Error> {
    let sql = "UPDATE deliveries SET state = 'received', attempts = attempts + 1, settled_at = ?2 WHERE id = ?1 AND state IN ('intent','sending') \
               RETURNING call_id";
    let settled = tx.returning(sql, params![id, settled_at], |row| row.get(0))?;
    set_state_of_its_call(tx, settled)
}

/// Schedules the next attempt of an open delivery, and returns whether it was open.
pub fn postpone(tx: &mut WriteTx<'_>, id: DeliveryId, next_at: i64, reason: &str) -> Result<bool, Error> {
    settle(tx, id, DeliveryState::Intent, Some(next_at), reason, None)
}

/// Marks the outcome of an open delivery as unknown, and returns whether it was open.
pub fn mark_unknown(tx: &mut WriteTx<'_>, id: DeliveryId, reason: &str, settled_at: i64) -> Result<bool, Error> {
    settle(tx, id, DeliveryState::Unknown, None, reason, Some(settled_at))
}

/// Marks an open delivery as failed without a further attempt, and returns whether it was open.
pub fn mark_dead(tx: &mut WriteTx<'_>, id: DeliveryId, reason: &str, settled_at: i64) -> Result<bool, Error> {
    settle(tx, id, DeliveryState::Dead, None, reason, Some(settled_at))
}

fn settle(
    tx: &mut WriteTx<'_>,
    id: DeliveryId,
    state: DeliveryState,
    next_at: Option<i64>,
    reason: &str,
    settled_at: Option<i64>,
) -> Result<bool, Error> {
    let sql = "UPDATE deliveries SET state = ?2, next_at = ?3, reason = ?4, settled_at = ?5 WHERE id = ?1 AND state IN ('intent','sending') \
               RETURNING call_id";
    let settled = tx.returning(sql, params![id, state, next_at, reason, settled_at], |row| row.get(0))?;
    set_state_of_its_call(tx, settled)
}

/// Sets the call of a changed delivery to its state, and returns whether a delivery changed.
fn set_state_of_its_call(tx: &mut WriteTx<'_>, changed: Option<Option<CallId>>) -> Result<bool, Error> {
    if let Some(call) = changed.flatten() {
        set_state_of_call(tx, call)?;
    }
    Ok(changed.is_some())
}

/// Sets an ended call, and its request, to the state of the delivery of its message, if it has one.
pub fn set_state_of_call(tx: &mut WriteTx<'_>, call: CallId) -> Result<(), Error> {
    // A person who drops a dead letter learns nothing about its outcome.
    let state = "SELECT CASE state WHEN 'received' THEN 'done' WHEN 'dead' THEN 'failed' WHEN 'unknown' THEN 'unknown' ELSE 'queued' END \
                 FROM deliveries WHERE call_id = ?1 AND state <> 'dropped'";
    let Some(state) = tx.find(state, [call], |row| row.get::<_, String>(0))? else { return Ok(()) };
    let ended = "('done','failed','queued','unknown')";
    tx.execute(&format!("UPDATE calls SET state = ?2 WHERE id = ?1 AND state IN {ended}"), params![call, state])?;
    let sql = format!("UPDATE waiting SET status = ?2 WHERE call_id = ?1 AND status IN {ended}");
    tx.execute(&sql, params![call, state]).map(drop)
}

/// Queues a dead letter again with all its attempts, and returns whether it was a dead letter.
pub fn send_again(tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<bool, Error> {
    let sql = "UPDATE deliveries SET state = 'intent', attempts = 0, next_at = NULL, reason = NULL, settled_at = NULL \
               WHERE id = ?1 AND state IN ('unknown','dead') RETURNING call_id";
    let queued = tx.returning(sql, [id], |row| row.get(0))?;
    set_state_of_its_call(tx, queued)
}

/// Marks a dead letter as dropped, and returns whether it was a dead letter.
pub fn mark_dropped(tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<bool, Error> {
    let sql = "UPDATE deliveries SET state = 'dropped' WHERE id = ?1 AND state IN ('unknown','dead')";
    Ok(tx.execute(sql, [id])? > 0)
}

/// Returns the number of dead letters of all people.
pub fn lost_count(tx: &ReadTx<'_>) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM deliveries WHERE state IN ('unknown','dead')";
    tx.get(sql, [], |row| row.get(0))
}

/// Returns at most `limit` dead letters of one person or of all, oldest first.
pub fn lost(tx: &ReadTx<'_>, of: Option<PersonId>, limit: i64) -> Result<Vec<Lost>, Error> {
    let sql = format!(
        "SELECT * FROM deliveries WHERE state IN ('unknown','dead') AND (?1 IS NULL OR {WHOSE} = ?1) \
         ORDER BY created_at, rowid LIMIT ?2"
    );
    tx.list(&sql, params![of, limit], |row| {
        Ok(Lost {
            delivery: Delivery::read(row)?,
            attempts: row.get("attempts")?,
            reason: row.get::<_, Option<String>>("reason")?.unwrap_or_default(),
            settled_at: row.get::<_, Option<i64>>("settled_at")?.unwrap_or_default(),
        })
    })
}

/// Returns the person of a delivery, by the rule of [`WHOSE`].
pub fn person_of(tx: &ReadTx<'_>, id: DeliveryId) -> Result<Option<PersonId>, Error> {
    let sql = format!("SELECT {WHOSE} AS person FROM deliveries WHERE id = ?1");
    let found = tx.find(&sql, [id], |row| row.get::<_, Option<String>>("person"))?.flatten();
    Ok(found.and_then(|person| person.parse().ok()))
}

/// Returns whether another delivery for this person on the same channel became a dead letter within `milliseconds` after `since`.
pub fn is_other_lost(
    tx: &ReadTx<'_>,
    lost: &Delivery,
    person: PersonId,
    since: i64,
    milliseconds: i64,
) -> Result<bool, Error> {
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM deliveries WHERE state IN ('unknown','dead') AND channel = ?1 AND id <> ?2 \
         AND settled_at > ?3 AND settled_at <= ?3 + ?5 AND {WHOSE} = ?4)"
    );
    tx.get(&sql, params![lost.channel, lost.id, since, person, milliseconds], |row| row.get(0))
}

/// Returns the number of deliveries in each open state and in each state of a dead letter.
pub fn open_and_lost_count_by_state(tx: &ReadTx<'_>) -> Result<std::collections::BTreeMap<String, u64>, Error> {
    tx.list(
        "SELECT state, count(*) FROM deliveries WHERE state IN ('intent','sending') GROUP BY state UNION ALL \
         SELECT state, count(*) FROM deliveries WHERE state IN ('unknown','dead') GROUP BY state",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// Returns whether the record has a delivery of this item for this turn, in any state.
pub fn is_of_turn(tx: &ReadTx<'_>, turn: TurnId, item: ItemId) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM turns, json_each(delivery_ids) JOIN deliveries ON deliveries.id = value \
               WHERE turns.id = ?1 AND item = ?2)";
    tx.get(sql, params![turn, item], |row| row.get(0))
}

/// Returns the rowids of at most `most` settled deliveries whose item was dropped, as a JSON array, or `None` if there are none.
pub fn forgettable(tx: &ReadTx<'_>, most: i64) -> Result<Option<String>, Error> {
    let sql = "SELECT nullif(json_group_array(key), '[]') FROM \
               (SELECT d.rowid AS key FROM sessions s JOIN deliveries d ON d.session_id = s.id \
               WHERE s.pruned_seq > 0 AND d.state IN ('received','dropped') \
               AND NOT EXISTS (SELECT 1 FROM items WHERE items.id = d.item) LIMIT ?1)";
    tx.get(sql, [most], |row| row.get(0))
}

/// Deletes the settled deliveries among these rowids, a JSON array, and returns their number.
pub fn forget(tx: &mut WriteTx<'_>, keys: &str) -> Result<usize, Error> {
    let sql =
        "DELETE FROM deliveries WHERE state IN ('received','dropped') AND rowid IN (SELECT value FROM json_each(?1))";
    tx.execute(sql, [keys])
}

pub fn delete_of(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), Error> {
    tx.execute("DELETE FROM deliveries WHERE session_id = ?1", [session]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::tests::steps_on;
    use super::*;

    #[test]
    fn due_deliveries_are_found_by_an_index() {
        for sql in [SENDING, READY, NEXT_AT, INTERRUPTED, DOUBTFUL, TO_AGENTS] {
            let steps = steps_on(&["deliveries"], sql);
            let by_index = |step: &String| step.contains("INDEX deliveries_o");
            assert!(!steps.is_empty() && steps.iter().all(by_index), "{sql}: {steps:?}");
        }
    }
}
