//! Tests of calls that wait for a person: the inbox, the commands for one call, and scripts.
//!
//! See [`crate::inline`] for the question in a conversation, [`crate::inbox`] for changes.

use crate::chat::conversation;
use crate::fake_host::{Answer, FakeHost, code_of, json_of, view};
use crate::inbox::{ID, decisions, digest, entry};
use crate::terminal::Terminal;
use serde_json::{Value, json};

pub const PAGE: &str = "EFFECT\n  Send a POST to \"api.example\".\n\nIDENTIFIERS\n  request: one\n";

pub fn id(prefix: &str, number: u32) -> String {
    format!("{prefix}_0000000000000000000000000{number}")
}

/// Returns the request with this number of two.
pub fn request(number: u32, status: &str) -> Value {
    json!({
        "id": id("req", number), "agent": "assistant", "status": status, "call_id": id("call", number), "tool": "http_fetch",
        "class": "send", "session_id": id("ses", 1), "turn_id": id("trn", 1), "message_id": id("msg", 1),
        "requested_by": "owner", "effect": "Send a POST to \"api.example\".", "arguments": {"url": "https://api.example/"},
        "origins": [{"argument": "url", "origin": {"source": "typed", "labels": [], "item": null, "handle": null}}],
        "reasons": [{"reason": "call_outward", "meaning": "A value leaves.", "decider": "principal", "arguments": ["body"]}],
        "shown": PAGE, "shown_digest": digest(PAGE), "created_at": "2026-01-02T03:04:05.000Z",
        "expires_at": "2026-01-03T03:04:05.000Z", "told": ["loopback"], "yours": status == "pending",
        "outcome": match status { "done" => Some("200"), "rejected" => Some("too early"), _ => None },
        "position": number, "of": 2
    })
}

pub fn call_entry(number: u32, yours: bool) -> Value {
    let mut call = entry(&id("req", number));
    call["type"] = json!("call");
    call["agent"] = json!("assistant");
    call["effect"] = json!("Send a POST.");
    call["yours"] = json!(yours);
    call["may_reject"] = json!(yours);
    call
}

/// Returns the requests about decisions, without the message.
pub fn decided(host: &FakeHost) -> Vec<(String, Value)> {
    decisions(host).into_iter().filter(|(line, _)| line.contains("/requests/")).collect()
}

pub fn approved(number: u32) -> (String, Value) {
    (format!("POST /v1/requests/{}/approve", id("req", number)), json!({"shown": digest(PAGE)}))
}

/// Returns a message whose turn has a call that waits.
fn waiting_view() -> Value {
    let mut view = view(Some("I asked."), None);
    view["calls"] = json!([
        {"id": id("call", 1), "tool": "http_fetch", "class": "send", "status": "asked", "code": "call_outward",
         "request": id("req", 1)},
        {"id": id("call", 2), "tool": "recall", "class": "read", "status": "done", "code": null, "request": null}
    ]);
    view
}

#[test]
fn script_with_a_waiting_call_fails_and_names_the_request() {
    let host = FakeHost::new(|line, _| match line {
        line if line.starts_with("GET /v1/messages/msg_00000000000000000000000001?wait_ms=") => {
            Answer::json(waiting_view())
        }
        "GET /v1/inbox" => Answer::json(json!([call_entry(1, true)])),
        other => conversation(other, ""),
    });
    let (code, out, err) = host.ironctl(&["chat", "assistant", "hello"]);
    assert_eq!((code, out.as_str()), (1, "I asked.\n"));
    assert!(err.contains(&id("req", 1)) && err.contains("ironctl inbox"), "{err}");
    let (code, out, err) = host.ironctl(&["chat", "assistant", "hello", "--json"]);
    assert_eq!((code, code_of(&err).as_str()), (1, "needs_person"));
    for (field, words) in [("message", id("req", 1).as_str()), ("hint", "ironctl inbox")] {
        assert!(json_of(&err)["error"][field].as_str().expect("words").contains(words), "{field}: {err}");
    }
    assert_eq!(json_of(&out)["calls"], waiting_view()["calls"]);
    assert!(!host.asked().iter().any(|asked| asked.line.contains("/events")), "a script is not present");
}

/// Returns an offer of an allowance.
fn offer() -> Value {
    let fields = json!({ "method": "POST", "url": "https://api.example/notes?a=1&b" });
    json!({
        "draft": { "agent": "clerk", "tool": "http_fetch", "fields": fields, "count": 5, "until": "7d" },
        "messages": 3, "days": 4, "since": "2026-01-02T03:04:05.000Z", "compared": 6, "unread": 1, "permitted": 3
    })
}

/// Starts a host with one call and one change in the inbox, and one call for other people.
fn host_with_an_inbox() -> FakeHost {
    let is_decided = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::SeqCst;
    FakeHost::new(move |line, _| match line {
        "GET /v1/inbox" => {
            let mut waiting = vec![call_entry(2, false)];
            if !is_decided.load(order) {
                waiting.insert(0, call_entry(1, true));
            }
            Answer::json(json!(waiting))
        }
        "GET /v1/requests/req_00000000000000000000000001" => {
            Answer::json(request(1, if is_decided.load(order) { "done" } else { "pending" }))
        }
        line if line.ends_with("/approve") => {
            is_decided.store(true, order);
            Answer::json(request(1, "running"))
        }
        line if line.ends_with("/reject") => Answer::json(request(1, "rejected")),
        "GET /v1/calls/call_00000000000000000000000001/why" => Answer::json(json!({
            "call_id": id("call", 1), "session_id": id("ses", 1), "turn_id": id("trn", 1), "tool": "http_fetch",
            "class": "send", "status": "done", "code": null, "stages": [], "summary": "It ran.", "request": id("req", 1)
        })),
        "GET /v1/allowances/offers" => Answer::json(json!([offer()])),
        "GET /v1/unread" => Answer::json(json!([unread()])),
        _ => Answer::missing("request_unknown", "there is no such approval request"),
    })
}

fn unread() -> Value {
    let (session_id, newest_at) = (id("ses", 1), "2026-11-18T11:06:40.123Z");
    json!({
        "type": "replies", "agent": "a", "session_id": session_id, "thread": null, "count": 2, "newest_at": newest_at
    })
}

#[test]
fn inbox_of_a_script_is_the_list_of_the_host() {
    let host = host_with_an_inbox();
    let got = json_of(&host.quiet(&["inbox", "--json"]));
    assert_eq!(got, json!([call_entry(1, true), call_entry(2, false), unread()]));
}

#[test]
fn call_in_the_inbox_is_decided_like_a_change() {
    let host = host_with_an_inbox();
    let mut terminal = Terminal::running(&host, &["inbox"], Some(100));
    terminal.wait_for("1 to decide");
    terminal.wait_for("Send a POST to \"api.example\".");
    terminal.reply("approve, reject, details, skip, quit? ", "1 yes");
    terminal.wait_for(&format!("{} is done: 200", id("req", 1)));
    terminal.wait_for(&format!("{} waits for other people: call: Send a POST.", id("req", 2)));
    terminal.wait_for("allowance add clerk http_fetch --field method=POST");
    terminal.end_after("'url=https://api.example/notes?a=1&b' --count 5 --until 7d", 0);
    assert_eq!(decided(&host), [approved(1)], "an offer adds nothing");
    assert_eq!(host.json(&["allowance", "offers"]), json!([offer()]));
}

#[test]
fn one_call_is_approved_and_rejected_by_its_id() {
    let (host, req) = (host_with_an_inbox(), id("req", 1));
    let mut terminal = Terminal::running(&host, &["approve", &req], Some(100));
    terminal.reply("approve, reject, details, quit? ", "quit");
    assert_eq!(terminal.end(), 1);
    assert_eq!(decided(&host), []);
    assert_eq!(host.output(&["reject", &req, "--reason", "too early"]), format!("{req} is rejected: too early\n"));
    assert_eq!(host.output(&["approve", &req, "--yes"]), format!("{PAGE}\n{req} is done: 200\n"));
    let seen = digest("seen before");
    for flag in ["--digest", "--shown"] {
        let got = host.json(&["approve", &req, flag, &seen]);
        assert_eq!((&got["id"], &got["status"]), (&json!(req), &json!("done")), "{flag}");
        assert_eq!(decided(&host).last().expect("one").1, json!({"shown": seen}));
    }
    assert_eq!(host.failed(&["approve", &id("req", 9)]), (1, "request_unknown".to_owned()));
    assert_eq!(host.ironctl(&["reject", ID]).0, 1, "a change goes to the changes");
    assert_eq!(host.asked().last().expect("one").line, format!("POST /v1/changes/{ID}/reject"));
}

#[test]
fn why_explains_a_request_and_names_that_of_a_call() {
    let host = host_with_an_inbox();
    let out = host.output(&["why", &id("req", 1)]);
    for words in ["http_fetch (send) of agent assistant", "call_outward", "principal", "waits for you", &id("call", 1)]
    {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert_eq!(host.json(&["why", &id("req", 1)]), request(1, "pending"));
    let out = host.output(&["why", &id("call", 1)]);
    assert!(out.ends_with(&format!("approval request: {} waits for you: ironctl inbox\n", id("req", 1))), "{out}");
    assert_eq!(host.json(&["why", &id("call", 1)])["request"], id("req", 1));
}
