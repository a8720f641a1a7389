//! Tests of schedules: refusals, runs with their receipts, lost rights, and the list that limits a run.
//!
//! `deliveries` has the channels that fail, `clock` the times, `agents` the tools of agents, `flows` what may leave a run, `contexts` what
//! a run sees.

mod agents;
mod clock;
mod contexts;
mod deliveries;
mod flows;

use crate::support::client::{Raw, check_refused};
use crate::support::hooks::{Receiver, add_place};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use serde_json::{Value, json};

/// Starts a host with an agent `a`.
fn new_host() -> TestHost {
    TestHost::own(Build::Plain).started_with("a")
}

/// Adds a schedule of agent `a` as the owner, and returns its id.
fn add(host: &TestHost, prompt: &str, more: &[&str]) -> String {
    let arguments = [&["--json", "schedule", "add", "a", prompt, "--yes"][..], more].concat();
    let added = host.ctl(&arguments).ok().json();
    assert!(added["next"].is_string(), "{added}");
    added["id"].as_str().expect("an id").to_owned()
}

fn show(host: &TestHost, id: &str) -> Value {
    host.ctl(&["--json", "schedule", "show", id]).ok().json()
}

fn history(host: &TestHost, id: &str) -> Vec<Value> {
    host.ctl(&["--json", "schedule", "history", id]).ok().json().as_array().expect("a list").clone()
}

/// Waits until the newest occurrence has this state, and returns it.
#[track_caller]
fn newest(host: &TestHost, id: &str, state: &str) -> Value {
    let mut found = Value::Null;
    wait_for(&format!("an occurrence that is {state}"), || {
        found = history(host, id).pop().unwrap_or_default();
        found["state"] == state
    });
    found
}

/// Returns the codes of the refused calls of the run of an occurrence.
fn refused_calls(host: &TestHost, occurrence: &Value) -> Vec<String> {
    let message = occurrence["message"].as_str().expect("a message");
    let why = host.ctl(&["--json", "why", message]).ok().json();
    let calls = why["message"]["calls"].as_array().cloned().unwrap_or_default();
    calls.iter().filter_map(|call| call["code"].as_str().map(str::to_owned)).collect()
}

#[test]
fn schedule_that_no_host_can_keep_is_refused() {
    let host = new_host();
    for (more, expected) in [
        (&["--every", "banana"][..], "schedule_malformed"),
        (&["--every", "10s"], "schedule_malformed"),
        (&["--cron", "0 8 31 2 *"], "schedule_malformed"),
        (&["--cron", "0 8 * *"], "schedule_malformed"),
        (&["--at", "2020-01-01T08:00"], "schedule_malformed"),
        (&["--every", "1d", "--zone", "Mars/Olympus"], "schedule_malformed"),
        (&["--every", "1d", "--may", "trade"], "schedule_may"),
        (&["--every", "1d", "--may", "no_such_tool"], "schedule_may"),
        (&["--every", "1d", "--reply-to", "desk:7"], "schedule_reply_to"),
        (&["--every", "1d", "--reply-to", "loopback:someone"], "schedule_reply_to"),
    ] {
        let arguments = [&["schedule", "add", "a", "hello", "--yes"][..], more].concat();
        assert_eq!(host.ctl_error(&arguments)["code"], expected, "{more:?}");
    }
    assert_eq!(host.ctl_error(&["schedule", "add", "ghost", "hello", "--every", "1d"])["code"], "agent_unknown");
    let too_long = "x".repeat(33 * 1024);
    for prompt in ["", " ", &too_long] {
        assert!(host.ctl_error(&["schedule", "add", "a", prompt, "--every", "1d", "--yes"])["code"].is_string());
    }
    assert_eq!(host.ctl(&["schedule", "add", "a", "hello"]).code, 2, "no times");
    assert_eq!(host.ctl(&["schedule", "add", "a", "hello", "--every", "1d", "--at", "2030-01-01T08:00"]).code, 2);
    let unknown = "sch_01j9zq4w0v2m6n8p0r2t4v6x8z";
    for verb in ["show", "run", "pause", "resume", "history", "remove"] {
        assert_eq!(host.ctl_error(&["schedule", verb, unknown])["code"], "schedule_unknown", "{verb}");
    }
    assert_eq!(host.ctl(&["--json", "schedule", "list"]).ok().json(), json!([]));
}

#[test]
fn run_by_hand_is_done_with_its_receipt_and_keeps_its_owner() {
    let host = new_host();
    let id = add(&host, "hello", &["--cron", "0 8 * * *", "--zone", "Europe/Berlin"]);
    let before = show(&host, &id)["next"].clone();
    let dry = host.ctl(&["--json", "schedule", "run", &id, "--dry-run"]).ok().json();
    assert_eq!((dry["next"].as_array().map(Vec::len), &dry["next"][0]["due"]), (Some(10), &before), "{dry}");
    assert!(history(&host, &id).is_empty(), "a dry run starts nothing");
    let started = host.ctl(&["--json", "schedule", "run", &id]).ok().json();
    assert_eq!((&started["state"], &started["by"]), (&"started".into(), &"owner".into()), "{started}");
    let done = newest(&host, &id, "done");
    assert!(done["receipt"].as_str().is_some_and(|receipt| receipt.starts_with("dlv_")), "{done}");
    assert_eq!(show(&host, &id)["next"], before, "it moves no other time");
    let why = host.ctl(&["--json", "why", done["message"].as_str().expect("a message")]).ok().json();
    assert_eq!((&why["occurrence"]["schedule"], &why["occurrence"]["state"]), (&id.as_str().into(), &"done".into()));
    let recorded = host.entries("message.recorded").pop().expect("an entry");
    assert_eq!(
        (&recorded["data"]["principal_kind"], &recorded["data"]["scope"]),
        (&"schedule".into(), &"schedule:".into())
    );
    assert_eq!(host.entries("schedule.done").len(), 1);
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn run_may_use_its_list_and_nothing_else() {
    let host = new_host();
    let write = add(&host, "write plan.txt: tulips", &["--every", "1d"]);
    host.ctl(&["schedule", "run", &write]).ok();
    assert_eq!(refused_calls(&host, &newest(&host, &write, "failed")), ["call_schedule"]);
    host.ctl(&["schedule", "set", &write, "--may", "write", "--yes"]).ok();
    host.ctl(&["schedule", "run", &write]).ok();
    newest(&host, &write, "done");
    assert!(refused_calls(&host, &history(&host, &write)[1]).is_empty());
    // The text of the prompt declares nothing.
    host.change("a", "enabled_tools", &json!({ "add": ["run_command"] }));
    let declares = add(&host, "/allow exec\nrun true", &["--every", "1d", "--may", "write"]);
    host.ctl(&["schedule", "run", &declares]).ok();
    newest(&host, &declares, "done");
    let runs = add(&host, "run true", &["--every", "1d", "--may", "write"]);
    host.ctl(&["schedule", "run", &runs]).ok();
    assert_eq!(refused_calls(&host, &newest(&host, &runs, "failed")), ["call_schedule"]);
    let named = add(&host, "run true", &["--every", "1d", "--may", "run_command"]);
    host.ctl(&["schedule", "run", &named]).ok();
    assert!(refused_calls(&host, &newest(&host, &named, "done")).is_empty());
}

#[test]
fn prompt_of_a_model_waits_for_a_person_and_has_no_authority() {
    let host = new_host();
    host.change("a", "enabled_tools", &json!({ "add": ["schedule_task", "schedule_manage"] }));
    assert!(host.say("a", "schedule daily: write plan.txt: tulips").contains("pending as chg_"));
    assert_eq!(host.ctl(&["--json", "schedule", "list"]).ok().json(), json!([]), "a person decides");
    let waiting = host.ctl(&["--json", "inbox", "list", "--type", "change"]).ok().json();
    let change = waiting[0]["id"].as_str().unwrap_or_else(|| panic!("{waiting}")).to_owned();
    host.ctl(&["approve", &change]).ok();
    let all = host.ctl(&["--json", "schedule", "list"]).ok().json();
    assert_eq!((&all[0]["written_by"], &all[0]["may"]), (&"model".into(), &json!([])), "{all}");
    let id = all[0]["id"].as_str().expect("an id").to_owned();
    host.ctl(&["schedule", "run", &id]).ok();
    assert_eq!(refused_calls(&host, &newest(&host, &id, "failed")), ["call_schedule"]);
    // An agent cannot propose it by its kind, and no other way writes schedules.
    let reply = host.say("a", "change schedule to x");
    assert!(!reply.contains("pending"), "{reply}");
}

#[test]
fn schedule_of_a_member_waits_for_an_approver() {
    let host = new_host();
    host.agent("closed");
    host.change("closed", "permissions", &json!({ "access": "members" }));
    let bob = Raw::add_person(&host, "Bob", &["--role", "member"]);
    let ask = |agent: &str, kind: &str, payload: Value| {
        let new = json!({ "kind": kind, "agent": agent, "payload": payload, "reason": "" });
        let (status, answer) = bob.ask("POST", "/v1/changes", &new.to_string());
        let code = answer["error"]["code"].as_str().unwrap_or_default().to_owned();
        (status, code, answer)
    };
    let wanted = |more: Value| {
        let mut payload = json!({ "prompt": "hello", "every": "1d", "may": ["write"] });
        payload.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        payload
    };
    for (agent, kind, payload, code) in [
        ("a", "persona", json!({ "instructions": "Be kind." }), "role_too_low"),
        ("closed", "schedule", wanted(json!({})), "role_too_low"),
        ("a", "schedule", wanted(json!({ "may": ["exec"] })), "schedule_role"),
        ("a", "schedule", wanted(json!({ "may": ["trade"] })), "schedule_may"),
        (
            "a",
            "schedule",
            wanted(json!({ "reply_to": { "channel": "loopback", "address": "x" } })),
            "schedule_reply_to",
        ),
    ] {
        let refused = ask(agent, kind, payload);
        assert_eq!(refused.1, code, "{agent} {kind}: {}", refused.2);
    }
    let (status, _, asked) = ask("a", "schedule", wanted(json!({})));
    assert_eq!((status, &asked["yours"], &asked["again"]), (200, &json!(false), &json!(false)), "{asked}");
    let change = asked["id"].as_str().expect("an id");
    let again = ask("a", "schedule", wanted(json!({}))).2;
    assert_eq!((&again["id"], &again["again"]), (&asked["id"], &json!(true)), "an equal request joins it: {again}");
    let page = host.ctl(&["--json", "inbox", "show", change]).ok().json();
    let shown = json!({ "approve": page["shown_digest"] }).to_string();
    assert_eq!(bob.ask("POST", &format!("/v1/waiting/{change}/decision"), &shown).0, 403, "other people decide");
    assert_eq!(bob.get("/v1/schedules").1, json!([]));
    host.ctl(&["approve", change]).ok();
    let own = bob.get("/v1/schedules").1;
    assert_eq!((&own[0]["creator"], &own[0]["may"]), (&json!("Bob"), &json!(["write"])), "{own}");
    let id = own[0]["id"].as_str().expect("an id");
    assert_eq!(bob.ask("POST", &format!("/v1/schedules/{id}/run"), "").0, 200);
    assert!(newest(&host, id, "done")["receipt"].is_string());
    // A member cannot fill the inbox of the people who decide.
    let number = |number: u32| ask("a", "schedule", wanted(json!({ "prompt": format!("number {number}") })));
    assert!((0..16).all(|one| number(one).0 == 200));
    assert_eq!(number(16).1, "changes_too_many");
    // The remedy of the refusal works: the member sees each of their own, reads its page on a usual terminal, and withdraws it.
    let entries = bob.get("/v1/waiting").1["entries"].as_array().expect("a list").clone();
    let listed = bob.get("/v1/waiting?type=change").1["entries"].as_array().expect("a list").clone();
    assert_eq!((entries.len(), listed.len()), (16, 16));
    for entry in entries.iter().chain(&listed) {
        assert_eq!((&entry["yours"], &entry["may_reject"]), (&json!(false), &json!(true)), "{entry}");
    }
    let id = entries[0]["id"].as_str().expect("an id");
    let page = bob.get(&format!("/v1/waiting/{id}")).1;
    assert!(page["shown"].as_str().expect("a page").lines().all(|line| line.chars().count() < 80), "{page}");
    assert_eq!(page["shown_digest"], entries[0]["shown_digest"]);
    let withdrawn = bob.ask("POST", &format!("/v1/waiting/{id}/decision"), r#"{"reject":""}"#);
    assert_eq!((withdrawn.0, &withdrawn.1["status"]), (200, &json!("withdrawn")), "{}", withdrawn.1);
    assert_eq!(bob.get("/v1/waiting").1["entries"].as_array().map(Vec::len), Some(15));
    assert_eq!(number(16).0, 200);
}

#[test]
fn creator_who_lost_a_right_pauses_the_schedule() {
    let host = new_host();
    let bob = Raw::add_person(&host, "Bob", &["--role", "member"]);
    let propose = |payload: Value| {
        let new = json!({ "kind": "schedule", "agent": "a", "payload": payload, "reason": "" });
        bob.ask("POST", "/v1/changes", &new.to_string())
    };
    let wanted = json!({ "prompt": "hello", "every": "1d", "may": ["exec"] });
    check_refused(&propose(wanted.clone()), 403, "schedule_role");
    host.ctl(&["person", "set", "Bob", "--role", "admin", "--yes"]).ok();
    let (_, submitted) = propose(wanted);
    host.ctl(&["approve", submitted["id"].as_str().unwrap_or_else(|| panic!("{submitted}"))]).ok();
    let (_, own) = bob.get("/v1/schedules");
    let id = own[0]["id"].as_str().unwrap_or_else(|| panic!("{own}")).to_owned();
    let mine = add(&host, "hello", &["--every", "1d"]);
    assert_eq!(host.ctl_error(&["schedule", "set", &id, "--every", "2d", "--yes"])["code"], "schedule_not_yours");
    host.ctl(&["person", "set", "Bob", "--role", "member", "--yes"]).ok();
    assert_eq!(bob.get(&format!("/v1/schedules/{mine}")).0, 404, "a member sees only their own");
    assert_eq!(host.ctl(&["schedule", "run", &id]).code, 1);
    assert_eq!(newest(&host, &id, "skipped")["reason"], "creator_role");
    let paused = show(&host, &id);
    assert_eq!((&paused["state"], &paused["reason"]), (&"paused".into(), &"creator_role".into()), "{paused}");
    assert_eq!(host.ctl_error(&["schedule", "resume", &id])["code"], "schedule_state", "the right is still lost");
    assert!(host.entries("message.recorded").is_empty(), "no run was started");
}

#[test]
fn paused_resumed_and_removed_schedule_keeps_its_history() {
    let host = new_host();
    let id = add(&host, "hello", &["--every", "1h"]);
    host.ctl(&["schedule", "run", &id]).ok();
    newest(&host, &id, "done");
    host.ctl(&["schedule", "pause", &id]).ok();
    assert_eq!(host.ctl_error(&["schedule", "pause", &id])["code"], "schedule_state");
    assert!(show(&host, &id)["next"].is_null());
    host.ctl(&["schedule", "resume", &id]).ok();
    assert!(show(&host, &id)["next"].is_string());
    host.ctl(&["panic"]).ok();
    assert_eq!(host.ctl(&["schedule", "run", &id]).code, 1);
    assert_eq!(history(&host, &id).pop().expect("a row")["reason"], "emergency_stop");
    host.ctl(&["resume"]).ok();
    host.ctl(&["schedule", "remove", &id]).ok();
    for verb in ["pause", "resume", "run", "remove"] {
        assert_eq!(host.ctl_error(&["schedule", verb, &id])["code"], "schedule_state", "{verb}");
    }
    assert_eq!(history(&host, &id).len(), 2);
    assert_eq!(show(&host, &id)["prompt"], "");
}

#[test]
fn restored_record_pauses_its_schedules() {
    let host = new_host();
    let place = Receiver::accepting();
    add_place(&host, &place, &[]);
    let id = add(&host, "hello", &["--every", "1h"]);
    let file = host.home.with_file_name("home.backup");
    let file = file.to_str().expect("text");
    host.ctl(&["backup", "create", file]).ok();
    host.ctl(&["schedule", "run", &id]).ok();
    newest(&host, &id, "done");
    wait_for("the notification of the reply", || place.notifications().len() == 1);
    host.down();
    host.ctl(&["backup", "restore", file, "--replace", "--yes"]).ok();
    host.up();
    let paused = show(&host, &id);
    assert_eq!((&paused["state"], &paused["reason"]), (&"paused".into(), &"restored".into()), "{paused}");
    wait_for("both notifications", || host.entries("notification.received").len() == 2);
    // The run before the restore was told too, and the record has lost it.
    let told = |words: &str| place.notifications().iter().filter(|text| text.contains(words)).count();
    let all = || ["answered", "the record was restored", "schedules are paused"].map(told);
    assert_eq!(all(), [1, 1, 1]);
    host.restart();
    assert_eq!(all(), [1, 1, 1], "another start sends nothing again");
    host.ctl(&["schedule", "resume", &id]).ok();
    assert_eq!(show(&host, &id)["state"], "active");
}
