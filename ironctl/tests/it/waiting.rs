//! Calls, questions and changes that wait at a fake host: samples of the contract with the values of a test.
//!
//! A decision changes the status as the host does. See [`crate::inbox`] for the tests.

use crate::fake_host::{Answer, Asked, FakeHost};
use crate::lists::sample;
use ironclaw_contract::canonical::Digest;
use serde_json::{Value, json};
use std::sync::Mutex;

/// The change of the tests, and its page.
pub const ID: &str = "chg_00000000000000000000000001";
pub const TEXT: &str = "EFFECT\n  Replace the persona of agent \"helper\": 1 line removed, 1 line added.\n";

/// The page of a call.
pub const PAGE: &str = "EFFECT\n  Send a POST to \"api.example\".\n\nIDENTIFIERS\n  request: one\n";

pub fn digest(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()
}

pub fn id(prefix: &str, number: u32) -> String {
    format!("{prefix}_0000000000000000000000000{number}")
}

/// Returns a call, a question or a change with this status and page.
pub fn waiting(id: &str, status: &str, page: &str) -> Value {
    let (name, agent, outcome) = match &id[..3] {
        "req" => ("waiting", "assistant", "200"),
        "qst" if status == "done" => ("waiting.answered", "helper", ""),
        "qst" => ("waiting.question", "helper", ""),
        _ => ("waiting.change", "helper", "persona of agent helper replaced"),
    };
    let mut waiting = sample(name);
    (waiting["id"], waiting["agent"]) = (json!(id), json!(agent));
    (waiting["shown"], waiting["shown_digest"]) = (json!(page), json!(digest(page)));
    (waiting["created_at"], waiting["outcome"]) = (json!("2026-01-02T03:04:05.000Z"), Value::Null);
    if let Some(call) = waiting["details"].get_mut("call") {
        call["position"] = json!(id[id.len() - 1..].parse::<u32>().expect("a number"));
    }
    set_status(&mut waiting, status);
    if status == "done" && !outcome.is_empty() {
        set_outcome(&mut waiting, outcome);
    }
    waiting
}

fn set_status(waiting: &mut Value, status: &str) {
    let is_open = status == "pending";
    (waiting["status"], waiting["yours"], waiting["may_reject"]) = (json!(status), json!(is_open), json!(is_open));
    if is_open {
        for decided in ["decided_by", "decided_at", "ended_at"] {
            waiting[decided] = Value::Null;
        }
    }
    waiting["summary"] = json!(format!("{} is {status}", waiting["id"].as_str().expect("an id")));
}

/// Sets an outcome, which the summary then has.
pub fn set_outcome(waiting: &mut Value, outcome: &str) {
    waiting["summary"] = json!(format!("{}: {outcome}", waiting["summary"].as_str().expect("a sentence")));
    waiting["outcome"] = json!(outcome);
}

/// Returns a call with this number of two.
pub fn request(number: u32, status: &str) -> Value {
    waiting(&id("req", number), status, PAGE)
}

/// The page of both calls.
pub const BOTH: &str = "APPROVAL REQUESTS: 2 calls\n  Send 2 posts.\n\nDETAILS\n  call 1: one\n";

/// Returns one of two calls that wait together.
pub fn call_together(number: u32, status: &str) -> Value {
    let mut call = request(number, status);
    call["details"]["call"]["together"] = json!([id("req", 1), id("req", 2)]);
    call
}

fn together() -> Value {
    json!({ "calls": [id("req", 1), id("req", 2)], "shown": BOTH, "shown_digest": digest(BOTH) })
}

/// Returns the change of the tests.
pub fn change(status: &str) -> Value {
    waiting(ID, status, TEXT)
}

/// All that waits or waited at a host.
pub struct Held(Mutex<Vec<Value>>);

impl Held {
    pub fn new(all: impl Into<Vec<Value>>) -> Self {
        Self(Mutex::new(all.into()))
    }

    /// Answers a request about what waits, or for a list that the inbox prints beside it; `None` for another request.
    pub fn answer(&self, asked: &Asked) -> Option<Answer> {
        let path = asked.line.split_once(' ').expect("a method and a path").1;
        let path = path.split('?').next().expect("a path");
        let mut all = self.0.lock().expect("no test panics while it holds this");
        match path {
            "/v1/waiting" => {
                let open: Vec<&Value> = all.iter().filter(|one| one["status"] == "pending").collect();
                return Some(Answer::json(json!(open)));
            }
            "/v1/allowances/offers" | "/v1/unread" => return Some(Answer::json(json!([]))),
            _ => {}
        }
        let (id, rest) = path.strip_prefix("/v1/waiting/").map(|rest| rest.split_once('/').unwrap_or((rest, "")))?;
        let Some(one) = all.iter_mut().find(|one| one["id"] == id) else {
            return Some(Answer::missing("unknown", &format!("there is no {id}")));
        };
        if rest == "together" {
            return Some(Answer::json(together()));
        }
        if asked.body.get("approve_together").is_some() || asked.body.get("reject_together").is_some() {
            let after = if asked.body.get("approve_together").is_some() { "approved" } else { "rejected" };
            let both = [1, 2].map(|number| call_together(number, after));
            let answer = both[usize::from(id.ends_with('2'))].clone();
            *all = both.into();
            return Some(Answer::json(answer));
        }
        let (page, status) = (one["shown"].as_str().expect("a page").to_owned(), one["status"].clone());
        let after = match rest {
            "decision" if asked.body.get("approve").is_some() => "approved",
            "decision" if asked.body.get("approve_until_answer").is_some() => "approved",
            "decision" if asked.body.get("reject").is_some() => "rejected",
            "decision" => "done",
            _ if status == "approved" => "done",
            _ => return Some(Answer::json(one.clone())),
        };
        *one = waiting(id, after, &page);
        if let Some(reason) = asked.body["reject"].as_str().filter(|reason| !reason.is_empty()) {
            set_outcome(one, reason);
        }
        Some(Answer::json(one.clone()))
    }
}

/// Starts a host at which these wait.
pub fn host_with(all: impl Into<Vec<Value>>) -> FakeHost {
    let held = Held::new(all);
    FakeHost::new(move |line, asked| held.answer(asked).unwrap_or_else(|| Answer::missing("unexpected", line)))
}

/// Starts a host whose change has this page with this digest.
pub fn host_that_shows(page: &str, shown_digest: String) -> FakeHost {
    let mut shown = waiting(ID, "pending", page);
    shown["shown_digest"] = json!(shown_digest);
    host_with([shown])
}

/// Returns every POST so far.
pub fn posts(host: &FakeHost) -> Vec<(String, Value)> {
    host.posted().into_iter().map(|asked| (asked.line, asked.body)).collect()
}

/// Returns the decisions so far.
pub fn decisions(host: &FakeHost) -> Vec<(String, Value)> {
    posts(host).into_iter().filter(|(line, _)| line.starts_with("POST /v1/waiting/")).collect()
}

/// Returns a decision about this id.
pub fn decision(id: &str, body: Value) -> (String, Value) {
    (format!("POST /v1/waiting/{id}/decision"), body)
}

/// Returns the approval of a page.
pub fn approval(id: &str, page: &str) -> (String, Value) {
    decision(id, json!({ "approve": digest(page) }))
}
