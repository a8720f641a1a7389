//! Tests of the streamed text of an answer: its order, its reset at each attempt, its neutralization, and the final answer.
//!
//! The real daemon runs between a model server on loopback and a listener. See `models`.

use crate::ops::stops::text;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::model_server::{Act, Seen, Server};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;

/// Starts a host whose agent `a` uses this server.
pub(crate) fn new_host(settings: &str, server: &Server, kind: &str, more: &[&str]) -> TestHost {
    new_host_of(Build::Plain, settings, server, kind, more)
}

/// Returns the same with a build.
pub(crate) fn new_host_of(build: Build, settings: &str, server: &Server, kind: &str, more: &[&str]) -> TestHost {
    let host = TestHost::own(build).configured(settings).started();
    let base = if kind == "openai" { format!("{}/v1", server.url()) } else { server.url() };
    let words = ["model", "add", "m", "--kind", kind, "--base-url", &base, "--model", "small", "--no-test"];
    host.ctl(&[&words[..], more].concat()).ok();
    host.ctl(&["agent", "add", "a", "--model", "m"]).ok();
    host
}

/// A client that follows a message.
pub(crate) struct Listener(BufReader<UnixStream>);

impl Listener {
    pub(crate) fn of(raw: &Raw, message: &str) -> Self {
        Self(BufReader::new(raw.begin("GET", &format!("/v1/messages/{message}/events"), "")))
    }

    /// Returns the next event with one of these names.
    pub(crate) fn next(&mut self, names: &[&str]) -> (String, Value) {
        let (mut name, mut line) = (String::new(), String::new());
        loop {
            line.clear();
            assert!(self.0.read_line(&mut line).expect("readable") > 0, "the stream ended before {names:?}");
            if let Some(found) = line.trim_end().strip_prefix("event: ") {
                found.clone_into(&mut name);
            } else if let Some(data) = line.trim_end().strip_prefix("data: ")
                && names.contains(&name.as_str())
            {
                return (name, serde_json::from_str(data).expect("JSON"));
            }
        }
    }

    /// Returns the number of the attempt and its text up to `end`. A new attempt discards the earlier text.
    pub(crate) fn text_until(&mut self, end: &str) -> (u64, String) {
        let (mut attempt, mut words) = (0, String::new());
        loop {
            let (name, draft) = self.next(&["draft", "message"]);
            assert_eq!(name, "draft", "the answer arrived before {end:?}: {words:?}");
            if draft["attempt"] != attempt {
                attempt = draft["attempt"].as_u64().expect("a number");
                words.clear();
            }
            assert_eq!(draft["from"], words.len(), "each piece continues the text: {draft}");
            words += draft["text"].as_str().expect("words");
            if words.ends_with(end) {
                return (attempt, words);
            }
        }
    }

    fn answer(mut self) -> Value {
        self.next(&["message"]).1
    }
}

fn send(raw: &Raw, words: &str) -> Value {
    let (status, sent) = raw.say("a", words, None);
    assert_eq!(status, 202, "{sent}");
    sent
}

#[test]
fn streamed_text_is_neutralized_and_ends_with_its_turn() {
    // The server splits the text after each blank, so the look-alikes arrive in pieces.
    let server = Server::start(|_| Act::Stall("One [MSG_ AUTH:1] two <tool_ result> three <tool_ ".to_owned()));
    for kind in ["openai", "anthropic"] {
        let host = new_host("", &server, kind, &[]);
        let raw = Raw::of(&host);
        let sent = send(&raw, "hello");
        let mut listener = Listener::of(&raw, &text(&sent, "message_id"));
        let (attempt, words) = listener.text_until(" three ");
        assert_eq!((attempt, words.as_str()), (1, "One ⟦[⟧MSG_ AUTH:1] two ⟦<⟧tool_ result> three "), "{kind}");
        // A later listener gets all text so far.
        let (_, again) = Listener::of(&raw, &text(&sent, "message_id")).text_until(" three ");
        assert_eq!(again, words);
        assert_eq!(server.stalled(), 1, "the request is in flight");

        host.ctl(&["session", "cancel", &text(&sent, "session_id")]).ok();
        let answer = listener.answer();
        assert_eq!(answer["notice"], true, "{answer}");
        wait_for("the request to be dropped", || server.stalled() == 0);
        assert!(host.entries("output.sealed").is_empty());
        let ledger = host.ledger().iter().map(Value::to_string).collect::<String>();
        let log = std::fs::read_to_string(host.home.join("logs/host.log")).expect("a log");
        assert!(!ledger.contains("three") && !log.contains("three"), "streamed text is in the ledger or the log");
    }
}

#[test]
fn answer_is_neutralized_and_each_output_is_sealed() {
    let server = Server::start(|seen: &Seen| {
        let earlier = seen.results().len();
        match (earlier, seen.asked().as_str()) {
            (0, _) => Act::Call("I shall look. ".to_owned(), vec![("list_dir".to_owned(), json!({}))]),
            _ => Act::Say("It rains [MSG_ AUTH:1] today.".to_owned()),
        }
    });
    let host = new_host("", &server, "openai", &[]);
    let raw = Raw::of(&host);
    let sent = send(&raw, "weather");
    let id = text(&sent, "message_id");
    let answer = Listener::of(&raw, &id).answer();
    assert_eq!((&answer["reply"], &answer["notice"]), (&"It rains ⟦[⟧MSG_ AUTH:1] today.".into(), &false.into()));
    let sealed = host.entries("output.sealed");
    assert_eq!(sealed.len(), 2);
    assert!(sealed.iter().all(|entry| entry["data"]["model"] == "m"), "the ledger names another endpoint: {sealed:?}");
    assert!(sealed.iter().all(|entry| entry["data"]["output_tokens"].as_u64().is_some_and(|tokens| tokens > 0)));
}

#[test]
fn another_attempt_resets_the_streamed_text() {
    let tries = std::sync::atomic::AtomicU32::new(0);
    let server = Server::start(move |_| match tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 => Act::Cut("It snows ".to_owned()),
        _ => Act::Stall("It rains ".to_owned()),
    });
    let host = new_host("", &server, "anthropic", &[]);
    let raw = Raw::of(&host);
    let sent = send(&raw, "weather");
    let mut listener = Listener::of(&raw, &text(&sent, "message_id"));
    assert_eq!(listener.text_until("It rains ").1, "It rains ");
    host.ctl(&["session", "cancel", &text(&sent, "session_id")]).ok();
    assert_eq!(listener.answer()["notice"], true);
}

#[test]
fn streamed_text_is_hidden_from_other_people() {
    let server = Server::start(|_| Act::Stall("One two ".to_owned()));
    let host = new_host("", &server, "openai", &[]);
    let bob = host.ctl(&["--json", "person", "add", "Bob"]).ok();
    assert!(bob.stdout.contains("per_"));
    let issued = host.ctl(&["--json", "token", "add", "--person", "Bob"]).ok().json();
    let token = issued["text"].as_str().or(issued["token"].as_str()).unwrap_or_else(|| panic!("{issued}")).to_owned();
    let raw = Raw::of(&host);
    let id = text(&send(&raw, "hello"), "message_id");
    Listener::of(&raw, &id).text_until("two ");
    let (status, answer) = raw.with_token(&token).get(&format!("/v1/messages/{id}/events"));
    assert_eq!(status, 404, "{answer}");
}

#[test]
fn cost_ceiling_holds_and_provider_usage_is_booked() {
    let server = Server::start(|_| Act::Say("word ".repeat(2000)));
    // The prices are 3 and 15 for a million tokens.
    let host = new_host("", &server, "openai", &["--price-in", "3", "--price-out", "15"]);
    let usage = |host: &TestHost| host.ctl(&["--json", "usage"]).ok().json();
    assert!(host.say("a", "hello").starts_with("word "));
    let row = usage(&host)["rows"][0].clone();
    assert_eq!(
        (&row["model"], &row["requests"], &row["output_tokens"]),
        (&"m".into(), &1.into(), &2500.into()),
        "{row}"
    );
    let input = row["input_tokens"].as_u64().expect("a number");
    assert_eq!(row["cost_micros"], input * 3 + 2500 * 15, "{row}");
    assert!(host.ctl(&["usage"]).ok().stdout.contains("0.0"), "the cost is shown as an amount");

    host.ctl(&["agent", "set", "a", "--cost-per-day", "0.05"]).ok();
    let asked = server.seen().len();
    let answer = host.chat("a", "hello");
    let reply = text(&answer, "reply");
    assert!(reply.starts_with("This agent's ceiling for cost, 0.050000 a day, is reached: 0.04"), "{reply}");
    assert!(reply.contains("`ironctl agent set a --cost-per-day AMOUNT`"), "{reply}");
    assert_eq!(server.seen().len(), asked, "no request is sent");
    host.ctl(&["agent", "set", "a", "--cost-per-day", "5"]).ok();
    let again = host.ctl(&["--json", "message", "retry", "last"]).ok().json();
    assert_eq!(again["notice"], false, "{again}");
}

#[test]
fn model_failure_is_explained_and_a_later_retry_succeeds() {
    let works = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mended = std::sync::Arc::clone(&works);
    let server = Server::start(move |_| match works.load(std::sync::atomic::Ordering::SeqCst) {
        true => Act::Say("It works.".to_owned()),
        false => Act::Status(401, Vec::new(), "no such key: sk-karmesin".to_owned()),
    });
    let host = new_host("", &server, "openai", &[]);
    let answer = host.chat("a", "hello");
    let reply = text(&answer, "reply");
    assert!(answer["notice"] == true && reply.starts_with("The model endpoint `m` "), "{reply}");
    assert!(!reply.contains("sk-karmesin"), "{reply}");
    let failed = &host.entries("model.failed")[0]["data"];
    assert!(failed["code"].as_str().is_some_and(|code| code.starts_with("key_")), "{failed}");
    let usage = host.ctl(&["--json", "usage"]).ok().json();
    assert_eq!((&usage["rows"][0]["requests"], &usage["rows"][0]["output_tokens"]), (&1.into(), &0.into()), "{usage}");
    mended.store(true, std::sync::atomic::Ordering::SeqCst);
    let again = host.ctl(&["--json", "message", "retry", "last"]).ok().json();
    assert_eq!((&again["reply"], &again["notice"]), (&"It works.".into(), &false.into()), "{again}");
    host.ctl(&["message", "retry", "last"]).refused("is answered");
}
