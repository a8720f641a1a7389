//! Tests of calls that wait for a person: the inbox with offers and replies, and scripts.
//!
//! See [`crate::inline`] for the question in a conversation, [`crate::inbox`] for decisions.

use crate::chat::conversation;
use crate::fake_host::{Answer, FakeHost, code_of, json_of, view};
use crate::terminal::Terminal;
use crate::waiting::{BOTH, Held, PAGE, approval, call_together, decision, decisions, digest, id, request};
use serde_json::{Value, json};

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
        "GET /v1/waiting?agent=assistant" => Answer::json(json!([request(1, "pending")])),
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

/// Starts a host with one call in the inbox, and one call for other people.
fn host_with_an_inbox() -> FakeHost {
    let held = Held::new([request(1, "pending"), request_for_others()]);
    FakeHost::new(move |line, asked| match line {
        "GET /v1/calls/call_00000000000000000000000001/why" => Answer::json(json!({
            "call_id": id("call", 1), "session_id": id("ses", 1), "turn_id": id("trn", 1), "tool": "http_fetch",
            "class": "send", "status": "done", "code": null, "stages": [], "summary": "It ran.", "request": id("req", 1)
        })),
        "GET /v1/allowances/offers" => Answer::json(json!([offer()])),
        "GET /v1/unread" => Answer::json(json!([unread()])),
        other => held.answer(asked).unwrap_or_else(|| Answer::missing("unexpected", other)),
    })
}

fn request_for_others() -> Value {
    let mut call = request(2, "pending");
    (call["yours"], call["may_reject"]) = (json!(false), json!(false));
    call
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
    assert_eq!([&got[0]["id"], &got[1]["id"], &got[2]], [&json!(id("req", 1)), &json!(id("req", 2)), &unread()]);
    assert_eq!(host.json(&["inbox", "list"]), json!([got[0], got[1]]));
}

#[test]
fn call_in_the_inbox_is_decided_like_a_change() {
    let host = host_with_an_inbox();
    let mut terminal = Terminal::running(&host, &["inbox"], Some(100));
    terminal.wait_for("1 to decide");
    terminal.wait_for("Send a POST to \"api.example\".");
    terminal.reply("approve, reject, details, skip, quit? ", "1 yes");
    terminal.wait_for(&format!("{} is done: 200", id("req", 1)));
    terminal.wait_for(&format!("{} waits for other people: call: This host runs", id("req", 2)));
    terminal.wait_for("allowance add clerk http_fetch --field method=POST");
    terminal.end_after("'url=https://api.example/notes?a=1&b' --count 5 --until 7d", 0);
    assert_eq!(decisions(&host), [approval(&id("req", 1), PAGE)], "an offer adds nothing");
    assert_eq!(host.json(&["allowance", "offers"]), json!([offer()]));
}

#[test]
fn why_of_a_call_has_the_summary_of_its_request() {
    let host = host_with_an_inbox();
    let out = host.output(&["why", &id("call", 1)]);
    assert!(out.ends_with(&format!("approval request: {} is pending\n", id("req", 1))), "{out}");
    assert_eq!(host.json(&["why", &id("call", 1)])["request"], id("req", 1));
}

#[test]
fn inbox_shows_calls_together_and_lists_them_in_one_line() {
    let both = || Held::new([1, 2].map(|number| call_together(number, "pending")));
    let held = both();
    let host =
        FakeHost::new(move |line, asked| held.answer(asked).unwrap_or_else(|| Answer::missing("unexpected", line)));
    let (code, listed, _) = host.ironctl(&["inbox", "list"]);
    assert_eq!((code, listed.matches("req_").count(), listed.contains("(2 calls)")), (0, 1, true), "{listed}");
    let (_, listed, _) = host.ironctl(&["--json", "inbox", "list"]);
    assert_eq!(json_of(&listed).as_array().map(Vec::len), Some(2), "a script gets each: {listed}");
    let mut terminal = Terminal::running(&host, &["inbox"], Some(100));
    terminal.wait_for("APPROVAL REQUESTS: 2 calls\r\n");
    terminal.reply("approve, reject, each, details, skip, quit? ", "approve");
    terminal.wait_for("nothing waits");
    assert_eq!(decisions(&host), [decision(&id("req", 1), json!({"approve_together": digest(BOTH)}))]);
    let held = both();
    let host =
        FakeHost::new(move |line, asked| held.answer(asked).unwrap_or_else(|| Answer::missing("unexpected", line)));
    let (code, out, err) = host.ironctl(&["approve", &id("req", 2), "--together", "--yes"]);
    assert_eq!((code, out.contains("Send 2 posts.")), (0, true), "{out}{err}");
    assert_eq!(decisions(&host), [decision(&id("req", 2), json!({"approve_together": digest(BOTH)}))]);
}
