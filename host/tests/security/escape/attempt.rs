//! An attempt of an attacker: a name that states the promise, the steps of the attacker in a turn, and the expected result.
//!
//! The same checks follow every attempt. The ledger has only the expected entries, and each refusal names the party at fault and the
//! reason. One answer reached the person, another session works, and the chain is valid. The checks do not trust statements of the
//! attacker about the host. See `turns` for a table.

use super::attack::{Attacked, Played, output};
use crate::support::host_fixture::wait_for;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Values of other turns and sessions that the attacker knows.
pub(crate) struct Knowledge {
    /// Values of an earlier, answered turn of its own session, with its `call`.
    pub(crate) earlier: Value,
    /// Values from the attacker of another session: `turn own output call items`.
    pub(crate) foreign: Value,
    /// Values from before a restart of the host.
    pub(crate) before_boot: Value,
    /// The id of the other session.
    pub(crate) other: String,
}

type Script = Box<dyn Fn(&Knowledge) -> Vec<Value>>;
type Check = Box<dyn Fn(&Attacked, &Knowledge, &Played)>;
enum Expected {
    /// The turn continues to its answer.
    Answered,
    /// The turn continues to its answer in another launch.
    AnsweredAnew,
    /// The host ends the turn with a notice.
    Ended,
    /// The host quarantines the session for this reason. After a release it answers again.
    Quarantined(&'static str),
    /// The launch after the attempt quarantines the session.
    QuarantinedLater(&'static str),
}

/// The output of the scripted model after its first answer. It ends an attempt that asked the model itself.
pub(crate) const LATER_OUTPUT: &str = "Noted.";
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    asks: &'static str,
    script: Script,
    expected: Expected,
    requests: Vec<&'static str>,
    rows: Vec<&'static str>,
    calls: Vec<&'static str>,
    proposals: usize,
    errors: &'static str,
    answer: &'static str,
    check: Option<Check>,
}

/// Makes an attempt with these steps in the turn of the message `hello`. By default its only permitted effect is an answer.
pub(crate) fn attempt(name: &'static str, script: impl Fn(&Knowledge) -> Vec<Value> + 'static) -> Attempt {
    Attempt {
        name,
        asks: "hello",
        script: Box::new(script),
        expected: Expected::Answered,
        requests: Vec::new(),
        rows: Vec::new(),
        calls: Vec::new(),
        proposals: 0,
        errors: "",
        answer: "",
        check: None,
    }
}

impl Attempt {
    /// Sends this message instead of `hello`. The script of the model has a rule for it.
    pub(crate) fn asks(self, asks: &'static str) -> Self {
        Self { asks, ..self }
    }

    /// Expects refusals of requests on the model socket with these codes, in order.
    pub(crate) fn requests(self, codes: &[&'static str]) -> Self {
        Self { requests: codes.to_vec(), ..self }
    }

    /// Expects refusals of rows for these reasons, in order.
    pub(crate) fn rows(self, reasons: &[&'static str]) -> Self {
        Self { rows: reasons.to_vec(), ..self }
    }

    /// Expects refusals of calls of the model for these reasons, in order.
    pub(crate) fn calls(self, reasons: &[&'static str]) -> Self {
        Self { calls: reasons.to_vec(), ..self }
    }
    pub(crate) fn proposes(self, proposals: usize) -> Self {
        Self { proposals, ..self }
    }

    /// Expects that every failed step of the attacker has these words in its error.
    pub(crate) fn fails(self, errors: &'static str) -> Self {
        Self { errors, ..self }
    }

    /// Expects these words in the answer to the person.
    pub(crate) fn answered(self, answer: &'static str) -> Self {
        Self { answer, ..self }
    }

    /// Expects that the sandbox ends and that another launch answers.
    pub(crate) fn relaunched(self) -> Self {
        Self { expected: Expected::AnsweredAnew, ..self }
    }

    /// Expects that the host ends the turn, with these words in its notice.
    pub(crate) fn ended(self, notice: &'static str) -> Self {
        Self { expected: Expected::Ended, answer: notice, ..self }
    }

    /// Expects a quarantine with these words in `status`.
    pub(crate) fn quarantined(self, words: &'static str) -> Self {
        Self { expected: Expected::Quarantined(words), ..self }
    }

    /// Expects that the sandbox ends and that the next launch is quarantined, with these words in `status`.
    pub(crate) fn quarantined_later(self, words: &'static str) -> Self {
        Self { expected: Expected::QuarantinedLater(words), ..self }
    }
    pub(crate) fn check(self, check: impl Fn(&Attacked, &Knowledge, &Played) + 'static) -> Self {
        Self { check: Some(Box::new(check)), ..self }
    }
}

/// The number of refusals after which the session is stopped. A new launch counts from zero, so attempts do not add up.
const REFUSALS_A_LAUNCH: usize = 24;

/// The ledger events of a round without a refusal.
const ROUND: [&str; 12] = [
    "message.recorded",
    "session.launching",
    "session.stopped",
    "turn.opened",
    "turn.closed",
    "model.asked",
    "output.sealed",
    "call.recorded",
    "call.reported",
    "delivery.intended",
    "delivery.received",
    "session.released",
];

/// Runs attempts one after the other on one host. The variable `ATTEMPT=word` selects attempts by a word of their name.
pub(crate) fn run_attempts(config: &str, attempts: Vec<Attempt>) {
    let wanted = std::env::var("ATTEMPT").unwrap_or_default();
    let attacked = Attacked::new(&format!("[model]\nscript = \"SCRIPT\"\n[session]\nbackoff_ms = 5\n{config}"));
    let known = attacked.known();
    let host_pid = attacked.host.pid();
    let (mut refused, mut total) = (0, 0);
    let mut failed = Vec::new();
    for attempt in attempts.iter().filter(|attempt| attempt.name.contains(&wanted)) {
        let expected = attempt.requests.len() + attempt.rows.len();
        total += expected;
        if refused + expected > REFUSALS_A_LAUNCH && refused > 0 {
            attacked.host.ctl(&["session", "stop", &attacked.id("a")]).ok();
            refused = 0;
        }
        refused += expected;
        // A failed attempt does not stop the next one. Its panic message is already printed.
        if catch_unwind(AssertUnwindSafe(|| attempt.run(&attacked, &known))).is_err() {
            failed.push(attempt.name);
            // The session may be halted, so it is released for the next attempt.
            attacked.host.ctl(&["session", "release", &attacked.id("a")]);
        }
        assert_eq!(attacked.host.pid(), host_pid, "{}: the host still runs", attempt.name);
    }
    assert_eq!(failed, Vec::<&str>::new(), "these attempts failed");
    // The host accepts the last rows of a session when it stops, so a late entry exists now.
    let id = attacked.id("a");
    attacked.host.ctl(&["session", "stop", &id]).ok();
    let late = attacked.refusals(&id).len() + attacked.entries("row.refused", &id).len();
    assert_eq!(late, total, "no refusal came after the checks of its attempt");
    attacked.host.down();
    assert!(attacked.host.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "));
}

impl Attempt {
    #[track_caller]
    fn run(&self, attacked: &Attacked, known: &Knowledge) {
        let name = self.name;
        let id = attacked.id("a");
        let before = attacked.last_entry();
        let chat = attacked.send("a", self.asks, &json!((self.script)(known))).ok().json();
        attacked.wait_until_played(&chat);
        let played = attacked.played(chat);
        self.check_errors(&played);
        let refusals = self.requests.len() + self.rows.len();
        let mut since = Vec::new();
        // The host reads a row after the final one only after the answer.
        wait_for("the entries about refusals", || {
            since = attacked.entries_after(before);
            let refused = |entry: &&Value| is_event(entry, "model.refused") || is_event(entry, "row.refused");
            since.iter().filter(refused).count() >= refusals
        });
        match self.expected {
            Expected::Answered | Expected::AnsweredAnew => {
                assert_eq!(played.chat["notice"], false, "{name}: the turn continues to its answer: {}", played.chat);
            }
            Expected::Ended => assert_eq!(played.chat["notice"], true, "{name}: {}", played.chat),
            Expected::Quarantined(words) | Expected::QuarantinedLater(words) => {
                let reply = played.chat["reply"].as_str().unwrap_or_default();
                assert!(reply.contains("broke its contract"), "{name}: {}", played.chat);
                wait_for("the quarantine", || attacked.session("a")["state"] == "quarantined");
                let session = attacked.session("a");
                assert!(session["reason"].as_str().is_some_and(|why| why.contains(words)), "{name}: {session}");
            }
        }
        let reply = played.chat["reply"].as_str().unwrap_or_default();
        let expected = if self.asks == "hello" && self.answer.is_empty() { "Hello." } else { self.answer };
        if !self.halts() {
            assert!(reply.contains(expected), "{name}: the answer was {reply:?}");
        }
        self.check_ledger(&since, &id);
        if let Some(check) = &self.check {
            check(attacked, known, &played);
        }
        attacked.check_other_agent();
        if self.halts() {
            attacked.host.ctl(&["session", "release", &id]).ok();
            let reply = attacked.host.say("a", "hello");
            assert!(reply.contains("Hello."), "{name}: after a release: {reply}");
        }
    }

    fn halts(&self) -> bool {
        matches!(self.expected, Expected::Quarantined(_) | Expected::QuarantinedLater(_))
    }

    fn launches_again(&self) -> bool {
        matches!(self.expected, Expected::AnsweredAnew | Expected::QuarantinedLater(_))
    }

    fn check_errors(&self, played: &Played) {
        let (name, errors) = (self.name, json!(played.errors).to_string());
        match self.errors {
            "" if self.launches_again() => {}
            "" => assert_eq!(played.errors, Vec::<Value>::new(), "{name}: the steps of the attacker succeed"),
            why => {
                let all = played.errors.iter().all(|error| error.as_str().is_some_and(|error| error.contains(why)));
                assert!(all && !played.errors.is_empty(), "{name}: {errors}");
            }
        }
    }

    /// Checks that the new entries belong to a round of this session or are the expected refusals.
    fn check_ledger(&self, since: &[Value], id: &str) {
        let name = self.name;
        let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let (mut deliveries, mut halted, mut requeued) = (0, 0, 0);
        for entry in since {
            let data = &entry["data"];
            let what = data["what"].as_str().unwrap_or_default();
            if what == "notification.unplaced" {
                assert!(is_about(since, id, &data["subject"]), "{name}: {entry}");
                continue;
            }
            assert_eq!(data["session"], id, "{name}: every entry belongs to this session: {entry}");
            let reason = data["reason"].as_str().unwrap_or_default();
            deliveries += u32::from(what == "delivery.received");
            let retracted = entry["type"] == "RETRACT";
            match (what, &self.expected) {
                ("model.refused" | "row.refused" | "call.refused" | "action.refused", _) => {
                    assert!(retracted, "{name}: {entry}");
                    assert!(
                        what == "call.refused" || data["fault"] == "sandbox" || what == "action.refused",
                        "{name}: {entry}"
                    );
                    assert!(!reason.is_empty(), "{name}: {entry}");
                    let detail =
                        if what == "model.refused" { data["code"].as_str().unwrap_or_default() } else { reason };
                    found.entry(what).or_default().push(detail);
                }
                ("change.proposed", _) if !retracted => found.entry(what).or_default().push(what),
                ("session.quarantined", Expected::Quarantined(_) | Expected::QuarantinedLater(_)) => {
                    halted += 1;
                    assert!(retracted && !reason.is_empty() && data["fault"] == "sandbox", "{name}: {entry}");
                }
                ("turn.closed", Expected::AnsweredAnew) if retracted => requeued += 1,
                (what, _) => {
                    let of_a_round = ROUND.contains(&what) && !retracted;
                    assert!(of_a_round, "{name}: unexpected entry: {entry}");
                }
            }
        }
        let mut take = |what: &str| found.remove(what).unwrap_or_default();
        assert_eq!(take("model.refused"), self.requests, "{name}");
        let rows = take("row.refused");
        assert_eq!(rows.len(), self.rows.len(), "{name}: {rows:?}");
        assert!(rows.iter().zip(&self.rows).all(|(row, why)| row.contains(why)), "{name}: {rows:?}");
        assert_eq!(take("call.refused"), self.calls, "{name}");
        assert!(take("action.refused").is_empty(), "{name}");
        assert_eq!(take("change.proposed").len(), self.proposals, "{name}");
        assert_eq!(deliveries, 1, "{name}: the person got one answer");
        let launches = since.iter().filter(|entry| is_event(entry, "session.launching")).count();
        assert!(!self.launches_again() || launches > 0, "{name}: there was another launch");
        assert_eq!(
            requeued,
            u32::from(matches!(self.expected, Expected::AnsweredAnew)),
            "{name}: the message was queued again"
        );
        assert_eq!(halted, u32::from(self.halts()), "{name}");
    }
}

fn is_event(entry: &Value, what: &str) -> bool {
    entry["data"]["what"] == what
}

/// The limit of ledger entries from one attempt.
const ENTRIES_MAX: usize = 400;

impl Attacked {
    fn last_entry(&self) -> u64 {
        self.tail(1).last().and_then(|entry| entry["seq"].as_u64()).expect("an entry")
    }
    fn entries_after(&self, before: u64) -> Vec<Value> {
        let found = self.tail(ENTRIES_MAX);
        assert!(found[0]["seq"].as_u64() <= Some(before + 1), "more than {ENTRIES_MAX} entries from one attempt");
        found.into_iter().filter(|entry| entry["seq"].as_u64() > Some(before)).collect()
    }

    fn tail(&self, count: usize) -> Vec<Value> {
        let text = self.host.ctl(&["--json", "audit", "tail", "-n", &count.to_string()]).ok().stdout;
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    /// Waits until the attacker has finished its script or its process has ended.
    fn wait_until_played(&self, chat: &Value) {
        let message = &chat["message_id"];
        wait_for("the end of the script", || {
            let outcome = self.outcome(chat);
            let played = outcome["done"] == true && outcome["seen"]["message"] == *message;
            played || self.session("a")["state"] != "awake"
        });
    }

    /// Makes answered turns with a call in both sessions, before and after a restart of the host. Returns their values.
    fn known(&self) -> Knowledge {
        let past = |agent: &str| {
            let first = self.say(agent, "hello");
            let played = self.play(agent, "read notes.txt", &json!([output()]));
            let mut seen = self.say(agent, "hello").seen;
            seen["call"] = played.answers[0]["calls"][0]["call_id"].clone();
            assert!(seen["call"].is_string() && first.seen["output"].is_object(), "{agent}: {seen}");
            seen
        };
        let before_boot = past("a");
        past("b");
        self.host.restart();
        Knowledge { before_boot, earlier: past("a"), foreign: past("b"), other: self.id("b") }
    }
}
pub(crate) fn ask(request: Value) -> Value {
    json!({ "ask": request })
}
pub(crate) fn row(row: Value) -> Value {
    json!({ "row": row })
}

/// Returns a step that writes a row with an output as the answer.
pub(crate) fn reply(item: impl Into<Value>) -> Value {
    row(json!({ "content": { "reply": item.into() } }))
}
pub(crate) fn ring() -> Value {
    json!({ "ring": 1 })
}

/// Returns whether the subject of a notification is this session, or a change or request in one of its entries.
fn is_about(since: &[Value], id: &str, subject: &Value) -> bool {
    let is_of_session = |entry: &&Value| entry["data"]["session"] == id;
    let names = |entry: &Value| entry["data"]["change"] == *subject || entry["data"]["request"] == *subject;
    *subject == id || since.iter().filter(is_of_session).any(names)
}
