//! The states that people are told after a month, compared with the ledger.

use super::Month;
use crate::e2e::requests;
use crate::support::client::Raw;
use crate::support::host_fixture::TestHost;
use serde_json::Value;
use std::collections::BTreeMap;

/// The events of the ledger that end a run, with the state in the history.
const RUNS: [(&str, &str); 3] =
    [("schedule.done", "done"), ("schedule.failed", "failed"), ("schedule.unknown", "unknown")];

/// The last event of a request, with the states that it leads to. A used one has the state of its call.
const REQUESTS: [(&str, &[&str]); 6] = [
    ("call.asked", &["pending"]),
    ("request.approved", &["approved"]),
    ("request.rejected", &["rejected"]),
    ("request.expired", &["expired"]),
    ("request.withdrawn", &["withdrawn"]),
    ("request.used", &["done", "failed", "unknown", "queued"]),
];

/// Checks the history of each schedule and the status of each request. Returns the number of compared states.
pub(super) fn check(month: &Month) -> usize {
    let host = month.host();
    let runs: usize = month.schedules.iter().map(|id| check_history(host, id)).sum();
    let requests = check_requests(host);
    println!("{runs} runs and {requests} requests agree with the ledger");
    runs + requests
}

/// Compares the history of a schedule with the entries about its runs. Returns the number of its rows.
pub(crate) fn check_history(host: &TestHost, id: &str) -> usize {
    let ledger = host.ledger();
    let history = host.ctl(&["--json", "schedule", "history", id]).ok().json();
    let history = history.as_array().expect("a list");
    let state = |one: &Value| one["state"].as_str().unwrap_or_default().to_owned();
    for (event, shown) in RUNS {
        let told = history.iter().filter(|one| state(one) == shown).count();
        let recorded =
            ledger.iter().filter(|entry| entry["data"]["what"] == event && entry["data"]["schedule"] == id).count();
        assert_eq!(told, recorded, "{event} of {id}: {history:#?}");
    }
    let is_open = |one: &&Value| matches!(state(one).as_str(), "started" | "scheduled");
    assert_eq!(history.iter().filter(is_open).count(), 0, "{history:#?}");
    history.len()
}

/// Compares the status of each request with its last event. Returns the number of requests.
pub(crate) fn check_requests(host: &TestHost) -> usize {
    let raw = Raw::of(host);
    let mut last = BTreeMap::new();
    for entry in host.ledger() {
        let what = entry["data"]["what"].as_str().unwrap_or_default();
        if let (Some(id), Some(row)) = (entry["data"]["request"].as_str(), REQUESTS.iter().find(|row| row.0 == what)) {
            last.insert(id.to_owned(), row.1);
        }
    }
    for (id, expected) in &last {
        let shown = requests::request(&raw, &Value::from(id.as_str()));
        let status = shown["status"].as_str().unwrap_or_default();
        assert!(expected.contains(&status), "{id} is {status}, and its last event says {expected:?}");
    }
    last.len()
}
