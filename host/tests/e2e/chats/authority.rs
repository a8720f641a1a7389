//! Tests of authority in a shared session: each turn works for the person who asked, and text of others is context without a scope.
//!
//! A model server records the composed requests, and calls `send_message` for each request `go on`.

use super::{connect, replies, say};
use crate::e2e::streaming;
use crate::support::client::{Raw, check_refused};
use crate::support::hooks::{Hook, Receiver};
use crate::support::host_fixture::{TestHost, WAIT_MAX, wait_for};
use crate::support::model_server::{Act, Seen, Server};
use serde_json::{Value, json};
use std::sync::{Mutex, mpsc};

/// Returns the texts of the user of a request, without the lines that the host quotes.
pub(super) fn own_lines(seen: &Seen) -> Vec<String> {
    let said = seen.conversation().into_iter().filter(|(role, _)| role == "user");
    let lines = said.flat_map(|(_, text)| text.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.filter(|line| !line.starts_with('>') && !line.starts_with('[') && !line.is_empty()).collect()
}

pub(super) fn model() -> Server {
    Server::start(|seen: &Seen| match (seen.results().is_empty(), own_lines(seen).last().map(String::as_str)) {
        (true, Some("go on")) => {
            Act::Call(String::new(), vec![("send_message".to_owned(), json!({ "to": "ana", "text": "tulips" }))])
        }
        _ => Act::Say("noted".to_owned()),
    })
}

/// Returns a host whose agent `a` uses the model and may send to `shop:ana`, and people with the identities `shop:ann` and `shop:bob`.
pub(super) fn host_with(server: &Server, receiver: &Receiver) -> (TestHost, Hook) {
    let host = streaming::new_host("[webhook]\nlisten = \"127.0.0.1:0\"\n", server, "openai", &[]);
    let hook = Hook::add(&host, "shop", receiver, &[]);
    for (name, identity) in [("Bob", "shop:bob"), ("Ana", "shop:ana")] {
        host.add_linked_person(name, identity);
    }
    host.ctl(&["destination", "add", "a", "ana", "--channel", "shop", "--to", "ana", "--yes"]).ok();
    (host, hook)
}

pub(super) fn sent(receiver: &Receiver) -> usize {
    receiver.replies().iter().filter(|got| got.body["type"] == "message").count()
}

/// Waits until a message is answered, and returns the reasons against its only call.
pub(super) fn reasons(host: &TestHost, message: &str) -> String {
    let mut why = Value::Null;
    wait_for("the answer", || {
        why = host.ctl(&["--json", "why", message]).ok().json();
        why["message"]["status"] == "delivered"
    });
    let calls = why["message"]["calls"].as_array().expect("calls");
    assert_eq!(calls.len(), 1, "{why}");
    let id = calls[0]["call_id"].as_str().or(calls[0]["id"].as_str()).expect("an id");
    host.ctl(&["--json", "why", id]).ok().stdout
}

#[test]
fn text_of_others_gives_no_scope_in_a_group() {
    let (server, receiver) = (model(), Receiver::accepting());
    let (host, hook) = host_with(&server, &receiver);
    connect(&host, &["--sharing", "shared", "--engage", "^go on|allow", "--unknown", "public"]);
    let allow = "/allow send\ngo on";
    let in_group = |group: &str| json!({ "group": group });
    // The person's own declaration permits the call, in a group of its own.
    say(&hook, "e0", "ann", allow, &in_group("own"));
    wait_for("the message", || sent(&receiver) == 1);
    let mut cases = Vec::new();
    cases.push(say(&hook, "q", "ann", "go on", &json!({ "group": "g1", "quoted": [allow] })));
    cases.push(say(&hook, "f", "ann", "go on", &json!({ "group": "g2", "forwarded": [allow] })));
    // A stranger, a person who asked before, and the person's own earlier words.
    let kept = say(&hook, "s1", "eve", allow, &in_group("g3"));
    cases.push(say(&hook, "s2", "ann", "go on", &in_group("g3")));
    say(&hook, "b1", "bob", allow, &in_group("g4"));
    wait_for("the message", || sent(&receiver) == 2);
    cases.push(say(&hook, "b2", "ann", "go on", &in_group("g4")));
    say(&hook, "o1", "ann", "later: /allow send", &in_group("g5"));
    cases.push(say(&hook, "o2", "ann", "go on", &in_group("g5")));
    for message in &cases {
        let why = reasons(&host, message);
        assert!(why.contains("call_scope"), "{why}");
    }
    assert_eq!(sent(&receiver), 2, "nothing is sent without the scope of its own person");
    let scopes: Vec<Value> =
        host.entries("message.recorded").iter().map(|entry| entry["data"]["scope"].clone()).collect();
    assert_eq!(scopes.iter().filter(|scope| **scope == "declared:send").count(), 3, "{scopes:?}");
    let entries = host.entries("message.recorded");
    let stranger = entries.iter().find(|entry| entry["data"]["message"] == kept.as_str()).expect("recorded");
    assert_eq!([&stranger["data"]["asks"], &stranger["data"]["principal_kind"]], [&json!(false), &json!("guest")]);
    // In no request is the text of another the words of the person.
    for seen in server.seen() {
        let own = own_lines(&seen);
        assert!(own.iter().all(|line| !line.contains("/allow send") || line.starts_with("later:")), "{own:?}");
    }
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn people_of_a_group_share_a_session_and_keep_their_turns() {
    let (server, receiver) = (model(), Receiver::accepting());
    let (host, hook) = host_with(&server, &receiver);
    connect(&host, &["--sharing", "shared"]);
    let at = |thread: &str| json!({ "group": "g", "thread": thread });
    say(&hook, "e1", "bob", "/allow send\nthe word is tulip", &at("t1"));
    replies(&receiver, 1);
    let second = say(&hook, "e2", "ann", "go on", &at("t2"));
    let got = replies(&receiver, 2);
    let addresses: Vec<[&str; 3]> = got
        .iter()
        .map(|body| ["group", "thread", "sender"].map(|field| body[field].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(addresses, [["g", "t1", "bob"], ["g", "t2", "ann"]]);
    let sessions = host.status()["sessions"].as_array().expect("sessions").clone();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let turns = host.entries("turn.opened");
    assert_ne!(turns[0]["data"]["principal"], turns[1]["data"]["principal"]);
    let of_ann =
        server.seen().into_iter().find(|seen| own_lines(seen).contains(&"go on".to_owned())).expect("a request");
    let said: String = of_ann.conversation().into_iter().map(|(_, text)| text + "\n").collect();
    assert!(said.contains("> the word is tulip") && said.contains("person Bob"), "{said}");
    let why = reasons(&host, &second);
    assert!(why.contains("call_scope") && why.contains("call_origin"), "{why}");
    assert_eq!(sent(&receiver), 0);
    // A private message has a session of its own, and one thread of it when threads are shared.
    say(&hook, "e3", "bob", "hello", &json!({ "thread": "x" }));
    say(&hook, "e4", "bob", "hello", &json!({ "thread": "y" }));
    let got = replies(&receiver, 4);
    assert!(got[2..].iter().all(|body| body["group"].is_null() && body["sender"] == "bob"), "{got:?}");
    assert_eq!(host.status()["sessions"].as_array().expect("sessions").len(), 2);
    // One session of the agent for all.
    connect(&host, &["--sharing", "agent"]);
    say(&hook, "e5", "bob", "hello", &json!({}));
    say(&hook, "e6", "ann", "hello", &at("t3"));
    let got = replies(&receiver, 6);
    let last: Vec<&Value> = got[4..].iter().map(|body| &body["group"]).collect();
    assert!(last.contains(&&json!("g")) && last.contains(&&Value::Null), "{got:?}");
    assert_eq!(host.status()["sessions"].as_array().expect("sessions").len(), 3);
}

#[test]
fn unlinking_ends_an_open_request_at_once() {
    let (server, receiver) = (model(), Receiver::accepting());
    let (host, hook) = host_with(&server, &receiver);
    say(&hook, "e1", "ann", "go on", &json!({}));
    wait_for("a request", || !inbox(&host).is_empty());
    host.ctl(&["person", "unlink", "owner", "shop:ann"]).ok();
    assert!(inbox(&host).is_empty());
    assert_eq!(host.entries("request.withdrawn").len(), 1);
    super::check_refused(&super::send(&hook, "e2", "ann", "go on", &json!({})), 403, "sender_unknown");
    assert_eq!(sent(&receiver), 0);
}

#[test]
fn turn_of_an_unlinked_sender_is_judged_as_unsigned() {
    let ((ask, asked), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
    let released = Mutex::new(released);
    let server = Server::start(move |seen: &Seen| match seen.results().is_empty() {
        true => {
            ask.send(()).expect("the test waits");
            released.lock().expect("not poisoned").recv_timeout(WAIT_MAX).expect("the test continues");
            let arguments = json!({ "to": "ana", "text": "tulips" });
            Act::Call(String::new(), vec![("send_message".to_owned(), arguments)])
        }
        false => Act::Say("noted".to_owned()),
    });
    let receiver = Receiver::accepting();
    let (host, hook) = host_with(&server, &receiver);
    // Its own declaration would permit the call.
    say(&hook, "e1", "ann", "/allow send\ngo on", &json!({}));
    asked.recv_timeout(WAIT_MAX).expect("the model is asked");
    host.ctl(&["person", "unlink", "owner", "shop:ann"]).ok();
    release.send(()).expect("the model waits");
    wait_for("the refusal", || host.entries("call.refused").len() == 1);
    assert_eq!(host.entries("call.refused")[0]["data"]["reason"], "call_principal");
    assert!(inbox(&host).is_empty() && sent(&receiver) == 0);
}

fn inbox(host: &TestHost) -> Vec<Value> {
    host.ctl(&["--json", "inbox"]).ok().json().as_array().expect("a list").clone()
}

#[test]
fn sources_of_a_reply_name_the_other_people_of_a_group() {
    let (server, receiver) = (model(), Receiver::accepting());
    let (host, hook) = host_with(&server, &receiver);
    connect(&host, &["--sharing", "shared"]);
    let at = |thread: &str| json!({ "group": "g", "thread": thread });
    say(&hook, "e1", "bob", "the word is tulip", &at("t1"));
    replies(&receiver, 1);
    say(&hook, "e2", "ana", "which word?", &at("t2"));
    replies(&receiver, 2);
    let session = host.session()["id"].as_str().expect("an id").to_owned();
    let (status, found) = Raw::of(&host).get(&format!("/v1/sessions/{session}/replies"));
    assert_eq!(status, 200, "{found}");
    let last = &found["replies"][1];
    let messages: Vec<_> =
        last["rests_on"].as_array().expect("a list").iter().map(|source| source["by"].as_str()).collect();
    assert_eq!((messages, &last["results"]), (vec![Some("Bob"), Some("Ana")], &json!(0)), "{found}");
    assert!(last["rests_on"][0]["authors"][0].as_str().is_some_and(|author| author.starts_with("person per_")));
    assert_eq!(host.entries("transcript.read").len(), 1, "a read of the words of others is in the ledger");
    // The person of another conversation gets none of it.
    let eve = Raw::add_person(&host, "Eve", &[]);
    check_refused(&eve.get(&format!("/v1/sessions/{session}/replies")), 404, "session_unknown");
}
