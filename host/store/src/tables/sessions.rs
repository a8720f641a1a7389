//! Sessions, released uids, and the events of channels. Tables: `sessions`, `uids_free`, `events`, `outbound_rows`.

mod origin;

pub use origin::{Origin, OriginKind, ScheduleRuns};

use crate::rows::rows;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, MessageId, PersonId, SessionId, TurnId};
use ironclaw_state::keys::{self, ContentKey, SessionKeys, WrappingKey};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::{Row, params};

ironclaw_contract::words! {
    /// The state of a session, which decides if it may be launched.
    pub enum SessionState {
        /// It may be launched.
        Active = "live",
        /// It failed too often, and a person must release it.
        Parked = "parked",
        /// Its sandbox broke the contract, and a person must release it.
        Quarantined = "quarantined",
        /// It is removed; only its uid remains.
        Removed = "removed",
    }
}

ironclaw_contract::stored_as_text!(SessionState);

rows! {
    #[derive(Debug, Clone)]
    pub struct Session {
        pub id: SessionId,
        pub agent: AgentId = "agent_id",
        pub origin: Origin as row,
        /// Its uid as an offset from the first uid of the range.
        pub uid_offset: u32,
        pub standing: SessionState = "state",
        /// The reason for that state.
        pub reason: Option<String>,
        /// The number of the last outbound row that the host accepted.
        pub cursor: u64,
        pub failures: u32,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Milliseconds since the epoch.
        pub last_active_at: i64,
        /// The person whose message began it; `None` for a session of guests or of several people, and for one that is older than this column.
        pub person: Option<PersonId> = "person_id",
        /// Its wrapped keys; `None` after a removal.
        pub wrapped: Option<[Vec<u8>; 2]> as wrapped_keys,
    }
}

impl Session {
    /// Opens the keys of the session.
    ///
    /// # Errors
    /// Fails if the keys are deleted, or belong to another master key.
    pub fn keys(&self, wrapping: &WrappingKey) -> Result<SessionKeys, keys::Error> {
        let [queue, content] = self.wrapped.as_ref().ok_or(keys::Error::Sealed("the key of a removed session"))?;
        Ok(SessionKeys { queue: wrapping.queue_key(self.id, queue)?, content: wrapping.content_key(self.id, content)? })
    }

    /// Opens only the key of the bodies of its items.
    ///
    /// # Errors
    /// Fails as [`Session::keys`] does.
    pub fn content_key(&self, wrapping: &WrappingKey) -> Result<ContentKey, keys::Error> {
        let [_, content] = self.wrapped.as_ref().ok_or(keys::Error::Sealed("the key of a removed session"))?;
        wrapping.content_key(self.id, content)
    }
}

fn wrapped_keys(row: &Row<'_>) -> rusqlite::Result<Option<[Vec<u8>; 2]>> {
    let queue: Option<Vec<u8>> = row.get("queue_key")?;
    Ok(queue.zip(row.get("content_key")?).map(|(queue, content)| [queue, content]))
}

/// A session to insert.
#[derive(Debug)]
pub struct NewSession<'a> {
    pub id: SessionId,
    pub agent: AgentId,
    pub origin: &'a Origin,
    /// Its uid as an offset from the first uid of the range.
    pub uid_offset: u32,
    /// Its wrapped keys of the queue and of the content.
    pub wrapped: [Vec<u8>; 2],
    /// The person whose message began it; `None` if it belongs to no single person.
    pub person: Option<PersonId>,
}

rows! {
    /// The range and the bytes of a session's items.
    #[derive(Debug, Clone, Copy)]
    pub struct Extent {
        /// The number of the last item.
        pub last_seq: i64,
        /// The number of the last dropped item.
        pub pruned_seq: i64,
        /// Bytes of the kept bodies.
        pub item_bytes: i64,
    }
}

/// Bounds on the items of a session.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The largest number of items.
    pub items: i64,
    /// The largest size of their bodies in bytes.
    pub bytes: i64,
    /// The time before which items are dropped, milliseconds since the epoch.
    pub oldest: i64,
}

rows! {
    /// An event of a channel, with its message.
    #[derive(Debug)]
    pub struct Event {
        /// Its digest; empty after the erasure of its session.
        pub digest: String,
        pub message: MessageId = "message_id",
        /// The session of that message.
        pub session: SessionId = "session_id",
    }
}

/// Returns every session that is not removed, oldest first.
pub fn all(tx: &ReadTx<'_>) -> Result<Vec<Session>, Error> {
    tx.list("SELECT * FROM sessions WHERE state <> 'removed' ORDER BY created_at, id", [], Session::read)
}

/// Returns the sessions of an agent that are not removed, oldest first.
pub fn list_for_agent(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<Session>, Error> {
    let sql = "SELECT * FROM sessions WHERE agent_id = ?1 AND state <> 'removed' ORDER BY created_at, id";
    tx.list(sql, [agent], Session::read)
}

/// The condition for a person's own sessions: the person `?1` began them, and their address is still an identity of that person.
const OWN: &str = "person_id = ?1 AND origin_kind = 'sender' AND state <> 'removed' AND EXISTS (SELECT 1 FROM identities \
                   WHERE identities.channel = sessions.channel AND identities.sender = sessions.platform_id \
                   AND identities.person_id = ?1)";

/// Returns a person's own sessions that are not removed, oldest first.
pub fn own(tx: &ReadTx<'_>, person: PersonId) -> Result<Vec<Session>, Error> {
    tx.list(&format!("SELECT * FROM sessions WHERE {OWN} ORDER BY created_at, id"), [person], Session::read)
}

/// Returns the session of this id if it is a person's own and not removed.
pub fn find_own(tx: &ReadTx<'_>, person: PersonId, id: SessionId) -> Result<Option<Session>, Error> {
    tx.find(&format!("SELECT * FROM sessions WHERE {OWN} AND id = ?2"), params![person, id], Session::read)
}

/// Returns the sessions that a person began and that are not removed, oldest first, also under identities that were unlinked since.
pub fn list_for_person(tx: &ReadTx<'_>, person: PersonId) -> Result<Vec<Session>, Error> {
    let sql = "SELECT * FROM sessions WHERE person_id = ?1 AND state <> 'removed' ORDER BY created_at, id";
    tx.list(sql, [person], Session::read)
}

/// Returns a session of one person in which this sender wrote for another person than `person`.
pub fn session_of_another(
    tx: &ReadTx<'_>,
    channel: &str,
    sender: &str,
    person: PersonId,
) -> Result<Option<SessionId>, Error> {
    let sql = "SELECT session_id FROM messages WHERE channel = ?1 AND sender = ?2 AND principal <> ?3 \
               AND session_id IN (SELECT id FROM sessions WHERE origin_kind = 'sender') LIMIT 1";
    tx.find(sql, params![channel, sender, person], |row| row.get("session_id"))
}

/// Returns whether this person began this session, which may be removed.
pub fn was_of(tx: &ReadTx<'_>, person: PersonId, id: SessionId) -> Result<bool, Error> {
    let sql = "SELECT count(*) FROM sessions WHERE id = ?1 AND person_id = ?2";
    Ok(tx.get(sql, params![id, person], |row| row.get::<_, i64>(0))? > 0)
}

/// Returns every removed session whose files may still exist.
pub fn removed(tx: &ReadTx<'_>) -> Result<Vec<SessionId>, Error> {
    tx.list("SELECT id FROM sessions WHERE state = 'removed' AND uid_offset >= 0", [], |row| row.get("id"))
}

/// Returns the session of this id, unless it is removed.
pub fn find(tx: &ReadTx<'_>, id: SessionId) -> Result<Option<Session>, Error> {
    tx.find("SELECT * FROM sessions WHERE id = ?1 AND state <> 'removed'", [id], Session::read)
}

/// Returns the conversations that were active since this time and have no failure, the newest first, at most `most`. A session of the
/// runs of schedules is none, and neither is one that has not answered yet.
pub fn recently_active(tx: &ReadTx<'_>, since: i64, most: usize) -> Result<Vec<Session>, Error> {
    let sql = "SELECT * FROM sessions WHERE state = 'live' AND last_active_at >= ?1 AND cursor > 0 AND failures = 0 AND runs = '' \
               ORDER BY last_active_at DESC, id LIMIT ?2";
    tx.list(sql, params![since, most as i64], Session::read)
}

/// Returns the session of this agent and origin, unless it is removed.
pub fn find_by_origin(tx: &ReadTx<'_>, agent: AgentId, origin: &Origin) -> Result<Option<Session>, Error> {
    let sql = "SELECT * FROM sessions WHERE agent_id = ?1 AND channel = ?2 AND platform_id = ?3 AND thread_id = ?4 \
               AND origin_kind = ?5 AND runs = ?6 AND state <> 'removed'";
    let Origin { kind, channel, platform_id, thread_id, runs } = origin;
    tx.find(sql, params![agent, channel, platform_id, thread_id, kind, runs.to_string()], Session::read)
}

/// Inserts a live session without items.
pub fn insert(tx: &mut WriteTx<'_>, new: &NewSession<'_>) -> Result<(), Error> {
    let NewSession { origin, wrapped: [queue, content], .. } = new;
    let now = tx.now();
    tx.execute(
        "INSERT INTO sessions (id, agent_id, channel, platform_id, thread_id, uid_offset, state, reason, last_seq, cursor, failures, \
         queue_key, content_key, created_at, last_active_at, person_id, origin_kind, runs) \
         VALUES (?1,?2,?3,?4,?5,?6,'live',NULL,0,0,0,?7,?8,?9,?9,?10,?11,?12)",
        params![
            new.id,
            new.agent,
            origin.channel,
            origin.platform_id,
            origin.thread_id,
            new.uid_offset,
            queue,
            content,
            now,
            new.person,
            origin.kind,
            origin.runs.to_string()
        ],
    )?;
    Ok(())
}

/// Returns the uid after the highest uid that a session ever had.
pub fn next_uid(tx: &ReadTx<'_>) -> Result<u32, Error> {
    let sql = "SELECT coalesce(max(number) + 1, 0) FROM \
               (SELECT max(uid_offset) AS number FROM sessions UNION ALL SELECT max(uid_offset) FROM uids_free)";
    tx.get(sql, [], |row| row.get(0))
}

/// Takes the lowest released and usable uid below `numbers`.
pub fn take_free_uid(tx: &mut WriteTx<'_>, numbers: u32) -> Result<Option<u32>, Error> {
    let sql = "DELETE FROM uids_free WHERE uid_offset = \
               (SELECT min(uid_offset) FROM uids_free WHERE usable = 1 AND uid_offset < ?1) RETURNING uid_offset";
    tx.returning(sql, [numbers], |row| row.get(0))
}

/// Releases the uid of a removed session whose own files are deleted. No other session gets the uid if this one could ever write to a
/// granted directory, because files there may belong to the uid.
pub fn give_uid_back(tx: &mut WriteTx<'_>, id: SessionId) -> Result<(), Error> {
    let sql = "INSERT OR IGNORE INTO uids_free (uid_offset, usable) SELECT uid_offset, uid_shared = 0 AND NOT EXISTS \
               (SELECT 1 FROM agent_mounts WHERE agent_mounts.agent_id = sessions.agent_id AND read_only = 0) \
               FROM sessions WHERE id = ?1 AND state = 'removed' AND uid_offset >= 0";
    tx.execute(sql, [id])?;
    // The row keeps an impossible offset.
    let sql = "UPDATE sessions SET uid_offset = -1 - rowid WHERE id = ?1 AND state = 'removed' AND uid_offset >= 0";
    tx.execute(sql, [id]).map(drop)
}

/// Replaces the wrapped keys of a session.
pub fn set_keys(tx: &mut WriteTx<'_>, id: SessionId, [queue, content]: &[Vec<u8>; 2]) -> Result<(), Error> {
    let sql = "UPDATE sessions SET queue_key = ?2, content_key = ?3 WHERE id = ?1";
    tx.execute(sql, params![id, queue, content]).map(drop)
}

pub fn delete_keys(tx: &mut WriteTx<'_>, id: SessionId) -> Result<(), Error> {
    tx.execute("UPDATE sessions SET queue_key = NULL, content_key = NULL WHERE id = ?1", [id]).map(drop)
}

/// Sets the state of a session and its reason. A session that becomes live again has no failures.
pub fn set_session_state(
    tx: &mut WriteTx<'_>,
    id: SessionId,
    standing: SessionState,
    reason: Option<&str>,
) -> Result<(), Error> {
    let sql = "UPDATE sessions SET state = ?2, reason = ?3, failures = CASE WHEN ?2 = 'live' THEN 0 ELSE failures END WHERE id = ?1";
    tx.execute(sql, params![id, standing, reason]).map(drop)
}

/// Counts a failed launch. Returns the number of consecutive failures.
pub fn count_failure(tx: &mut WriteTx<'_>, id: SessionId) -> Result<u32, Error> {
    let sql = "UPDATE sessions SET failures = failures + 1 WHERE id = ?1 RETURNING failures";
    tx.returning_one(sql, [id], |row| row.get(0))
}

/// Ends the consecutive failures of a session, because a turn ended.
pub fn reset_failures(tx: &mut WriteTx<'_>, id: SessionId) -> Result<(), Error> {
    tx.execute("UPDATE sessions SET failures = 0 WHERE id = ?1", [id]).map(drop)
}

/// Sets the time of the last activity to now, by the machine's clock.
pub fn touch(tx: &mut WriteTx<'_>, id: SessionId) -> Result<(), Error> {
    let now = tx.wall();
    tx.execute("UPDATE sessions SET last_active_at = ?2 WHERE id = ?1", params![id, now]).map(drop)
}

/// Notes a turn as the open one of its session.
///
/// # Errors
/// When the session has an open turn.
pub fn open_turn(tx: &mut WriteTx<'_>, id: SessionId, turn: TurnId) -> Result<(), Error> {
    let sql = "UPDATE sessions SET open_turn = (SELECT ordinal FROM turns WHERE turns.id = ?2) WHERE id = ?1 AND open_turn IS NULL";
    match tx.execute(sql, params![id, turn])? {
        0 => Err(Error::Stored(format!("{id} has an open turn, so {turn} cannot open"))),
        _ => Ok(()),
    }
}

/// Notes that the session has no open turn.
pub fn close_turn(tx: &mut WriteTx<'_>, id: SessionId) -> Result<(), Error> {
    tx.execute("UPDATE sessions SET open_turn = NULL WHERE id = ?1 AND open_turn IS NOT NULL", [id]).map(drop)
}

/// Allocates the number of the session's next item, and adds its bytes. Fails if the session is removed.
pub fn take_seq(tx: &mut WriteTx<'_>, id: SessionId, bytes: u64) -> Result<u64, Error> {
    let sql = "UPDATE sessions SET last_seq = last_seq + 2, item_bytes = item_bytes + ?2 \
               WHERE id = ?1 AND state <> 'removed' RETURNING last_seq";
    tx.returning_one(sql, params![id, bytes as i64], |row| row.get(0))
}

/// Returns the number of the session's last dropped item.
pub fn dropped_upto(tx: &ReadTx<'_>, id: SessionId) -> Result<u64, Error> {
    tx.get("SELECT pruned_seq FROM sessions WHERE id = ?1", [id], |row| row.get(0))
}

/// Returns the range and the bytes of a session's items.
pub fn extent(tx: &ReadTx<'_>, id: SessionId) -> Result<Extent, Error> {
    tx.get("SELECT last_seq, pruned_seq, item_bytes FROM sessions WHERE id = ?1", [id], Extent::read)
}

/// Records that the items of a session up to this number were dropped, and the bytes that they had.
pub fn record_dropped(tx: &mut WriteTx<'_>, id: SessionId, upto: i64, freed: i64) -> Result<(), Error> {
    let sql = "UPDATE sessions SET pruned_seq = ?2, item_bytes = item_bytes - ?3 WHERE id = ?1";
    tx.execute(sql, params![id, upto, freed]).map(drop)
}

/// Returns the sessions that are over a bound. Items dated in the future are skipped.
pub fn over(tx: &ReadTx<'_>, Bounds { items, bytes, oldest }: Bounds) -> Result<Vec<SessionId>, Error> {
    let sql = "SELECT id FROM sessions WHERE state <> 'removed' AND ((last_seq - pruned_seq) / 2 > ?1 OR item_bytes > ?2 \
               OR (SELECT issued_at FROM items WHERE session_id = sessions.id AND issued_at <= ?4 ORDER BY seq LIMIT 1) < ?3)";
    tx.list(sql, params![items, bytes, oldest, tx.wall()], |row| row.get("id"))
}

/// Raises the mark up to which no item must be named to a sandbox.
pub fn settle(tx: &mut WriteTx<'_>, id: SessionId) -> Result<(), Error> {
    // The next wake skips the items below this mark, so it does not read the whole conversation.
    let sql = "UPDATE sessions SET settled_seq = coalesce((SELECT min(seq) - 2 FROM items WHERE session_id = ?1 AND seq > settled_seq \
               AND summary_item IS NULL AND NOT (kind = 'notice' AND turn_id IS NULL)), settled_seq) WHERE id = ?1";
    tx.execute(sql, [id]).map(drop)
}

/// Raises that mark over every item of a session, unless a turn is open or a message waits. No later turn sees these items.
pub fn settle_all(tx: &mut WriteTx<'_>, id: SessionId) -> Result<(), Error> {
    let sql = "UPDATE sessions SET settled_seq = last_seq WHERE id = ?1 AND open_turn IS NULL AND settled_seq < last_seq \
               AND NOT EXISTS (SELECT 1 FROM messages WHERE session_id = ?1 AND waits = 1)";
    tx.execute(sql, [id]).map(drop)
}

/// Returns the number of the last outbound row that the host accepted from a session.
pub fn cursor(tx: &ReadTx<'_>, id: SessionId) -> Result<u64, Error> {
    tx.get("SELECT cursor FROM sessions WHERE id = ?1", [id], |row| row.get(0))
}

/// Moves the cursor of a session to an outbound row that was accepted at this time.
pub fn move_cursor(tx: &mut WriteTx<'_>, id: SessionId, seq: u64, at: i64) -> Result<(), Error> {
    let sql = "UPDATE sessions SET cursor = ?2, last_active_at = ?3 WHERE id = ?1";
    tx.execute(sql, params![id, seq as i64, at]).map(drop)
}

/// Inserts the digest of an outbound row that was accepted at this time.
pub fn insert_outbound_row(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    seq: u64,
    digest: Digest,
    at: i64,
) -> Result<(), Error> {
    let sql = "INSERT INTO outbound_rows (session_id, seq, digest, at) VALUES (?1,?2,?3,?4)";
    tx.execute(sql, params![session, seq as i64, digest, at]).map(drop)
}

/// Returns the digest of an accepted outbound row.
pub fn outbound_digest(tx: &ReadTx<'_>, session: SessionId, seq: u64) -> Result<Option<String>, Error> {
    let seq = i64::try_from(seq).unwrap_or(i64::MAX);
    let sql = "SELECT digest FROM outbound_rows WHERE session_id = ?1 AND seq = ?2";
    tx.find(sql, params![session, seq], |row| row.get(0))
}

/// Deletes the digests of the session's outbound rows that are numbered below `seq`.
pub fn delete_outbound_rows_below(tx: &mut WriteTx<'_>, session: SessionId, seq: i64) -> Result<(), Error> {
    tx.execute("DELETE FROM outbound_rows WHERE session_id = ?1 AND seq < ?2", params![session, seq]).map(drop)
}

/// Deletes the digests of all outbound rows of a session.
pub fn delete_outbound_rows_of(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), Error> {
    tx.execute("DELETE FROM outbound_rows WHERE session_id = ?1", [session]).map(drop)
}

/// Returns the event of this channel with this id.
pub fn find_event(tx: &ReadTx<'_>, channel: &str, id: &str) -> Result<Option<Event>, Error> {
    let sql = "SELECT digest, message_id, session_id FROM events WHERE channel = ?1 AND event_id = ?2";
    tx.find(sql, [channel, id], Event::read)
}

/// Inserts an event of this channel with this id.
pub fn insert_event(
    tx: &mut WriteTx<'_>,
    channel: &str,
    id: &str,
    event: &Event,
    received_at: i64,
) -> Result<(), Error> {
    let Event { digest, message, session } = event;
    let sql = "INSERT INTO events (channel, event_id, digest, message_id, session_id, received_at) VALUES (?1,?2,?3,?4,?5,?6)";
    tx.execute(sql, params![channel, id, digest, message, session, received_at]).map(drop)
}

/// Deletes the events that were received before this time.
pub fn delete_events_before(tx: &mut WriteTx<'_>, received_at: i64) -> Result<(), Error> {
    tx.execute("DELETE FROM events WHERE received_at < ?1", [received_at]).map(drop)
}

/// Empties the digests of a session's events; the events stay.
pub fn delete_event_digests_of(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), Error> {
    tx.execute("UPDATE events SET digest = '' WHERE session_id = ?1", [session]).map(drop)
}

/// Returns the number of a person's conversations that are not removed.
pub fn count_of_person(tx: &ReadTx<'_>, person: PersonId) -> Result<u64, Error> {
    // `state <> …` is the condition of the index; without it SQLite reads every row.
    let sql = "SELECT count(*) FROM sessions WHERE person_id = ?1 AND state <> 'removed'";
    tx.get(sql, [person], |row| row.get(0))
}

/// Returns the number of conversations on a channel that are not removed.
pub fn count_on_channel(tx: &ReadTx<'_>, channel: &str) -> Result<u64, Error> {
    // `state <> …` is the condition of the index, as above.
    let sql = "SELECT count(*) FROM sessions WHERE channel = ?1 AND state <> 'removed'";
    tx.get(sql, [channel], |row| row.get(0))
}

/// Returns the bytes of all items in the conversations of a person that are not removed.
pub fn bytes_of_person(tx: &ReadTx<'_>, person: PersonId) -> Result<u64, Error> {
    // `state <> …` is the condition of the index, as above.
    let sql = "SELECT coalesce(sum(item_bytes), 0) FROM sessions WHERE person_id = ?1 AND state <> 'removed'";
    Ok(tx.get(sql, [person], |row| row.get::<_, i64>(0))?.unsigned_abs())
}

/// Returns the number of sessions in each state except `removed`.
pub fn count_by_state(tx: &ReadTx<'_>) -> Result<std::collections::BTreeMap<String, u64>, Error> {
    let sql = "SELECT state, count(*) FROM sessions WHERE state <> 'removed' GROUP BY state";
    tx.list(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Marks the sessions of an agent that can write to a granted directory, because files there may belong to their uids. Reads the
/// grants, so the caller deletes them afterwards.
pub fn mark_uids_shared(tx: &mut WriteTx<'_>, agent: AgentId) -> Result<(), Error> {
    let sql = "UPDATE sessions SET uid_shared = 1 WHERE agent_id = ?1 \
               AND EXISTS (SELECT 1 FROM agent_mounts WHERE agent_id = ?1 AND read_only = 0)";
    tx.execute(sql, [agent]).map(drop)
}
