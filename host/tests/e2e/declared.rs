//! Tests of declared scopes: what binds calls that stay in the jail, and approved calls that their model makes again.
//!
//! They use the real programs, and a model server that makes the calls which the test gives it. See `requests` for calls of the host.

use crate::e2e::requests::{approve, approve_and_die, delivered, inbox, last_answer, reject, request, say, waiting};
use crate::e2e::streaming;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::model_server::{Act, Seen, Server};
use crate::support::site::PEOPLE_AWAY;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

/// The words of the host to the model of a call that people approved.
const AGAIN: &str = "Make exactly this call again now";

/// The calls that a model makes at its next message.
type Wanted = Arc<Mutex<Vec<(String, Value)>>>;

/// A host with a model that makes the calls which the test set last, and the first of them again once it is approved.
struct Stage {
    host: TestHost,
    raw: Raw,
    _server: Server,
    wanted: Wanted,
}

impl Stage {
    fn new(settings: &str) -> Self {
        Self::with(settings, Build::Plain)
    }

    fn with(settings: &str, build: Build) -> Self {
        let wanted = Wanted::default();
        let calls = Arc::clone(&wanted);
        let server = Server::start(move |seen: &Seen| {
            let wanted = calls.lock().expect("calls").clone();
            let (_, last) = seen.conversation().pop().expect("a conversation");
            match seen.results() {
                _ if last.contains(AGAIN) => Act::Call(String::new(), wanted[..1].to_vec()),
                results if results.is_empty() => Act::Call(String::new(), wanted),
                results => Act::Say(format!("It says: {}", results.join(" | "))),
            }
        });
        let host = streaming::new_host_of(build, settings, &server, "openai", &[]);
        for tool in ["run_command", "remember", "recall", "schedule_manage"] {
            host.ctl(&["agent", "set", "a", "--add-tool", tool, "--yes"]);
        }
        let raw = Raw::of(&host);
        Self { host, raw, _server: server, wanted }
    }

    fn want(&self, calls: &[(&str, Value)]) {
        *self.wanted.lock().expect("calls") =
            calls.iter().map(|(tool, with)| ((*tool).to_owned(), with.clone())).collect();
    }

    /// Returns the calls of a message's turn, as (status, code).
    fn calls(&self, message: &str) -> Vec<(String, String)> {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let calls = self.raw.get(&format!("/v1/messages/{message}")).1["calls"].clone();
        let calls = calls.as_array().expect("calls").iter();
        calls.map(|call| (word(&call["status"]), word(&call["code"]))).collect()
    }

    /// Says something in a turn with one call. Returns the state of the call and its code.
    fn call(&self, text: &str, tool: &str, with: Value) -> (String, String) {
        self.want(&[(tool, with)]);
        let message = say(&self.raw, text);
        let mut calls = self.calls(&message);
        assert_eq!(calls.len(), 1, "{text}: {calls:?}");
        calls.remove(0)
    }

    fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.host.session_directory().join("workspace").join(name)).ok()
    }

    fn reject_all(&self) {
        for entry in inbox(&self.raw) {
            assert_eq!(reject(&self.raw, &entry, "").0, 200, "{entry}");
        }
    }
}

fn writing(name: &str) -> Value {
    json!({ "path": name, "content": "tulip" })
}

fn asked() -> (String, String) {
    ("asked".to_owned(), "call_scope".to_owned())
}

fn done() -> (String, String) {
    ("done".to_owned(), String::new())
}

#[test]
fn declared_scope_binds_calls_in_the_jail() {
    let stage = Stage::new(PEOPLE_AWAY);
    let calls = [
        ("write_file", writing("a.txt"), "write"),
        ("run_command", json!({ "command": "touch b.txt" }), "exec"),
        ("remember", json!({ "text": "tulips are red" }), "write"),
        ("schedule_manage", json!({ "verb": "list" }), "write"),
    ];
    for (tool, with, class) in &calls {
        assert_eq!(stage.call(&format!("/allow read -- use {tool}"), tool, with.clone()), asked(), "{tool}");
        let entry = waiting(&stage.raw);
        let effect = entry["effect"].as_str().unwrap_or_default();
        assert!(effect.starts_with(&format!("This host runs {tool} (class {class})")), "{entry}");
        assert_eq!(entry["reasons"][0]["decider"], "principal", "{entry}");
        stage.reject_all();
    }
    assert_eq!((stage.file("a.txt"), stage.file("b.txt")), (None, None), "nothing ran");
    for (tool, with, class) in &calls {
        for text in
            [format!("/allow {class} -- use {tool}"), format!("/allow +send -- use {tool}"), format!("use {tool}")]
        {
            assert_eq!(stage.call(&text, tool, with.clone()), done(), "{text}");
        }
    }
    let scopes: Vec<Value> =
        stage.host.entries("message.recorded").iter().map(|entry| entry["data"]["scope"].clone()).collect();
    for scope in ["declared:read", "declared:exec", "added:send"] {
        assert!(scopes.contains(&json!(scope)), "{scope}: {scopes:?}");
    }
    assert_eq!(stage.call("/allow read -- look", "list_dir", json!({ "path": "." })), done());
    stage.host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn writing_into_a_granted_directory_needs_the_class() {
    let beside = tempfile::tempdir().expect("a temporary directory");
    std::fs::set_permissions(beside.path(), PermissionsExt::from_mode(0o777)).expect("permissions");
    let data = beside.path().canonicalize().expect("an existing path");
    let stage = Stage::new(&format!("{PEOPLE_AWAY}[mounts]\nallow = [{data:?}]\n"));
    let reading = |thread: &str, tool: &str, with: Value| {
        stage.want(&[(tool, with)]);
        // A text of a pipe asks for reading alone.
        let body = json!({ "text": "go", "untyped": true, "thread": thread });
        let message = stage.raw.send_body("a", &body);
        delivered(&stage.raw, &message);
        stage.calls(&message)
    };
    let command = json!({ "command": "echo tulip > /data/b.txt" });
    let grant = |read_only: bool| {
        let mounts = json!([{ "source": data, "target": "/data", "read_only": read_only }]);
        stage.host.change("a", "mounts", &mounts);
    };
    assert_eq!(reading("none", "write_file", writing("a.txt")), [done()]);
    grant(true);
    assert_eq!(reading("read", "write_file", writing("a.txt")), [done()]);
    grant(false);
    for (tool, with) in [("write_file", writing("/data/a.txt")), ("run_command", command.clone())] {
        assert_eq!(reading(tool, tool, with), [asked()], "{tool}");
        assert!(stage.raw.get("/v1/waiting").1.to_string().contains("/data"), "the page names the directory");
        stage.reject_all();
    }
    assert_eq!(reading("list", "list_dir", json!({ "path": "/data" })), [done()]);
    assert_eq!(std::fs::read_dir(&data).expect("a directory").count(), 0);
    // The default asks for writing.
    assert_eq!(stage.call("go", "write_file", writing("/data/a.txt")), done());
    assert_eq!(stage.call("/allow exec -- go", "run_command", command), done());
    assert_eq!(std::fs::read_dir(&data).expect("a directory").count(), 2);
}

#[test]
fn classes_that_are_added_leave_the_default() {
    let stage = Stage::new(PEOPLE_AWAY);
    stage.want(&[("write_file", writing("a.txt"))]);
    for (at, allow) in [json!(["+send"]), json!(["+read", "+send"])].into_iter().enumerate() {
        let message = stage.raw.send_body("a", &json!({ "text": format!("go {at}"), "allow": allow }));
        delivered(&stage.raw, &message);
        assert_eq!(stage.calls(&message), [done()], "{allow}");
    }
    stage.host.ctl(&["chat", "a", "--allow", "+send", "go"]).ok();
    for words in [json!(["read", "+send"]), json!(["+"]), json!(["+ask"]), json!(["send", "mail"])] {
        let (status, refused) =
            stage.raw.ask("POST", "/v1/agents/a/messages", &json!({ "text": "go", "allow": words }).to_string());
        assert_eq!((status, &refused["error"]["code"]), (400, &json!("scope_malformed")), "{words}");
    }
    let refused = stage.raw.say("a", "/allow read +send -- go", None).1;
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("/allow read send") && message.contains("/allow +read +send"), "{refused}");
}

#[test]
fn approved_call_of_the_jail_runs_once_in_a_follow_up() {
    let stage = Stage::new(PEOPLE_AWAY);
    for (tool, with) in [("write_file", writing("a.txt")), ("remember", json!({ "text": "tulips are red" }))] {
        assert_eq!(stage.call(&format!("/allow read -- use {tool}"), tool, with), asked());
        assert!(last_answer(&stage.host).contains("pending req_"), "{}", last_answer(&stage.host));
        let entry = waiting(&stage.raw);
        assert!(stage.file("a.txt").is_none() || tool != "write_file", "nothing runs before the yes");
        assert_eq!(approve(&stage.raw, &entry).0, 200);
        wait_for("the call", || request(&stage.raw, &entry["id"])["status"] == "done");
        wait_for("the follow-up", || !last_answer(&stage.host).contains("pending req_"));
    }
    assert_eq!(stage.file("a.txt").as_deref(), Some("tulip"));
    for event in ["call.asked", "request.approved", "request.used"] {
        assert_eq!(stage.host.entries(event).len(), 2, "{event}");
    }
    assert_eq!(stage.host.entries("call.reported").len(), 1, "the sandbox ran one call");
    let scopes: Vec<Value> =
        stage.host.entries("message.recorded").iter().map(|entry| entry["data"]["scope"].clone()).collect();
    assert_eq!(scopes.iter().filter(|scope| **scope == "carried:read ask").count(), 2, "{scopes:?}");
    stage.host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn person_who_is_present_approves_within_the_turn() {
    let stage = Stage::new("");
    stage.want(&[("write_file", writing("a.txt"))]);
    let message = stage.raw.send("a", "/allow read -- go");
    let mut listener = streaming::Listener::of(&stage.raw, &message);
    listener.next(&["request"]);
    let entry = waiting(&stage.raw);
    assert_eq!(approve(&stage.raw, &entry).0, 200);
    delivered(&stage.raw, &message);
    assert_eq!(stage.file("a.txt").as_deref(), Some("tulip"));
    assert_eq!(request(&stage.raw, &entry["id"])["status"], "done");
    assert_eq!(stage.calls(&message).last(), Some(&done()));
    assert_eq!(stage.host.entries("turn.opened").len(), 1, "no follow-up is needed");
}

#[test]
fn other_calls_of_the_task_keep_waiting_in_its_follow_up() {
    let stage = Stage::new(PEOPLE_AWAY);
    stage.want(&[("write_file", writing("a.txt")), ("write_file", writing("b.txt"))]);
    let message = say(&stage.raw, "/allow read -- go");
    assert_eq!(stage.calls(&message), [asked(), asked()]);
    let entries = inbox(&stage.raw);
    let named = |name: &str| {
        entries.iter().find(|entry| entry["details"]["call"]["arguments"]["path"] == name).expect("an entry")
    };
    // The follow-up of the first call makes the second one too, without an approval.
    stage.want(&[("write_file", writing("b.txt"))]);
    assert_eq!(approve(&stage.raw, named("a.txt")).0, 200);
    wait_for("the follow-up", || stage.host.entries("turn.closed").len() == 2);
    assert_eq!((stage.file("a.txt"), stage.file("b.txt")), (None, None));
    assert_eq!(request(&stage.raw, &named("b.txt")["id"])["status"], "pending");
    assert_eq!(reject(&stage.raw, named("b.txt"), "").0, 200);
    assert_eq!(request(&stage.raw, &named("a.txt")["id"])["status"], "approved", "its model has not made it again");
}

#[test]
fn tool_that_always_asks_waits_until_people_change_it() {
    let stage = Stage::new(PEOPLE_AWAY);
    let set = |answer: &str, more: &[&str]| {
        let words = ["tool", "set", "write_file", "--always-ask", answer, "--agent", "a"];
        stage.host.ctl(&[&words[..], more].concat())
    };
    set("yes", &[]).ok();
    let agent = || stage.host.ctl(&["--json", "agent", "show", "a"]).ok().json();
    assert_eq!(agent()["always_asked"], json!(["write_file"]));
    let tools = agent()["enabled_tools"].as_array().expect("tools").clone();
    assert!(tools.contains(&json!("write_file")) && !tools.contains(&json!("write_file:ask")), "{tools:?}");
    let shown = stage.host.ctl(&["--json", "tool", "show", "write_file"]).ok().json();
    assert_eq!(shown["always_asked_of"], json!(["a"]));
    let asks = ("asked".to_owned(), "call_always_asks".to_owned());
    assert_eq!(stage.call("/allow +write -- go", "write_file", writing("a.txt")), asks);
    let entry = waiting(&stage.raw);
    assert_eq!(entry["reasons"][0]["decider"], "policy", "{entry}");
    assert_eq!(approve(&stage.raw, &entry).0, 200);
    wait_for("the call", || request(&stage.raw, &entry["id"])["status"] == "done");
    assert_eq!(stage.file("a.txt").as_deref(), Some("tulip"));
    assert_eq!(stage.call("look", "list_dir", json!({ "path": "." })), done(), "other tools do not ask");
    // Without a person who confirms the page, the loosening waits.
    let waits = set("no", &[]);
    assert_ne!(waits.code, 0, "{}", waits.stdout);
    let change = inbox(&stage.raw).into_iter().find(|entry| entry["type"] == "change").expect("a change");
    let id = change["id"].as_str().expect("an id");
    let page = stage.raw.get(&format!("/v1/waiting/{id}")).1;
    assert!(page["shown"].to_string().contains("NO LONGER ask"), "{page}");
    assert_eq!(stage.call("go again", "write_file", writing("b.txt")), asks);
    stage.host.ctl(&["approve", id]).ok();
    assert_eq!(agent().get("always_asked"), None);
    assert_eq!(stage.call("go once more", "write_file", writing("c.txt")), done());
    assert_eq!(stage.host.ctl(&["tool", "set", "rm", "--always-ask", "yes", "--agent", "a"]).code, 1);
    stage.host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn each_place_of_a_tool_can_ask_and_runs_once() {
    let stage = Stage::new(PEOPLE_AWAY);
    let change = json!({ "kind": "persona", "payload": { "instructions": "be brief" }, "reason": "it is time" });
    for (tool, with) in [
        ("request_capability_change", change),
        ("recall", json!({ "query": "tulips" })),
        ("run_command", json!({ "command": "echo tulip >> ran.txt" })),
    ] {
        stage.host.ctl(&["tool", "set", tool, "--always-ask", "yes", "--agent", "a"]).ok();
        let asks = ("asked".to_owned(), "call_always_asks".to_owned());
        assert_eq!(stage.call(&format!("use {tool}"), tool, with), asks, "{tool}");
        let entry = waiting(&stage.raw);
        assert_eq!(approve(&stage.raw, &entry).0, 200, "{tool}");
        wait_for(tool, || request(&stage.raw, &entry["id"])["status"] == "done");
        let count = |event: &str| stage.host.entries(event).len();
        wait_for("the end of the turns", || count("turn.opened") == count("turn.closed"));
        for entry in inbox(&stage.raw) {
            stage.host.ctl(&["reject", entry["id"].as_str().expect("an id")]).ok();
        }
    }
    assert_eq!(stage.file("ran.txt").as_deref(), Some("tulip\n"));
    let proposed = stage.host.entries("change.proposed");
    assert_eq!(proposed.iter().filter(|entry| entry["data"]["kind"] == "persona").count(), 1, "{proposed:?}");
    assert_eq!(stage.host.entries("request.used").len(), 3);
}

#[test]
fn host_death_around_the_approval_leaves_one_effect() {
    for (point, status) in [("approved", "done"), ("call_followed_up", "done"), ("call_recorded", "unknown")] {
        let mut stage = Stage::with(PEOPLE_AWAY, Build::Failpoints);
        assert_eq!(stage.call("/allow read -- go", "write_file", writing("a.txt")), asked());
        let entry = waiting(&stage.raw);
        stage.host.down();
        stage.host.up_failing_at(point);
        stage.raw = Raw::of(&stage.host);
        approve_and_die(&stage.raw, &stage.host, &entry);
        stage.host.up();
        stage.raw = Raw::of(&stage.host);
        wait_for(point, || request(&stage.raw, &entry["id"])["status"] == status);
        let count = |event: &str| stage.host.entries(event).len();
        wait_for("the end of the turns", || count("turn.opened") == count("turn.closed"));
        let expected = if status == "done" { Some("tulip") } else { None };
        assert_eq!(stage.file("a.txt").as_deref(), expected, "{point}");
        assert_eq!(stage.host.entries("request.used").len(), 1, "{point}");
        stage.host.ctl(&["audit", "verify"]).ok();
    }
}
