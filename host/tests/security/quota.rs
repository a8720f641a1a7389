//! Quotas of a person and of a channel: a request over a quota is refused, and other people are not affected.
//!
//! See `quota_campaign` for all quotas at once.

use crate::support::client::{Raw, code, exchange};
use crate::support::hooks::{self, Hook, Receiver};
use crate::support::host_fixture::{Build, TestHost, WAIT_MAX, wait_for};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Sends a message in the conversation `thread`.
pub(crate) fn message(raw: &Raw, agent: &str, thread: &str, text: &str) -> (u16, Value) {
    let body = json!({ "text": text, "thread": thread }).to_string();
    raw.ask("POST", &format!("/v1/agents/{agent}/messages"), &body)
}

/// Returns an idle connection to the port, after one answered request.
pub(crate) fn idle_connection(port: &str, token: &str) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(port).ok()?;
    stream.set_read_timeout(Some(WAIT_MAX)).expect("set");
    let asked = write!(stream, "GET /v1/agents HTTP/1.1\r\nhost: {port}\r\nauthorization: Bearer {token}\r\n\r\n");
    asked.ok()?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).ok()?;
    (&answer == b"HTTP/1.1 200").then_some(stream)
}

/// Sends `GET` to the port on a new connection and returns the status.
pub(crate) fn get_at(port: &str, path: &str, token: Option<&str>) -> u16 {
    let stream = TcpStream::connect(port).expect("the port is open");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("set");
    let bearer = token.map(|token| format!("Bearer {token}")).unwrap_or_default();
    let headers = [("host", port), ("authorization", bearer.as_str())];
    let headers = if token.is_some() { &headers[..] } else { &headers[..1] };
    exchange(stream, "GET", path, headers, "").0
}

#[test]
fn sender_over_a_quota_is_refused_and_no_session_is_parked() {
    let quota =
        "[quota]\nconversations_per_person = 3\nconversations_per_channel = 2\nwaiting_bytes_per_person = 100000\n";
    let host = hooks::new_host(Build::Plain, quota);
    host.ctl(&["person", "add", "Bob"]).ok();
    host.ctl(&["person", "add", "Cem"]).ok();
    let (owner, bob) = (Raw::of(&host), Raw::of_person(&host, "Bob"));
    for n in 0..3 {
        assert_eq!(message(&bob, "a", &format!("t{n}"), "hello").0, 202);
    }
    assert_eq!(code(&message(&bob, "a", "t3", "hello")), (429, "too_many_conversations"));
    assert_eq!(message(&bob, "a", "t0", "hello again").0, 202, "existing conversations continue");
    assert_eq!(code(&message(&bob, "a", "t1", &"x".repeat(100_001))), (429, "too_many_bytes_waiting"));
    assert_eq!(message(&owner, "a", "t9", "hello").0, 202, "another person has a separate quota");
    let receiver = Receiver::accepting();
    let hook = Hook::add(&host, "desk", &receiver, &[]);
    host.ctl(&["person", "link", "Cem", "desk:cem", "--yes"]).ok();
    let event = |thread: &str| json!({ "sender": "cem", "thread": thread, "text": "hello" }).to_string();
    let sent: Vec<u16> = ["x", "y"].iter().map(|thread| hook.send(thread, &event(thread)).0).collect();
    assert_eq!(sent, [200, 200]);
    let (body, at) = (event("z"), hooks::now());
    let (time, signature) = (at.to_string(), hook.sign("z", at, &body));
    let headers = [("host", "x"), ("webhook-id", "z"), ("webhook-timestamp", &time), ("webhook-signature", &signature)];
    let (status, head, answer) = exchange(hook.connect(), "POST", &hook.path(), &headers, &body);
    assert_eq!(code(&(status, answer)), (429, "too_many_conversations"));
    assert!(head.contains("retry-after:"), "{head}");
    assert_eq!(hook.send("x", &event("x")).0, 200, "the same event is the same message");
    wait_for("the answers to all messages", || {
        let status = host.status();
        status["sessions"].as_array().expect("a list").iter().all(|session| session["waiting"] == 0)
    });
    assert_eq!(host.entries("session.parked").len(), 0);
    let refused: Vec<Value> = host.entries("api.refused");
    assert!(refused.iter().any(|entry| entry["data"]["code"] == "too_many_conversations"), "{refused:?}");
}

#[test]
fn workspace_over_its_quota_stops_only_its_own_session() {
    let host = TestHost::own(Build::Plain).configured("[quota]\nworkspace_files = 24\n").started_with("a");
    host.agent("b");
    let mut answers = (0..40).map(|n| host.chat("a", &format!("write n{n}.txt: x")));
    let notice = answers.find(|answer| answer["notice"] == true).expect("a notice before the last file");
    let words = notice["reply"].as_str().expect("words");
    assert!(words.contains("quota.workspace_files") && words.contains("24"), "{notice}");
    assert_eq!(host.chat("a", "hello")["notice"], true, "no sandbox starts for this session");
    assert_eq!(host.chat("b", "hello")["notice"], false, "another session is not affected");
    let over = host.entries("workspace.over");
    assert!(over.iter().all(|entry| entry["data"]["limit"] == "workspace_files") && !over.is_empty(), "{over:?}");
    for session in std::fs::read_dir(host.home.join("sessions")).expect("sessions").flatten() {
        for file in std::fs::read_dir(session.path().join("workspace")).expect("a workspace").flatten() {
            std::fs::remove_file(file.path()).expect("the operator can remove it");
        }
    }
    assert_eq!(host.chat("a", "hello")["notice"], false, "the session continues after the removal of files");
    assert_eq!(host.entries("session.parked").len(), 0);
}

#[test]
fn idle_connections_of_a_member_do_not_lock_others_out() {
    let host = TestHost::own(Build::Plain).configured("[api]\nlisten = \"127.0.0.1:0\"\n").started();
    host.ctl(&["person", "add", "Bob"]).ok();
    let (owner, bob) = (Raw::of(&host), Raw::of_person(&host, "Bob"));
    let port = owner.port();
    let mut held: Vec<TcpStream> =
        (0..64).map(|_| idle_connection(&port, &bob.token).expect("a valid token is answered")).collect();
    assert_eq!(get_at(&port, "/v1/agents", Some(&owner.token)), 200);
    assert_eq!((get_at(&port, "/healthz", None), get_at(&port, "/readyz", None)), (200, 200));
    // A person may hold a quarter of the connections, so the host closed the oldest one.
    let mut rest = Vec::new();
    let _ = held[0].read_to_end(&mut rest);
    let last = held.last_mut().expect("64");
    write!(last, "GET /healthz HTTP/1.1\r\nhost: {port}\r\nconnection: close\r\n\r\n").expect("it is open");
    rest.clear();
    last.read_to_end(&mut rest).expect("answered");
    assert!(String::from_utf8_lossy(&rest).contains("\"alive\":true"));
}

#[test]
fn request_body_over_the_limit_of_its_route_is_refused() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let owner = Raw::of(&host);
    let many = format!("{{\"text\":\"x\",\"y\":[{}0]}}", "{\"a\":0},".repeat(40_000));
    assert_eq!(code(&owner.ask("POST", "/v1/agents/a/messages", &many)), (400, "request_malformed"));
    let long = json!({ "text": "x".repeat(600 * 1024) }).to_string();
    assert_eq!(code(&owner.ask("POST", "/v1/agents/a/messages", &long)), (413, "message_too_long"));
    assert_eq!(code(&owner.ask("POST", "/v1/scope/test", &long)), (413, "request_too_large"));
    let note = json!({ "text": "x".repeat(300 * 1024) }).to_string();
    assert_eq!(code(&owner.ask("POST", "/v1/agents/a/memory", &note)), (413, "request_too_large"));
    assert_eq!(owner.say("a", "hello", None).0, 202);
}
