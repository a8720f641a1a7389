//! The outbox: everything that the host sends. Tables: `deliveries`.

mod to_people;
mod unseen;

pub use to_people::{Told, forget_settled, is_obsolete, mark_obsolete, move_to, states_for_subject, waiting_about};
pub use unseen::{UNSEEN_BLOCK, mark_seen, mark_seen_of_turn, unseen, unseen_by_session};

use super::destinations::ReplyAddress;
use crate::rows::rows;
use ironclaw_contract::ids::{CallId, DeliveryId, ItemId, PersonId, SessionId, TurnId};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::{Row, params};
use std::collections::HashSet;

/// These statements name the state twice, because SQLite uses the index of open deliveries only if they repeat its condition.
const CHANNELS: &str = "SELECT DISTINCT channel FROM deliveries WHERE state IN ('intent','sending') AND over_network = 1 \
                        AND channel <> 'agent'";
/// Notifications are in no order among themselves, so each counts as a session of its own. A delivery without its channel fails at once,
/// so it does not wait for its backoff.
const READY: &str = "WITH in_flight AS (SELECT coalesce(session_id, id) FROM deliveries WHERE channel = ?1 AND over_network = 1 \
                     AND state IN ('intent','sending') AND state = 'sending') \
                     SELECT id, min(rowid) AS place FROM deliveries WHERE channel = ?1 AND over_network = 1 \
                     AND state IN ('intent','sending') AND state = 'intent' AND coalesce(session_id, id) NOT IN in_flight \
                     AND (coalesce(next_at, 0) <= ?2 OR next_at > ?2 + ?3 OR session_id IS NOT NULL AND NOT EXISTS \
                     (SELECT 1 FROM channels WHERE name = ?1 AND channels.generation = deliveries.generation)) \
                     GROUP BY coalesce(session_id, id) ORDER BY place LIMIT max(0, ?4 - (SELECT count(*) FROM in_flight))";
const TO_AGENTS: &str = "SELECT id FROM deliveries WHERE channel = 'agent' AND over_network = 1 \
                         AND state IN ('intent','sending') AND state = 'intent' ORDER BY rowid LIMIT ?1";
const NEXT_AT: &str = "SELECT min(next_at) FROM deliveries WHERE state IN ('intent','sending') AND state = 'intent' \
                       AND over_network = 1 AND next_at > ?1";
/// `+rowid` keeps SQLite from a search by number.
const POSSIBLY_SENT: &str = "SELECT * FROM deliveries WHERE state IN ('intent','sending') AND over_network = 1 \
                             AND channel <> 'agent' AND (state = 'sending' OR +rowid <= ?1) ORDER BY created_at, id";

/// A dead letter. The object of a lost notification is in the inbox, so a person sends none again.
const IS_LOST: &str = "state IN ('unknown','dead') AND session_id IS NOT NULL";

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
        /// The object of a notification ended before it was sent.
        Withdrawn = "withdrawn",
        /// The person of a notification has no place.
        Unplaced = "unplaced",
    }
}

ironclaw_contract::stored_as_text!(DeliveryState);

/// The content of a delivery.
#[derive(Debug, Clone)]
pub enum Payload {
    /// A reply, a notice, or the message of a call.
    Item(SentItem),
    /// A notification of a person.
    Notification(Told),
}

impl Payload {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        match row.get::<_, Option<PersonId>>("person_id")? {
            Some(_) => Told::read(row).map(Self::Notification),
            None => SentItem::read(row).map(Self::Item),
        }
    }
}

rows! {
    /// The part of a conversation that a delivery has.
    #[derive(Debug, Clone)]
    pub struct SentItem {
        pub session: SessionId = "session_id",
        /// The turn that it answers.
        pub turn: Option<TurnId> = "turn_id",
        pub item: ItemId,
        /// The call of a message that the agent sends to a destination. Its text is in the output `item`.
        pub call: Option<CallId> = "call_id",
    }

    #[derive(Debug, Clone)]
    pub struct Delivery {
        /// Its id, which is also its idempotency key on the channel.
        pub id: DeliveryId,
        pub payload: Payload as row,
        /// Address of the recipient on its channel.
        pub recipient: String = "platform_id",
        /// Thread at that address; empty if there is none.
        pub thread: String = "thread_id",
        /// The group at that address; empty outside of one.
        pub group: String = "group_id",
        /// Empty if the person of a notification has no place.
        pub channel: String,
        /// True if it leaves this host.
        pub over_network: bool,
        /// The generation of that channel, which tells channels of the same name apart.
        pub generation: Option<i64>,
        pub state: DeliveryState,
        /// The number of attempts that began.
        pub attempts: u32,
        /// The reason of the last attempt that failed.
        pub reason: Option<String>,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Milliseconds since the epoch; `None` while it is open.
        pub settled_at: Option<i64>,
    }
}

impl Delivery {
    /// Returns the part of a conversation that it has; `None` for a notification.
    pub const fn sent(&self) -> Option<&SentItem> {
        match &self.payload {
            Payload::Item(sent) => Some(sent),
            Payload::Notification(_) => None,
        }
    }
}

/// A delivery to insert.
#[derive(Debug, Clone)]
pub struct NewDelivery<'a> {
    pub payload: Payload,
    pub to: &'a ReplyAddress,
    /// True if it leaves this host.
    pub over_network: bool,
    /// `Intent`, or the state of a delivery that is settled with its row.
    pub state: DeliveryState,
    /// The earliest time of its first attempt, milliseconds since the epoch; `None` for at once.
    pub not_before: Option<i64>,
}

/// Inserts a delivery for the current channel of this name, and returns its row.
pub fn insert(tx: &mut WriteTx<'_>, new: NewDelivery<'_>) -> Result<Delivery, Error> {
    let (item, told) = match &new.payload {
        Payload::Item(item) => (Some(item), None),
        Payload::Notification(told) => (None, Some(told)),
    };
    let (id, turn, now) = (DeliveryId::new(), item.and_then(|item| item.turn), tx.now());
    let sql = "INSERT INTO deliveries (id, session_id, turn_id, item, call_id, person_id, about, subject, \
               channel, generation, platform_id, thread_id, group_id, over_network, state, attempts, next_at, created_at, settled_at) \
               VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,(SELECT generation FROM channels WHERE name = ?9),?10,?11,?12,?13,?14,\
               ?14 = 'received',?15,?16,iif(?14 = 'intent',NULL,?16)) RETURNING *, rowid AS number";
    let values = params![
        id,
        item.map(|item| item.session),
        turn,
        item.map(|item| item.item),
        item.and_then(|item| item.call),
        told.map(|told| told.person),
        told.map(|told| told.about),
        told.map(|told| &told.subject),
        new.to.channel,
        new.to.sender,
        new.to.thread,
        new.to.group,
        new.over_network,
        new.state,
        new.not_before,
        now,
    ];
    let (inserted, number) =
        tx.returning_one(sql, values, |row| Ok((Delivery::read(row)?, row.get::<_, i64>("number")?)))?;
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

/// Returns at most `limit` answers to other agents that are not in the session that asked, oldest first.
pub fn to_agents(tx: &ReadTx<'_>, limit: i64) -> Result<Vec<DeliveryId>, Error> {
    tx.list(TO_AGENTS, [limit], |row| row.get("id"))
}

/// Returns the channels with an open delivery over a network.
pub fn channels_with_open(tx: &ReadTx<'_>) -> Result<Vec<String>, Error> {
    tx.list(CHANNELS, [], |row| row.get(0))
}

/// Returns the deliveries on a channel that may be sent now, so that at most `at_once_max` are in flight. Of each session it returns the
/// oldest one whose backoff is over, and none if the session has a delivery in flight. A wait of more than `wait_ms_max` is of a clock
/// that was ahead.
pub fn ready(
    tx: &ReadTx<'_>,
    channel: &str,
    now: i64,
    wait_ms_max: i64,
    at_once_max: i64,
) -> Result<Vec<DeliveryId>, Error> {
    tx.list(READY, params![channel, now, wait_ms_max, at_once_max], |row| row.get("id"))
}

/// Returns the earliest end of a current backoff, milliseconds since the epoch.
pub fn next_attempt(tx: &ReadTx<'_>, now: i64) -> Result<Option<i64>, Error> {
    tx.get(NEXT_AT, [now], |row| row.get(0))
}

/// Returns the open deliveries over a network that are in flight or have at most this number, oldest first. At a start of the host their
/// outcome is unknown.
pub fn possibly_sent(tx: &ReadTx<'_>, last: i64) -> Result<Vec<Delivery>, Error> {
    tx.list(POSSIBLY_SENT, [last], Delivery::read)
}

/// Marks an intended delivery as in flight, and returns the number of this attempt; `None` if it no longer waits.
pub fn take_up(tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<Option<u32>, Error> {
    let sql = "UPDATE deliveries SET state = 'sending', attempts = attempts + 1 WHERE id = ?1 AND state = 'intent' RETURNING attempts";
    tx.returning(sql, [id], |row| row.get(0))
}

/// Gives an open delivery this state, and returns whether it was open. `at` is the time of the next attempt for `Intent`, and otherwise
/// that of the settlement, in milliseconds since the epoch. A delivery that was not taken up counts this as its attempt if it is received.
pub fn settle(
    tx: &mut WriteTx<'_>,
    id: DeliveryId,
    state: DeliveryState,
    reason: Option<&str>,
    at: i64,
) -> Result<bool, Error> {
    let sql = "UPDATE deliveries SET state = ?2, reason = ?3, next_at = iif(?2 = 'intent',?4,NULL), \
               settled_at = iif(?2 = 'intent',NULL,?4), attempts = attempts + (state = 'intent' AND ?2 = 'received') \
               WHERE id = ?1 AND state IN ('intent','sending') RETURNING call_id";
    let settled = tx.returning(sql, params![id, state, reason, at], |row| row.get(0))?;
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
    let sql = format!("UPDATE waiting SET status = ?2 WHERE call_id = ?1 AND kind = 'req' AND status IN {ended}");
    tx.execute(&sql, params![call, state]).map(drop)
}

/// Queues a dead letter again with all its attempts, and returns whether it was a dead letter.
pub fn send_again(tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<bool, Error> {
    let sql = format!(
        "UPDATE deliveries SET state = 'intent', attempts = 0, next_at = NULL, reason = NULL, settled_at = NULL \
         WHERE id = ?1 AND {IS_LOST} RETURNING call_id"
    );
    let queued = tx.returning(&sql, [id], |row| row.get(0))?;
    set_state_of_its_call(tx, queued)
}

/// Marks a dead letter as dropped, and returns whether it was a dead letter.
pub fn mark_dropped(tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<bool, Error> {
    let sql = format!("UPDATE deliveries SET state = 'dropped' WHERE id = ?1 AND {IS_LOST}");
    Ok(tx.execute(&sql, [id])? > 0)
}

/// Returns the number of dead letters of all people.
pub fn lost_count(tx: &ReadTx<'_>) -> Result<u64, Error> {
    tx.get(&format!("SELECT count(*) FROM deliveries WHERE {IS_LOST}"), [], |row| row.get(0))
}

/// Returns at most `limit` dead letters of one person or of all, oldest first.
pub fn lost(tx: &ReadTx<'_>, of: Option<PersonId>, limit: usize) -> Result<Vec<Delivery>, Error> {
    let sql = format!(
        "SELECT * FROM deliveries WHERE {IS_LOST} AND (?1 IS NULL OR {WHOSE} = ?1) ORDER BY created_at, rowid LIMIT ?2"
    );
    tx.list(&sql, params![of, limit as i64], Delivery::read)
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
        "SELECT EXISTS (SELECT 1 FROM deliveries WHERE {IS_LOST} AND channel = ?1 AND id <> ?2 \
         AND settled_at > ?3 AND settled_at <= ?3 + ?5 AND {WHOSE} = ?4)"
    );
    tx.get(&sql, params![lost.channel, lost.id, since, person, milliseconds], |row| row.get(0))
}

/// Returns the number of deliveries of sessions in each open state and in each state of a dead letter.
pub fn open_and_lost_count_by_state(tx: &ReadTx<'_>) -> Result<std::collections::BTreeMap<String, u64>, Error> {
    let sql = format!(
        "SELECT state, count(*) FROM deliveries WHERE state IN ('intent','sending') AND session_id IS NOT NULL GROUP BY state \
         UNION ALL SELECT state, count(*) FROM deliveries WHERE {IS_LOST} GROUP BY state"
    );
    tx.list(&sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
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
        for sql in [CHANNELS, READY, TO_AGENTS, NEXT_AT, POSSIBLY_SENT] {
            let steps = steps_on(&["deliveries"], sql);
            let by_index = |step: &String| step.contains("INDEX deliveries_o");
            assert!(!steps.is_empty() && steps.iter().all(by_index), "{sql}: {steps:?}");
        }
    }
}
