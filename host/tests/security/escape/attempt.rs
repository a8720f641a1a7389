//! One attempt is a name that is the promise, what the attacker's program does in a turn, and what must come of it.
//!
//! Whatever the attempt, the same is looked at afterwards: nothing stands in the ledger but what should, each refusal says who
//! and why, one answer reached the person, another session works, and the chain holds. Never judges by what the attacker says.
//! Next: `turns`, for how a table of them looks.

use super::attack::{Attacked, Played, generate};
use crate::support::host_fixture::wait_for;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the attacker knows of other turns and sessions.
pub(crate) struct Known {
    /// What it saw in an answered turn of its own session, with its `call`.
    pub(crate) earlier: Value,
    /// What another session's attacker told it: `turn own output call items`.
    pub(crate) foreign: Value,
    /// What it saw before the host was started anew.
    pub(crate) before_boot: Value,
    /// The other session.
    pub(crate) other: String,
}

type Script = Box<dyn Fn(&Known) -> Vec<Value>>;
type Look = Box<dyn Fn(&Attacked, &Known, &Played)>;

/// What must come of an attempt.
enum Comes {
    /// The turn goes on to its answer.
    Answered,
    /// The turn goes on to its answer, in another launch.
    AnsweredAnew,
    /// The turn ends with a notice of the host.
    Ended,
    /// The session is quarantined for this reason, and a release leads back to an answer.
    Quarantined(&'static str),
    /// The same, by the launch after the one that did it.
    QuarantinedLater(&'static str),
}

/// What the scripted model says when it is asked once more after it has answered: the fair end of an attempt that asked it.
pub(crate) const AGAIN: &str = "Noted.";

/// A named attempt.
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    asks: &'static str,
    script: Script,
    comes: Comes,
    requests: Vec<&'static str>,
    rows: Vec<&'static str>,
    calls: Vec<&'static str>,
    proposals: usize,
    errors: &'static str,
    answer: &'static str,
    look: Option<Look>,
}

/// An attempt that does this while somebody says hello; nothing may come of it but an answer.
pub(crate) fn attempt(name: &'static str, script: impl Fn(&Known) -> Vec<Value> + 'static) -> Attempt {
    Attempt {
        name,
        asks: "hello",
        script: Box::new(script),
        comes: Comes::Answered,
        requests: Vec::new(),
        rows: Vec::new(),
        calls: Vec::new(),
        proposals: 0,
        errors: "",
        answer: "",
        look: None,
    }
}

impl Attempt {
    /// The person says this instead; the model's script makes something of it.
    pub(crate) fn asks(self, asks: &'static str) -> Self {
        Self { asks, ..self }
    }

    /// Requests on the model socket are refused with these codes, in order.
    pub(crate) fn requests(self, codes: &[&'static str]) -> Self {
        Self { requests: codes.to_vec(), ..self }
    }

    /// Rows are refused for these reasons, in order.
    pub(crate) fn rows(self, reasons: &[&'static str]) -> Self {
        Self { rows: reasons.to_vec(), ..self }
    }

    /// Calls of the model are refused for these reasons, in order.
    pub(crate) fn calls(self, reasons: &[&'static str]) -> Self {
        Self { calls: reasons.to_vec(), ..self }
    }

    /// So many changes are proposed, each once.
    pub(crate) fn proposes(self, proposals: usize) -> Self {
        Self { proposals, ..self }
    }

    /// The attack fails in the attacker's own process, with this in the error.
    pub(crate) fn fails(self, errors: &'static str) -> Self {
        Self { errors, ..self }
    }

    /// The person's answer has this in it.
    pub(crate) fn answered(self, answer: &'static str) -> Self {
        Self { answer, ..self }
    }

    /// The sandbox is gone after it, and another launch answers.
    pub(crate) fn anew(self) -> Self {
        Self { comes: Comes::AnsweredAnew, ..self }
    }

    /// The host ends the turn, with this in its notice.
    pub(crate) fn ended(self, notice: &'static str) -> Self {
        Self { comes: Comes::Ended, answer: notice, ..self }
    }

    /// The session is quarantined; `status` says this.
    pub(crate) fn quarantined(self, words: &'static str) -> Self {
        Self { comes: Comes::Quarantined(words), ..self }
    }

    /// The sandbox is gone after it, and the next launch is quarantined; `status` says this.
    pub(crate) fn quarantined_later(self, words: &'static str) -> Self {
        Self { comes: Comes::QuarantinedLater(words), ..self }
    }

    /// Something more to look at.
    pub(crate) fn look(self, look: impl Fn(&Attacked, &Known, &Played) + 'static) -> Self {
        Self { look: Some(Box::new(look)), ..self }
    }
}

/// Refusals of one launch before the session is put to sleep, so that no attempt pays for those before it.
const REFUSALS_A_LAUNCH: usize = 24;

/// What the ledger holds of a round in which nothing is refused, and who may say it.
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

/// Plays attempts one after the other against one host. With `ATTEMPT=word` in the environment only those with it in their name.
pub(crate) fn hold(config: &str, attempts: Vec<Attempt>) {
    let wanted = std::env::var("ATTEMPT").unwrap_or_default();
    let attacked = Attacked::new(&format!("[model]\nscript = \"SCRIPT\"\n[session]\nbackoff_ms = 5\n{config}"));
    let known = attacked.known();
    let host = attacked.world.pid();
    let (mut refused, mut total) = (0, 0);
    let mut failed = Vec::new();
    for attempt in attempts.iter().filter(|attempt| attempt.name.contains(&wanted)) {
        let expected = attempt.requests.len() + attempt.rows.len();
        total += expected;
        if refused + expected > REFUSALS_A_LAUNCH && refused > 0 {
            attacked.world.ctl(&["session", "stop", &attacked.id("a")]).ok();
            refused = 0;
        }
        refused += expected;
        // What one of them breaks is no reason not to look at the next; a panic has printed what it was.
        if catch_unwind(AssertUnwindSafe(|| attempt.hold(&attacked, &known))).is_err() {
            failed.push(attempt.name);
            // So that the next has a chance; it is halted or not.
            attacked.world.ctl(&["session", "release", &attacked.id("a")]);
        }
        assert_eq!(attacked.world.pid(), host, "{}: the host goes on", attempt.name);
    }
    assert_eq!(failed, Vec::<&str>::new(), "these attempts did not come to what they should");
    // What came late would have come by now: the last rows are taken when a session is put to sleep.
    let id = attacked.id("a");
    attacked.world.ctl(&["session", "stop", &id]).ok();
    let late = attacked.refusals(&id).len() + attacked.entries("row.refused", &id).len();
    assert_eq!(late, total, "nothing was refused after its attempt was looked at");
    attacked.world.down();
    assert!(attacked.world.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "));
}

impl Attempt {
    #[track_caller]
    fn hold(&self, attacked: &Attacked, known: &Known) {
        let name = self.name;
        let id = attacked.id("a");
        let before = attacked.last_entry();
        let chat = attacked.send("a", self.asks, &json!((self.script)(known))).ok().json();
        attacked.wait_until_played(&chat);
        let played = attacked.played(chat);
        self.failed_as_it_should(&played);
        let refusals = self.requests.len() + self.rows.len();
        let mut since = Vec::new();
        // A row behind the one that ended the turn is taken after the answer is there.
        wait_for("the refusals to be written down", || {
            since = attacked.entries_after(before);
            let refused = |entry: &&Value| is(entry, "model.refused") || is(entry, "row.refused");
            since.iter().filter(refused).count() >= refusals
        });
        match self.comes {
            Comes::Answered | Comes::AnsweredAnew => {
                assert_eq!(played.chat["notice"], false, "{name}: the turn goes on to its answer: {}", played.chat);
            }
            Comes::Ended => assert_eq!(played.chat["notice"], true, "{name}: {}", played.chat),
            Comes::Quarantined(words) | Comes::QuarantinedLater(words) => {
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
            assert!(reply.contains(expected), "{name}: the person was told {reply:?}");
        }
        self.ledger_holds(&since, &id);
        if let Some(look) = &self.look {
            look(attacked, known, &played);
        }
        attacked.other_answers();
        if self.halts() {
            attacked.world.ctl(&["session", "release", &id]).ok();
            let reply = attacked.world.say("a", "hello");
            assert!(reply.contains("Hello."), "{name}: after a release: {reply}");
        }
    }

    fn halts(&self) -> bool {
        matches!(self.comes, Comes::Quarantined(_) | Comes::QuarantinedLater(_))
    }

    fn launches_again(&self) -> bool {
        matches!(self.comes, Comes::AnsweredAnew | Comes::QuarantinedLater(_))
    }

    fn failed_as_it_should(&self, played: &Played) {
        let (name, errors) = (self.name, json!(played.errors).to_string());
        match self.errors {
            "" if self.launches_again() => {}
            "" => assert_eq!(played.errors, Vec::<Value>::new(), "{name}: the attack itself works"),
            why => {
                let all = played.errors.iter().all(|error| error.as_str().is_some_and(|error| error.contains(why)));
                assert!(all && !played.errors.is_empty(), "{name}: {errors}");
            }
        }
    }

    /// Nothing stands there since but a round of this session and the refusals of this attempt.
    fn ledger_holds(&self, since: &[Value], id: &str) {
        let name = self.name;
        let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let (mut deliveries, mut halted, mut requeued) = (0, 0, 0);
        for entry in since {
            let data = &entry["data"];
            assert_eq!(data["session"], id, "{name}: nothing of it is anybody else's: {entry}");
            let what = data["what"].as_str().unwrap_or_default();
            let reason = data["reason"].as_str().unwrap_or_default();
            deliveries += u32::from(what == "delivery.received");
            let retracted = entry["type"] == "RETRACT";
            match (what, &self.comes) {
                ("model.refused" | "row.refused" | "call.refused" | "action.refused", _) => {
                    assert!(retracted, "{name}: {entry}");
                    assert!(
                        what == "call.refused" || data["fault"] == "sandbox" || what == "action.refused",
                        "{name}: {entry}"
                    );
                    assert!(!reason.is_empty(), "{name}: {entry}");
                    let told = if what == "model.refused" { data["code"].as_str().unwrap_or_default() } else { reason };
                    found.entry(what).or_default().push(told);
                }
                ("change.proposed", _) if !retracted => found.entry(what).or_default().push(what),
                ("session.quarantined", Comes::Quarantined(_) | Comes::QuarantinedLater(_)) => {
                    halted += 1;
                    assert!(retracted && !reason.is_empty() && data["fault"] == "sandbox", "{name}: {entry}");
                }
                ("turn.closed", Comes::AnsweredAnew) if retracted => requeued += 1,
                (what, _) => {
                    let of_a_round = ROUND.contains(&what) && !retracted;
                    assert!(of_a_round, "{name}: this does not belong there: {entry}");
                }
            }
        }
        let mut told = |what: &str| found.remove(what).unwrap_or_default();
        assert_eq!(told("model.refused"), self.requests, "{name}");
        let rows = told("row.refused");
        assert_eq!(rows.len(), self.rows.len(), "{name}: {rows:?}");
        assert!(rows.iter().zip(&self.rows).all(|(row, why)| row.contains(why)), "{name}: {rows:?}");
        assert_eq!(told("call.refused"), self.calls, "{name}");
        assert!(told("action.refused").is_empty(), "{name}");
        assert_eq!(told("change.proposed").len(), self.proposals, "{name}");
        assert_eq!(deliveries, 1, "{name}: the person had one answer");
        let launches = since.iter().filter(|entry| is(entry, "session.launching")).count();
        assert!(!self.launches_again() || launches > 0, "{name}: another launch looks at it");
        assert_eq!(requeued, u32::from(matches!(self.comes, Comes::AnsweredAnew)), "{name}: the message waited for it");
        assert_eq!(halted, u32::from(self.halts()), "{name}");
    }
}

fn is(entry: &Value, what: &str) -> bool {
    entry["data"]["what"] == what
}

/// Entries of the ledger that one attempt may make; more would be a flood.
const ENTRIES_MAX: usize = 400;

impl Attacked {
    /// The number of the ledger's last entry.
    fn last_entry(&self) -> u64 {
        self.tail(1).last().and_then(|entry| entry["seq"].as_u64()).expect("an entry")
    }

    /// Entries behind this number.
    fn entries_after(&self, before: u64) -> Vec<Value> {
        let found = self.tail(ENTRIES_MAX);
        assert!(found[0]["seq"].as_u64() <= Some(before + 1), "more than {ENTRIES_MAX} entries came of one attempt");
        found.into_iter().filter(|entry| entry["seq"].as_u64() > Some(before)).collect()
    }

    fn tail(&self, count: usize) -> Vec<Value> {
        let text = self.world.ctl(&["--json", "audit", "tail", "-n", &count.to_string()]).ok().stdout;
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    /// Waits until the attacker is through with its script, or is there no more.
    fn wait_until_played(&self, chat: &Value) {
        let message = &chat["message_id"];
        wait_for("the script to be played", || {
            let outcome = self.outcome(chat);
            let played = outcome["done"] == true && outcome["seen"]["message"] == *message;
            played || self.session("a")["state"] != "awake"
        });
    }

    /// An ordinary past: answered turns in both sessions with a call each, before and after a start of the host.
    fn known(&self) -> Known {
        let past = |agent: &str| {
            let first = self.say(agent, "hello");
            let played = self.play(agent, "read notes.txt", &json!([generate(json!(["$own"]))]));
            let mut seen = self.say(agent, "hello").seen;
            seen["call"] = played.answers[0]["calls"][0]["call_id"].clone();
            assert!(seen["call"].is_string() && first.seen["output"].is_object(), "{agent}: {seen}");
            seen
        };
        let before_boot = past("a");
        past("b");
        self.world.down();
        self.world.up();
        Known { before_boot, earlier: past("a"), foreign: past("b"), other: self.id("b") }
    }
}

/// A request, as it stands here.
pub(crate) fn ask(request: Value) -> Value {
    json!({ "ask": request })
}

/// A row.
pub(crate) fn row(row: Value) -> Value {
    json!({ "row": row })
}

/// A row that names an output as the answer.
pub(crate) fn reply(item: impl Into<Value>) -> Value {
    row(json!({ "content": { "reply": item.into() } }))
}

/// One bell.
pub(crate) fn ring() -> Value {
    json!({ "ring": 1 })
}
