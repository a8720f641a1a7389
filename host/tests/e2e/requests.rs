//! Tests of approval requests: calls that wait for people, their decisions, and the turns that follow.
//!
//! They use the real programs with the scripted model, and a server on loopback that records its requests. See `calls`.

use crate::support::client::{self, Raw, check_refused};
use crate::support::host_fixture::{Build, TestHost, alive, wait_for};
use crate::support::record;
use crate::support::site::{Site, granted, granted_while_away};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;

/// Lines of the page of an ordinary call before its details.
const LINES_MAX: usize = 12;

/// Returns a site, a host of this user with an agent that has the tool and the grant of the site, and a client. Its people are away.
pub(crate) fn host_with(methods: &[&str], paths: &[&str]) -> (Site, TestHost, Raw) {
    let (site, host) = granted_while_away(TestHost::own(Build::Plain), methods, paths);
    let raw = Raw::of(&host);
    (site, host, raw)
}

/// Returns the same, with people who may come.
pub(crate) fn host_with_people(methods: &[&str], paths: &[&str]) -> (Site, TestHost, Raw) {
    let (site, host) = granted(TestHost::own(Build::Plain), methods, paths);
    let raw = Raw::of(&host);
    (site, host, raw)
}

/// Asks an agent to post a text, and returns the id of the message once it is answered.
pub(crate) fn post(raw: &Raw, text: &str, url: &str) -> String {
    say(raw, &format!("post {text} at {url}"))
}

/// Asks an agent to post a text by a request that asks for reading alone, so that a person has to permit the post.
pub(crate) fn post_while_reading(raw: &Raw, text: &str, url: &str) {
    let body = json!({ "text": format!("post {text} at {url}"), "allow": ["read"] });
    delivered(raw, &raw.send_body("a", &body));
}

/// Says something to the agent, and returns the id of the message once it is answered.
pub(crate) fn say(raw: &Raw, text: &str) -> String {
    let id = raw.send("a", text);
    delivered(raw, &id);
    id
}

/// Waits until the person of this client has the answer to their message.
pub(crate) fn delivered(raw: &Raw, message: &str) {
    wait_for("an answer", || raw.get(&format!("/v1/messages/{message}?wait_ms=1000")).1["status"] == "delivered");
}

pub(crate) fn answered(host: &TestHost, message: &str) {
    wait_for("an answer", || host.ctl(&["--json", "why", message]).ok().json()["message"]["status"] == "delivered");
}

pub(crate) fn inbox(raw: &Raw) -> Vec<Value> {
    let (status, inbox) = raw.get("/v1/waiting");
    assert_eq!(status, 200, "{inbox}");
    inbox["entries"].as_array().expect("a list").clone()
}

/// Returns the only one that waits, with its page.
pub(crate) fn waiting(raw: &Raw) -> Value {
    let entries = inbox(raw);
    assert_eq!(entries.len(), 1, "{entries:?}");
    request(raw, &entries[0]["id"])
}

pub(crate) fn approve(raw: &Raw, request: &Value) -> (u16, Value) {
    let path = format!("/v1/waiting/{}/decision", request["id"].as_str().expect("an id"));
    raw.ask("POST", &path, &json!({ "approve": request["shown_digest"] }).to_string())
}

/// Approves a request at a host that dies at the point `request_approved`.
pub(crate) fn approve_and_die(raw: &Raw, host: &TestHost, entry: &Value) {
    let pid = host.pid().expect("the host runs");
    let path = format!("/v1/waiting/{}/decision", entry["id"].as_str().expect("an id"));
    // A host drops a request whose client is gone.
    let asked = raw.begin("POST", &path, &json!({ "approve": entry["shown_digest"] }).to_string());
    wait_for("the host to die", || !alive(pid));
    drop(asked);
}

pub(crate) fn reject(raw: &Raw, request: &Value, reason: &str) -> (u16, Value) {
    let path = format!("/v1/waiting/{}/decision", request["id"].as_str().expect("an id"));
    raw.ask("POST", &path, &json!({ "reject": reason }).to_string())
}

pub(crate) fn request(raw: &Raw, id: &Value) -> Value {
    raw.get(&format!("/v1/waiting/{}", id.as_str().expect("an id"))).1
}

/// Returns the text of the last answer in the conversation with the agent.
pub(crate) fn last_answer(host: &TestHost) -> String {
    let history = client::Client::of(host).history("a");
    let said = history.iter().rev().find(|line| line["role"] != "person" && line["text"].is_string());
    said.and_then(|line| line["text"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn call_out_of_scope_waits_and_runs_once_after_the_yes() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    let message = post(&raw, "tulips", &site.url("/notes"));
    assert!(site.lines().is_empty(), "nothing is sent before the yes");
    let entry = waiting(&raw);
    assert_eq!(
        (entry["type"].as_str(), entry["agent"].as_str(), entry["yours"].as_bool()),
        (Some("call"), Some("a"), Some(true))
    );
    assert_eq!(entry["details"]["call"]["arguments"]["body"], "tulips");
    assert_eq!(entry["reasons"][0]["reason"], "call_scope");
    assert_eq!(entry["reasons"][0]["decider"], "principal");
    let page = entry["shown"].as_str().expect("a page");
    let lines = page.lines().take_while(|line| *line != "DETAILS").filter(|line| !line.is_empty());
    assert!(lines.count() <= LINES_MAX, "{page}");
    let calls = raw.get(&format!("/v1/messages/{message}")).1["calls"].clone();
    assert_eq!((calls[0]["status"].as_str(), &calls[0]["request"]), (Some("asked"), &entry["id"]));
    let (status, approved) = approve(&raw, &entry);
    assert_eq!(status, 200, "{approved}");
    wait_for("the request at the site", || !site.lines().is_empty());
    wait_for("the follow-up", || last_answer(&host).contains("The page says tulip."));
    assert_eq!(site.lines(), ["POST /notes HTTP/1.1"]);
    assert_eq!(request(&raw, &entry["id"])["status"], "done");
    check_refused(&approve(&raw, &entry), 409, "request_decided");
    for event in ["call.asked", "request.approved_by", "request.approved", "request.used", "call.started", "call.ran"] {
        assert_eq!(host.entries(event).len(), 1, "{event}");
    }
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn damaged_request_is_shown_and_only_rejected() {
    let (site, host, _) = host_with(&["POST"], &["/notes"]);
    post(&Raw::of(&host), "tulips", &site.url("/notes"));
    post(&Raw::of(&host), "roses", &site.url("/notes"));
    host.down();
    let change =
        "UPDATE waiting SET sealed = x'00' WHERE ordinal = (SELECT min(ordinal) FROM waiting WHERE kind = 'req')";
    record::open_to_change(&host.home).execute_batch(change).expect("changed");
    host.up();
    let raw = Raw::of(&host);
    let inbox = raw.get("/v1/waiting").1["entries"].clone();
    let bodies = [0, 1].map(|at| request(&raw, &inbox[at]["id"])["details"]["call"]["arguments"]["body"].clone());
    assert_eq!(bodies, [json!(null), json!("roses")], "{inbox}");
    assert_eq!(approve(&raw, &inbox[0]).0, 500);
    assert_eq!(reject(&raw, &inbox[0], "damaged").0, 200);
    assert_eq!((waiting(&raw)["id"].clone(), site.lines()), (inbox[1]["id"].clone(), Vec::new()));
}

#[test]
fn equal_call_after_rejection_is_denied_until_the_person_writes() {
    let (site, _host, raw) = host_with(&["POST"], &["/notes"]);
    post(&raw, "tulips", &site.url("/notes"));
    let entry = waiting(&raw);
    let (status, rejected) = reject(&raw, &entry, "not today");
    assert_eq!((status, rejected["status"].as_str()), (200, Some("rejected")), "{rejected}");
    assert_eq!(approve(&raw, &entry).1["error"]["code"], "request_decided");
    assert_eq!(raw.get("/v1/waiting").1["entries"], json!([]));
    assert!(site.lines().is_empty());
    // The person writes again, so an equal call is asked for again.
    post(&raw, "tulips", &site.url("/notes"));
    assert_ne!(waiting(&raw)["id"], entry["id"]);
}

#[test]
fn request_without_a_grant_is_sent_once_after_the_yes() {
    let (site, host, raw) = host_with(&["GET"], &["/other"]);
    post(&raw, "tulips", &site.url("/notes"));
    let entry = waiting(&raw);
    let reasons: Vec<&str> =
        entry["reasons"].as_array().expect("a list").iter().filter_map(|one| one["decider"].as_str()).collect();
    assert!(reasons.contains(&"policy"), "{entry}");
    assert_eq!(approve(&raw, &entry).0, 200);
    wait_for("the request at the site", || !site.lines().is_empty());
    wait_for("the end of the call", || request(&raw, &entry["id"])["status"] == "done");
    assert_eq!(site.lines(), ["POST /notes HTTP/1.1"]);
    assert_eq!(
        host.ctl(&["--json", "egress", "list", "a"]).ok().json()[0]["methods"],
        json!(["GET"]),
        "no grant is made"
    );
}

#[test]
fn asked_too_often_is_denied_by_name() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    for n in 0..7 {
        post_while_reading(&raw, &format!("tulip{n}"), &site.url("/notes"));
    }
    let inbox = raw.get("/v1/waiting").1["entries"].clone();
    assert_eq!(inbox.as_array().expect("a list").len(), 5, "{inbox}");
    assert!(last_answer(&host).contains("call_asked_too_often"), "{}", last_answer(&host));
    let refused = host.entries("call.refused");
    assert_eq!(refused.last().expect("an entry")["data"]["reason"], "call_asked_too_often");
}

#[test]
fn lost_tool_withdraws_a_call_that_one_of_two_approved() {
    let (site, host, raw) = host_with(&["GET"], &["/other"]);
    let admin = Raw::add_person(&host, "adam", &["--role", "admin"]);
    std::fs::write(host.home.join("policy.toml"), "[call.send]\napprovals = 2\n").expect("written");
    host.ctl(&["config", "reload"]).ok();
    post(&raw, "tulips", &site.url("/notes"));
    let entry = waiting(&raw);
    let (status, approved) = approve(&raw, &entry);
    assert_eq!((status, approved["status"].as_str()), (200, Some("pending")), "{approved}");
    host.change("a", "enabled_tools", &json!({ "remove": ["http_fetch"] }));
    assert_eq!(approve(&admin, &entry).1["error"]["code"], "call_withdrawn");
    assert_eq!(request(&raw, &entry["id"])["status"], "withdrawn");
    assert!(site.lines().is_empty());
}

/// A stream of a message whose client decides.
pub(crate) struct Stream(BufReader<UnixStream>);

impl Stream {
    pub(crate) fn open(raw: &Raw, message: &str) -> Self {
        Self(BufReader::new(raw.begin("GET", &format!("/v1/messages/{message}/events?decides=true"), "")))
    }

    /// Returns the data of the next event with this name.
    pub(crate) fn next(&mut self, name: &str) -> Value {
        self.next_of(&[name]).1
    }

    /// Returns the name and the data of the next event with one of these names.
    pub(crate) fn next_of(&mut self, names: &[&str]) -> (String, Value) {
        let (mut event, mut line) = (String::new(), String::new());
        loop {
            line.clear();
            assert_ne!(self.0.read_line(&mut line).expect("an event"), 0, "the stream ended before {names:?}");
            if let Some(data) = line.trim_end().strip_prefix("data: ")
                && names.contains(&event.as_str())
            {
                return (event, serde_json::from_str(data).expect("JSON"));
            }
            line.trim_end().strip_prefix("event: ").unwrap_or_default().clone_into(&mut event);
        }
    }
}

#[test]
fn present_person_decides_and_the_same_turn_continues() {
    let (site, host, raw) = host_with_people(&["POST"], &["/notes"]);
    let message = raw.send("a", &format!("post tulips at {}", site.url("/notes")));
    let mut stream = Stream::open(&raw, &message);
    let asked = stream.next("request");
    assert_eq!((asked["status"].as_str(), asked["yours"].as_bool()), (Some("pending"), Some(true)), "{asked}");
    assert_eq!(approve(&raw, &asked).0, 200);
    let ended = stream.next("message");
    wait_for("the request at the site", || site.lines().len() == 1);
    wait_for("the end of the call", || request(&raw, &asked["id"])["status"] == "done");
    assert_eq!(site.lines(), ["POST /notes HTTP/1.1"]);
    assert!(ended["reply"].as_str().expect("a reply").contains("The page says tulip."), "{ended}");
    assert_eq!(host.entries("turn.opened").len(), 1, "the same turn went on");
}

#[test]
fn turn_continues_when_the_present_person_leaves() {
    let (site, _host, raw) = host_with_people(&["POST"], &["/notes"]);
    let message = raw.send("a", &format!("post tulips at {}", site.url("/notes")));
    let mut stream = Stream(BufReader::new(raw.try_decide_at(&message).expect("sent")));
    let asked = stream.next("request");
    wait_for("the pause", || request(&raw, &asked["id"])["told"] == json!(["chat"]));
    drop(stream);
    // Sooner than the longest wait for a person.
    delivered(&raw, &message);
    assert_eq!(request(&raw, &asked["id"])["status"], "pending");
    assert!(site.lines().is_empty());
}

#[test]
fn turn_waits_for_no_person_at_the_next_message() {
    let (site, _host, raw) = host_with_people(&["POST"], &["/notes"]);
    let say = |text: &str| raw.send("a", &format!("post {text} at {}", site.url("/notes")));
    let first = say("tulips");
    let mut stream = Stream::open(&raw, &first);
    let asked = stream.next("request");
    wait_for("the pause", || request(&raw, &asked["id"])["told"] == json!(["chat"]));
    // This stream has no request of the turn before it, so its person cannot decide there.
    let mut next = Stream::open(&raw, &say("roses"));
    drop(stream);
    // Sooner than the longest wait for a person.
    delivered(&raw, &first);
    let asked_next = next.next("request");
    assert_eq!(asked_next["details"]["call"]["arguments"]["body"], "roses", "{asked_next}");
    assert_eq!(request(&raw, &asked["id"])["status"], "pending");
    assert_eq!(approve(&raw, &asked_next).0, 200);
    next.next("message");
    assert_eq!(site.lines(), ["POST /notes HTTP/1.1"]);
}

/// Returns a job: the agent reads a page, keeps it in a file, and posts a text that the person typed.
fn job(site: &Site) -> String {
    format!("copy {} into page.txt and post lilies at {}", site.url("/page"), site.url("/notes"))
}

fn says_the_page(host: &TestHost) -> bool {
    let session = host.session()["id"].as_str().expect("an id").to_owned();
    host.ctl(&["file", "get", &session, "page.txt", "--out", "-"]).stdout.contains("The page says tulip.")
}

#[test]
fn job_reads_writes_asks_once_and_posts_inline() {
    let (site, host, raw) = host_with_people(&["GET", "POST"], &["/page", "/notes"]);
    let mut stream = Stream::open(&raw, &raw.send("a", &job(&site)));
    let asked = stream.next("request");
    assert_eq!(asked["details"]["call"]["arguments"]["body"], "lilies");
    assert_eq!(site.lines(), ["GET /page HTTP/1.1"]);
    assert!(says_the_page(&host), "the file is written without a question");
    assert_eq!(approve(&raw, &asked).0, 200);
    let ended = stream.next("message");
    assert!(ended["reply"].as_str().expect("a reply").contains("Copied and posted"), "{ended}");
    assert_eq!(site.lines(), ["GET /page HTTP/1.1", "POST /notes HTTP/1.1"]);
    assert_eq!(host.entries("turn.opened").len(), 1, "the same turn went on");
}

#[test]
fn job_is_finished_by_a_follow_up_after_a_kill() {
    let (site, mut host) = granted(TestHost::with_clock(), &["GET", "POST"], &["/page", "/notes"]);
    let raw = Raw::of(&host);
    answered(&host, &raw.send("a", &job(&site)));
    let id = waiting(&raw)["id"].as_str().expect("an id").to_owned();
    host.kill_host();
    host.shift_clock(3_600_000);
    host.up();
    let raw = Raw::of(&host);
    host.ctl(&["approve", &id, "--yes"]).ok();
    wait_for("the follow-up", || last_answer(&host).contains("The page says tulip."));
    assert_eq!(site.lines(), ["GET /page HTTP/1.1", "POST /notes HTTP/1.1"]);
    assert_eq!(host.entries("call.started").len(), 2);
    assert_eq!(raw.get("/v1/waiting").1["entries"], json!([]));
    host.ctl(&["audit", "verify"]).ok();
}
