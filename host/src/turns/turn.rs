//! Turns belong to the host: which messages one answers, when it is over, and how it ends.
//!
//! Exactly one principal a turn; nothing is inherited by the next. Never talks to a sandbox. Next: `context`, `session::actor`.

use ironclaw_contract::ids::{MessageId, PersonId, SessionId, TurnId};
use ironclaw_contract::ledger_entry::Kind;
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_contract::seam::link::TurnLimits;
use ironclaw_ledger::Entry;
use ironclaw_state::{ReadTx, WriteTx};
use rusqlite::{OptionalExtension, Row, params};
use serde::Deserialize;

/// Messages that one turn answers at most; the rest waits for the next.
const TURN_MESSAGES_MAX: usize = 16;

/// Messages that only inform and are shown to a turn; older ones are not.
pub const CONTEXT_MESSAGES_MAX: usize = 32;

/// Has a message asked again: it moves behind what was said since, and what was done for it before stands in front of it.
pub const ASK_AGAIN: &str = "UPDATE messages SET status = 'queued', attempts = 0, first_ordinal = NULL, \
    moved_seq = (SELECT last_seq FROM sessions WHERE id = messages.session_id) WHERE id = ?1";

/// A message is given up after it was in so many turns that came to no end.
pub const MESSAGE_ATTEMPTS_MAX: u32 = 3;

/// `[turn]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// A turn that takes longer is ended with a notice.
    pub seconds_max: u32,
    /// Requests to the model in one turn.
    pub model_calls_max: u32,
    /// Tool calls in one turn.
    pub tool_calls_max: u32,
    /// Bytes of all results in one turn.
    pub result_bytes_max: u64,
    /// Bytes of bodies that one request to the model may name.
    pub context_bytes_max: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seconds_max: 300,
            model_calls_max: 16,
            tool_calls_max: 24,
            result_bytes_max: 4 << 20,
            context_bytes_max: 512 << 10,
        }
    }
}

impl Config {
    /// Refuses values that are out of bounds.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=86_400).contains(&self.seconds_max) || self.model_calls_max == 0 || self.tool_calls_max == 0 {
            return Err(
                "turn.seconds_max must be 1 to 86400, and turn.model_calls_max and turn.tool_calls_max at least 1"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// The bounds as the sandbox is told them.
    pub const fn limits(&self) -> TurnLimits {
        TurnLimits {
            model_calls_max: self.model_calls_max,
            tool_calls_max: self.tool_calls_max,
            result_bytes_max: self.result_bytes_max,
            context_bytes_max: self.context_bytes_max,
        }
    }
}

/// A turn's row.
#[derive(Debug, Clone)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// Its place among all turns.
    pub ordinal: i64,
    /// Its session.
    pub session: SessionId,
    /// On whose behalf.
    pub principal: String,
    /// Whether it is open.
    pub open: bool,
    /// Requests to the model so far.
    pub model_calls: u32,
    /// Tool calls so far.
    pub tool_calls: u32,
    /// Bytes of results so far.
    pub result_bytes: u64,
}

impl Turn {
    /// Returns the person on whose behalf it is.
    ///
    /// # Errors
    /// When its row names no person.
    pub fn person(&self) -> Result<PersonId, ironclaw_state::Error> {
        let error = |_| ironclaw_state::Error::Stored(format!("{}: its person", self.id));
        self.principal.parse().map_err(error)
    }
}

fn turn(row: &Row<'_>) -> rusqlite::Result<Turn> {
    Ok(Turn {
        id: row.get("id")?,
        ordinal: row.get("ordinal")?,
        session: row.get("session_id")?,
        principal: row.get("principal")?,
        open: row.get::<_, String>("state")? == "open",
        model_calls: row.get("model_calls")?,
        tool_calls: row.get("tool_calls")?,
        result_bytes: row.get::<_, i64>("result_bytes")? as u64,
    })
}

/// The session's open turn.
pub fn open_of(tx: &ReadTx<'_>, session: SessionId) -> Result<Option<Turn>, ironclaw_state::Error> {
    let sql = "SELECT * FROM turns WHERE session_id = ?1 AND state = 'open'";
    Ok(tx.db().prepare_cached(sql)?.query_row([session], turn).optional()?)
}

/// Every turn that is open.
pub fn every_open(tx: &ReadTx<'_>) -> Result<Vec<Turn>, ironclaw_state::Error> {
    let mut statement = tx.db().prepare_cached("SELECT * FROM turns WHERE state = 'open'")?;
    let open = statement.query_map([], turn)?.collect::<rusqlite::Result<_>>()?;
    Ok(open)
}

/// The turn of this id.
pub fn find(tx: &ReadTx<'_>, id: TurnId) -> Result<Option<Turn>, ironclaw_state::Error> {
    Ok(tx.db().prepare_cached("SELECT * FROM turns WHERE id = ?1")?.query_row([id], turn).optional()?)
}

/// Sessions in which a turn is open or a message waits.
pub fn sessions_with_work(tx: &ReadTx<'_>) -> Result<Vec<SessionId>, ironclaw_state::Error> {
    let sql = "SELECT DISTINCT session_id FROM messages WHERE status IN ('queued','processing') AND trigger = 1 \
               UNION SELECT session_id FROM turns WHERE state = 'open'";
    let mut statement = tx.db().prepare_cached(sql)?;
    let sessions = statement.query_map([], |row| row.get("session_id"))?.collect::<rusqlite::Result<_>>()?;
    Ok(sessions)
}

/// A message as turns see it.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// The message.
    pub id: MessageId,
    /// Its number.
    pub seq: u64,
    /// On whose behalf.
    pub principal: String,
    /// Whether it asks for a turn.
    pub trigger: bool,
    /// Turns it was in that came to no end.
    pub attempts: u32,
}

/// Messages that wait for a turn, oldest first, and the newest of those that only inform. Each has a bound of its own,
/// so that no number of the one keeps the other from being seen.
pub fn waiting(tx: &ReadTx<'_>, session: SessionId) -> Result<Vec<Waiting>, ironclaw_state::Error> {
    // `status IN …` says nothing new: it is the condition of the index, without which all messages would be read.
    let sql = "SELECT * FROM (SELECT id, seq, principal, trigger, attempts FROM messages \
               WHERE session_id = ?1 AND status IN ('queued','processing') AND status = 'queued' AND trigger = 1 \
               ORDER BY seq LIMIT ?2) \
               UNION ALL SELECT * FROM (SELECT id, seq, principal, trigger, attempts FROM messages \
               WHERE session_id = ?1 AND status IN ('queued','processing') AND status = 'queued' AND trigger = 0 \
               ORDER BY seq DESC LIMIT ?3) ORDER BY seq";
    let mut statement = tx.db().prepare_cached(sql)?;
    let read = |row: &Row<'_>| {
        Ok(Waiting {
            id: row.get("id")?,
            seq: row.get::<_, i64>("seq")? as u64,
            principal: row.get("principal")?,
            trigger: row.get("trigger")?,
            attempts: row.get("attempts")?,
        })
    };
    let waiting = statement
        .query_map(params![session, 2 * TURN_MESSAGES_MAX as i64, CONTEXT_MESSAGES_MAX as i64], read)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(waiting)
}

/// Which of the waiting messages the next turn answers: the oldest that asks, and those behind it of the same principal
/// with nobody else's between. One that was in a turn without an end stands alone: it may be what ended it.
pub fn choose(waiting: &[Waiting]) -> Vec<&Waiting> {
    let mut asking = waiting.iter().filter(|message| message.trigger).peekable();
    let Some(first) = asking.peek().copied() else { return Vec::new() };
    let count = if first.attempts > 0 { 1 } else { TURN_MESSAGES_MAX };
    asking
        .take(count)
        .take_while(|message| message.principal == first.principal && message.attempts == first.attempts)
        .collect()
}

/// An opened turn with its messages.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The turn.
    pub id: TurnId,
    /// When it is over.
    pub deadline: i64,
    /// What it answers.
    pub messages: Vec<MessageId>,
    /// What stands beside it as context.
    pub context: Vec<MessageId>,
}

/// Opens the next turn of a session that has none, if a message asks for one.
pub fn open_next(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    config: &Config,
) -> Result<Option<Opened>, ironclaw_state::Error> {
    if open_of(tx, session)?.is_some() {
        return Ok(None);
    }
    let waiting = waiting(tx, session)?;
    let chosen = choose(&waiting);
    let Some(first) = chosen.first() else { return Ok(None) };
    let id = TurnId::new();
    // For the sandbox, and for people who look at the record; the host itself ends a turn by `turns::deadlines`.
    let deadline = tx.now() + i64::from(config.seconds_max) * 1000;
    let db = tx.db();
    db.prepare_cached(
        "INSERT INTO turns (id, session_id, principal, scope, state, opened_at, deadline, model_calls, tool_calls, result_bytes) \
         VALUES (?1,?2,?3,'read write','open',?4,?5,0,0,0)",
    )?
    .execute(params![id, session, first.principal, tx.wall(), deadline])?;
    let mut take = db.prepare_cached(
        "UPDATE messages SET status = 'processing', turn_id = ?2, attempts = attempts + 1, \
         first_ordinal = coalesce(first_ordinal, (SELECT ordinal FROM turns WHERE id = ?2)) WHERE id = ?1",
    )?;
    for message in &chosen {
        take.execute(params![message.id, id])?;
    }
    // What has come in until now is shown from this turn on, and keeps this place.
    db.prepare_cached(
        "UPDATE messages SET first_ordinal = (SELECT ordinal FROM turns WHERE id = ?2) \
         WHERE session_id = ?1 AND first_ordinal IS NULL AND trigger = 0",
    )?
    .execute(params![session, id])?;
    for message in &chosen {
        Entry::new(LedgerEvent::TurnOpened)
            .session(session)
            .turn(id)
            .message(message.id)
            .with("principal", first.principal.clone())
            .append(tx)?;
    }
    // A message that asks is shown in its own turn first: beside another one it would stand at a place that it then leaves.
    let context = waiting.iter().filter(|message| !message.trigger).map(|message| message.id).collect();
    Ok(Some(Opened { id, deadline, messages: chosen.iter().map(|message| message.id).collect(), context }))
}

/// How a turn ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// With a reply or a notice: its messages are answered.
    Answered,
    /// Its sandbox went away: its messages wait for another turn.
    Requeued,
    /// Somebody cancelled it: its messages are answered with that. What its sandbox may have begun is unknown.
    Cancelled,
}

/// Closes a turn: its messages move on, its unused calls are void, those that had left become unknown.
pub fn close(
    tx: &mut WriteTx<'_>,
    turn: &Turn,
    how: Close,
    outcome: &'static str,
) -> Result<Vec<MessageId>, ironclaw_state::Error> {
    let now = tx.now();
    let db = tx.db();
    let id = turn.id;
    let closed = db
        .prepare_cached(
            "UPDATE turns SET state = 'closed', closed_at = ?2, outcome = ?3 WHERE id = ?1 AND state = 'open'",
        )?
        .execute(params![id, now, outcome])?;
    if closed == 0 {
        return Ok(Vec::new());
    }
    let (local, row) = match how {
        Close::Answered => ("void", "void"),
        Close::Requeued => ("unknown", "unknown"),
        // A call that goes out as a row begins when its row is taken, and that can be no more.
        Close::Cancelled => ("unknown", "void"),
    };
    db.prepare_cached(
        "UPDATE calls SET state = CASE runs WHEN 'local' THEN ?2 ELSE ?3 END WHERE turn_id = ?1 AND state = 'permitted'",
    )?
    .execute(params![id, local, row])?;
    let messages = messages_of(tx, turn.id)?;
    let status = match how {
        Close::Answered | Close::Cancelled => "completed",
        Close::Requeued => "queued",
    };
    if how == Close::Requeued {
        // What the attempt came to stands behind its first message, which is tried first and alone; the others are yet to be
        // answered, and belong behind that answer.
        let sql = "UPDATE messages SET first_ordinal = NULL WHERE turn_id = ?1 AND status = 'processing' \
                   AND seq > (SELECT min(seq) FROM messages WHERE turn_id = ?1)";
        tx.db().prepare_cached(sql)?.execute([id])?;
    }
    tx.db()
        .prepare_cached("UPDATE messages SET status = ?2 WHERE turn_id = ?1 AND status = 'processing'")?
        .execute(params![id, status])?;
    let entry = match how {
        Close::Answered => Entry::new(LedgerEvent::TurnClosed),
        Close::Requeued | Close::Cancelled => Entry::of_kind(LedgerEvent::TurnClosed, Kind::Retract),
    };
    entry.session(turn.session).turn(turn.id).reason(outcome).append(tx)?;
    Ok(messages)
}

/// The messages that a turn answers, oldest first.
pub fn messages_of(tx: &ReadTx<'_>, turn: TurnId) -> Result<Vec<MessageId>, ironclaw_state::Error> {
    let mut statement = tx.db().prepare_cached("SELECT id FROM messages WHERE turn_id = ?1 ORDER BY seq")?;
    let messages = statement.query_map([turn], |row| row.get("id"))?.collect::<rusqlite::Result<_>>()?;
    Ok(messages)
}

/// The newest message that a turn answers.
///
/// # Errors
/// A turn without a message is none of ours.
pub fn newest_message(tx: &ReadTx<'_>, turn: TurnId) -> Result<MessageId, ironclaw_state::Error> {
    let newest = messages_of(tx, turn)?.pop();
    newest.ok_or_else(|| ironclaw_state::Error::Stored(format!("{turn} answers no message")))
}

/// In how many turns the messages of this one were, at most.
pub fn attempts(tx: &ReadTx<'_>, turn: TurnId) -> Result<u32, ironclaw_state::Error> {
    let sql = "SELECT coalesce(max(attempts), 0) FROM messages WHERE turn_id = ?1";
    Ok(tx.db().prepare_cached(sql)?.query_row([turn], |row| row.get(0))?)
}

/// Notes that messages which only inform were shown to a turn.
pub fn informed(tx: &mut WriteTx<'_>, messages: &[MessageId]) -> Result<(), ironclaw_state::Error> {
    let mut note = tx.db().prepare_cached("UPDATE messages SET status = 'completed' WHERE id = ?1 AND trigger = 0")?;
    for message in messages {
        note.execute([message])?;
    }
    Ok(())
}

/// Counts a request to the model, before it is made: one that fails may have cost just as much.
pub fn count_model_call(tx: &mut WriteTx<'_>, turn: TurnId) -> Result<(), ironclaw_state::Error> {
    let sql = "UPDATE turns SET model_calls = model_calls + 1 WHERE id = ?1";
    tx.db().prepare_cached(sql)?.execute([turn])?;
    Ok(())
}

/// Counts the calls of an output.
pub fn count_tool_calls(tx: &mut WriteTx<'_>, turn: TurnId, calls: usize) -> Result<(), ironclaw_state::Error> {
    let sql = "UPDATE turns SET tool_calls = tool_calls + ?2 WHERE id = ?1";
    tx.db().prepare_cached(sql)?.execute(params![turn, calls as i64])?;
    Ok(())
}

/// Counts the bytes of a result.
pub fn count_result(tx: &mut WriteTx<'_>, turn: TurnId, bytes: usize) -> Result<(), ironclaw_state::Error> {
    let sql = "UPDATE turns SET result_bytes = result_bytes + ?2 WHERE id = ?1";
    tx.db().prepare_cached(sql)?.execute(params![turn, bytes as i64])?;
    Ok(())
}

/// Notes why a turn has no output of a model: a word, and a sentence of the host for the person.
pub fn note_failure(
    tx: &mut WriteTx<'_>,
    turn: TurnId,
    code: &'static str,
    words: &str,
) -> Result<(), ironclaw_state::Error> {
    let sql = "UPDATE turns SET failure = ?2, failure_words = ?3 WHERE id = ?1";
    tx.db().prepare_cached(sql)?.execute(params![turn, code, words])?;
    Ok(())
}

/// Forgets that: a further request had an output.
pub fn clear_failure(tx: &mut WriteTx<'_>, turn: TurnId) -> Result<(), ironclaw_state::Error> {
    let sql = "UPDATE turns SET failure = NULL, failure_words = NULL WHERE id = ?1 AND failure IS NOT NULL";
    tx.db().prepare_cached(sql)?.execute([turn])?;
    Ok(())
}

/// Why the last request of a turn to a model came to nothing, in the host's words; `None` where it did not.
pub fn failure(tx: &ReadTx<'_>, turn: TurnId) -> Result<Option<String>, ironclaw_state::Error> {
    let sql = "SELECT failure_words FROM turns WHERE id = ?1";
    Ok(tx.db().prepare_cached(sql)?.query_row([turn], |row| row.get(0)).optional()?.flatten())
}

/// The word of that failure with its sentence.
pub fn coded_failure(tx: &ReadTx<'_>, turn: TurnId) -> Result<Option<(String, String)>, ironclaw_state::Error> {
    let sql =
        "SELECT failure, failure_words FROM turns WHERE id = ?1 AND failure IS NOT NULL AND failure_words IS NOT NULL";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    Ok(tx.db().prepare_cached(sql)?.query_row([turn], read).optional()?)
}

/// Gives back the attempt that messages of a turn used when it was ended by an operator and not by its sandbox.
pub fn forgive(tx: &mut WriteTx<'_>, messages: &[MessageId]) -> Result<(), ironclaw_state::Error> {
    let mut give = tx.db().prepare_cached("UPDATE messages SET attempts = max(attempts - 1, 0) WHERE id = ?1")?;
    for message in messages {
        give.execute([message])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(seq: u64, principal: &str, trigger: bool) -> Waiting {
        Waiting { id: MessageId::new(), seq, principal: principal.to_owned(), trigger, attempts: 0 }
    }

    #[test]
    fn a_turn_never_has_two_principals() {
        let waiting =
            [message(2, "ann", true), message(4, "ann", true), message(6, "bob", true), message(8, "ann", true)];
        let chosen: Vec<u64> = choose(&waiting).iter().map(|m| m.seq).collect();
        assert_eq!(chosen, [2, 4]);
    }

    #[test]
    fn what_only_informs_opens_no_turn() {
        assert!(choose(&[]).is_empty());
        assert!(choose(&[message(2, "host", false)]).is_empty());
        let waiting = [message(2, "host", false), message(4, "ann", true)];
        assert_eq!(choose(&waiting)[0].seq, 4);
        let waiting = [message(2, "ann", true), message(4, "host", false), message(6, "ann", true)];
        assert_eq!(choose(&waiting).len(), 2, "what only informs does not stand between");
    }

    #[test]
    fn message_of_a_failed_turn_takes_no_other_with_it() {
        let mut waiting = [message(2, "ann", true), message(4, "ann", true)];
        waiting[0].attempts = 1;
        assert_eq!(choose(&waiting).len(), 1);
        waiting[0].attempts = 0;
        waiting[1].attempts = 1;
        assert_eq!(choose(&waiting).len(), 1);
    }

    #[test]
    fn a_turn_has_a_bound_on_its_messages() {
        let waiting: Vec<Waiting> = (1..100).map(|n| message(2 * n, "ann", true)).collect();
        assert_eq!(choose(&waiting).len(), TURN_MESSAGES_MAX);
    }
}
