//! Tests of the promise of an approval: an approved call is made once, in whichever turn its task is, or the person is told why not.
//!
//! They use the real programs with the scripted model, a server on loopback that records its requests, and a receiver of webhooks. See
//! `requests`, and `calls_random` for random moments.

use super::requests::{Stream, answered, approve, approve_and_die, delivered, reject, request, waiting};
use crate::security::mcp::ends::kill_all;
use crate::support::client::Raw;
use crate::support::hooks::{Hook, Receiver, Response, add_place};
use crate::support::host_fixture::{Build, TestHost, alive, wait_for};
use crate::support::model_server::{Act, Server};
use crate::support::record;
use crate::support::site::{LOOPBACK, PEOPLE_AWAY, Site};
use ironclaw_operator::PANIC_FILE;
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Milliseconds after which the approvals of a request end.
const UNUSED_MS: i64 = 11 * 60_000;

/// An interruption of a turn that waits for its person.
#[derive(Debug, Clone, Copy)]
enum Interruption {
    HostKilled,
    HostStopped,
    SandboxKilled,
}

/// Returns a host whose agent has the grant of a site and, as a destination, a person on a channel. The owner has a place.
fn host_with_people(site: &Site, shop: &Receiver, desk: &Receiver) -> TestHost {
    start(site, shop, desk, "")
}

/// Returns such a host, whose turns wait for no one.
fn host_with(site: &Site, shop: &Receiver, desk: &Receiver) -> TestHost {
    start(site, shop, desk, PEOPLE_AWAY)
}

fn start(site: &Site, shop: &Receiver, desk: &Receiver, people: &str) -> TestHost {
    let host = TestHost::with_clock()
        .configured(&format!("[webhook]\nlisten = \"127.0.0.1:0\"\nbackoff_ms = 20\n{LOOPBACK}{people}"))
        .started_with("a");
    host.change("a", "enabled_tools", &json!({ "add": ["http_fetch", "run_command"] }));
    let grant = json!({ "host": "127.0.0.1", "port": site.port, "methods": ["GET", "POST"], "paths": ["/notes"] });
    host.change("a", "egress", &grant);
    Hook::add(&host, "shop", shop, &[]);
    host.add_linked_person("Ana", "shop:ana");
    host.ctl(&["destination", "add", "a", "ana", "--channel", "shop", "--to", "ana", "--yes"]).ok();
    add_place(&host, desk, &[]);
    host
}

/// Asks agent `a` to post a text in a thread of its own, and returns the id of the message.
fn say(raw: &Raw, site: &Site, text: &str) -> String {
    let body = json!({ "text": format!("post {text} at {}", site.url("/notes")), "thread": text });
    raw.send_body("a", &body)
}

fn view(raw: &Raw, message: &str) -> Value {
    raw.get(&format!("/v1/messages/{message}")).1
}

/// Returns the statuses of the calls of a message.
fn calls(raw: &Raw, message: &str) -> Vec<String> {
    let view = view(raw, message);
    let calls = view["calls"].as_array().expect("a list").iter();
    calls.map(|call| call["status"].as_str().expect("a status").to_owned()).collect()
}

/// Waits until the turn of a request waits for its person.
fn pauses(raw: &Raw, asked: &Value) {
    let is_told = |told: &Value| told.as_array().is_some_and(|places| places.contains(&json!("chat")));
    wait_for("the pause", || is_told(&request(raw, &asked["id"])["told"]));
}

/// Waits until a request has this status.
fn ends(raw: &Raw, entry: &Value, status: &str) {
    wait_for(&format!("the end of {}", entry["id"]), || request(raw, &entry["id"])["status"] == status);
}

#[test]
fn approved_call_of_an_interrupted_turn_is_made_once() {
    let (site, shop, desk) = (Site::start(), Receiver::accepting(), Receiver::accepting());
    let host = host_with_people(&site, &shop, &desk);
    let mut raw = Raw::of(&host);
    for (text, interruption) in [
        ("roses", Interruption::HostKilled),
        ("tulips", Interruption::HostStopped),
        ("lilies", Interruption::SandboxKilled),
    ] {
        let message = say(&raw, &site, text);
        let mut stream = Stream::open(&raw, &message);
        let asked = stream.next("request");
        pauses(&raw, &asked);
        match interruption {
            Interruption::HostKilled => host.kill_host(),
            Interruption::HostStopped => host.down(),
            Interruption::SandboxKilled => assert!(kill_all(&host, "ironclaw-sandbo") > 0),
        }
        drop(stream);
        if !matches!(interruption, Interruption::SandboxKilled) {
            host.up();
            raw = Raw::of(&host);
        }
        delivered(&raw, &message);
        let entry = waiting(&raw);
        assert_eq!(entry["id"], asked["id"], "{text}: the request survives");
        assert_eq!(approve(&raw, &entry).0, 200, "{text}");
        ends(&raw, &entry, "done");
        assert_eq!(site.sent(text), 1, "{text}");
        assert_eq!(calls(&raw, &message).last().map(String::as_str), Some("done"), "{text}: {}", view(&raw, &message));
    }
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn retried_turn_begins_with_the_result_of_its_call() {
    let (site, shop, desk) = (Site::start(), Receiver::accepting(), Receiver::accepting());
    let mut host = host_with_people(&site, &shop, &desk);
    host.down();
    host.up_failing_at("approved");
    let raw = Raw::of(&host);
    let message = say(&raw, &site, "roses");
    let mut stream = Stream::open(&raw, &message);
    let asked = stream.next("request");
    pauses(&raw, &asked);
    approve_and_die(&raw, &host, &asked);
    drop(stream);
    host.up();
    let raw = Raw::of(&host);
    delivered(&raw, &message);
    // The first answer has the result, and no turn follows.
    let answer = view(&raw, &message);
    assert!(answer["reply"].as_str().expect("a reply").contains("The page says tulip."), "{answer}");
    assert_eq!(request(&raw, &asked["id"])["status"], "done");
    assert_eq!((site.sent("roses"), calls(&raw, &message)), (1, vec!["done".to_owned()]), "{answer}");
    let opened = host.entries("turn.opened");
    assert_eq!(opened.iter().filter(|entry| entry["data"]["message"] == message.as_str()).count(), opened.len());
    assert_eq!(host.entries("call.recorded").len(), 1, "the model makes no second call");
}

#[test]
fn interrupted_call_that_never_began_is_not_unknown() {
    let (site, shop, desk) = (Site::start(), Receiver::accepting(), Receiver::accepting());
    let mut host = host_with(&site, &shop, &desk);
    let model = Server::start({
        let url = site.url("/notes");
        move |seen| match seen.results().last() {
            Some(result) if result.contains("this call was not made") => {
                Act::Call(String::new(), vec![("http_fetch".to_owned(), json!({ "url": url }))])
            }
            Some(result) => Act::Say(format!("result: {result}")),
            None => Act::Call(String::new(), vec![("http_fetch".to_owned(), json!({ "url": url }))]),
        }
    });
    host.add_model(&model.url());
    host.ctl(&["agent", "set", "a", "--model", "m", "--yes"]).ok();
    host.down();
    host.up_failing_at("call_recorded");
    let pid = host.pid().expect("the host runs");
    let raw = Raw::of(&host);
    let message = raw.say("a", &format!("read {}", site.url("/notes")), None).1;
    let message = message["message_id"].as_str().expect("an id").to_owned();
    wait_for("the host to die", || !alive(pid));
    host.up();
    let raw = Raw::of(&host);
    delivered(&raw, &message);
    // The view has the calls of both attempts, and the second one followed from the words about the first one.
    assert_eq!(calls(&raw, &message), ["void", "done"], "{}", view(&raw, &message));
    assert_eq!(host.entries("call.lost").len(), 0);
    let void = view(&raw, &message)["calls"][0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(host.ctl(&["--json", "why", &void]).ok().json()["status"], "void");
}

#[test]
fn outcome_of_a_call_is_a_state_of_its_own() {
    let (site, opened) = (Site::start(), Arc::new(AtomicBool::new(false)));
    let is_open = Arc::clone(&opened);
    // The receiver is away at first.
    let shop = Receiver::new(move |_, _| Response::Status(if is_open.load(Ordering::SeqCst) { 200 } else { 503 }));
    let desk = Receiver::accepting();
    let host = host_with(&site, &shop, &desk);
    // A server that breaks the connection after the request, and one that answers with an error.
    let faulty = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = faulty.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in faulty.incoming().flatten() {
            let mut request = [0; 1024];
            let read = std::io::Read::read(&mut stream, &mut request).unwrap_or(0);
            if String::from_utf8_lossy(&request[..read]).contains(" /error ") {
                let _ = stream.write_all(b"HTTP/1.1 500 Error\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        }
    });
    let model = Server::start(move |seen| {
        let asked = seen.asked();
        let call = |tool: &str, arguments: Value| Act::Call(String::new(), vec![(tool.to_owned(), arguments)]);
        match (asked.trim(), seen.results().is_empty()) {
            ("error", true) => call("http_fetch", json!({ "url": format!("http://127.0.0.1:{port}/error") })),
            (path @ ("broken" | "error late"), true) => {
                let headers = json!({ "content-type": "text/plain" });
                let url = format!("http://127.0.0.1:{port}/{}", path.trim_end_matches(" late"));
                call("http_fetch", json!({ "method": "POST", "url": url, "headers": headers, "body": "tulips" }))
            }
            ("command", true) => call("run_command", json!({ "command": "exit 3" })),
            ("mail", true) => call("send_message", json!({ "to": "ana", "text": "hello" })),
            _ => Act::Say("seen".to_owned()),
        }
    });
    host.add_model(&model.url());
    host.ctl(&["agent", "set", "a", "--model", "m", "--yes"]).ok();
    let grant =
        json!({ "host": "127.0.0.1", "port": port, "methods": ["GET", "POST"], "paths": ["/error", "/broken"] });
    host.change("a", "egress", &grant);
    let raw = Raw::of(&host);
    let run = |text: &str| {
        let body = json!({ "text": text, "thread": text, "allow": ["read", "write", "send", "exec"] });
        let message = raw.send_body("a", &body);
        delivered(&raw, &message);
        message
    };
    for (text, status) in [("error", "failed"), ("broken", "unknown"), ("command", "failed"), ("mail", "queued")] {
        let message = run(text);
        assert_eq!(calls(&raw, &message), [status], "{text}: {}", view(&raw, &message));
        let call = view(&raw, &message)["calls"][0]["id"].as_str().expect("an id").to_owned();
        assert_eq!(host.ctl(&["--json", "why", &call]).ok().json()["status"], status, "{text}");
        if text == "mail" {
            opened.store(true, Ordering::SeqCst);
            wait_for("the delivery", || calls(&raw, &message) == ["done"]);
        }
    }
    // A script learns of a call without a known outcome, and of an approved call that failed, by the exit code.
    let chat = host.ctl(&["--json", "chat", "a", "--thread", "script", "--allow", "send", "broken"]);
    assert_eq!((chat.code, chat.stderr.contains("\"call_unknown\"")), (1, true), "{}", chat.stderr);
    let asked = raw.send_body("a", &json!({ "text": "error late", "thread": "late", "allow": ["read"] }));
    delivered(&raw, &asked);
    let id = waiting(&raw)["id"].as_str().expect("an id").to_owned();
    let decided = host.ctl(&["--json", "approve", &id, "--yes"]);
    assert_eq!((decided.code, decided.stderr.contains("\"call_failed\"")), (1, true), "{}", decided.stderr);
}

/// What happens to the request of a call before the model makes an equal call, which a grant permits by then.
#[derive(Debug, Clone, Copy)]
enum Meanwhile {
    HostKilled,
    Rejected,
}

#[test]
fn permitted_call_follows_the_request_of_an_equal_call() {
    let site = Site::start();
    let host = TestHost::own(Build::Failpoints).configured(LOOPBACK).started_with("a");
    host.change("a", "enabled_tools", &json!({ "add": ["http_fetch"] }));
    let url = site.url("/");
    let model = Server::start(move |seen| match (seen.results().len(), seen.asked()) {
        (0 | 1, text) if !seen.results().iter().any(|result| result.contains("tulip")) => {
            let headers = json!({ "content-type": "text/plain" });
            let arguments =
                json!({ "method": "POST", "url": format!("{url}{text}"), "headers": headers, "body": text });
            Act::Call(String::new(), vec![("http_fetch".to_owned(), arguments)])
        }
        (_, _) => Act::Say(format!("{:?}", seen.results())),
    });
    host.add_model(&model.url());
    host.ctl(&["agent", "set", "a", "--model", "m", "--yes"]).ok();
    let mut raw = Raw::of(&host);
    for (path, meanwhile, status, arrived, last) in [
        ("roses", Meanwhile::HostKilled, "withdrawn", 1, "done"),
        ("lilies", Meanwhile::Rejected, "rejected", 0, "refused"),
    ] {
        let body = json!({ "text": path, "thread": path, "allow": ["send"] });
        let message = raw.send_body("a", &body);
        let mut stream = Stream::open(&raw, &message);
        let asked = stream.next("request");
        pauses(&raw, &asked);
        let grant =
            json!({ "host": "127.0.0.1", "port": site.port, "methods": ["POST"], "paths": [format!("/{path}")] });
        host.change("a", "egress", &grant);
        match meanwhile {
            Meanwhile::HostKilled => {
                host.kill_host();
                drop(stream);
                host.up();
                raw = Raw::of(&host);
            }
            Meanwhile::Rejected => assert_eq!(reject(&raw, &asked, "not now").0, 200),
        }
        delivered(&raw, &message);
        ends(&raw, &asked, status);
        assert_eq!(site.sent(path), arrived, "{path}: {}", view(&raw, &message));
        assert_eq!(calls(&raw, &message).last().map(String::as_str), Some(last), "{}", view(&raw, &message));
    }
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn person_is_told_of_an_approval_without_its_effect() {
    let (site, shop, desk) = (Site::start(), Receiver::accepting(), Receiver::accepting());
    let mut host = host_with(&site, &shop, &desk);
    // The host dies with the call in flight, then before it uses an approval: that one is over, or everything is stopped meanwhile.
    let mut shift = 0;
    for (text, point, status) in
        [("roses", "call_started", "unknown"), ("tulips", "approved", "expired"), ("lilies", "approved", "withdrawn")]
    {
        host.down();
        host.up_failing_at(point);
        let raw = Raw::of(&host);
        let message = say(&raw, &site, text);
        delivered(&raw, &message);
        let entry = waiting(&raw);
        approve_and_die(&raw, &host, &entry);
        match status {
            "expired" => {
                shift += UNUSED_MS;
                host.shift_clock(shift);
            }
            "withdrawn" => std::fs::write(host.home.join(PANIC_FILE), "").expect("written"),
            _ => {}
        }
        host.up();
        let raw = Raw::of(&host);
        if status == "withdrawn" {
            host.ctl(&["resume"]).ok();
        }
        ends(&raw, &entry, status);
        answered(&host, &message);
        assert_eq!(site.sent(text), 0, "{text}");
        let id = entry["id"].as_str().expect("an id");
        let call = view(&raw, &message)["calls"][0].clone();
        assert_eq!(call["status"], if status == "unknown" { "unknown" } else { "refused" }, "{text}");
        // In the conversation, at the place, and in the words about the call.
        let why = host.ctl(&["--json", "why", call["id"].as_str().expect("an id")]).ok().json();
        assert!(why["result"].as_str().is_some_and(|words| words.contains(id) && !words.contains("pending")), "{why}");
        let is_told =
            |reply: &Value| reply["author"] == "host" && reply["text"].as_str().is_some_and(|t| t.contains(id));
        wait_for("the notice", || {
            let unread = raw.ask("POST", "/v1/agents/a/unread", "").1["replies"].clone();
            unread.as_array().is_some_and(|all| all.iter().any(is_told))
        });
        wait_for("the line at the place", || {
            desk.notifications().iter().any(|line| line.contains(&format!("why {id}")))
        });
    }
}

#[test]
fn job_of_many_approvals_continues_without_its_person() {
    let (site, shop, desk) = (Site::start(), Receiver::accepting(), Receiver::accepting());
    let host = host_with(&site, &shop, &desk);
    let url = site.url("/notes");
    let model = Server::start(move |seen| {
        let conversation = seen.conversation();
        let is_made = |text: &String| text.matches("was approved and was made").count();
        let done: usize = conversation.iter().map(|(_, text)| is_made(text)).sum();
        let is_asked = !seen.results().is_empty();
        match is_asked {
            true => Act::Say("it waits".to_owned()),
            false => {
                let headers = json!({ "content-type": "text/plain" });
                let body = format!("step{}", done + 1);
                let arguments = json!({ "method": "POST", "url": url, "headers": headers, "body": body });
                Act::Call(String::new(), vec![("http_fetch".to_owned(), arguments)])
            }
        }
    });
    host.add_model(&model.url());
    host.ctl(&["agent", "set", "a", "--model", "m", "--yes"]).ok();
    let mut raw = Raw::of(&host);
    let message = raw.send("a", "do the steps");
    delivered(&raw, &message);
    for step in 1..=21 {
        if step == 15 {
            // A day has a bound on the requests of a person.
            host.down();
            let older = "UPDATE waiting SET created_at = created_at - 90000000 WHERE kind = 'req' AND status = 'done'";
            assert_eq!(record::open_to_change(&host.home).execute(older, []).expect("changed"), step - 1);
            host.up();
            raw = Raw::of(&host);
        }
        wait_for(&format!("the request of step {step}"), || {
            raw.get("/v1/waiting").1["entries"].as_array().is_some_and(|all| all.len() == 1)
        });
        // The person is away until the turn has ended.
        let history = || raw.get("/v1/agents/a/history").1["lines"].to_string();
        wait_for("the end of the turn", || history().matches("it waits").count() == step);
        let entry = waiting(&raw);
        assert_eq!(approve(&raw, &entry).0, 200, "{step}");
        ends(&raw, &entry, "done");
    }
    assert_eq!(site.lines().len(), 21);
    // The last result has no turn of its own, and the person learns how the task continues.
    wait_for("the line at the place", || desk.notifications().iter().any(|line| line.contains(&message)));
    assert_eq!(raw.get("/v1/waiting").1["entries"], json!([]));
    let unread = raw.ask("POST", "/v1/agents/a/unread", "").1["replies"].clone();
    let notices = unread.as_array().expect("a list").iter().filter(|reply| reply["author"] == "host").count();
    assert_eq!(notices, 1, "{unread}");
}
