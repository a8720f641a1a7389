//! The random steps. See [`super::invariants`] for the checks.

use super::rows::Rows;
use super::{Backup, CHANNELS, PEOPLE, POINTS, Random, Span};
use crate::e2e::schedule_faults::clocked::{HOUR_MS, rfc3339};
use crate::support::host_fixture::{alive, wait_for};
use fastrand::Rng;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

const MINUTE_MS: i64 = 60_000;

/// Rows from which on a schedule is removed: the host keeps a thousand.
const ROWS_MAX: usize = 700;

/// The place of the member among the people.
const MEMBER: usize = 2;

/// The schedules that exist at once.
const SCHEDULES_MAX: usize = 8;

impl Random {
    pub(super) fn step(&mut self, rng: &mut Rng) {
        if rng.u8(..3) == 0 {
            self.is_bad.store(rng.u8(..3) > 0, Ordering::SeqCst);
        }
        let what = rng.u64(..30);
        println!("step {what}");
        match what {
            0..=2 => self.add_schedule(rng),
            3..=6 => self.change_schedule(rng),
            7 | 8 => drop(self.run(rng)),
            9..=11 => drop(self.say(rng)),
            12..=14 => drop(self.decide_question(rng)),
            15 => self.decide_change(rng),
            16..=19 => self.move_clock(rng),
            20 => {
                self.host.down();
                self.up(None);
            }
            21..=23 => self.kill_at_random(rng),
            24 | 25 => self.kill_at_a_point(rng),
            26 | 27 => {
                self.move_clock(rng);
                self.act(rng);
                self.back_up();
            }
            _ => self.restore(),
        }
        self.observe();
    }

    fn text(&mut self) -> String {
        self.made += 1;
        format!("text{}", self.made)
    }

    /// Adds a schedule of the owner or the admin, which the owner approves. A member asks the agent for one.
    pub(super) fn add_schedule(&mut self, rng: &mut Rng) {
        let rows = self.observe();
        let here: Vec<&str> =
            rows.schedules.iter().filter(|row| row.state != "removed").map(|row| row.id.as_str()).collect();
        if let Some(oldest) = here.first().filter(|_| here.len() >= SCHEDULES_MAX) {
            return self.remove(oldest);
        }
        let (person, text) = (rng.usize(..MEMBER), self.text());
        let (prompt, may) = match rng.u8(..6) {
            0 => (format!("ask {text}"), "ask_user_question"),
            1 => (format!("plan {text}"), "schedule_task"),
            _ => (format!("say {text}"), "read"),
        };
        let catch_up = ["skip", "once", "all"][rng.usize(..3)];
        let mut payload = json!({ "prompt": prompt, "may": [may], "catch_up": catch_up, "zone": "Europe/Berlin" });
        match rng.u8(..6) {
            0 => payload["at"] = json!(rfc3339(self.now() + rng.i64(MINUTE_MS..8 * HOUR_MS))),
            1 => payload["cron"] = json!("30 2,8 * * *"),
            2 => payload["every"] = json!("1d"),
            3 => payload["every"] = json!("6h"),
            _ => payload["every"] = json!("1h"),
        }
        if rng.bool() {
            let (channel, address) = (CHANNELS[rng.usize(..CHANNELS.len())], ["ann", "ada"][person]);
            payload["reply_to"] = json!({ "channel": channel, "address": address });
        }
        let new = json!({ "kind": "schedule", "agent": "a", "payload": payload, "reason": "" });
        let (status, change) = self.ask(person, ("POST", "/v1/changes"), &new).expect("an answer");
        assert_eq!(status, 200, "{change}");
        let id = change["id"].as_str().expect("an id").to_owned();
        let applied = self.host.ctl(&["--json", "approve", &id]).ok().json();
        assert_eq!(applied["status"], "done", "{applied}");
        self.observe();
    }

    /// Returns a random schedule that is not removed.
    fn any_schedule(&mut self, rng: &mut Rng) -> Option<String> {
        let rows = self.observe();
        let mut here = rows.schedules.into_iter().filter(|row| row.state != "removed").map(|row| row.id);
        let full = rows.occurrences.chunk_by(|one, other| one.schedule == other.schedule);
        let full: BTreeSet<String> =
            full.filter(|rows| rows.len() > ROWS_MAX).map(|rows| rows[0].schedule.clone()).collect();
        let here: Vec<String> = here.by_ref().collect();
        if let Some(full) = here.iter().find(|id| full.contains(*id)) {
            self.remove(full);
            return None;
        }
        rng.choice(here)
    }

    /// Sends a command about a schedule as the owner. Returns whether it was obeyed.
    fn command(&mut self, schedule: &str, method: &str, verb: &str) -> bool {
        let path = format!("/v1/schedules/{schedule}{verb}");
        let (status, said) = self.ask(0, (method, &path), &Value::Null).expect("an answer");
        let is_refused = said["error"]["code"] == "schedule_state";
        assert!(status == 200 || is_refused, "{path}: {status} {said}");
        status == 200
    }

    fn remove(&mut self, id: &str) {
        if self.command(id, "DELETE", "") {
            self.end_span(id);
            self.followed(id, Some("removed"));
        }
    }

    /// Notes the state of a schedule that the host reported.
    fn followed(&mut self, id: &str, state: Option<&'static str>) {
        self.known.schedules.get_mut(id).expect("it was observed").state = state;
    }

    /// Begins a span of a schedule that counts its times anew.
    fn begin_span(&mut self, id: &str) {
        let rows = Rows::of(&self.host.home);
        let row = rows.schedules.iter().find(|row| row.id == id).expect("it exists");
        if let Some(from) = row.next {
            let span = Span { series: row.series.clone(), from, until: from, end: None };
            self.known.schedules.get_mut(id).expect("it was observed").spans.push(span);
        }
    }

    /// Pauses, resumes, sets or removes a schedule.
    fn change_schedule(&mut self, rng: &mut Rng) {
        let Some(id) = self.any_schedule(rng) else { return };
        match rng.u8(..8) {
            0 => self.remove(&id),
            1..=3 => {
                if self.command(&id, "POST", "/pause") {
                    self.end_span(&id);
                    self.followed(&id, Some("paused"));
                }
            }
            4 => self.set(&id, rng),
            _ => {
                if self.command(&id, "POST", "/resume") {
                    self.begin_span(&id);
                    self.followed(&id, Some("active"));
                }
            }
        }
    }

    /// Changes the times of a schedule, on behalf of its creator.
    fn set(&mut self, id: &str, rng: &mut Rng) {
        let rows = self.observe();
        let creator = rows.schedules.iter().find(|row| row.id == id).expect("it exists").creator.clone();
        let person = PEOPLE.iter().position(|name| rows.person(name) == creator).expect("a person");
        if person == MEMBER {
            return;
        }
        let every = ["1h", "3h", "1d"][rng.usize(..3)];
        let payload = json!({ "id": id, "every": every });
        let new = json!({ "kind": "schedule", "agent": "a", "payload": payload, "reason": "" });
        let (status, change) = self.ask(person, ("POST", "/v1/changes"), &new).expect("an answer");
        if change["error"]["code"] == "change_empty" {
            return;
        }
        assert_eq!(status, 200, "{change}");
        let change = change["id"].as_str().expect("an id").to_owned();
        let applied = self.host.ctl(&["--json", "approve", &change]).ok().json();
        assert_eq!(applied["status"], "done", "{applied}");
        self.end_span(id);
        self.begin_span(id);
    }

    /// Starts a run by hand. Returns `None` if the host died.
    fn run(&mut self, rng: &mut Rng) -> Option<()> {
        let Some(id) = self.any_schedule(rng) else { return Some(()) };
        let (status, said) = self.ask(0, ("POST", &format!("/v1/schedules/{id}/run")), &Value::Null)?;
        assert!(status == 200 || said["error"]["code"] == "schedule_state", "{status} {said}");
        Some(())
    }

    /// Sends a message that asks for a question, a schedule or words. Returns `None` if the host died.
    pub(super) fn say(&mut self, rng: &mut Rng) -> Option<()> {
        let (person, text) = (rng.usize(..PEOPLE.len()), self.text());
        let words = match rng.u8(..5) {
            0 => format!("say {text}"),
            1 => format!("plan {text}"),
            _ => format!("ask {text}"),
        };
        let mut body = json!({ "text": words, "event_id": text, "allow": ["write"] });
        if rng.bool() {
            body["thread"] = json!(text);
        }
        let (status, said) = self.ask(person, ("POST", "/v1/agents/a/messages"), &body)?;
        assert_eq!(status, 202, "{said}");
        Some(())
    }

    /// Answers or rejects a random question, which may have ended, as a random person, who may not be asked. Returns `None` if the host
    /// died.
    fn decide_question(&mut self, rng: &mut Rng) -> Option<()> {
        let rows = self.observe();
        let waiting = |status: &str| ["pending", "doubtful"].contains(&status);
        let is_open = rng.u8(..5) > 0;
        let some: Vec<_> = rows.questions.iter().filter(|row| !is_open || waiting(&row.status)).collect();
        let Some(question) = rng.choice(some) else { return Some(()) };
        let principal = PEOPLE.iter().position(|name| rows.person(name) == question.principal).expect("a person");
        let person = if rng.u8(..4) > 0 { principal } else { rng.usize(..PEOPLE.len()) };
        let path = format!("/v1/waiting/{}", question.id);
        let body = match rng.u8(..4) {
            0 => json!({ "reject": "chance" }),
            1 => json!({ "answer": { "text": "green" } }),
            _ => json!({ "answer": { "option": rng.u8(1..=3) } }),
        };
        let (status, said) = self.ask(person, ("POST", &format!("{path}/decision")), &body)?;
        match (status, body.get("reject")) {
            (200, Some(_)) => {
                assert!(person == principal || person == 0, "{path}: another person rejected it");
                self.known.rejected.push(question.id.clone());
            }
            (200, None) => {
                assert_eq!((person, question.status.as_str()), (principal, "pending"), "{path}: {said}");
                let message = said["details"]["question"]["answer"].as_str().expect("an id").to_owned();
                let earlier = self.known.answered.insert(question.id.clone(), message);
                assert_eq!(earlier, None, "{path} was answered twice");
            }
            _ => {
                let known = ["question_unknown", "not_yours_to_decide", "question_ended", "question_option"];
                let code = said["error"]["code"].as_str().unwrap_or_default();
                assert!(known.contains(&code), "{path}: {status} {said}");
            }
        }
        Some(())
    }

    /// Decides on a change that an agent asked for.
    fn decide_change(&mut self, rng: &mut Rng) {
        let waiting = self.host.ctl(&["--json", "inbox", "list", "--type", "change"]).ok().json();
        let Some(change) = rng.choice(waiting.as_array().expect("a list")) else { return };
        let id = change["id"].as_str().expect("an id");
        let verb = if rng.u8(..3) > 0 { "approve" } else { "reject" };
        // It may expire at this moment, and an unknown one may be outdated.
        drop(self.host.ctl(&["--json", verb, id]));
    }

    /// Moves the clock ahead or back, of a running host or between two starts.
    fn move_clock(&mut self, rng: &mut Rng) {
        let by = match rng.u8(..10) {
            0 => -rng.i64(0..3 * HOUR_MS),
            1 => -rng.i64(0..72 * HOUR_MS),
            2 => rng.i64(0..200 * HOUR_MS),
            3 | 4 => rng.i64(0..50 * HOUR_MS),
            5..=7 => rng.i64(0..5 * HOUR_MS),
            _ => rng.i64(0..40 * MINUTE_MS),
        };
        let starts = rng.u8(..4);
        println!("by {} min, {starts}", by / MINUTE_MS);
        match starts {
            0 => self.host.kill_host(),
            1 | 2 => self.host.down(),
            _ => {}
        }
        self.set_clock(self.now() + by);
        if starts < 3 {
            self.up(None);
        }
    }

    /// Kills the host a random number of requests after its start, a run, a message or an answer.
    fn kill_at_random(&mut self, rng: &mut Rng) {
        match rng.bool() {
            true => self.move_clock(rng),
            false => drop(self.act(rng)),
        }
        for _ in 0..rng.usize(..60) {
            self.get(0, "/v1/waiting");
        }
        self.host.kill_host();
        self.up(None);
    }

    /// Starts work of the agent or ends a question. Returns `None` if the host died.
    fn act(&mut self, rng: &mut Rng) -> Option<()> {
        match rng.u8(..3) {
            0 => self.run(rng),
            1 => self.say(rng),
            _ => self.decide_question(rng),
        }
    }

    /// Sends work to a host that dies at a random fail point.
    pub(super) fn kill_at_a_point(&mut self, rng: &mut Rng) {
        let point = POINTS[rng.usize(..POINTS.len())];
        println!("at {point}");
        self.host.down();
        if rng.u8(..3) == 0 {
            self.set_clock(self.now() + rng.i64(0..3 * HOUR_MS));
        }
        self.up(Some(point));
        let started = self.host.pid();
        for _ in 0..3 {
            if started.is_none_or(|pid| !alive(pid)) || self.act(rng).is_none() {
                break;
            }
        }
        self.host.kill_host();
        wait_for("the end of the host", || self.host.pid().is_none());
        self.up(None);
    }

    pub(super) fn back_up(&mut self) {
        self.observe();
        let file = self.host.home.with_file_name("away.backup");
        let known = self.known.clone();
        self.host.ctl(&["backup", "create", file.to_str().expect("UTF-8"), "--force"]).ok();
        self.backup = Some(Backup { file, known });
    }

    /// Restores the last backup in place, and checks what the host makes of it.
    pub(super) fn restore(&mut self) {
        self.check_invariants();
        let Some(Backup { file, known }) = self.backup.take() else { return };
        self.host.down();
        let name = file.to_str().expect("UTF-8");
        let restored = self.host.ctl(&["--json", "backup", "restore", name, "--replace", "--yes"]).ok().json();
        std::fs::remove_dir_all(restored["former"].as_str().expect("the former home")).expect("removed");
        self.known = known;
        // The host may pause and consume between the backup and the copy of the record.
        let before = self.observe();
        let ids: Vec<String> = self.known.schedules.keys().cloned().collect();
        for id in ids {
            self.end_span(&id);
            self.followed(&id, None);
        }
        self.up(None);
        self.host.ctl(&["audit", "accept", "--reason", "restored a backup"]).ok();
        self.check_restored(&before);
    }
}
