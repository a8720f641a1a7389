//! Tests of odd streams, of refusals and of the last words of an endpoint, through the daemon and `ironctl`.
//!
//! See `model_recordings` for the table of odd answers.

use crate::e2e::streaming;
use crate::support::client::Raw;
use crate::support::host_fixture::TestHost;
use crate::support::model_server::{Act, Seen, Server};
use crate::support::record;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

/// The key of the endpoint, which its server repeats.
const KEY: &str = "sk-not-to-be-seen-anywhere";
/// Words that are kept for each endpoint.
const KEPT_MAX: usize = 20;

/// Starts a host whose agent `a` asks a server with the current act.
fn host_with(act: Act) -> (TestHost, Server, Arc<Mutex<Act>>) {
    let current = Arc::new(Mutex::new(act));
    let now = Arc::clone(&current);
    let server = Server::start(move |_| now.lock().expect("not poisoned").clone());
    let host = streaming::new_host("[model]\nbackoff_ms = 1\n", &server, "openai", &[]);
    (host, server, current)
}

fn set(current: &Mutex<Act>, act: Act) {
    *current.lock().expect("not poisoned") = act;
}

fn refusal(status: u16, body: &Value) -> Act {
    Act::Status(status, Vec::new(), body.to_string())
}

/// Returns the explanation of the newest message of the owner.
fn why(host: &TestHost) -> Value {
    host.ctl(&["--json", "why"]).ok().json()
}

/// Sends a message, whatever its outcome.
fn send(host: &TestHost, message: &str) {
    host.ctl(&["--json", "chat", "a", message]);
}

/// Sends a message that gets no answer. Returns the code of the failure and the words of the endpoint.
fn failure(host: &TestHost) -> (String, String) {
    send(host, "hello");
    let why = why(host);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&why["failure"]["code"]), text(&why["words"][0]["words"]))
}

/// Returns the last words of an endpoint.
fn last_words(client: &Raw, model: &str) -> Vec<Value> {
    let (status, model) = client.get(&format!("/v1/models/{model}"));
    assert_eq!(status, 200, "{model}");
    model["last_words"].as_array().cloned().unwrap_or_default()
}

#[test]
fn odd_stream_is_an_answer_of_the_agent() {
    let (host, server, current) = host_with(Act::Hang);
    let chunk = |delta: Value, end: Value| json!({ "choices": [{ "delta": delta, "finish_reason": end }] }).to_string();
    let [words, end] = [chunk(json!({ "content": "Good morning" }), Value::Null), chunk(json!({}), json!("stop"))];
    let good = format!("data: {words}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    let kind = |kind: &str| vec![("content-type", kind.to_owned())];
    let rows = [
        (kind("text/plain"), good.clone()),
        (kind("application/octet-stream"), good.clone()),
        (kind("application/json"), good.clone()),
        (kind("text/event-stream"), format!("data:\n\n{good}")),
        (kind("text/event-stream"), format!("data: \"ping\"\n\ndata: ping\n\n{good}")),
        (kind("text/event-stream"), format!("data: {words}\n\ndata: {end}")),
        (kind("text/event-stream"), format!("data: {words}\ndata: {end}\ndata: [DONE]\n")),
        (kind("text/event-stream"), format!("{words}\n{end}\n")),
    ];
    for (at, (headers, body)) in rows.into_iter().enumerate() {
        set(&current, Act::Status(200, headers, body));
        assert_eq!(host.say("a", "hello"), "Good morning", "row {at}");
        assert_eq!(server.seen().len(), at + 1, "one request each");
    }
}

#[test]
fn refusals_are_named_and_an_admin_reads_the_words() {
    let (host, server, current) = host_with(Act::Say("Well.".to_owned()));
    host.ctl_given(KEY, &["secret", "set", "m-key"]).ok();
    let base = format!("{}/v1", server.url());
    let add = ["model", "add", "m", "--kind", "openai", "--base-url", &base, "--model", "small", "--no-test"];
    host.ctl(&[&add[..], &["--key", "secret:m-key", "--replace"]].concat()).ok();
    let gemini = json!([{ "error": { "code": 400, "status": "INVALID_ARGUMENT",
        "message": format!("API key not valid: {KEY}. Please pass a valid API key.") } }]);
    let events = |data: &Value| Act::Events(vec![format!("data: {data}\n\n")]);
    let rows = [
        (refusal(400, &gemini), "key_refused", "API key not valid: [key]"),
        (events(&gemini), "key_refused", "API key not valid: [key]"),
        (Act::Raw(gemini.to_string()), "key_refused", "API key not valid: [key]"),
        (
            refusal(400, &json!({ "detail": [{ "loc": ["body"], "msg": "no such field" }] })),
            "bad_request",
            "no such field",
        ),
        (refusal(402, &json!({ "errors": [{ "message": "no money" }] })), "no_credit", "no money"),
        (
            refusal(400, &json!({ "error": { "message": "filtered", "code": "content_filter" } })),
            "withheld",
            "filtered",
        ),
    ];
    for (at, (act, code, words)) in rows.into_iter().enumerate() {
        let before = server.seen().len();
        set(&current, act);
        let (found, said) = failure(&host);
        assert_eq!(found, code, "row {at}: {said}");
        assert!(said.contains(words) && !said.contains(KEY), "row {at}: {said:?}");
        assert_eq!(server.seen().len(), before + 1, "row {at}: a refusal is not repeated");
    }
    let owner = Raw::of(&host);
    let words = last_words(&owner, "m");
    assert_eq!(words.len(), 6);
    assert_eq!((&words[0]["code"], &words[0]["endpoint"]), (&json!("withheld"), &json!("m")));
    // The sentence for the person has no words of the provider, and names the command that shows them.
    let shown = host.ctl(&["why"]).ok().stdout;
    assert!(shown.contains("filtered"), "{shown}");
    // A member reads the code, and no words.
    let bob = Raw::add_person(&host, "bob", &[]);
    let message = bob.send("a", "hello");
    crate::support::host_fixture::wait_for("an outcome", || {
        bob.get(&format!("/v1/messages/{message}/why")).1["failure"]["code"] == "withheld"
    });
    assert_eq!(bob.get(&format!("/v1/messages/{message}/why")).1["words"], Value::Null);
    assert_eq!(bob.get("/v1/models/m").0, 403);
    // The ledger has none.
    let ledger = format!("{:?}", host.ledger());
    assert!(!ledger.contains("filtered") && !ledger.contains("API key not valid"), "no words of a provider");
}

#[test]
fn last_words_are_few_and_go_with_their_endpoint() {
    let (host, _server, current) = host_with(refusal(400, &json!({ "error": "first" })));
    for _ in 0..KEPT_MAX + 2 {
        send(&host, "hello");
    }
    let long = "long ".repeat(400);
    set(&current, refusal(400, &json!({ "error": long })));
    send(&host, "hello");
    let words = last_words(&Raw::of(&host), "m");
    assert_eq!(words.len(), KEPT_MAX);
    let newest = words[0]["words"].as_str().expect("words");
    assert!(newest.starts_with("long long") && newest.chars().count() <= 501, "{newest}");
    // The record has them sealed.
    let rows = |sql: &str| record::count(&record::open(&host.home), sql);
    assert_eq!(rows("SELECT count(*) FROM endpoint_words WHERE instr(sealed, CAST('long' AS BLOB)) > 0"), 0);
    host.ctl(&["agent", "set", "a", "--model", "scripted", "--yes"]).ok();
    host.ctl(&["model", "remove", "m", "--yes"]).ok();
    assert_eq!(rows("SELECT count(*) FROM endpoint_words"), 0);
}

/// Answers with this status to a request with more than this many bytes of messages.
fn fails_above(status: Arc<AtomicU16>, bytes: usize) -> impl Fn(&Seen) -> Act {
    move |seen| match seen.body["messages"].to_string().len() > bytes {
        true => refusal(status.load(Ordering::Relaxed), &json!({ "error": { "message": "it broke" } })),
        false => Act::Say("Well.".to_owned()),
    }
}

#[test]
fn error_of_one_conversation_ends_after_the_second_attempt() {
    let status = Arc::new(AtomicU16::new(0));
    let server = Server::start(fails_above(Arc::clone(&status), 20_000));
    let host = streaming::new_host("[model]\nbackoff_ms = 1\n", &server, "openai", &[]);
    assert_eq!(host.say("a", "hello"), "Well.");
    let long = "words ".repeat(5000);
    // A refusal is not repeated.
    for (code, requests) in [(500, 2), (400, 1), (422, 1)] {
        status.store(code, Ordering::Relaxed);
        for message in [long.as_str(), "go on"] {
            let before = server.seen().len();
            send(&host, message);
            assert_eq!(server.seen().len() - before, requests, "{code}");
            let why = why(&host);
            assert_eq!(why["failure"]["code"], "conversation_fails", "{code}: {why}");
            assert_eq!(why["words"][0]["words"], "it broke");
        }
        let new = host.ctl(&["--json", "chat", "a", "hello", "--new"]).ok().json();
        assert_eq!(new["reply"], "Well.");
    }
}

#[test]
fn refused_call_of_the_model_is_made_once_more_with_the_reason() {
    let words = "Failed to call a function. Please adjust your prompt.";
    let body = json!({ "error": { "message": words, "code": "tool_use_failed", "failed_generation": "<function=x>" } });
    let refused = refusal(400, &body);
    let first = Arc::new(Mutex::new(true));
    let is_first = Arc::clone(&first);
    let act = refused.clone();
    let server = Server::start(move |_| match std::mem::take(&mut *is_first.lock().expect("not poisoned")) {
        true => act.clone(),
        false => Act::Say("Well.".to_owned()),
    });
    let host = streaming::new_host("[model]\nbackoff_ms = 1\n", &server, "openai", &[]);
    assert_eq!(host.say("a", "hello"), "Well.");
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert!(!seen[0].body.to_string().contains(words) && seen[1].body.to_string().contains(words));
    // The next message repeats nothing of it, and a second refusal ends the turn.
    *first.lock().expect("not poisoned") = true;
    drop(server);
    let (host, server, _current) = host_with(refused);
    let (code, said) = failure(&host);
    assert_eq!((code.as_str(), said.as_str()), ("bad_call", words));
    assert_eq!(server.seen().len(), 2, "never more attempts");
    assert!(why(&host)["failure"]["message"].as_str().is_some_and(|said| !said.contains("try again later")));
}
