//! An hour without a receipt, and the lines that people get about a failing series.
//!
//! The host has its usual retries, and the test sets its clock. See `ends` for the other ends of a run.

use super::clocked::{Clocked, HOUR_MS};
use crate::support::hooks::{Hook, Receiver, Response, add_place};
use crate::support::host_fixture::wait_for;
use crate::support::record;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

/// The usual settings: ten attempts, the first wait is a second.
const USUAL: &str = "[webhook]\nlisten = \"127.0.0.1:0\"\n";

/// A host with a channel whose status for `ann` the test sets, and a schedule to her. Replies to `bob` always arrive.
struct Shop {
    clocked: Clocked,
    receiver: Receiver,
    status: Arc<AtomicU16>,
    id: String,
    /// A schedule to `bob`: its replies wake the sender of the host, which then notices its clock.
    other: String,
}

impl Shop {
    fn open() -> Self {
        let clocked = Clocked::new(USUAL);
        let status = Arc::new(AtomicU16::new(503));
        let asked = Arc::clone(&status);
        let receiver = Receiver::new(move |got, _| match got.body["sender"].as_str() {
            Some("ann") => Response::Status(asked.load(Ordering::SeqCst)),
            _ => Response::Status(200),
        });
        drop(Hook::add(&clocked.host, "shop", &receiver, &[]));
        clocked.host.ctl(&["person", "link", "owner", "shop:bob", "--yes"]).ok();
        let id = clocked.add("echo water", &["--every", "1w", "--reply-to", "shop:ann"]);
        let other = clocked.add("echo weed", &["--every", "1w", "--reply-to", "shop:bob"]);
        Self { clocked, receiver, status, id, other }
    }

    /// Returns the number of requests for `ann`.
    fn tries(&self) -> usize {
        self.receiver.replies().iter().filter(|got| got.body["sender"] == "ann").count()
    }

    /// Runs a schedule and waits for the end of the run.
    #[track_caller]
    fn run(&self, id: &str) -> Value {
        let before = self.clocked.history(id).len();
        self.clocked.host.ctl(&["--json", "schedule", "run", id]).ok();
        self.clocked.settled(id, before + 1).pop().expect("an occurrence")
    }

    /// Returns the number of replies with an attempt that is due.
    fn due(&self) -> i64 {
        let due =
            format!("SELECT count(*) FROM deliveries WHERE state = 'intent' AND next_at <= {}", self.clocked.now());
        record::count(&record::open(&self.clocked.host.home), &due)
    }

    /// Returns the number of retries in the ledger.
    fn retries(&self) -> usize {
        self.clocked.host.entries("delivery.retried").len()
    }
}

#[test]
fn run_without_a_receipt_for_an_hour_is_done_after_it() {
    let mut shop = Shop::open();
    let (start, id) = (shop.clocked.now(), shop.id.clone());
    shop.clocked.host.ctl(&["--json", "schedule", "run", &id]).ok();
    wait_for("the first attempts", || shop.retries() >= 2);
    // Each wait is four times the one before: minutes after an hour at most.
    for minutes in [1, 3, 10, 30, 59] {
        shop.clocked.set_clock(start + minutes * 60_000);
        assert_eq!(shop.run(&shop.other.clone())["state"], "done", "another conversation is not delayed");
        wait_for("the due attempts", || shop.due() == 0 && shop.retries() == shop.tries());
        let history = shop.clocked.history(&id);
        assert_eq!((history.len(), &history[0]["state"]), (1, &json!("started")), "{minutes} min: {history:?}");
        assert_eq!((&history[0]["receipt"], &history[0]["reason"]), (&Value::Null, &Value::Null));
    }
    let shown = shop.clocked.show(&id);
    assert_eq!(
        (&shown["failing_since"], &shown["state"]),
        (&Value::Null, &json!("active")),
        "it has not failed: {shown}"
    );
    let tries = shop.tries();
    assert!(tries >= 6, "{tries}");
    assert!(shop.clocked.host.entries("schedule.done").iter().all(|entry| entry["data"]["schedule"] != json!(id)));

    shop.status.store(200, Ordering::SeqCst);
    shop.clocked.restart_at(start + 4 * HOUR_MS);
    let done = shop.clocked.settled(&id, 1).pop().expect("an occurrence");
    assert_eq!(done["state"], "done", "{done}");
    let to_ann: Vec<_> = shop.receiver.replies().into_iter().filter(|got| got.body["sender"] == "ann").collect();
    assert_eq!(to_ann.len(), tries + 1, "one request after the hour");
    assert!(to_ann.iter().all(|got| done["receipt"] == got.id.as_str()), "one reply with one id");
    let entries = shop.clocked.host.entries("schedule.done");
    let of_run: Vec<_> = entries.iter().filter(|entry| entry["data"]["schedule"] == json!(id)).collect();
    assert_eq!((of_run.len(), &of_run[0]["data"]["delivery"]), (1, &done["receipt"]), "{entries:?}");
    shop.clocked.host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn failing_series_is_one_line_and_its_end_another() {
    let shop = Shop::open();
    let (host, id) = (&shop.clocked.host, shop.id.as_str());
    let place = Receiver::accepting();
    add_place(host, &place, &[]);
    shop.status.store(410, Ordering::SeqCst);
    for _ in 0..3 {
        assert_eq!(shop.run(id)["reason"], "delivery");
    }
    shop.status.store(200, Ordering::SeqCst);
    for _ in 0..2 {
        assert_eq!(shop.run(id)["state"], "done");
    }
    wait_for("both lines", || host.entries("notification.received").len() == 2);
    let lines = place.notifications();
    let [incident, recovery] = &lines[..] else { panic!("two lines: {lines:?}") };
    assert!(incident.contains(id) && incident.contains("failed"), "{incident}");
    assert!(recovery.contains(id) && recovery.contains("runs again"), "{recovery}");
    let whole: String = place.replies().iter().map(|got| got.body.to_string()).collect();
    assert!(!whole.contains("water") && !whole.contains("shop"), "no content: {whole}");
    let about = |event: &str| -> Vec<Value> {
        host.entries(event).iter().map(|entry| entry["data"]["about"].clone()).collect()
    };
    assert_eq!(about("notification.intended"), ["schedule_incident", "schedule_recovery"]);

    // A person without a place: the ledger and `doctor` have it.
    host.ctl(&["person", "set", "owner", "--notify", "none"]).ok();
    shop.status.store(410, Ordering::SeqCst);
    assert_eq!(shop.run(id)["reason"], "delivery");
    assert_eq!(about("notification.unplaced"), ["schedule_incident"]);
    assert_eq!(place.notifications().len(), 2);
    let report = host.ctl_bounded(&["--json", "doctor"]).json();
    let checks = report["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["name"] == "places to be told").expect("a note");
    assert!(check["found"].as_str().is_some_and(|found| found.contains("owner")), "{check}");
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn retry_from_a_clock_that_was_ahead_is_made() {
    let mut shop = Shop::open();
    let (start, id) = (shop.clocked.now(), shop.id.clone());
    shop.clocked.set_clock(start + 400 * 24 * HOUR_MS);
    shop.clocked.host.ctl(&["--json", "schedule", "run", &id]).ok();
    wait_for("an attempt", || shop.retries() >= 1);
    shop.clocked.set_clock(start + 10_000);
    let before = shop.tries();
    shop.status.store(200, Ordering::SeqCst);
    wait_for("another attempt", || shop.tries() > before);
    assert_eq!(shop.clocked.settled(&id, 1)[0]["state"], "done");
}
