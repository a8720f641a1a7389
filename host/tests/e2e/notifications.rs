//! Tests of notifications: a person is told once, by a signed webhook, with an id and without content.
//!
//! They use the real programs with the scripted model. The receiver checks each signature. See `requests` and `deliveries`.

use super::requests::{answered, post, reject, waiting};
use crate::support::client::Raw;
use crate::support::hooks::{Received, Receiver, Response, add_place};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::site::{LOOPBACK, Site, grant};
use serde_json::{Value, json};
const HOUR_MS: i64 = 3_600_000;

/// Starts a host with an agent, a site that its calls need a person for, and the place `desk` of the owner.
pub(super) fn host_with_place(build: Build, site: &Site, receiver: &Receiver, more: &[&str]) -> TestHost {
    let mut host = TestHost::own(build);
    if build == Build::Failpoints {
        host.shift_clock(0);
    }
    grant(&host, site, &["POST"], &["/notes"]);
    host.configure(&format!("{LOOPBACK}[webhook]\nbackoff_ms = 20\n"));
    host.ctl(&["config", "reload"]).ok();
    add_place(&host, receiver, more);
    host
}

fn add_channel(host: &TestHost, name: &str, receiver: &Receiver, more: &[&str]) {
    let arguments = ["--json", "channel", "add", "webhook", name, "--url", &receiver.url];
    let made = host.ctl(&[arguments.as_slice(), more].concat()).ok().json();
    receiver.expect(made["secret"].as_str().expect("a secret"));
}

fn set_place(raw: &Raw, person: &str, place: &str) -> (u16, String) {
    let body = json!({ "notify": place }).to_string();
    let (status, answer) = raw.ask("POST", &format!("/v1/people/{person}/notify"), &body);
    (status, answer["error"]["code"].as_str().unwrap_or_default().to_owned())
}

fn place_of(host: &TestHost, person: &str) -> Value {
    host.ctl(&["--json", "person", "show", person]).ok().json()["notify"].clone()
}

pub(super) fn text(got: &Received) -> String {
    assert_eq!((&got.body["type"], &got.body["message_ids"]), (&json!("notification"), &json!([])), "{got:?}");
    assert_eq!(got.body["delivery"], got.id.as_str(), "{got:?}");
    got.body["text"].as_str().expect("a text").to_owned()
}

pub(super) fn count(host: &TestHost, event: &str) -> usize {
    host.entries(event).len()
}

/// Returns the note of `doctor` about people without a place.
fn note(host: &TestHost) -> Option<Value> {
    let report = host.ctl_bounded(&["--json", "doctor"]).json();
    let checks = report["checks"].as_array().expect("checks").clone();
    checks.into_iter().find(|check| check["name"] == "places to be told")
}

#[test]
fn place_of_no_own_identity_is_refused() {
    let host = TestHost::own(Build::Plain).started();
    let (owner, receiver) = (Raw::of(&host), Receiver::accepting());
    add_channel(&host, "desk", &receiver, &[]);
    let bob = Raw::add_person(&host, "bob", &[]);
    let refused = |status, code: &str| (status, code.to_owned());
    assert_eq!(set_place(&owner, "owner", "nowhere"), refused(404, "channel_unknown"));
    assert_eq!(set_place(&owner, "owner", "loopback"), refused(400, "place_unsuitable"));
    assert_eq!(set_place(&owner, "owner", "desk"), refused(404, "identity_unknown"));
    assert_eq!(set_place(&owner, "carol", "desk"), refused(404, "person_unknown"));
    host.ctl(&["person", "set", "owner", "--notify", "desk"]).refused("ironctl person link");
    assert_eq!(host.ctl(&["person", "set", "owner"]).code, 2);
    host.ctl(&["person", "link", "bob", "desk:bob", "--yes"]).ok();
    assert_eq!(set_place(&owner, "owner", "desk:bob"), refused(404, "identity_unknown"), "it is another person's");
    assert_eq!(set_place(&bob, "owner", "none"), refused(403, "role_too_low"));
    assert_eq!((place_of(&host, "bob"), count(&host, "place.set")), (Value::Null, 0));
    assert_eq!(set_place(&bob, "bob", "desk").0, 200, "a person sets their own place");
    assert_eq!(bob.get("/v1/whoami").1["notify"], "desk:bob");
    host.ctl(&["person", "link", "bob", "desk:bobby", "--yes"]).ok();
    assert_eq!(set_place(&owner, "bob", "desk"), refused(409, "place_ambiguous"));
    host.ctl(&["person", "set", "bob", "--notify", "desk:bobby"]).ok();
    assert_eq!(place_of(&host, "bob"), "desk:bobby");
    host.ctl(&["person", "set", "bob", "--notify", "none"]).ok();
    assert_eq!(place_of(&host, "bob"), Value::Null);
    assert_eq!((count(&host, "place.set"), count(&host, "place.ended")), (2, 1));
    assert!(receiver.replies().is_empty());
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn doctor_names_each_person_without_a_place() {
    let host = TestHost::own(Build::Plain).started();
    let receiver = Receiver::accepting();
    add_channel(&host, "desk", &receiver, &[]);
    host.ctl(&["person", "add", "bob"]).ok();
    let named = |host: &TestHost, name: &str| {
        let check = note(host)?;
        assert_eq!(check["ok"], true, "it is a note: {check}");
        Some(check["found"].as_str().expect("words").contains(name))
    };
    assert_eq!((named(&host, "bob"), named(&host, "owner")), (Some(true), Some(true)));
    assert_eq!(host.status()["without_place"], json!(["owner", "bob"]));
    for person in ["bob", "owner"] {
        host.ctl(&["person", "link", person, &format!("desk:{person}"), "--yes"]).ok();
        host.ctl(&["person", "set", person, "--notify", "desk"]).ok();
    }
    assert_eq!(note(&host), None);
    host.ctl(&["person", "unlink", "bob", "desk:bob"]).ok();
    assert_eq!((named(&host, "bob"), named(&host, "owner")), (Some(true), Some(false)));
    host.ctl(&["channel", "remove", "desk", "--yes"]).ok();
    assert_eq!(named(&host, "owner"), Some(true));
    assert_eq!((place_of(&host, "owner"), count(&host, "place.ended")), (Value::Null, 2));
}

#[test]
fn decided_request_is_not_told() {
    let site = Site::start();
    let receiver = Receiver::new(|_, _| Response::Later(503, "3600"));
    let mut host = host_with_place(Build::Failpoints, &site, &receiver, &[]);
    let raw = Raw::of(&host);
    post(&raw, "tulips", &site.url("/notes"));
    let entry = waiting(&raw);
    wait_for("the first attempt", || count(&host, "notification.retried") == 1);
    assert_eq!(reject(&raw, &entry, "no").0, 200);
    assert_eq!(count(&host, "notification.withdrawn"), 1);
    host.kill_host();
    host.shift_clock(2 * HOUR_MS);
    host.up();
    // A later notification is sent, and this one is not.
    post(&Raw::of(&host), "roses", &site.url("/notes"));
    wait_for("the other notification", || receiver.replies().len() == 2);
    let got = receiver.replies();
    assert_ne!(got[0].id, got[1].id, "{got:?}");
    assert_eq!(count(&host, "notification.received"), 0);
}

#[test]
fn parked_session_is_told_to_the_operators() {
    let receiver = Receiver::accepting();
    let host = TestHost::own(Build::Plain);
    let data = tempfile::tempdir().expect("a temporary directory");
    let source = data.path().canonicalize().expect("an existing path").display().to_string();
    host.configure(&format!("[mounts]\nallow = [{source:?}]\n"));
    host.up();
    host.agent("a");
    host.change("a", "mounts", &json!([{ "source": source, "target": "/data" }]));
    add_place(&host, &receiver, &[]);
    host.configure("[session]\nlaunch_attempts_max = 1\nbackoff_ms = 1\n");
    host.ctl(&["config", "reload"]).ok();
    host.ctl(&["chat", "a", "hello"]).refused("parked");
    wait_for("the notification", || count(&host, "notification.received") == 1);
    let got = receiver.replies();
    assert!(got.len() == 1 && text(&got[0]).contains(host.session()["id"].as_str().expect("an id")), "{got:?}");
    let intended = host.entries("notification.intended");
    assert_eq!((intended.len(), &intended[0]["data"]["about"]), (1, &json!("session_incident")));
}

#[test]
fn unread_reply_is_counted_and_shown_once() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let raw = Raw::of(&host);
    let (_, recorded) = raw.say("a", "echo tulips please", None);
    let message = recorded["message_id"].as_str().expect("an id").to_owned();
    answered(&host, &message);
    assert_eq!(host.status()["replies_unread"], 1);
    let inbox = host.ctl(&["--json", "inbox"]).ok().json();
    let replies = inbox.as_array().expect("a list").iter().find(|entry| entry["type"] == "replies").expect("an entry");
    assert_eq!((&replies["agent"], &replies["count"]), (&json!("a"), &json!(1)), "{inbox}");
    let mara = Raw::add_person(&host, "mara", &[]);
    assert_eq!(mara.get("/v1/unread").1, json!([]), "only their own person sees them");
    assert_eq!(mara.ask("POST", "/v1/agents/a/unread", "").1["replies"], json!([]));
    let next = host.ctl(&["chat", "a", "echo roses please"]).ok();
    assert!(next.stderr.contains("tulips please") && !next.stderr.contains("roses please"), "{}", next.stderr);
    assert!(next.stdout.contains("roses please") && !next.stdout.contains("tulips please"), "{}", next.stdout);
    assert_eq!(host.status()["replies_unread"], 0);
    assert_eq!(host.ctl(&["--json", "inbox"]).ok().json(), json!([]));
    assert!(!host.ctl(&["chat", "a", "echo lilies please"]).ok().stderr.contains("tulips"));
    // A message that its person reads is not shown again.
    let (_, recorded) = raw.say("a", "echo asters please", None);
    let message = recorded["message_id"].as_str().expect("an id");
    answered(&host, message);
    assert_eq!(raw.get("/v1/unread").1[0]["count"], 1);
    assert!(raw.get(&format!("/v1/messages/{message}")).1["reply"].is_string());
    assert_eq!(raw.get("/v1/unread").1, json!([]));
}
