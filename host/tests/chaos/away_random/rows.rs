//! The rows about schedules, questions and notifications in the record of a host.
//!
//! Contains no tests, and reads only. See [`super::invariants`].

use crate::support::record;
use ironclaw_calendar::{Kind, Recurrence, Series, Zone};
use rusqlite::{Connection, Row};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Schedule {
    pub(super) id: String,
    pub(super) creator: String,
    pub(super) series: Series,
    pub(super) state: String,
    pub(super) reason: Option<String>,
    pub(super) next: Option<i64>,
    pub(super) is_failing: bool,
    pub(super) created_at: i64,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Occurrence {
    pub(super) schedule: String,
    pub(super) due: i64,
    pub(super) state: String,
    pub(super) reason: Option<String>,
    pub(super) count: usize,
    pub(super) is_by_hand: bool,
    pub(super) message: Option<String>,
    pub(super) receipt: Option<String>,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) id: String,
    pub(super) session: String,
    pub(super) principal: String,
    pub(super) status: String,
    pub(super) expires_at: i64,
    pub(super) remind_at: Option<i64>,
    pub(super) answer: Option<String>,
    /// The messages that answer it, each with its session.
    pub(super) messages: Vec<(String, String)>,
}

/// A reply, a notice or a notification that a channel gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) id: String,
    pub(super) channel: String,
    pub(super) state: String,
    pub(super) attempts: usize,
    /// The person of a notification.
    pub(super) person: Option<String>,
}

/// All rows, of one instant.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rows {
    /// The names of all people, with their ids.
    pub(super) people: Vec<(String, String)>,
    pub(super) schedules: Vec<Schedule>,
    pub(super) occurrences: Vec<Occurrence>,
    pub(super) questions: Vec<Question>,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) unanswered: Vec<String>,
    pub(super) changes_waiting: i64,
    pub(super) questions_waiting: i64,
}

impl Rows {
    /// Reads the record of a home, whose host may run.
    pub(super) fn of(home: &Path) -> Self {
        let db = record::open(home);
        db.execute_batch("BEGIN").expect("a transaction");
        let open =
            |kind| format!("SELECT count(*) FROM waiting WHERE kind = '{kind}' AND status IN ('pending','doubtful')");
        Self {
            people: list(&db, "SELECT name, id FROM people ORDER BY id", |row| Ok((row.get(0)?, row.get(1)?))),
            schedules: list(&db, "SELECT * FROM schedules ORDER BY created_at, id", schedule),
            occurrences: list(&db, "SELECT * FROM occurrences ORDER BY schedule_id, due", occurrence),
            questions: list(&db, "SELECT * FROM waiting WHERE kind = 'qst' ORDER BY ordinal", |row| question(&db, row)),
            deliveries: list(&db, "SELECT * FROM deliveries ORDER BY id", delivery),
            unanswered: list(
                &db,
                "SELECT id FROM messages WHERE trigger = 1 AND status IN ('queued','scheduled','processing')",
                |row| row.get(0),
            ),
            changes_waiting: record::count(&db, &open("chg")),
            questions_waiting: record::count(&db, &open("qst")),
        }
    }

    /// Returns everything that the host has still to do at this time of its clock.
    pub(super) fn open_at(&self, now: i64) -> Vec<String> {
        let is_open = |state: &str| ["scheduled", "started", "sending", "intent"].contains(&state);
        let schedules = self.schedules.iter().filter(|row| row.next.is_some_and(|next| next <= now));
        let occurrences = self.occurrences.iter().filter(|row| is_open(&row.state));
        let waiting = self.questions.iter().filter(|row| row.status == "pending");
        let questions = waiting.filter(|row| row.expires_at <= now || row.remind_at.is_some_and(|at| at <= now));
        let deliveries = self.deliveries.iter().filter(|row| is_open(&row.state));
        let mut open: Vec<String> = self.unanswered.clone();
        open.extend(schedules.map(|row| format!("{row:?}")));
        open.extend(occurrences.map(|row| format!("{row:?}")));
        open.extend(questions.map(|row| format!("{row:?}")));
        open.extend(deliveries.map(|row| format!("{row:?}")));
        open
    }

    /// Returns the deliveries that are no notifications.
    pub(super) fn replies(&self) -> impl Iterator<Item = &Delivery> {
        self.deliveries.iter().filter(|row| row.person.is_none())
    }
    pub(super) fn notifications(&self) -> impl Iterator<Item = &Delivery> {
        self.deliveries.iter().filter(|row| row.person.is_some())
    }

    /// Returns the number of objects in each state.
    pub(super) fn counts(&self) -> String {
        let mut counts = BTreeMap::<(&str, &str), usize>::new();
        let states = [
            ("schedule", self.schedules.iter().map(|row| &row.state).collect::<Vec<_>>()),
            ("occurrence", self.occurrences.iter().map(|row| &row.state).collect()),
            ("question", self.questions.iter().map(|row| &row.status).collect()),
            ("notification", self.notifications().map(|row| &row.state).collect()),
            ("delivery", self.replies().map(|row| &row.state).collect()),
        ];
        for (kind, states) in &states {
            for state in states {
                *counts.entry((kind, state)).or_default() += 1;
            }
        }
        counts.iter().map(|((kind, state), count)| format!("{kind} {state}: {count}, ")).collect()
    }

    /// Returns the id of a person.
    pub(super) fn person(&self, name: &str) -> &str {
        let found = self.people.iter().find(|(of, _)| of == name);
        &found.unwrap_or_else(|| panic!("no person {name}")).1
    }
}

fn list<T>(db: &Connection, sql: &str, mut of: impl FnMut(&Row<'_>) -> rusqlite::Result<T>) -> Vec<T> {
    let mut statement = db.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let rows = statement.query_map([], |row| of(row)).expect("rows");
    rows.collect::<rusqlite::Result<_>>().unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn schedule(row: &Row<'_>) -> rusqlite::Result<Schedule> {
    let (kind, text): (String, String) = (row.get("kind")?, row.get("recurrence")?);
    let (kind, zone): (Kind, String) = (kind.parse().expect("a kind"), row.get("zone")?);
    let recurrence = Recurrence::parse(kind, &text).expect("a recurrence");
    let zone = Zone::parse(&zone).expect("a zone");
    Ok(Schedule {
        id: row.get("id")?,
        creator: row.get("creator")?,
        series: Series { recurrence, zone, anchor: row.get("anchor")? },
        state: row.get("state")?,
        reason: row.get("reason")?,
        next: row.get("next_due")?,
        is_failing: row.get::<_, Option<i64>>("failing_since")?.is_some(),
        created_at: row.get("created_at")?,
    })
}

fn occurrence(row: &Row<'_>) -> rusqlite::Result<Occurrence> {
    Ok(Occurrence {
        schedule: row.get("schedule_id")?,
        due: row.get("due")?,
        state: row.get("state")?,
        reason: row.get("reason")?,
        count: row.get::<_, u32>("count")? as usize,
        is_by_hand: row.get::<_, Option<String>>("by_person")?.is_some(),
        message: row.get("message_id")?,
        receipt: row.get("receipt")?,
    })
}

fn question(db: &Connection, row: &Row<'_>) -> rusqlite::Result<Question> {
    let id: String = row.get("id")?;
    let mut answers = db.prepare("SELECT id, session_id FROM messages WHERE answers = ?1")?;
    let messages = answers.query_map([&id], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    Ok(Question {
        session: row.get("session_id")?,
        principal: row.get("principal")?,
        status: row.get("status")?,
        expires_at: row.get("expires_at")?,
        remind_at: row.get("remind_at")?,
        answer: row.get("answer")?,
        messages,
        id,
    })
}

fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        id: row.get("id")?,
        channel: row.get("channel")?,
        state: row.get("state")?,
        attempts: row.get::<_, u32>("attempts")? as usize,
        person: row.get("person_id")?,
    })
}
