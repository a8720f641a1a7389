//! Ends: an occurrence is done with the receipt of its reply alone, and every other end is recorded and told.

use super::clocked::{Clocked, HOUR_MS, states};
use crate::support::hooks::{Hook, Receiver, Response};
use crate::support::host_fixture::{alive, wait_for};
use crate::support::model_server::{Act, Server};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

/// A port for webhooks, and three attempts in quick succession.
const HOOKS: &str = "[webhook]\nlisten = \"127.0.0.1:0\"\nbackoff_ms = 1\nattempts_max = 3\n";
const HOURLY: [&str; 2] = ["--every", "1h"];

/// Returns the notices about schedules that the host intended or could not place, by their words.
fn told(clocked: &Clocked, about: &str) -> usize {
    let events = ["notification.intended", "notification.unplaced"];
    let entries = events.into_iter().flat_map(|event| clocked.host.entries(event));
    entries.filter(|entry| entry["data"]["about"] == about).count()
}

/// Runs a schedule by hand and waits for its end. The command fails if the run does not start.
#[track_caller]
fn run(clocked: &Clocked, id: &str) -> Value {
    let before = clocked.history(id).len();
    clocked.host.ctl(&["--json", "schedule", "run", id]);
    clocked.settled(id, before + 1).pop().expect("an occurrence")
}

/// Adds a schedule whose replies go to a webhook.
fn to_shop(clocked: &Clocked) -> String {
    clocked.add("echo water", &["--every", "1h", "--reply-to", "shop:ann"])
}

/// Gives agent `a` a model whose answer is this status, or a text for 200.
fn model_of(clocked: &Clocked, status: &Arc<AtomicU16>) -> Server {
    let answer = Arc::clone(status);
    let server = Server::start(move |_| match answer.load(Ordering::SeqCst) {
        200 => Act::Say("watered".to_owned()),
        status => Act::Status(status, Vec::new(), "{}".to_owned()),
    });
    clocked.host.add_model(&server.url());
    clocked.host.ctl(&["agent", "set", "a", "--model", "m"]).ok();
    server
}

#[test]
fn occurrence_after_a_failure_is_not_skipped() {
    let mut clocked = Clocked::new("");
    let status = Arc::new(AtomicU16::new(400));
    let _server = model_of(&clocked, &status);
    let id = clocked.add("water", &HOURLY);
    let at = clocked.next(&id).expect("a time");
    clocked.restart_at(at + 1000);
    assert_eq!(states(&clocked.settled(&id, 1)), json!([["failed", "model"]]));
    status.store(200, Ordering::SeqCst);
    clocked.restart_at(at + HOUR_MS + 1000);
    assert_eq!(states(&clocked.settled(&id, 2)), json!([["failed", "model"], ["done", null]]));
}

#[test]
fn skipped_run_differs_from_a_time_without_a_run() {
    let mut clocked = Clocked::new("");
    let at = clocked.now() + HOUR_MS;
    let (stopped, later) = (clocked.add_at("echo water", at), clocked.add_at("echo water", at + HOUR_MS));
    clocked.host.ctl(&["panic"]).ok();
    clocked.restart_at(at + 1000);
    assert_eq!(states(&clocked.settled(&stopped, 1)), json!([["skipped", "emergency_stop"]]));
    assert_eq!(clocked.history(&later), [Value::Null; 0]);
}

#[test]
fn answer_whose_delivery_is_refused_is_failed() {
    let clocked = Clocked::new(HOOKS);
    let receiver = Receiver::new(|_, _| Response::Status(410));
    let _hook = Hook::add(&clocked.host, "shop", &receiver, &[]);
    let id = to_shop(&clocked);
    let end = run(&clocked, &id);
    assert_eq!((&end["state"], &end["reason"]), (&json!("failed"), &json!("delivery")), "{end}");
    assert_eq!(end["receipt"], Value::Null);
    let why = clocked.host.ctl(&["--json", "why", end["message"].as_str().expect("a message")]).ok().json();
    assert_eq!(why["message"]["receipt"], "dead", "the agent itself succeeded: {why}");
}

#[test]
fn deliveries_that_fail_again_and_again_make_one_incident() {
    let clocked = Clocked::new(HOOKS);
    let is_open = Arc::new(AtomicBool::new(false));
    let opened = Arc::clone(&is_open);
    let receiver = Receiver::new(move |_, _| Response::Status(if opened.load(Ordering::SeqCst) { 200 } else { 503 }));
    let _hook = Hook::add(&clocked.host, "shop", &receiver, &[]);
    let id = to_shop(&clocked);
    for _ in 0..5 {
        assert_eq!(run(&clocked, &id)["state"], "failed");
    }
    assert_ne!(clocked.show(&id)["failing_since"], Value::Null);
    assert_eq!((told(&clocked, "schedule_incident"), told(&clocked, "schedule_recovery")), (1, 0));
    is_open.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        let end = run(&clocked, &id);
        assert!(end["state"] == "done" && end["receipt"] != Value::Null, "{end}");
    }
    assert_eq!(clocked.show(&id)["failing_since"], Value::Null);
    assert_eq!((told(&clocked, "schedule_incident"), told(&clocked, "schedule_recovery")), (1, 1));
    is_open.store(false, Ordering::SeqCst);
    assert_eq!(run(&clocked, &id)["state"], "failed");
    assert_eq!(told(&clocked, "schedule_incident"), 2, "a new series of failures is a new incident");
}

#[test]
fn run_whose_recipient_is_unlinked_is_told_and_paused() {
    let clocked = Clocked::new(HOOKS);
    let receiver = Receiver::accepting();
    let _hook = Hook::add(&clocked.host, "shop", &receiver, &[]);
    let id = to_shop(&clocked);
    clocked.host.ctl(&["person", "unlink", "owner", "shop:ann"]).ok();
    let end = run(&clocked, &id);
    assert_eq!((&end["state"], &end["reason"]), (&json!("skipped"), &json!("creator_identity")), "{end}");
    assert!(receiver.replies().is_empty());
    let shown = clocked.show(&id);
    assert_eq!((&shown["state"], &shown["reason"]), (&json!("paused"), &json!("creator_identity")), "{shown}");
    assert_eq!(told(&clocked, "schedule_incident"), 1);
}

#[test]
fn run_with_a_lost_receipt_is_unknown_and_opens_an_incident() {
    let mut clocked = Clocked::new(HOOKS);
    let receiver = Receiver::accepting();
    let _hook = Hook::add(&clocked.host, "shop", &receiver, &[]);
    let id = to_shop(&clocked);
    clocked.host.down();
    clocked.host.up_failing_at("delivery_sent");
    let pid = clocked.host.pid().expect("it runs");
    clocked.host.ctl(&["--json", "schedule", "run", &id]);
    wait_for("the host to die", || !alive(pid));
    clocked.host.up();
    assert_eq!(states(&clocked.settled(&id, 1)), json!([["unknown", "delivery_unknown"]]));
    assert_eq!(receiver.replies().len(), 1, "an unknown outcome is not repeated");
    assert_eq!(told(&clocked, "schedule_incident"), 1);
}

#[test]
fn run_without_a_model_is_failed() {
    let clocked = Clocked::new("[model]\ntries_max = 1\n");
    let status = Arc::new(AtomicU16::new(200));
    let server = model_of(&clocked, &status);
    drop(server);
    let id = clocked.add("water", &HOURLY);
    let end = run(&clocked, &id);
    assert_eq!((&end["state"], &end["reason"]), (&json!("failed"), &json!("model")), "{end}");
    assert_eq!(told(&clocked, "schedule_incident"), 1);
}

#[test]
fn run_by_hand_keeps_its_creator_and_names_its_starter() {
    let clocked = Clocked::new("");
    let id = clocked.add("echo water", &HOURLY);
    let next = clocked.next(&id);
    let end = run(&clocked, &id);
    assert_eq!((&end["state"], &end["by"]), (&json!("done"), &json!("owner")), "{end}");
    let shown = clocked.show(&id);
    assert_eq!((&shown["creator"], clocked.next(&id)), (&json!("owner"), next), "{shown}");
    let why = clocked.host.ctl(&["--json", "why", end["message"].as_str().expect("a message")]).ok().json();
    assert_eq!(why["occurrence"]["schedule"], json!(id), "{why}");
}

#[test]
fn host_that_cannot_start_its_sandbox_records_a_failed_run() {
    let settings = "[session]\nlaunch_attempts_max = 2\nbackoff_ms = 1\n";
    let clocked = Clocked::with_sandbox(settings, Some(Path::new("/usr/bin/false")));
    let id = clocked.add("echo water", &HOURLY);
    let end = run(&clocked, &id);
    assert_eq!((&end["state"], &end["reason"]), (&json!("failed"), &json!("session_parked")), "{end}");
    assert_eq!(told(&clocked, "schedule_incident"), 1);
    let next = run(&clocked, &id);
    assert_eq!((&next["state"], &next["reason"]), (&json!("skipped"), &json!("session_parked")), "{next}");
}
