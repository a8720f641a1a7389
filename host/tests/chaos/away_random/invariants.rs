//! The invariants of a run, from the record, the ledger, and the requests at the channels and at the model.
//!
//! They hold once the channels and the model work again and the host has done everything that is due.

use super::ledger::{Ledger, word};
use super::rows::{Delivery, Occurrence, Question, Rows, Schedule};
use super::{CHANNELS, Followed, Random};
use crate::e2e::schedule_faults::clocked::ms;
use crate::support::hooks::Response;
use crate::support::host_fixture::WAIT_MAX;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The time by which the clock is ahead of all waits for another attempt.
const AHEAD_MS: i64 = 120_000;

/// The events of new notifications.
const TOLD: [&str; 2] = ["notification.intended", "notification.unplaced"];

/// The words before the answer to a question, in a prompt.
const ANSWER: &str = "An answer to your question ";

/// The state of a host that has nothing to do.
struct View {
    rows: Rows,
    ledger: Ledger,
}

impl Random {
    /// Lets the host do everything that is due, and then checks the invariants.
    pub(super) fn check_invariants(&mut self) {
        let view = self.settle();
        println!("{}", view.rows.counts());
        self.host.ctl(&["audit", "verify"]).ok();
        for row in &view.rows.schedules {
            let followed = &self.known.schedules[&row.id];
            let own: Vec<&Occurrence> = view.rows.occurrences.iter().filter(|one| one.schedule == row.id).collect();
            check_times(row, followed, &own, view.retimed(row), self.latest);
            view.check_state(row, followed);
            view.check_series(row);
        }
        self.check_occurrences(&view);
        self.check_questions(&view);
        view.rows.notifications().for_each(|row| self.check_notification(&view, row));
        view.check_causes();
        self.check_places(&view);
        self.check_prompts(&view);
        self.check_status(&view);
    }

    /// Restarts the host with a clock after every due time, and waits until nothing is due.
    fn settle(&mut self) -> View {
        self.is_bad.store(false, Ordering::SeqCst);
        self.host.down();
        self.set_clock(self.now().max(self.latest) + AHEAD_MS);
        self.up(None);
        let (now, until) = (self.now(), Instant::now() + 3 * WAIT_MAX);
        loop {
            let rows = self.observe();
            let open = rows.open_at(now);
            if open.is_empty() {
                // A run may begin between two looks.
                let ledger = Ledger::of(&self.host);
                if self.observe() == rows {
                    return View { rows, ledger };
                }
            }
            assert!(Instant::now() < until, "still open: {open:#?}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the end of the log of the host.
    fn log(&self) -> String {
        let log = std::fs::read_to_string(self.host.home.join("logs/host.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// Checks that each occurrence has its entries and no others, and that it is done only with a receipt.
    fn check_occurrences(&self, view: &View) {
        let mut messages = BTreeSet::new();
        let mut expected = BTreeMap::<String, usize>::new();
        for one in &view.rows.occurrences {
            let entries = view.ledger.of_time(&one.schedule, one.due);
            let mut events: Vec<&str> = entries.iter().map(|entry| word(entry, "what")).collect();
            events.sort_unstable();
            let end = format!("schedule.{}", one.state);
            let runs = one.message.iter().map(|_| "schedule.run");
            let mut wanted: Vec<&str> = runs.chain([end.as_str()]).collect();
            wanted.sort_unstable();
            assert_eq!(events, wanted, "{one:?}: {entries:?}");
            wanted.iter().for_each(|event| *expected.entry((*event).to_owned()).or_default() += 1);
            for entry in entries.iter().filter(|entry| entry["what"] == end.as_str()) {
                let is_right = one.reason.as_deref().is_none_or(|reason| entry["reason"] == reason)
                    && (one.state != "skipped" || entry["count"] == one.count);
                assert!(is_right, "{one:?}: {entry}");
            }
            if let Some(message) = &one.message {
                assert!(messages.insert(message), "two times share a message: {one:?}");
                assert_eq!(view.ledger.count("message.recorded", "message", message), 1, "{one:?}");
            }
            assert_eq!(one.state == "done", one.receipt.is_some(), "{one:?}");
            if let Some(receipt) = &one.receipt {
                let delivery = view.rows.deliveries.iter().find(|row| row.id == *receipt);
                let delivery = delivery.unwrap_or_else(|| panic!("no delivery of {one:?}"));
                let is_there = delivery.channel == "loopback" || self.has_confirmed(&delivery.channel, receipt);
                assert!(delivery.state == "received" && is_there, "{one:?}: {delivery:?}");
            }
        }
        for event in ["run", "done", "failed", "skipped", "unknown"] {
            let event = format!("schedule.{event}");
            let wanted = expected.get(&event).copied().unwrap_or_default();
            assert_eq!(view.ledger.events(&event).count(), wanted, "{event}");
        }
    }

    /// Returns whether a channel confirmed a request with this id.
    fn has_confirmed(&self, channel: &str, id: &str) -> bool {
        let at = CHANNELS.iter().position(|name| *name == channel).expect("a channel");
        let got = self.places[at].got.lock().expect("not poisoned");
        got.iter().any(|(of, _, response)| of == id && *response == Response::Status(200))
    }

    /// Checks that each question has one end, and that its answer is one message of its conversation.
    fn check_questions(&self, view: &View) {
        for row in &view.rows.questions {
            view.check_question(row);
        }
        let status = |id: &str| view.rows.questions.iter().find(|row| row.id == id);
        for (id, message) in &self.known.answered {
            let row = status(id).unwrap_or_else(|| panic!("{id} was answered and is missing"));
            assert_eq!((row.status.as_str(), row.answer.as_ref()), ("done", Some(message)), "{row:?}");
        }
        for id in &self.known.rejected {
            let row = status(id).unwrap_or_else(|| panic!("{id} was rejected and is missing"));
            assert_eq!(row.status, "rejected", "{row:?}");
        }
        assert_eq!(view.ledger.events("question.asked").count(), view.rows.questions.len());
    }

    /// Checks that a notification has its entries, and that a delivered one was confirmed.
    fn check_notification(&self, view: &View, row: &Delivery) {
        let person = row.person.as_deref().expect("a notification");
        let count = |what: &str| view.ledger.count(what, "delivery", &row.id);
        let placed = count("notification.intended");
        assert_eq!(placed + count("notification.unplaced"), 1, "{row:?}");
        assert_eq!(count("notification.sending"), row.attempts, "{row:?}");
        let failed = view.ledger.with("delivery", &row.id).filter(|entry| entry["what"] == "notification.failed");
        let failed: Vec<&str> = failed.map(|entry| word(entry, "outcome")).collect();
        let (received, withdrawn) = (count("notification.received"), count("notification.withdrawn"));
        let is_right = match row.state.as_str() {
            "received" => failed.is_empty() && (placed, received, withdrawn) == (1, 1, 0),
            "withdrawn" => failed.is_empty() && (placed, received, withdrawn) == (1, 0, 1),
            "dead" => failed == ["failed"] && (placed, received, withdrawn) == (1, 0, 0),
            "unknown" => failed == ["unknown"] && (placed, received, withdrawn) == (1, 0, 0),
            "unplaced" => failed.is_empty() && (placed, received, withdrawn) == (0, 0, 0),
            _ => false,
        };
        assert!(is_right, "{row:?}: {:?}", view.ledger.with("delivery", &row.id).collect::<Vec<_>>());
        let has_none = person == view.rows.person("mara");
        assert_eq!(row.state == "unplaced", has_none, "{row:?}");
        if row.state == "received" {
            let channel = if person == view.rows.person("owner") { "desk" } else { "shop" };
            assert!(self.has_confirmed(channel, &row.id), "{row:?} was not confirmed");
        }
    }

    /// Checks that the channels got nothing without a cause, nothing else under the same id, and nothing again that may have arrived.
    fn check_places(&mut self, view: &View) {
        let intended = view.ledger.events("notification.intended").map(|entry| word(entry, "delivery").to_owned());
        self.intended.extend(intended.chain(view.rows.replies().map(|row| row.id.clone())));
        for (name, place) in CHANNELS.iter().zip(&self.places) {
            let got = place.got.lock().expect("not poisoned");
            let mut bodies = BTreeMap::<&str, (&Value, usize)>::new();
            for (id, body, response) in got.iter().filter(|(_, body, _)| body["type"] != "test") {
                assert!(self.intended.contains(id), "{name} got {body} without a cause");
                let (first, arrived) = bodies.entry(id).or_insert((body, 0));
                assert_eq!(*first, body, "{name} got two bodies under one id");
                // A receiver that closes the connection may have taken the request.
                *arrived += usize::from(matches!(response, Response::Status(200) | Response::Close));
                assert!(*name == "desk" || *arrived <= 1, "{name} got {body} again");
                let is_told = body["type"] == "notification";
                let person = if *name == "desk" { "ann" } else { "ada" };
                assert!(!is_told || body["sender"] == person, "{name}: {body}");
            }
        }
    }

    /// Checks that each answer is once in each prompt that has it, and in one prompt at least.
    fn check_prompts(&mut self, view: &View) {
        let seen = self.model.seen();
        for seen in &seen[self.prompts..] {
            let said = seen.conversation().into_iter().filter(|(role, _)| role == "user");
            let text: String = said.map(|(_, text)| text).collect::<Vec<_>>().join("\n");
            let answered = text.split(ANSWER).skip(1).filter_map(|rest| rest.split(':').next());
            let mut once = BTreeSet::new();
            for id in answered {
                assert!(once.insert(id), "the answer to {id} is twice in a prompt: {text}");
                self.prompted.insert(id.to_owned());
            }
        }
        self.prompts = seen.len();
        for row in view.rows.questions.iter().filter(|row| row.status == "done") {
            assert!(self.prompted.contains(&row.id), "no prompt has the answer to {row:?}");
        }
    }

    /// Checks that the status and the lists agree with the record.
    fn check_status(&self, view: &View) {
        let status = self.get(0, "/v1/status");
        for (kind, waiting) in [("question", view.rows.questions_waiting), ("change", view.rows.changes_waiting)] {
            let found = status["waiting"].as_array().expect("counts").iter().find(|of| of["type"] == kind);
            assert_eq!(found.map_or(0, |of| of["count"].as_i64().expect("a number")), waiting, "{kind}: {status}");
        }
        assert_eq!(status["without_place"], serde_json::json!(["mara"]), "{status}");
        let lost = view.rows.replies().filter(|row| ["unknown", "dead"].contains(&row.state.as_str())).count();
        let warns = status["host"]["warnings"].to_string().contains("ironctl delivery list");
        assert!(warns || lost == 0, "{lost} lost: {status}");
        let listed = self.get(0, "/v1/schedules");
        let listed = listed.as_array().expect("a list").iter().map(|row| (word(row, "id"), word(row, "state")));
        let here = view.rows.schedules.iter().filter(|row| row.state != "removed");
        let here = here.map(|row| (row.id.as_str(), row.state.as_str()));
        assert_eq!(listed.collect::<BTreeMap<_, _>>(), here.collect());
        for id in view.rows.schedules.iter().map(|row| &row.id) {
            let count = view.rows.occurrences.iter().filter(|one| one.schedule == *id).count();
            let shown = self.get(0, &format!("/v1/schedules/{id}/occurrences"));
            assert_eq!(shown.as_array().map(Vec::len), Some(count), "{id}");
        }
    }

    /// Checks that `doctor` finds no fault, and names the person who is told nowhere.
    pub(super) fn check_doctor(&self) {
        let report = self.host.ctl_bounded(&["--json", "doctor"]).json();
        let checks = report["checks"].as_array().expect("checks");
        let faults: Vec<&Value> = checks.iter().filter(|check| check["ok"] == false).collect();
        assert!(faults.is_empty(), "{faults:?}");
        let note = checks.iter().find(|check| check["name"] == "places to be told");
        assert!(note.is_some_and(|note| word(note, "found").contains("mara")), "{report}");
    }

    /// Checks what the host made of a restored record: `before` has its rows.
    pub(super) fn check_restored(&mut self, before: &Rows) {
        // A turn may begin between two looks: each entry has its row in the later one.
        let (ledger, now) = (Ledger::of(&self.host), self.observe());
        let active: Vec<&Schedule> = before.schedules.iter().filter(|row| row.state == "active").collect();
        for row in &active {
            let found = now.schedules.iter().find(|found| found.id == row.id).expect("it was restored");
            assert_eq!((found.state.as_str(), found.reason.as_deref()), ("paused", Some("restored")), "{found:?}");
        }
        let is_open = |one: &&Occurrence| ["scheduled", "started"].contains(&one.state.as_str());
        for one in before.occurrences.iter().filter(is_open) {
            let found = now.occurrences.iter().find(|found| (&found.schedule, found.due) == (&one.schedule, one.due));
            let found = found.map(|found| (found.state.as_str(), found.reason.as_deref()));
            assert_eq!(found, Some(("unknown", Some("restored"))), "{one:?}");
        }
        for row in before.questions.iter().filter(|row| row.status == "pending") {
            let found = now.questions.iter().find(|found| found.id == row.id).map(|found| found.status.as_str());
            assert_eq!(found, Some("doubtful"), "{row:?}");
        }
        let waits = |row: &&Delivery| ["intent", "sending"].contains(&row.state.as_str());
        for row in before.notifications().filter(waits) {
            let found = now.notifications().find(|found| found.id == row.id).map(|found| found.state.as_str());
            assert_eq!(found, Some("unknown"), "{row:?}");
        }
        let told = ledger.since("state.restored").iter();
        let told: Vec<&Value> = told.filter(|entry| TOLD.contains(&word(entry, "what"))).collect();
        let creators = active.iter().map(|row| ("schedules_paused", row.creator.as_str()));
        let operators = ["owner", "ada"].map(|name| ("record_restored", before.person(name)));
        for (about, person) in creators.chain(operators) {
            let is_told = |entry: &&Value| entry["about"] == about && entry["person"] == person;
            assert!(told.iter().any(is_told), "{about} {person}: {told:?}");
        }
        // The host ends the notifications of the other history, and none of its own.
        for id in told.iter().map(|entry| word(entry, "delivery")) {
            let found = now.notifications().find(|row| row.id == id).expect("a row");
            let is_kept = ["intent", "sending", "received", "unplaced"].contains(&found.state.as_str());
            assert!(is_kept, "{found:?}");
        }
    }
}

/// Checks that each time of a schedule that has come is in one row, and that no row is early or of another time. `retimed` is the
/// earliest next time that the host computed again: a clock that was ahead at the beginning of a span was set back.
fn check_times(row: &Schedule, followed: &Followed, rows: &[&Occurrence], retimed: Option<i64>, latest: i64) {
    let mut covered = BTreeSet::new();
    for one in rows.iter().filter(|one| !one.is_by_hand) {
        let has = |span: &&super::Span| {
            span.from.min(retimed.unwrap_or(i64::MAX)) <= one.due
                && span.end.is_none_or(|end| one.due <= end)
                && span.series.due_between(one.due - 1, one.due, 1) == [one.due]
        };
        let span = followed.spans.iter().rev().find(has);
        let span = span.unwrap_or_else(|| panic!("a row of no time: {one:?} {followed:#?}"));
        for time in span.series.due_between(one.due - 1, i64::MAX, one.count) {
            assert!(covered.insert(time), "a second row of {time}: {one:?} {followed:#?}");
            assert!(time <= latest, "a row before its time: {one:?}");
        }
    }
    for span in &followed.spans {
        let times = span.series.due_between(span.from - 1, span.until.saturating_sub(1), usize::MAX >> 1);
        let missing: Vec<&i64> = times.iter().filter(|time| !covered.contains(time)).collect();
        assert!(missing.is_empty(), "{row:?}: {missing:?} have no row: {span:?}");
    }
}

impl View {
    /// Returns the earliest next time of a schedule that the host computed again.
    fn retimed(&self, row: &Schedule) -> Option<i64> {
        let entries = self.ledger.with("schedule", &row.id).filter(|entry| entry["what"] == "schedule.retimed");
        entries.filter_map(|entry| entry["next"].as_str().map(ms)).min()
    }

    /// Checks that the state of a schedule is the one of its last entry, and the one that the host reported.
    fn check_state(&self, row: &Schedule, followed: &Followed) {
        let last = self.ledger.with("schedule", &row.id).filter_map(|entry| match word(entry, "what") {
            "schedule.added" | "schedule.resumed" => Some("active"),
            "schedule.paused" => Some("paused"),
            "schedule.removed" => Some("removed"),
            _ => None,
        });
        let last = last.last().expect("it was added");
        let is_ended = row.state == "ended" && last == "active";
        assert!(row.state == last || is_ended, "{row:?}: {last}");
        assert!(followed.state.is_none_or(|state| row.state == state || is_ended && state == "active"), "{row:?}");
        assert_eq!(row.next.is_some(), row.state == "active", "{row:?}");
    }

    /// Checks that each series of failures was told once, and each end of one.
    fn check_series(&self, row: &Schedule) {
        let (mut is_failing, mut begun, mut ended) = (false, 0, 0);
        for entry in self.ledger.with("schedule", &row.id) {
            match (word(entry, "what"), is_failing) {
                ("schedule.failed" | "schedule.unknown", false) => (is_failing, begun) = (true, begun + 1),
                ("schedule.done", true) => (is_failing, ended) = (false, ended + 1),
                _ => {}
            }
        }
        assert_eq!(row.is_failing, is_failing, "{row:?}");
        for (about, most) in [("schedule_incident", begun), ("schedule_recovery", ended)] {
            let told = self.told(about, &row.id).filter(|entry| entry["person"] == row.creator.as_str()).count();
            // A person is not told again while an earlier notification waits.
            assert!(told <= most && told >= most.min(1), "{about}: {told} of {most}: {row:?}");
        }
    }

    /// Returns the entries about new notifications with this reason and object.
    fn told(&self, about: &str, subject: &str) -> impl Iterator<Item = &Value> {
        let all = TOLD.into_iter().flat_map(|event| self.ledger.events(event));
        all.filter(move |entry| entry["about"] == about && entry["subject"] == subject)
    }

    /// Checks that a question has the entries of its status, and its answer if it has one.
    fn check_question(&self, row: &Question) {
        let count = |what: &str| self.ledger.count(what, "question", &row.id);
        let ends = ["answered", "cancelled", "expired", "unknown"].map(|end| count(&format!("question.{end}")));
        let is_right = match row.status.as_str() {
            "pending" => ends == [0, 0, 0, 0],
            "done" => ends == [1, 0, 0, 0],
            "rejected" | "withdrawn" => ends == [0, 1, 0, 0] || ends == [0, 1, 0, 1],
            "expired" => ends == [0, 0, 1, 0],
            "doubtful" => ends == [0, 0, 0, 1],
            _ => false,
        };
        assert!(is_right && count("question.asked") == 1, "{row:?}: {ends:?}");
        let answers: Vec<(String, String)> = row.answer.iter().map(|id| (id.clone(), row.session.clone())).collect();
        assert_eq!(row.messages, answers, "the answer is one message of its conversation: {row:?}");
        assert_eq!(row.status == "done", row.answer.is_some(), "{row:?}");
        if let Some(answer) = &row.answer {
            let given = self.ledger.with("question", &row.id).filter(|entry| entry["message"] == answer.as_str());
            assert_eq!(given.count(), 1, "{row:?}");
            assert_eq!(self.ledger.count("message.recorded", "message", answer), 1, "{row:?}");
        }
        let reminded = count("question.reminded");
        assert!(reminded <= 1, "{row:?} was reminded {reminded} times");
        for (about, wanted) in [("waits", 1), ("ends_soon", reminded)] {
            let told: Vec<&Value> = self.told(about, &row.id).collect();
            let is_right = told.len() == wanted && told.iter().all(|entry| entry["person"] == row.principal.as_str());
            assert!(is_right, "{about}: {row:?}: {told:?}");
        }
    }

    /// Checks that each notification is about an object that exists, for a person that it concerns.
    fn check_causes(&self) {
        let mut once = BTreeSet::new();
        for entry in TOLD.into_iter().flat_map(|event| self.ledger.events(event)) {
            let (about, subject, person) = (word(entry, "about"), word(entry, "subject"), word(entry, "person"));
            let is_new = once.insert((about, subject, person));
            let of_schedule = || self.rows.schedules.iter().any(|row| row.id == subject && row.creator == person);
            let has_cause = match about {
                "waits" | "ends_soon" => {
                    let mut questions = self.rows.questions.iter();
                    let mut changes = self.ledger.events("change.proposed");
                    let is_question = questions.any(|row| row.id == subject && row.principal == person);
                    is_new && (is_question || changes.any(|entry| entry["change"] == subject))
                }
                "schedule_incident" | "schedule_recovery" | "schedule_reply" => of_schedule(),
                "schedules_paused" | "record_restored" => self.ledger.events("state.restored").next().is_some(),
                _ => false,
            };
            assert!(has_cause, "{entry} has no cause");
        }
    }
}
