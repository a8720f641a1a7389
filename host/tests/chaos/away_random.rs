//! Work for people who are away, in random steps: schedules, questions, kills, clock changes and restored backups. Each time of a
//! schedule has one outcome, each question one end, each notification one cause, and the ledger agrees with the record.
//!
//! The channels and the model fail at random, and keep what they got. Each run prints its seed, and `IRONCLAW_SEED` repeats the run.
//! `IRONCLAW_AWAY` sets its length. See `calls_random`, `schedules` and `e2e::questions`.
#![allow(clippy::print_stdout)] // the printed seed repeats a failed run

mod invariants;
mod ledger;
mod rows;
mod steps;

use crate::chaos::kill::run_settings;
use crate::security::tamper::outside;
use crate::support::client::Raw;
use crate::support::hooks::{Hook, Receiver, Response};
use crate::support::host_fixture::{Build, TestHost};
use crate::support::model_server::{Act, Seen, Server};
use fastrand::Rng;
use ironclaw_calendar::Series;
use jiff::Timestamp;
use rows::Rows;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The number of steps without `IRONCLAW_AWAY`.
const STEPS: u64 = 6;

/// The number of steps between two checks of the invariants.
const STEPS_OF_A_CHECK: u64 = 6;

/// The owner is told on `desk`, the admin on `shop`, and the member nowhere.
const PEOPLE: [&str; 3] = ["owner", "ada", "mara"];

/// A channel of an idempotent receiver, and one of another receiver.
const CHANNELS: [&str; 2] = ["desk", "shop"];

/// A few attempts in quick succession.
const SETTINGS: &str =
    "[webhook]\nlisten = \"127.0.0.1:0\"\nbackoff_ms = 100\nattempts_max = 3\n[model]\ntries_max = 1\n";

/// The fail points of runs, answers and deliveries.
const POINTS: [&str; 6] = ["schedule_run", "question_answered", "delivery_taken", "delivery_sent", "accept", "intent"];

/// The time that a slow model takes.
const SLOW: Duration = Duration::from_millis(300);

/// A time from which a schedule was active.
#[derive(Debug, Clone)]
struct Span {
    series: Series,
    from: i64,
    /// The times before this one have come.
    until: i64,
    /// The latest time of the clock before the end; `None` while the schedule is active.
    end: Option<i64>,
}

/// The test's knowledge about a schedule.
#[derive(Debug, Clone, Default)]
struct Followed {
    spans: Vec<Span>,
    /// The last state that the host reported, unless the host may have changed it since.
    state: Option<&'static str>,
}

/// The part of the test's knowledge that a restore puts back.
#[derive(Debug, Clone, Default)]
struct Known {
    schedules: BTreeMap<String, Followed>,
    /// The messages with answers, by their questions.
    answered: BTreeMap<String, String>,
    rejected: Vec<String>,
}

/// The receiver of a channel. It keeps what it got, with its responses.
struct Place {
    receiver: Receiver,
    got: Arc<Mutex<Vec<(String, Value, Response)>>>,
}

impl Place {
    /// Starts a receiver that refuses or loses some requests while `is_bad` is set.
    fn start(is_bad: &Arc<AtomicBool>, seed: u64) -> Self {
        let got = Arc::<Mutex<Vec<_>>>::default();
        let (kept, is_bad, rng) = (Arc::clone(&got), Arc::clone(is_bad), Mutex::new(Rng::with_seed(seed)));
        let receiver = Receiver::new(move |request, _| {
            let chance = rng.lock().expect("not poisoned").u8(..8);
            let response = match chance {
                0..=3 if is_bad.load(Ordering::SeqCst) => Response::Status(503),
                4 | 5 if is_bad.load(Ordering::SeqCst) => Response::Close,
                6 if is_bad.load(Ordering::SeqCst) => Response::Status(410),
                _ => Response::Status(200),
            };
            kept.lock().expect("not poisoned").push((request.id.clone(), request.body.clone(), response));
            response
        });
        Self { receiver, got }
    }
}

struct Backup {
    file: PathBuf,
    known: Known,
}

struct Random {
    host: TestHost,
    /// A client of each person, for the present start of the host.
    people: Vec<Raw>,
    model: Server,
    places: [Place; CHANNELS.len()],
    /// Set while the channels and the model fail at random.
    is_bad: Arc<AtomicBool>,
    known: Known,
    /// The number of texts so far.
    made: u64,
    shift_ms: i64,
    /// The latest time of the host's clock.
    latest: i64,
    backup: Option<Backup>,
    /// The ids that the channels may get, of all histories of the record.
    intended: BTreeSet<String>,
    /// The number of prompts of the model that were checked, and the questions whose answers they had.
    prompts: usize,
    prompted: BTreeSet<String>,
}

/// Returns a model that does what a message asks for: a question, a schedule, or words. It fails or is slow at random while `is_bad` is
/// set.
fn model(is_bad: &Arc<AtomicBool>, seed: u64) -> Server {
    let (is_bad, rng) = (Arc::clone(is_bad), Mutex::new(Rng::with_seed(seed)));
    Server::start(move |seen: &Seen| {
        let chance = rng.lock().expect("not poisoned").u8(..6);
        match chance {
            0 if is_bad.load(Ordering::SeqCst) => return Act::Status(400, Vec::new(), "{}".to_owned()),
            1 | 2 if is_bad.load(Ordering::SeqCst) => return Act::After(SLOW, Box::new(Act::Say("done".to_owned()))),
            _ => {}
        }
        let (asked, results) = (seen.asked(), seen.results());
        let call = |tool: &str, arguments| Act::Call(String::new(), vec![(tool.to_owned(), arguments)]);
        match asked.split_once(' ') {
            Some(("ask", text)) if results.is_empty() => {
                let options = json!(["red", "blue"]);
                call("ask_user_question", json!({ "question": text, "options": options, "allow_freeform": true }))
            }
            Some(("plan", text)) if results.is_empty() => {
                call("schedule_task", json!({ "prompt": format!("say {text}"), "recurrence": "6h" }))
            }
            _ => Act::Say(format!("done: {results:?}")),
        }
    })
}

impl Random {
    fn begin(seed: u64) -> Self {
        let mut host = TestHost::own(Build::Failpoints);
        let data = outside(&host);
        host.set_env("XDG_DATA_HOME", data.to_str());
        host.shift_clock(0);
        host.configure(SETTINGS);
        host.up();
        let is_bad = Arc::new(AtomicBool::new(false));
        let model = model(&is_bad, seed);
        host.add_model(&model.url());
        host.ctl(&["agent", "add", "a", "--model", "m"]).ok();
        host.change("a", "enabled_tools", &json!({ "add": ["ask_user_question", "schedule_task"] }));
        host.ctl(&["person", "add", "ada"]).ok();
        host.ctl(&["person", "add", "mara"]).ok();
        let places = [Place::start(&is_bad, seed), Place::start(&is_bad, !seed)];
        for ((name, place), more) in CHANNELS.iter().zip(&places).zip([&["--idempotent"][..], &[]]) {
            Hook::add(&host, name, &place.receiver, more);
            host.ctl(&["person", "link", "ada", &format!("{name}:ada"), "--yes"]).ok();
        }
        host.ctl(&["person", "set", "owner", "--notify", "desk"]).ok();
        host.ctl(&["person", "set", "ada", "--notify", "shop"]).ok();
        // An admin is told of the changes above, and nowhere before there is a place.
        host.ctl(&["person", "set", "ada", "--role", "admin", "--yes"]).ok();
        let people = PEOPLE.map(|person| Raw::of_person(&host, person)).to_vec();
        Self {
            host,
            people,
            model,
            places,
            is_bad,
            known: Known::default(),
            made: 0,
            shift_ms: 0,
            latest: 0,
            backup: None,
            intended: BTreeSet::new(),
            prompts: 0,
            prompted: BTreeSet::new(),
        }
    }

    /// Starts the host, perhaps with a fail point, at which it may die during its start.
    fn up(&mut self, point: Option<&str>) {
        self.host.set_env("IRONCLAW_FAILPOINT", point);
        let started = self.host.ctl(&["up", "--detach"]);
        self.host.set_env("IRONCLAW_FAILPOINT", None);
        if point.is_none() {
            started.ok();
        }
        if self.host.pid().is_some() {
            let host = Raw::of(&self.host);
            self.people = self.people.iter().map(|person| host.clone().with_token(&person.token)).collect();
        }
    }

    /// Sends a request to the API; returns `None` if the host is dead or dies.
    fn ask(&self, person: usize, (method, path): (&str, &str), body: &Value) -> Option<(u16, Value)> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.people[person].try_ask(method, path, &body).ok()
    }

    fn get(&self, person: usize, path: &str) -> Value {
        let (status, body) = self.ask(person, ("GET", path), &Value::Null).expect("the host answers");
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    fn now(&self) -> i64 {
        Timestamp::now().as_millisecond() + self.shift_ms
    }

    /// Sets the clock of the host, also of a running one.
    fn set_clock(&mut self, at: i64) {
        self.shift_ms += at - self.now();
        self.host.shift_clock(self.shift_ms);
        self.latest = self.latest.max(self.now());
    }

    /// Notes the times of schedules that have come.
    fn observe(&mut self) -> Rows {
        self.latest = self.latest.max(self.now());
        let rows = Rows::of(&self.host.home);
        for row in &rows.schedules {
            let followed = self.known.schedules.entry(row.id.clone()).or_default();
            if followed.spans.is_empty() {
                let from = row.series.next_after(row.created_at).expect("a first time");
                followed.spans.push(Span { series: row.series.clone(), from, until: from, end: None });
            }
            let span = followed.spans.last_mut().expect("pushed above");
            match (row.next, row.state.as_str()) {
                (Some(next), _) => span.until = span.until.max(next),
                (None, "ended") => span.until = i64::MAX,
                (None, _) => {}
            }
        }
        rows
    }

    /// Notes that a schedule is no longer active, or counts its times anew.
    fn end_span(&mut self, schedule: &str) {
        let latest = self.latest.max(self.now());
        let last = self.known.schedules.get_mut(schedule).and_then(|followed| followed.spans.last_mut());
        if let Some(span) = last.filter(|span| span.end.is_none()) {
            span.end = Some(latest);
        }
    }
}

#[test]
fn work_for_people_away_is_accounted_for() {
    let (seed, steps) = run_settings("IRONCLAW_AWAY", STEPS);
    let (mut random, mut rng) = (Random::begin(seed), Rng::with_seed(seed));
    // Every run has at least one schedule and one question.
    random.add_schedule(&mut rng);
    random.say(&mut rng);
    for step in 1..=steps {
        random.step(&mut rng);
        if step % STEPS_OF_A_CHECK == 0 {
            random.check_invariants();
        }
    }
    random.add_schedule(&mut rng);
    random.back_up();
    random.kill_at_a_point(&mut rng);
    random.restore();
    random.check_invariants();
    random.check_doctor();
    random.host.down();
}
