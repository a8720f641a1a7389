//! Messages. Tables: `messages`.

mod load;
mod row;

pub use load::{Load, waiting_of_person, waiting_on_channel};
pub use row::{InSession, Message, MessagePosition, NewMessage, Waiting};

use ironclaw_contract::ids::{MessageId, PersonId, QuestionId, SessionId, TurnId};
use ironclaw_contract::seam::message::Status;
use ironclaw_judge::Principal;
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;

ironclaw_contract::words! {
    /// The kind of a message, by its origin.
    pub enum Kind {
        /// A message of a person or of another agent.
        Chat = "chat",
        /// A scheduled task that is due.
        Task = "task",
        /// A message from a webhook channel.
        Webhook = "webhook",
        /// A message of the host itself.
        System = "system",
    }
}

ironclaw_contract::stored_as_text!(Kind);

/// The condition for the messages of the turn `?1`. The list of a turn keeps a message that a retry took into another turn.
const OF_TURN: &str = "id IN (SELECT value FROM turns, json_each(message_ids) WHERE turns.id = ?1) AND turn_id = ?1";

/// The condition for the messages for which the turn `?1` was opened, also those that a retry took into another turn.
const ASKED: &str = "id IN (SELECT value FROM turns, json_each(message_ids) WHERE turns.id = ?1)";

/// Inserts a message that the host just received.
pub fn insert(tx: &mut WriteTx<'_>, new: &NewMessage<'_>) -> Result<(), Error> {
    let now = tx.now();
    tx.execute(
        "INSERT INTO messages (id, session_id, seq, kind, status, waits, trigger, sender, principal, of_another, channel, event_id, \
         received_at, attempts, bytes, principal_kind, mentions, group_id, thread_id) \
         VALUES (?1,?2,?3,?10,'queued',1,?9,?4,?5,(SELECT person_id IS NOT ?5 FROM sessions WHERE id = ?2),?6,?7,?8,0,?11,?12,?13,?14,?15)",
        params![
            new.id,
            new.session,
            new.seq as i64,
            new.sender,
            new.principal,
            new.channel,
            new.event,
            now,
            new.trigger,
            new.kind,
            new.bytes as i64,
            new.principal_kind.name(),
            new.mentions,
            new.reply_to.map_or("", |(group, _)| group),
            new.reply_to.map(|(_, thread)| thread)
        ],
    )?;
    Ok(())
}

/// Stores the encrypted list of a message's images.
pub fn set_images(tx: &mut WriteTx<'_>, id: MessageId, images: &[u8]) -> Result<(), Error> {
    tx.execute("UPDATE messages SET images = ?2 WHERE id = ?1", params![id, images]).map(drop)
}

/// Returns the encrypted list of a message's images, if it has any.
pub fn images(tx: &ReadTx<'_>, id: MessageId) -> Result<Option<Vec<u8>>, Error> {
    let found = tx.find("SELECT images FROM messages WHERE id = ?1", [id], |row| row.get::<_, Option<Vec<u8>>>(0))?;
    Ok(found.flatten())
}

/// Inserts a message of the host itself, which never asks for a turn.
pub fn insert_of_host(tx: &mut WriteTx<'_>, id: MessageId, session: SessionId, seq: u64) -> Result<(), Error> {
    let now = tx.now();
    tx.execute(
        "INSERT INTO messages (id, session_id, seq, kind, status, waits, trigger, sender, principal, of_another, channel, received_at, \
         attempts) VALUES (?1,?2,?3,'system','queued',1,0,'host','host',1,'host',?4,0)",
        params![id, session, seq as i64, now],
    )?;
    Ok(())
}

/// Inserts a message of the host that continues a task and asks for a turn with the same principal.
pub fn insert_follow_up(
    tx: &mut WriteTx<'_>,
    id: MessageId,
    session: SessionId,
    seq: u64,
    principal: PersonId,
    kind: Principal,
    root: MessageId,
) -> Result<(), Error> {
    let now = tx.now();
    tx.execute(
        "INSERT INTO messages (id, session_id, seq, kind, status, waits, trigger, sender, principal, of_another, channel, received_at, \
         attempts, root, principal_kind) VALUES (?1,?2,?3,'system','queued',1,1,'host',?4,\
         (SELECT person_id IS NOT ?4 FROM sessions WHERE id = ?2),'host',?5,0,?6,?7)",
        params![id, session, seq as i64, principal, now, root, kind.name()],
    )?;
    Ok(())
}

/// Marks a message as the answer to a question of the task of `root`.
pub fn set_answers(tx: &mut WriteTx<'_>, id: MessageId, question: QuestionId, root: MessageId) -> Result<(), Error> {
    tx.execute("UPDATE messages SET answers = ?2, root = ?3 WHERE id = ?1", params![id, question, root]).map(drop)
}

/// Returns the message whose task a message continues; the message itself, if it begins one.
pub fn root_of(tx: &ReadTx<'_>, id: MessageId) -> Result<MessageId, Error> {
    let root = tx.find("SELECT root FROM messages WHERE id = ?1", [id], |row| row.get::<_, Option<MessageId>>(0))?;
    Ok(root.flatten().unwrap_or(id))
}

/// Returns the number of messages of the host that continue a task.
pub fn follow_ups_of(tx: &ReadTx<'_>, root: MessageId) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM messages WHERE root = ?1 AND answers IS NULL";
    tx.get(sql, [root], |row| row.get(0))
}

/// Returns whether a guest sent this message.
pub fn is_of_guest(tx: &ReadTx<'_>, id: MessageId) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM messages WHERE id = ?1 AND principal_kind = ?2";
    Ok(tx.find(sql, params![id, Principal::Guest.name()], |_| Ok(()))?.is_some())
}

pub fn find(tx: &ReadTx<'_>, id: MessageId) -> Result<Option<Message>, Error> {
    tx.find("SELECT * FROM messages WHERE id = ?1", [id], Message::read)
}

/// Returns the newest message on this channel with this principal.
pub fn newest_of(tx: &ReadTx<'_>, channel: &str, principal: PersonId) -> Result<Option<Message>, Error> {
    let sql =
        "SELECT * FROM messages WHERE channel = ?1 AND principal = ?2 ORDER BY received_at DESC, seq DESC LIMIT 1";
    tx.find(sql, params![channel, principal], Message::read)
}

/// Returns the message of this event of this sender.
pub fn find_by_event(tx: &ReadTx<'_>, channel: &str, sender: &str, event: &str) -> Result<Option<InSession>, Error> {
    let sql = "SELECT id, session_id FROM messages WHERE channel = ?1 AND sender = ?2 AND event_id = ?3";
    tx.find(sql, [channel, sender, event], InSession::read)
}

/// Returns the number of messages of the session that ask for a turn and wait or are in one.
pub fn waiting_count(tx: &ReadTx<'_>, session: SessionId) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM messages WHERE session_id = ?1 AND waits = 1 AND trigger = 1";
    tx.get(sql, [session], |row| row.get(0))
}

/// Returns the sessions with an open turn or a message that asks for one.
pub fn sessions_with_work(tx: &ReadTx<'_>) -> Result<Vec<SessionId>, Error> {
    let sql = "SELECT DISTINCT session_id FROM messages WHERE waits = 1 AND trigger = 1 \
               UNION SELECT id FROM sessions WHERE open_turn IS NOT NULL";
    tx.list(sql, [], |row| row.get("session_id"))
}

/// Returns the messages of a session that wait for a turn, ordered by number: the oldest `asking_max` that ask for one, and the newest
/// `context_max` that are only context. Each kind has its own bound, so many messages of one kind do not hide the other.
pub fn waiting(
    tx: &ReadTx<'_>,
    session: SessionId,
    asking_max: usize,
    context_max: usize,
) -> Result<Vec<Waiting>, Error> {
    // `waits = 1` is redundant, but it is the condition of the index; without it SQLite reads all messages.
    let fields = "id, seq, principal, principal_kind, trigger, attempts, answers IS NOT NULL AS is_answer, \
                  (SELECT json_array(first.channel, first.sender, first.group_id, first.thread_id) FROM messages AS first \
                  WHERE first.id = coalesce(messages.root, messages.id) AND first.thread_id IS NOT NULL) AS reply_to";
    let sql = format!(
        "SELECT * FROM (SELECT {fields} FROM messages \
               WHERE session_id = ?1 AND waits = 1 AND status = 'queued' AND trigger = 1 \
               ORDER BY seq LIMIT ?2) \
               UNION ALL SELECT * FROM (SELECT {fields} FROM messages \
               WHERE session_id = ?1 AND waits = 1 AND status = 'queued' AND trigger = 0 \
               ORDER BY seq DESC LIMIT ?3) ORDER BY seq"
    );
    tx.list(&sql, params![session, asking_max as i64, context_max as i64], Waiting::read)
}

/// Marks the waiting context messages of a session as completed, except for the newest: at most this number, with at most these bytes.
pub fn complete_older_context(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    kept: usize,
    bytes_max: u64,
) -> Result<(), Error> {
    // `waits = 1` is redundant, but it is the condition of the index; without it SQLite reads all messages.
    let waiting = "session_id = ?1 AND waits = 1 AND status = 'queued' AND trigger = 0";
    let sql = format!(
        "UPDATE messages SET status = 'completed', waits = NULL WHERE {waiting} AND seq <= \
         (SELECT max(seq) FROM (SELECT seq, row_number() OVER newest AS place, sum(bytes) OVER newest AS total FROM messages \
         WHERE {waiting} WINDOW newest AS (ORDER BY seq DESC)) WHERE place > ?2 OR total > ?3)"
    );
    tx.execute(&sql, params![session, kept as i64, bytes_max as i64]).map(drop)
}

/// Marks the context messages among these as completed, because a turn showed them.
pub fn mark_context_shown(tx: &mut WriteTx<'_>, messages: &[MessageId]) -> Result<(), Error> {
    for message in messages {
        let sql = "UPDATE messages SET status = 'completed', waits = NULL WHERE id = ?1 AND trigger = 0";
        tx.execute(sql, [message])?;
    }
    Ok(())
}

/// Puts a message into a turn and counts an attempt. Its position is that of its first turn.
pub fn take(tx: &mut WriteTx<'_>, id: MessageId, turn: TurnId) -> Result<(), Error> {
    tx.execute(
        "UPDATE messages SET status = 'processing', turn_id = ?2, attempts = attempts + 1, \
         first_ordinal = coalesce(first_ordinal, (SELECT ordinal FROM turns WHERE id = ?2)) WHERE id = ?1",
        params![id, turn],
    )?;
    let sql = "UPDATE turns SET message_ids = json_insert(message_ids, '$[#]', ?1) WHERE id = ?2";
    match tx.execute(sql, params![id, turn])? {
        1 => Ok(()),
        _ => Err(Error::Stored(format!("{turn} of {id} has no row"))),
    }
}

/// Gives the context messages of a session that have no position yet the position of this turn.
pub fn position_context(tx: &mut WriteTx<'_>, session: SessionId, turn: TurnId) -> Result<(), Error> {
    // Each condition is that of an index.
    for unshown in ["waits = 1", "waits IS NULL"] {
        let sql = format!(
            "UPDATE messages SET first_ordinal = (SELECT ordinal FROM turns WHERE id = ?2) \
             WHERE session_id = ?1 AND first_ordinal IS NULL AND trigger = 0 AND {unshown}"
        );
        tx.execute(&sql, params![session, turn])?;
    }
    Ok(())
}

/// Clears the positions of the messages in this turn, except for its first message.
pub fn clear_positions_but_first(tx: &mut WriteTx<'_>, turn: TurnId) -> Result<(), Error> {
    let sql = format!(
        "UPDATE messages SET first_ordinal = NULL WHERE {OF_TURN} AND status = 'processing' \
         AND seq > (SELECT min(seq) FROM messages WHERE {OF_TURN})"
    );
    tx.execute(&sql, [turn]).map(drop)
}

/// Sets the status of the messages in a turn at its end.
pub fn leave(tx: &mut WriteTx<'_>, turn: TurnId, status: Status) -> Result<(), Error> {
    let sql = format!(
        "UPDATE messages SET status = ?2, waits = iif(?2 IN ('queued','processing'), 1, NULL) \
         WHERE {OF_TURN} AND status = 'processing'"
    );
    tx.execute(&sql, params![turn, status]).map(drop)
}

/// Completes a message that waits, without a turn. Returns whether it waited.
pub fn complete_waiting(tx: &mut WriteTx<'_>, id: MessageId) -> Result<bool, Error> {
    let sql = "UPDATE messages SET status = 'completed', waits = NULL WHERE id = ?1 AND status = 'queued'";
    Ok(tx.execute(sql, [id])? > 0)
}

/// Queues a message for a retry. It moves after all later items, so the items of the earlier attempt come before it.
pub fn ask_again(tx: &mut WriteTx<'_>, id: MessageId) -> Result<(), Error> {
    tx.execute(
        "UPDATE messages SET status = 'queued', waits = 1, attempts = 0, first_ordinal = NULL, \
         moved_seq = (SELECT last_seq FROM sessions WHERE id = messages.session_id) WHERE id = ?1",
        [id],
    )?;
    Ok(())
}

/// Refunds the last attempt of these messages, because the operator and not the sandbox ended their turn.
pub fn refund_attempt(tx: &mut WriteTx<'_>, messages: &[MessageId]) -> Result<(), Error> {
    for message in messages {
        tx.execute("UPDATE messages SET attempts = max(attempts - 1, 0) WHERE id = ?1", [message])?;
    }
    Ok(())
}

/// Returns the messages that a turn answers, oldest first.
pub fn for_turn(tx: &ReadTx<'_>, turn: TurnId) -> Result<Vec<MessageId>, Error> {
    tx.list(&format!("SELECT id FROM messages WHERE {OF_TURN} ORDER BY seq"), [turn], |row| row.get("id"))
}

/// Returns the messages of a turn that asked for it, oldest first.
pub fn asking_of_turn(tx: &ReadTx<'_>, turn: TurnId) -> Result<Vec<MessageId>, Error> {
    let sql = format!("SELECT id FROM messages WHERE {OF_TURN} AND trigger = 1 ORDER BY seq");
    tx.list(&sql, [turn], |row| row.get(0))
}

/// Returns the messages for which a turn was opened, also those that a retry took into another turn, oldest first.
pub fn that_asked(tx: &ReadTx<'_>, turn: TurnId) -> Result<Vec<MessageId>, Error> {
    tx.list(&format!("SELECT id FROM messages WHERE {ASKED} ORDER BY seq"), [turn], |row| row.get("id"))
}

/// Returns whether a message for which a turn was opened waits for another turn.
pub fn is_requeued(tx: &ReadTx<'_>, turn: TurnId) -> Result<bool, Error> {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM messages WHERE {ASKED} AND status = 'queued')");
    tx.get(&sql, [turn], |row| row.get(0))
}

/// Returns whether a message that was in a turn may have been in an earlier one too.
pub fn is_retried(tx: &ReadTx<'_>, id: MessageId) -> Result<bool, Error> {
    let sql = "SELECT moved_seq IS NOT NULL OR first_ordinal IS NOT (SELECT ordinal FROM turns WHERE turns.id = turn_id) \
               FROM messages WHERE id = ?1";
    Ok(tx.find(sql, [id], |row| row.get(0))?.unwrap_or(false))
}

/// Returns whether a message of a turn is older than this generation of the record.
pub fn is_of_earlier_generation(tx: &ReadTx<'_>, turn: TurnId) -> Result<bool, Error> {
    // A generation is at least the time of its begin.
    let began = i64::try_from(super::facts::generation(tx)?).unwrap_or(i64::MAX);
    let sql = format!("SELECT EXISTS (SELECT 1 FROM messages WHERE {ASKED} AND received_at < ?2)");
    tx.get(&sql, params![turn, began], |row| row.get(0))
}

/// Returns the highest number of attempts of the messages of a turn.
pub fn attempts(tx: &ReadTx<'_>, turn: TurnId) -> Result<u32, Error> {
    let sql = format!("SELECT coalesce(max(attempts), 0) FROM messages WHERE {OF_TURN}");
    tx.get(&sql, [turn], |row| row.get(0))
}

/// Returns the position of a message; `None` if no turn has shown it.
pub fn position(tx: &ReadTx<'_>, id: MessageId) -> Result<Option<MessagePosition>, Error> {
    let sql = "SELECT first_ordinal, moved_seq FROM messages WHERE id = ?1 AND first_ordinal IS NOT NULL";
    tx.find(sql, [id], MessagePosition::read)
}

/// Returns the number of messages of all sessions that wait or are in a turn.
pub fn unfinished_count(tx: &ReadTx<'_>) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM messages WHERE waits = 1";
    tx.get(sql, [], |row| row.get(0))
}

/// Marks the completed messages that a turn answered as delivered.
pub fn mark_delivered(tx: &mut WriteTx<'_>, turn: TurnId) -> Result<(), Error> {
    let sql = format!("UPDATE messages SET status = 'delivered' WHERE {OF_TURN} AND status = 'completed'");
    tx.execute(&sql, [turn]).map(drop)
}

/// Returns the ids of at most `most` answered messages whose item was dropped and whose turn has no delivery, as a JSON array, or
/// `None` if there are none. A message with an event id must also be older than `events_from`. The newest message of each sender in a
/// session stays, because it names the person of the sender.
pub fn forgettable(tx: &ReadTx<'_>, events_from: i64, most: i64) -> Result<Option<String>, Error> {
    let sql = "SELECT nullif(json_group_array(key), '[]') FROM \
               (SELECT m.id AS key FROM sessions s JOIN messages m ON m.session_id = s.id \
               WHERE m.seq <= s.pruned_seq AND m.status IN ('completed','delivered') \
               AND (m.event_id IS NULL OR m.received_at < ?1) \
               AND NOT EXISTS (SELECT 1 FROM turns, json_each(delivery_ids) JOIN deliveries d ON d.id = value \
               WHERE turns.id = m.turn_id) \
               AND m.id NOT IN (SELECT id FROM (SELECT id, max(seq) FROM messages GROUP BY session_id, sender, principal)) LIMIT ?2)";
    tx.get(sql, [events_from, most], |row| row.get(0))
}

/// Deletes the answered messages among these ids, a JSON array, and returns their number.
pub fn forget(tx: &mut WriteTx<'_>, keys: &str) -> Result<usize, Error> {
    let sql =
        "DELETE FROM messages WHERE status IN ('completed','delivered') AND id IN (SELECT value FROM json_each(?1))";
    tx.execute(sql, [keys])
}

pub fn delete_of(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), Error> {
    tx.execute("DELETE FROM messages WHERE session_id = ?1", [session]).map(drop)
}
