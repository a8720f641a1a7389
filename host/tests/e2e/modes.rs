//! Tests of the guard modes over the calls of `http_fetch`: each mode with each outcome.
//!
//! They use the real programs with the scripted model. See `calls` for the stages.

use super::calls::why_last_call;
use super::requests::delivered;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::site::granted_while_away;
use serde_json::{Value, json};

/// The modes, weakest last.
const MODES: [&str; 3] = ["enforce", "dangerous_warn", "dangerous_off"];

fn set_mode(host: &TestHost, mode: &str) {
    host.ctl(&["agent", "set", "a", "--mode", mode]).ok();
}

/// Returns status and code of the newest call, and the codes that its mode lifted.
fn last_call(host: &TestHost) -> (String, String, Value) {
    let why = why_last_call(host);
    let word = |name: &str| why[name].as_str().unwrap_or_default().to_owned();
    (word("status"), word("code"), why.get("would_have_blocked").cloned().unwrap_or_else(|| json!([])))
}

fn is(status: &str, code: &str, lifted: &[&str]) -> (String, String, Value) {
    (status.to_owned(), code.to_owned(), json!(lifted))
}

#[test]
fn each_mode_has_each_outcome_for_a_request() {
    let (site, host) = granted_while_away(TestHost::new(), &["GET", "POST"], &["/notes"]);
    let post = format!("post tulips at {}", site.url("/notes"));
    for mode in MODES {
        set_mode(&host, mode);
        // A new conversation has no text of others.
        let say = |thread: &str, text: &str| {
            // A call that waits ends the command with code 1.
            host.ctl(&["--json", "chat", "a", text, "--thread", &format!("{thread}-{mode}")]);
        };
        let before = site.lines().len();
        say("permitted", &format!("/allow send\n{post}"));
        assert_eq!((last_call(&host), site.lines().len()), (is("done", "", &[]), before + 1), "{mode}");
        say("needs-a-person", &post);
        let (outcome, sent) = match mode {
            "enforce" => (is("asked", "call_scope", &[]), 0),
            "dangerous_warn" => (is("done", "", &["call_scope"]), 1),
            _ => (is("done", "", &[]), 1),
        };
        assert_eq!((last_call(&host), site.lines().len()), (outcome, before + 1 + sent), "{mode}");
        // No mode lifts a missing grant, or a malformed call.
        let before = site.lines().len();
        say("denied", &format!("/allow send\npost tulips at {}", site.url("/elsewhere")));
        assert_eq!(last_call(&host), is("asked", "egress_new_path", &[]), "{mode}");
        // Only one call without a grant may wait.
        for entry in host.ctl(&["--json", "inbox"]).ok().json().as_array().expect("a list") {
            host.ctl(&["reject", entry["id"].as_str().expect("an id")]).ok();
        }
        say("malformed", "/allow send\npost tulips at nowhere");
        assert_eq!(last_call(&host).0, "refused", "{mode}");
        assert_eq!(site.lines().len(), before, "{mode}");
    }
    let lifted = host.entries("call.would_have_blocked");
    assert_eq!(lifted.len(), 1, "{lifted:?}");
    assert_eq!(lifted[0]["data"]["codes"], "call_scope");
    assert!(lifted[0]["data"]["call"].is_string() && lifted[0]["data"]["turn"].is_string(), "{lifted:?}");
    assert!(host.ctl(&["why", lifted[0]["data"]["call"].as_str().expect("an id")]).ok().stdout.contains("call_scope"));
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn each_lifted_stage_is_named_in_one_entry() {
    let (site, host) = granted_while_away(TestHost::own(Build::Plain), &["GET", "POST"], &["/notes"]);
    set_mode(&host, "dangerous_warn");
    host.say("a", &format!("fetch {}", site.url("/notes")));
    assert!(host.entries("call.would_have_blocked").is_empty(), "reading needs no mode");
    // No person typed the address.
    let raw = Raw::of(&host);
    let text = format!("post tulips at {}", site.url("/notes"));
    delivered(&raw, &raw.send_body("a", &json!({ "text": text, "untyped": true })));
    let (status, _, lifted) = last_call(&host);
    assert_eq!((status.as_str(), &lifted[0], &lifted[1]), ("done", &json!("call_scope"), &json!("call_origin")));
    let entries = host.entries("call.would_have_blocked");
    assert_eq!(entries.len(), 1);
    let codes: Vec<&str> = lifted.as_array().expect("codes").iter().filter_map(Value::as_str).collect();
    assert_eq!(entries[0]["data"]["codes"], codes.join(" "));
}

#[test]
fn status_and_doctor_name_each_lowered_guard() {
    let host = TestHost::new().started();
    for agent in ["a", "b", "c"] {
        host.agent(agent);
    }
    let status = || host.ctl(&["--json", "status"]).ok().json();
    let guards = || {
        let report = host.ctl_bounded(&["--json", "doctor"]).json();
        let checks = report["checks"].as_array().expect("checks").clone();
        checks.into_iter().find(|check| check["name"] == "guard modes").expect("the check")
    };
    assert!(status().get("lowered").is_none());
    assert_eq!(guards()["ok"], true);
    // Neither agent has a session.
    host.ctl(&["agent", "set", "b", "--mode", "dangerous_warn"]).ok();
    host.ctl(&["agent", "set", "c", "--mode", "dangerous_off"]).ok();
    let lowered = json!([{"agent": "b", "mode": "dangerous_warn"}, {"agent": "c", "mode": "dangerous_off"}]);
    assert_eq!(status()["lowered"], lowered);
    let shown = host.ctl(&["status"]).ok().stdout;
    let check = guards();
    assert_eq!(check["ok"], false, "{check}");
    for named in ["b is in mode dangerous_warn", "c is in mode dangerous_off"] {
        assert!(check["found"].as_str().is_some_and(|found| found.contains(named)), "{check}");
    }
    assert!(shown.contains("dangerous_warn") && shown.contains("dangerous_off"), "{shown}");
}
