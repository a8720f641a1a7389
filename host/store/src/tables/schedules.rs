//! Schedules and their occurrences. Tables: `schedules`, `occurrences`.

use crate::rows::rows;
use ironclaw_contract::canonical;
use ironclaw_contract::ids::{AgentId, ChangeId, DeliveryId, MessageId, PersonId, ScheduleId, TurnId};
use ironclaw_contract::seam::change::{CatchUp, Flow, RunContext, WrittenBy};
use ironclaw_state::{Error, ReadTx, WriteTx, stored_json};
use rusqlite::params;
use std::collections::BTreeSet;

pub use ironclaw_operator::{OccurrenceState, ScheduleState as State};

rows! {
    #[derive(Debug, Clone)]
    pub struct Schedule in schedules {
        pub id: ScheduleId,
        /// Its name, which no other schedule of its creator with the agent has.
        pub name: String,
        pub agent: AgentId = "agent_id",
        /// The person on whose behalf it runs.
        pub creator: PersonId,
        /// The change that added it.
        pub change: ChangeId = "change_id",
        /// The text that the agent gets; empty once the schedule is removed.
        pub prompt: String,
        /// The author of the prompt.
        pub written_by: WrittenBy,
        /// `cron`, `every` or `at`.
        pub kind: String,
        /// The text of the recurrence.
        pub recurrence: String,
        /// Name of the time zone.
        pub zone: String,
        /// The time from which periods count, milliseconds since the epoch.
        pub anchor: i64,
        /// The treatment of passed times.
        pub catch_up: CatchUp,
        /// Classes and tools that a run may use beside reading.
        pub may: Vec<String> as json,
        /// The receivers to which a run may send without a question.
        pub flows: Vec<Flow> as json,
        /// The context of its runs.
        pub context: RunContext,
        /// The channel of the replies.
        pub channel: String,
        /// The address of the replies.
        pub platform_id: String,
        /// The thread of the replies; empty if there is none.
        pub thread_id: String,
        pub state: State,
        /// The reason of the state.
        pub reason: Option<String>,
        /// The next time, milliseconds since the epoch; only of an active schedule.
        pub next_due: Option<i64>,
        /// The time up to which the host had dealt with schedules when the next time was last counted from the present, milliseconds
        /// since the epoch. It is later than that present if the clock was set back before.
        pub attended_at: Option<i64>,
        /// The time of the first failure since the last success.
        pub failing_since: Option<i64>,
        /// Milliseconds since the epoch.
        pub created_at: i64,
    }

    #[derive(Debug, Clone)]
    pub struct Occurrence {
        /// Its number.
        pub ordinal: i64,
        pub schedule: ScheduleId = "schedule_id",
        /// Its time, milliseconds since the epoch.
        pub due: i64,
        pub state: OccurrenceState,
        /// The reason of the state, one word.
        pub reason: Option<String>,
        /// The number of times that it counts.
        pub count: u64,
        /// The person who started it by hand.
        pub by: Option<PersonId> = "by_person",
        /// The message that the agent got.
        pub message: Option<MessageId> = "message_id",
        /// The delivery of the reply.
        pub receipt: Option<DeliveryId>,
    }

    /// An open occurrence, with the state of its message.
    #[derive(Debug, Clone)]
    pub struct OpenRun {
        pub occurrence: Occurrence as row,
        /// Flag: the agent works on its message, or the message waits for the agent.
        pub is_awaited: bool,
        /// Flag: its message was answered or erased, or the session does not run.
        pub may_have_ended: bool,
    }
}

/// An occurrence to insert.
#[derive(Debug, Clone, Copy)]
pub struct NewOccurrence {
    pub schedule: ScheduleId,
    /// Its time, milliseconds since the epoch.
    pub due: i64,
    pub state: OccurrenceState,
    /// The reason of the state.
    pub reason: Option<&'static str>,
    /// The number of times that it counts.
    pub count: u64,
    /// The person who started it by hand.
    pub by: Option<PersonId>,
}

/// The list that limits the calls of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfTurn {
    /// Classes and tools that it may use beside reading.
    pub may: Vec<String>,
    /// The receivers to which it may send without a question.
    pub flows: Vec<Flow>,
    /// True if a person typed the prompt.
    pub is_typed: bool,
}

pub fn insert(tx: &mut WriteTx<'_>, new: &Schedule) -> Result<(), Error> {
    new.insert(tx)
}

/// Replaces the settings of a schedule, and its next time.
pub fn update(tx: &mut WriteTx<'_>, new: &Schedule) -> Result<(), Error> {
    tx.execute(
        "UPDATE schedules SET prompt = ?2, written_by = ?3, kind = ?4, recurrence = ?5, zone = ?6, anchor = ?7, catch_up = ?8, \
         may = ?9, channel = ?10, platform_id = ?11, thread_id = ?12, state = ?13, reason = ?14, next_due = ?15, name = ?16, \
         flows = ?17, context = ?18, attended_at = ?19 WHERE id = ?1",
        params![
            new.id,
            new.prompt,
            new.written_by,
            new.kind,
            new.recurrence,
            new.zone,
            new.anchor,
            new.catch_up,
            canonical::to_string(&new.may),
            new.channel,
            new.platform_id,
            new.thread_id,
            new.state,
            new.reason,
            new.next_due,
            new.name,
            canonical::to_string(&new.flows),
            new.context,
            new.attended_at
        ],
    )?;
    Ok(())
}

/// Sets the state of a schedule, its reason and its next time.
pub fn set_state(
    tx: &mut WriteTx<'_>,
    id: ScheduleId,
    state: State,
    reason: Option<&str>,
    next_due: Option<i64>,
) -> Result<(), Error> {
    let sql = "UPDATE schedules SET state = ?2, reason = ?3, next_due = ?4, \
               prompt = CASE WHEN ?2 = 'removed' THEN '' ELSE prompt END WHERE id = ?1";
    tx.execute(sql, params![id, state, reason, next_due]).map(drop)
}

/// Sets the time up to which the host had dealt with schedules, for a schedule whose next time is counted from the present.
pub fn set_attended_at(tx: &mut WriteTx<'_>, id: ScheduleId, attended: Option<i64>) -> Result<(), Error> {
    tx.execute("UPDATE schedules SET attended_at = ?2 WHERE id = ?1", params![id, attended]).map(drop)
}

/// Sets the time of the first failure of a failing series, or ends the series.
pub fn set_failing(tx: &mut WriteTx<'_>, id: ScheduleId, since: Option<i64>) -> Result<(), Error> {
    tx.execute("UPDATE schedules SET failing_since = ?2 WHERE id = ?1", params![id, since]).map(drop)
}

pub fn find(tx: &ReadTx<'_>, id: ScheduleId) -> Result<Option<Schedule>, Error> {
    tx.find("SELECT * FROM schedules WHERE id = ?1", [id], Schedule::read)
}

/// Returns every schedule that is not removed, oldest first.
pub fn all(tx: &ReadTx<'_>) -> Result<Vec<Schedule>, Error> {
    tx.list("SELECT * FROM schedules WHERE state <> 'removed' ORDER BY created_at, id", [], Schedule::read)
}

/// Returns the active schedules whose runs fail.
pub fn failing(tx: &ReadTx<'_>) -> Result<Vec<Schedule>, Error> {
    let sql = "SELECT * FROM schedules WHERE failing_since IS NOT NULL AND state = 'active'";
    tx.list(sql, [], Schedule::read)
}

/// Returns the schedules that a person or the host paused.
pub fn paused(tx: &ReadTx<'_>) -> Result<Vec<Schedule>, Error> {
    tx.list("SELECT * FROM schedules WHERE state = 'paused'", [], Schedule::read)
}

/// Returns the schedules of an agent that a person created and that are not removed, oldest first.
pub fn list_for_creator(tx: &ReadTx<'_>, agent: AgentId, creator: PersonId) -> Result<Vec<Schedule>, Error> {
    let sql =
        "SELECT * FROM schedules WHERE agent_id = ?1 AND creator = ?2 AND state <> 'removed' ORDER BY created_at, id";
    tx.list(sql, params![agent, creator], Schedule::read)
}

/// Returns the names of the schedules of an agent that a person created and that are not removed, except for the schedule `but`.
pub fn names(
    tx: &ReadTx<'_>,
    agent: AgentId,
    creator: PersonId,
    but: Option<ScheduleId>,
) -> Result<BTreeSet<String>, Error> {
    let sql = "SELECT name FROM schedules WHERE agent_id = ?1 AND creator = ?2 AND state <> 'removed' AND id IS NOT ?3";
    let names: Vec<String> = tx.list(sql, params![agent, creator, but], |row| row.get(0))?;
    Ok(names.into_iter().collect())
}

/// Returns the schedules of this name that are not removed, oldest first.
pub fn named(tx: &ReadTx<'_>, name: &str) -> Result<Vec<Schedule>, Error> {
    let sql = "SELECT * FROM schedules WHERE name = ?1 AND state <> 'removed' ORDER BY created_at, id";
    tx.list(sql, [name], Schedule::read)
}

/// Returns whether the creator of a schedule has an unread reply of it on this host, other than this one.
pub fn has_unread(tx: &ReadTx<'_>, id: ScheduleId, but: DeliveryId) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM occurrences JOIN deliveries ON deliveries.id = receipt WHERE schedule_id = ?1 \
               AND receipt <> ?2 AND over_network = 0 AND deliveries.state = 'received' AND seen_at IS NULL)";
    tx.get(sql, params![id, but], |row| row.get(0))
}

/// Returns the name of the schedule whose run a turn is.
pub fn name_for_turn(tx: &ReadTx<'_>, turn: TurnId) -> Result<Option<String>, Error> {
    let sql = "SELECT s.name FROM occurrences o JOIN schedules s ON s.id = o.schedule_id \
               WHERE o.message_id IN (SELECT value FROM turns, json_each(message_ids) WHERE turns.id = ?1)";
    tx.find(sql, [turn], |row| row.get(0))
}

/// Returns the schedules of an agent that a change added, in the order of their rows.
pub fn added_by_change(tx: &ReadTx<'_>, agent: AgentId, change: ChangeId) -> Result<Vec<ScheduleId>, Error> {
    let sql = "SELECT id FROM schedules WHERE agent_id = ?1 AND change_id = ?2 ORDER BY rowid";
    tx.list(sql, params![agent, change], |row| row.get(0))
}

/// Returns the number of schedules of a person that are not removed.
pub fn count_of_creator(tx: &ReadTx<'_>, creator: PersonId) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM schedules WHERE creator = ?1 AND state <> 'removed'";
    tx.get(sql, [creator], |row| row.get(0))
}

/// Returns the schedules that have a next time or may get one again, after this id; at most `most`, ordered by id.
pub fn timed(tx: &ReadTx<'_>, after: Option<ScheduleId>, most: usize) -> Result<Vec<Schedule>, Error> {
    let sql = "SELECT * FROM schedules WHERE id > coalesce(?1, '') AND \
               (state = 'active' OR (state = 'ended' AND kind = 'at')) ORDER BY id LIMIT ?2";
    tx.list(sql, params![after, most as i64], Schedule::read)
}

pub fn active(tx: &ReadTx<'_>) -> Result<Vec<ScheduleId>, Error> {
    tx.list("SELECT id FROM schedules WHERE state = 'active'", [], |row| row.get(0))
}

/// Returns at most `most` schedules whose next time has come, earliest first.
pub fn due(tx: &ReadTx<'_>, now: i64, most: usize) -> Result<Vec<ScheduleId>, Error> {
    let sql = "SELECT id FROM schedules WHERE next_due IS NOT NULL AND next_due <= ?1 ORDER BY next_due LIMIT ?2";
    tx.list(sql, params![now, most as i64], |row| row.get(0))
}

/// Returns the earliest next time after this one.
pub fn next_due(tx: &ReadTx<'_>, after: i64) -> Result<Option<i64>, Error> {
    let sql = "SELECT min(next_due) FROM schedules WHERE next_due IS NOT NULL AND next_due > ?1";
    tx.get(sql, [after], |row| row.get(0))
}

/// Returns whether a time of a schedule has a row, other than that of a single missed time.
pub fn is_taken(tx: &ReadTx<'_>, id: ScheduleId, due: i64) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM occurrences WHERE schedule_id = ?1 AND due = ?2 AND NOT (state = 'skipped' AND reason = 'missed' AND count = 1)";
    tx.exists(sql, params![id, due])
}

/// Deletes the row of a single missed time. The time comes again, because the clock was set back.
pub fn forget_missed_at(tx: &mut WriteTx<'_>, id: ScheduleId, due: i64) -> Result<(), Error> {
    let sql = "DELETE FROM occurrences WHERE schedule_id = ?1 AND due = ?2 AND state = 'skipped' AND reason = 'missed' AND count = 1";
    tx.execute(sql, params![id, due]).map(drop)
}

/// Returns whether a schedule has missed times after this one.
pub fn has_missed_after(tx: &ReadTx<'_>, id: ScheduleId, after: i64) -> Result<bool, Error> {
    let sql =
        "SELECT 1 FROM occurrences WHERE schedule_id = ?1 AND due > ?2 AND state = 'skipped' AND reason = 'missed'";
    tx.exists(sql, params![id, after])
}

/// Deletes the rows of missed times after this one, which have not come: the clock was ahead.
pub fn forget_missed_after(tx: &mut WriteTx<'_>, id: ScheduleId, after: i64) -> Result<(), Error> {
    let sql = "DELETE FROM occurrences WHERE schedule_id = ?1 AND due > ?2 AND state = 'skipped' AND reason = 'missed'";
    tx.execute(sql, params![id, after]).map(drop)
}

/// Returns the newest row of a schedule up to this time, if it counts several missed times.
pub fn joined_until(tx: &ReadTx<'_>, id: ScheduleId, until: i64) -> Result<Option<Occurrence>, Error> {
    let sql = "SELECT * FROM occurrences WHERE schedule_id = ?1 AND due <= ?2 ORDER BY due DESC LIMIT 1";
    let newest = tx.find(sql, params![id, until], Occurrence::read)?;
    Ok(newest.filter(|row| row.count > 1 && row.state == OccurrenceState::Skipped))
}

/// Sets the number of times that a row counts.
pub fn set_count(tx: &mut WriteTx<'_>, ordinal: i64, count: u64) -> Result<(), Error> {
    tx.execute("UPDATE occurrences SET count = ?2 WHERE ordinal = ?1", params![ordinal, count as i64]).map(drop)
}

/// Inserts an occurrence, and returns its number; `None` if the schedule already has one with this time.
pub fn insert_occurrence(tx: &mut WriteTx<'_>, new: NewOccurrence) -> Result<Option<i64>, Error> {
    let now = tx.now();
    let is_open = matches!(new.state, OccurrenceState::Scheduled | OccurrenceState::Started);
    let settled = (!is_open).then_some(now);
    let NewOccurrence { schedule, due, state, reason, count, by } = new;
    let inserted = tx.execute(
        "INSERT OR IGNORE INTO occurrences (schedule_id, due, state, reason, count, by_person, created_at, settled_at) \
         VALUES (?1,?2,?3,?4,?5,?6,?7,?8)",
        params![schedule, due, state, reason, count as i64, by, now, settled],
    )?;
    if inserted == 0 {
        return Ok(None);
    }
    let sql = "SELECT ordinal FROM occurrences WHERE schedule_id = ?1 AND due = ?2";
    tx.get(sql, params![schedule, due], |row| row.get(0)).map(Some)
}

/// Marks an occurrence that waits as started with its message.
pub fn start(tx: &mut WriteTx<'_>, ordinal: i64, message: MessageId) -> Result<(), Error> {
    let sql = "UPDATE occurrences SET state = 'started', message_id = ?2 WHERE ordinal = ?1 AND state = 'scheduled'";
    tx.execute(sql, params![ordinal, message]).map(drop)
}

/// Settles an open occurrence, and returns whether it was open.
pub fn settle(
    tx: &mut WriteTx<'_>,
    ordinal: i64,
    state: OccurrenceState,
    reason: Option<&str>,
    receipt: Option<DeliveryId>,
) -> Result<bool, Error> {
    let now = tx.now();
    let sql = "UPDATE occurrences SET state = ?2, reason = ?3, receipt = ?4, settled_at = ?5 \
               WHERE ordinal = ?1 AND state IN ('scheduled','started')";
    Ok(tx.execute(sql, params![ordinal, state, reason, receipt, now])? == 1)
}

/// Returns the open occurrences, oldest first.
pub fn open(tx: &ReadTx<'_>) -> Result<Vec<Occurrence>, Error> {
    tx.list("SELECT * FROM occurrences WHERE state IN ('scheduled','started') ORDER BY ordinal", [], Occurrence::read)
}

/// Returns the open occurrences with the states of their messages, oldest first.
pub fn open_runs(tx: &ReadTx<'_>) -> Result<Vec<OpenRun>, Error> {
    let sql = "SELECT o.*, coalesce(m.waits, 0) AS is_awaited, \
               o.state = 'started' AND o.message_id IS NOT NULL AND \
               (m.waits IS NULL OR s.state IS NULL OR s.state <> 'live') AS may_have_ended \
               FROM occurrences o LEFT JOIN messages m ON m.id = o.message_id LEFT JOIN sessions s ON s.id = m.session_id \
               WHERE o.state IN ('scheduled','started') ORDER BY o.ordinal";
    tx.list(sql, [], OpenRun::read)
}

/// Returns the open occurrences of a schedule, oldest first.
pub fn open_of(tx: &ReadTx<'_>, id: ScheduleId) -> Result<Vec<Occurrence>, Error> {
    let sql = "SELECT * FROM occurrences WHERE state IN ('scheduled','started') AND schedule_id = ?1 ORDER BY ordinal";
    tx.list(sql, [id], Occurrence::read)
}

/// Returns the newest occurrences of a schedule, at most `most`, oldest first.
pub fn occurrences_of(tx: &ReadTx<'_>, id: ScheduleId, most: usize) -> Result<Vec<Occurrence>, Error> {
    let sql =
        "SELECT * FROM (SELECT * FROM occurrences WHERE schedule_id = ?1 ORDER BY due DESC LIMIT ?2) ORDER BY due";
    tx.list(sql, params![id, most as i64], Occurrence::read)
}

/// Returns the newest occurrence of a schedule that has ended.
pub fn last_settled(tx: &ReadTx<'_>, id: ScheduleId) -> Result<Option<Occurrence>, Error> {
    let sql = "SELECT * FROM occurrences WHERE schedule_id = ?1 AND settled_at IS NOT NULL ORDER BY due DESC LIMIT 1";
    tx.find(sql, [id], Occurrence::read)
}

/// Returns the occurrence that sent a message.
pub fn occurrence_for_message(tx: &ReadTx<'_>, message: MessageId) -> Result<Option<Occurrence>, Error> {
    tx.find("SELECT * FROM occurrences WHERE message_id = ?1", [message], Occurrence::read)
}

/// Deletes the oldest settled occurrences of a schedule beyond `kept`.
pub fn delete_old(tx: &mut WriteTx<'_>, id: ScheduleId, kept: usize) -> Result<(), Error> {
    let sql = "DELETE FROM occurrences WHERE schedule_id = ?1 AND settled_at IS NOT NULL AND due < \
               (SELECT due FROM occurrences WHERE schedule_id = ?1 ORDER BY due DESC LIMIT 1 OFFSET ?2)";
    tx.execute(sql, params![id, kept as i64]).map(drop)
}

/// Returns the list that limits the calls of a turn of a schedule that still exists.
pub fn for_turn(tx: &ReadTx<'_>, turn: TurnId) -> Result<Option<OfTurn>, Error> {
    let sql = "SELECT s.may, s.flows, s.written_by FROM messages m JOIN occurrences o ON o.message_id = m.id \
               JOIN schedules s ON s.id = o.schedule_id WHERE m.id IN (SELECT value FROM turns, json_each(message_ids) WHERE turns.id = ?1) AND s.state <> 'removed'";
    tx.find(sql, [turn], list)
}

/// Returns the list of a schedule of an agent, unless the schedule is removed.
pub fn list_of_schedule(tx: &ReadTx<'_>, agent: AgentId, id: ScheduleId) -> Result<Option<OfTurn>, Error> {
    let sql = "SELECT may, flows, written_by FROM schedules WHERE id = ?1 AND agent_id = ?2 AND state <> 'removed'";
    tx.find(sql, params![id, agent], list)
}

fn list(row: &rusqlite::Row<'_>) -> rusqlite::Result<OfTurn> {
    Ok(OfTurn {
        may: stored_json(row, "may")?,
        flows: stored_json(row, "flows")?,
        is_typed: row.get::<_, WrittenBy>("written_by")? == WrittenBy::Person,
    })
}
