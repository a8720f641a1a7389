//! The invariants of a run, from the API, the ledger and the requests at the site. The recorded stages of a call and the scope of its turn
//! say whether it needed a person.

use super::{AGENTS, PEOPLE, Post, Random};
use crate::support::host_fixture::{WAIT_MAX, wait_for};
use ironclaw_contract::canonical::{self, Digest};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

const ENDS: [&str; 3] = ["rejected", "expired", "withdrawn"];

/// Events that show a call for the first time.
const FIRST: [&str; 3] = ["call.recorded", "call.refused", "call.asked"];

/// The state of a host that has nothing to do.
struct View {
    ledger: Vec<Value>,
    requests: Vec<Value>,
    inboxes: Vec<Value>,
    /// The text of each call, by the digest of its arguments.
    texts: BTreeMap<String, String>,
}

impl Random {
    /// Waits until every message has its answer and every approved call its outcome.
    pub(super) fn settle(&mut self) {
        let open: Vec<(String, Post)> = self
            .known
            .posts
            .iter()
            .filter(|(_, post)| !post.is_answered)
            .map(|(t, p)| (t.clone(), p.clone()))
            .collect();
        for (text, post) in open {
            let path = format!("/v1/messages/{}?wait_ms=500", post.message);
            let (until, mut view) = (Instant::now() + WAIT_MAX, self.get(post.person, &path));
            while view["status"] != "delivered" {
                assert!(Instant::now() < until, "{text} has no answer: {view} {:?}", self.host.ledger().last());
                view = self.get(post.person, &path);
            }
            self.known.posts.get_mut(&text).expect("known").is_answered = true;
        }
        let is_over = |request: &Value| !["approved", "running"].contains(&word(request, "status"));
        wait_for("approved calls to end", || self.requests().iter().all(is_over));
    }

    fn requests(&self) -> Vec<Value> {
        let list = self.get(0, "/v1/waiting?type=call&status=all")["entries"].as_array().expect("a list").clone();
        assert!(list.len() < 200, "the run has more requests than one list returns: set a smaller IRONCLAW_CALLS");
        list
    }

    /// Returns the number of requests at the site with this text.
    fn arrived(&self, text: &str) -> usize {
        let seen = self.site.seen.lock().expect("a list");
        seen.iter().filter(|request| request.rsplit("\r\n\r\n").next() == Some(text)).count()
    }

    fn view(&mut self) -> View {
        loop {
            self.settle();
            // A follow-up turn may begin between two requests.
            let (before, ledger, requests) = (self.requests(), self.host.ledger(), self.requests());
            if before == requests {
                let inboxes =
                    (0..PEOPLE.len()).map(|person| self.get(person, "/v1/waiting")["entries"].clone()).collect();
                return View { ledger, requests, inboxes, texts: self.texts() };
            }
        }
    }

    fn texts(&self) -> BTreeMap<String, String> {
        let (mut texts, headers) = (BTreeMap::new(), json!({ "content-type": "text/plain" }));
        for text in (1..=self.made).map(|number| format!("text{number}")) {
            for path in ["/notes", "/other"] {
                let url = self.site.url(path);
                let arguments = json!({ "method": "POST", "url": url, "headers": headers, "body": text });
                let named = [canonical::RECIPE, "http_fetch", &canonical::to_string(&arguments)].map(str::to_owned);
                texts.insert(Digest::of(&canonical::to_vec(&named)).to_string(), text.clone());
            }
        }
        texts
    }

    /// Waits until every call has its outcome, and then checks the invariants.
    pub(super) fn check_invariants(&mut self) {
        let view = self.view();
        self.host.ctl(&["audit", "verify"]).ok();
        view.requests.iter().for_each(|request| view.check_request(request));
        self.check_decisions(&view);
        self.check_calls(&view);
        self.check_effects(&view);
    }

    /// Checks that each reported decision is in the record.
    fn check_decisions(&self, view: &View) {
        for (id, yes) in &self.known.decided {
            let request = view.request(id).unwrap_or_else(|| panic!("{id} was decided and is missing"));
            // An approved call may be refused at its execution, after a right was lost.
            let expected: &[&str] =
                if *yes { &["done", "failed", "unknown", "withdrawn", "expired"] } else { &["rejected"] };
            assert!(expected.contains(&word(request, "status")), "{id} was decided ({yes}): {}", view.story(request));
        }
    }

    /// Checks that each call has an outcome, and that its events agree.
    fn check_calls(&self, view: &View) {
        for call in view.calls() {
            let why = self.get(0, &format!("/v1/calls/{call}/why"));
            let (started, ran) = (view.at("call.started", "call", &call), view.at("call.ran", "call", &call));
            let refused = view.at("call.refused", "call", &call);
            let is_right = match word(&why, "status") {
                "done" | "failed" => started.is_some() && started < ran,
                // The host or the turn ended during the call, or there was no answer.
                "unknown" => started.is_some() && ran.is_some() != view.at("call.lost", "call", &call).is_some(),
                "refused" => started.is_none() && refused.is_some() && why["code"].is_string(),
                "void" => started.is_none(),
                "asked" => started.is_none() && (why["request"].is_string() || view.has_equal_request(&call)),
                _ => false,
            };
            assert!(is_right, "{why} {:?}", view.of("call", &call));
            if let Some(request) = why["request"].as_str() {
                assert!(view.request(request).is_some(), "{why} has no request");
            }
            if let Some(started) = started {
                view.check_permit(&view.ledger[started], &why);
            }
        }
    }

    /// Checks that nothing reached the site twice or without a started call.
    fn check_effects(&mut self, view: &View) {
        let started = view.ledger.iter().filter(|entry| entry["data"]["what"] == "call.started");
        let mut texts = BTreeSet::new();
        for entry in started {
            let digest = entry["data"]["arguments_digest"].as_str().expect("a digest");
            let text = view.texts.get(digest).unwrap_or_else(|| panic!("{entry} is about no post"));
            assert!(texts.insert(text.clone()), "{text} was started twice: {}", view.story_of_digest(digest));
        }
        for text in (1..=self.made).map(|number| format!("text{number}")) {
            let (arrived, checked) = (self.arrived(&text), self.arrived.get(&text).copied().unwrap_or(0));
            if self.is_restored {
                // The record has no start of what a replaced history sent.
                let replaced = arrived.saturating_sub(usize::from(texts.contains(&text)));
                assert!(replaced <= checked, "{text} arrived {arrived} times");
                self.replaced.insert(text.clone(), replaced);
            }
            let replaced = self.replaced.get(&text).copied().unwrap_or(0);
            let sent = arrived - replaced;
            assert!(sent <= usize::from(texts.contains(&text)), "{text} arrived {arrived} times, {replaced} earlier");
            assert!(replaced == 0 || sent == 0 || view.is_approved(&text), "{text} was sent again without a yes");
            self.arrived.insert(text, arrived);
        }
        self.is_restored = false;
        assert_eq!(self.site.lines().len(), self.arrived.values().sum::<usize>(), "{:?}", self.site.lines());
        let status = self.host.status();
        let agents = status["sessions"].as_array().expect("a list").iter().map(|session| word(session, "agent"));
        assert!(agents.into_iter().all(|agent| AGENTS.contains(&agent)), "{status}");
    }
}

fn word<'a>(view: &'a Value, key: &str) -> &'a str {
    view[key].as_str().unwrap_or_default()
}

impl View {
    fn request(&self, id: &str) -> Option<&Value> {
        self.requests.iter().find(|request| request["id"] == id)
    }

    /// Returns the events with this field, in their order.
    fn of(&self, key: &str, value: &str) -> Vec<&str> {
        let about = self.ledger.iter().filter(|entry| entry["data"][key] == value);
        about.map(|entry| word(&entry["data"], "what")).collect()
    }

    /// Returns the place of the first event with this field.
    fn at(&self, what: &str, key: &str, value: &str) -> Option<usize> {
        self.ledger.iter().position(|entry| entry["data"]["what"] == what && entry["data"][key] == value)
    }
    fn calls(&self) -> BTreeSet<String> {
        let first = self.ledger.iter().filter(|entry| FIRST.contains(&word(&entry["data"], "what")));
        first.filter_map(|entry| entry["data"]["call"].as_str()).map(str::to_owned).collect()
    }

    /// Returns whether there is a request of an equal call. An equal call of the same task takes over the request.
    fn has_equal_request(&self, call: &str) -> bool {
        let recorded = self.at("call.recorded", "call", call).map(|at| &self.ledger[at]["data"]["arguments_digest"]);
        let digest = recorded.and_then(Value::as_str).unwrap_or_default();
        self.at("call.asked", "arguments_digest", digest).is_some()
    }

    /// Returns whether the approvals of a request for this text were used.
    fn is_approved(&self, text: &str) -> bool {
        let is_used = |request: &&Value| self.at("request.used", "request", word(request, "id")).is_some();
        self.requests
            .iter()
            .filter(|request| request["details"]["call"]["arguments"]["body"] == text)
            .any(|request| is_used(&request))
    }

    /// Returns every entry of the calls with these arguments and of their turns, for a failure.
    fn story_of_digest(&self, digest: &str) -> String {
        let of_digest = |entry: &&Value| entry["data"]["arguments_digest"] == digest;
        let calls: Vec<&Value> = self.ledger.iter().filter(of_digest).map(|entry| &entry["data"]["call"]).collect();
        let turns: Vec<&Value> = self.ledger.iter().filter(of_digest).map(|entry| &entry["data"]["turn"]).collect();
        let told = |entry: &&Value| {
            let is_in = |all: &[&Value], name: &str| entry["data"].get(name).is_some_and(|one| all.contains(&one));
            is_in(&calls, "call") || is_in(&turns, "turn")
        };
        self.ledger.iter().filter(told).map(|entry| format!("\n{}", entry["canonical"])).collect()
    }

    fn story(&self, request: &Value) -> String {
        format!("{request}: {:?}", self.of("request", word(request, "id")))
    }

    /// Checks that the status of a request is the one of its last event, and that its call ran only after its approval.
    fn check_request(&self, request: &Value) {
        let (id, status) = (word(request, "id"), word(request, "status"));
        let words = self.of("request", id);
        let place = |event: &str| words.iter().position(|found| *found == event);
        let ends: Vec<&str> =
            words.iter().filter_map(|event| event.strip_prefix("request.")).filter(|end| ENDS.contains(end)).collect();
        let is_listed = |inbox: &Value| inbox.as_array().expect("a list").iter().any(|entry| entry["id"] == id);
        assert_eq!(words.iter().filter(|event| **event == "call.asked").count(), 1, "{}", self.story(request));
        let is_right = match status {
            "pending" => ends.is_empty() && place("request.approved").is_none() && self.inboxes.iter().any(is_listed),
            "done" | "failed" | "unknown" => {
                let (approved, used) = (place("request.approved"), place("request.used"));
                ends.is_empty() && approved.is_some() && approved < used
            }
            end => {
                // One entry withdraws every request of a restored record.
                let is_before = self.at("call.asked", "request", id)
                    < self.ledger.iter().rposition(|entry| entry["data"]["what"] == "state.generation");
                let is_ended = ends == [end] || (end == "withdrawn" && ends.is_empty() && is_before);
                place("request.used").is_none() && is_ended
            }
        };
        assert!(is_right, "{}", self.story(request));
    }

    /// Checks that a started call was permitted by its judgement, or that the approvals of its request were used for it.
    fn check_permit(&self, started: &Value, why: &Value) {
        let (call, turn) = (word(&started["data"], "call"), word(&started["data"], "turn"));
        let stages = why["stages"].as_array().expect("a list");
        let needs_people = stages.iter().any(|stage| stage["answer"] != "pass");
        let used = self.ledger.iter().find(|entry| {
            entry["data"]["what"] == "request.used"
                && entry["data"]["call"] == call
                && entry["seq"].as_u64() < started["seq"].as_u64()
        });
        let Some(used) = used else {
            assert!(!needs_people, "{started} without an approval: {why}");
            let opened = self
                .ledger
                .iter()
                .filter(|entry| entry["data"]["what"] == "turn.opened" && entry["data"]["turn"] == turn);
            let scopes = opened.filter_map(|opened| {
                let message = self.at("message.recorded", "message", word(&opened["data"], "message"))?;
                self.ledger[message]["data"]["scope"].as_str()
            });
            return assert!(scopes.into_iter().any(|scope| scope.contains("send")), "{started} is out of scope: {why}");
        };
        let request = self.request(word(&used["data"], "request")).expect("it is in the list");
        let of_request = |what: &'static str| {
            let id = &request["id"];
            self.ledger.iter().filter(move |entry| entry["data"]["what"] == what && entry["data"]["request"] == *id)
        };
        let asked = of_request("call.asked").next().expect("it was asked");
        assert_eq!(asked["data"]["arguments_digest"], started["data"]["arguments_digest"], "{}", self.story(request));
        let approvers: BTreeSet<&str> =
            of_request("request.approved_by").map(|given| word(&given["data"], "by")).collect();
        for reason in request["reasons"].as_array().expect("a list") {
            let is_decided = match word(reason, "decider") {
                "principal" => approvers.contains(word(&asked["data"], "principal")),
                // See `super::POLICY`.
                _ => approvers.len() >= 2,
            };
            assert!(is_decided, "{reason}: {approvers:?} {}", self.story(request));
        }
    }
}
