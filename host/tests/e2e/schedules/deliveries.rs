//! Tests of replies that do not arrive: a run is done only with its receipt, and a failing series is one incident.

use super::{add, history, newest, show};
use crate::support::client::Raw;
use crate::support::hooks::{Hook, Receiver, Response, host_with_shop, new_host};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

const SOON: &str = "backoff_ms = 20\n";

/// Adds a schedule with replies to the channel.
fn add_to(host: &TestHost, hook: &Hook) -> String {
    add(host, "hello", &["--every", "1d", "--reply-to", &format!("{}:ann", hook.name)])
}

fn told(host: &TestHost, about: &str) -> usize {
    let all = host.entries("notification.unplaced");
    all.iter().filter(|entry| entry["data"]["about"] == about).count()
}

#[test]
fn run_is_done_only_once_the_channel_took_the_reply() {
    let host = new_host(Build::Plain, SOON);
    let status = Arc::new(AtomicU16::new(503));
    let asked = Arc::clone(&status);
    let receiver = Receiver::new(move |_, _| Response::Status(asked.load(Ordering::SeqCst)));
    Hook::add(&host, "shop", &receiver, &[]);
    // The replies go to the address of the destination.
    host.ctl(&["destination", "add", "a", "home", "--channel", "shop", "--to", "ann", "--yes"]).ok();
    for named in ["nowhere", "shop:"] {
        let times = ["--every", "1d", "--reply-to", named, "--yes"];
        assert_eq!(host.ctl(&[&["schedule", "add", "a", "hello"], &times[..]].concat()).code, 2, "{named}");
    }
    let id = add(&host, "hello", &["--every", "1d", "--reply-to", "home"]);
    host.ctl(&["schedule", "run", &id]).ok();
    wait_for("two attempts", || receiver.replies().len() >= 2);
    assert_eq!(history(&host, &id)[0]["state"], "started", "queued is not done");
    status.store(200, Ordering::SeqCst);
    let done = newest(&host, &id, "done");
    assert_eq!(done["receipt"], receiver.replies()[0].id.as_str());
    assert_eq!(told(&host, "schedule_incident"), 0);
}

#[test]
fn failing_series_makes_one_incident_and_one_recovery() {
    let host = new_host(Build::Plain, SOON);
    let status = Arc::new(AtomicU16::new(410));
    let asked = Arc::clone(&status);
    let receiver = Receiver::new(move |_, _| Response::Status(asked.load(Ordering::SeqCst)));
    let hook = Hook::add(&host, "shop", &receiver, &[]);
    let id = add_to(&host, &hook);
    for count in 1..=3 {
        host.ctl(&["schedule", "run", &id]).ok();
        wait_for("a failure", || {
            history(&host, &id).iter().filter(|found| found["reason"] == "delivery").count() == count
        });
    }
    let failing = show(&host, &id);
    assert!(failing["failing_since"].is_string());
    assert_eq!((&failing["last"]["state"], &failing["last"]["reason"]), (&json!("failed"), &json!("delivery")));
    assert!(host.ctl(&["status"]).ok().stdout.contains("fails"), "the status names it");
    let chat_says = || host.ctl(&["chat", "a", "hello"]).ok().stderr.contains("ironctl schedule history");
    assert!(chat_says(), "the chat names it");
    let findings = || Raw::of(&host).get("/v1/config/audit").1.to_string().matches("schedule_failing").count();
    assert_eq!(findings(), 1);
    assert_eq!((told(&host, "schedule_incident"), told(&host, "schedule_recovery")), (1, 0));
    status.store(200, Ordering::SeqCst);
    for _ in 0..2 {
        host.ctl(&["schedule", "run", &id]).ok();
        newest(&host, &id, "done");
    }
    assert!(show(&host, &id)["failing_since"].is_null());
    assert_eq!((findings(), chat_says()), (0, false));
    assert_eq!((told(&host, "schedule_incident"), told(&host, "schedule_recovery")), (1, 1));
}

#[test]
fn lost_receipt_leaves_the_run_unknown() {
    let host = new_host(Build::Plain, SOON);
    let receiver = Receiver::new(|_, _| Response::Close);
    let hook = Hook::add(&host, "shop", &receiver, &[]);
    let id = add_to(&host, &hook);
    host.ctl(&["schedule", "run", &id]).ok();
    assert_eq!(newest(&host, &id, "unknown")["reason"], "delivery_unknown");
    assert_eq!(told(&host, "schedule_incident"), 1, "a person without a place is in the ledger");
}

#[test]
fn removed_channel_fails_the_run_with_a_reason() {
    let (host, _receiver, hook) = host_with_shop(SOON);
    let id = add_to(&host, &hook);
    host.ctl(&["agent", "disconnect", "a", "shop"]).ok();
    assert_eq!(host.ctl(&["schedule", "run", &id]).code, 1);
    assert_eq!(newest(&host, &id, "failed")["reason"], "channel_unheard");
}
