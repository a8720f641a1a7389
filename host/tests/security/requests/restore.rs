//! Restores of a real backup between a request and its approval, and between an approval and its use.
//!
//! See `ops::backup` for the backups themselves.

use super::{Waiting, failing_host, id, inbox, status};
use crate::e2e::requests::{approve, post, reject, request, waiting};
use crate::support::client::{Raw, code};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Makes a backup beside the home.
fn back_up(host: &TestHost) -> PathBuf {
    let path = host.home.with_file_name("b.backup");
    host.ctl(&["backup", "create", text(&path)]).ok();
    path
}

/// Restores a backup of a host into an empty home.
fn restore_elsewhere(host: &TestHost, file: &Path) -> TestHost {
    let other = TestHost::own(Build::Failpoints);
    std::fs::remove_dir_all(&other.home).expect("removed");
    let key = host.home.join("master.key");
    other.ctl(&["backup", "restore", text(file), "--key-file", text(&key)]).ok();
    other
}

/// Checks that each of these requests is withdrawn, with one entry each, and that no person can approve it.
fn check_withdrawn(host: &TestHost, requests: &[&Value]) {
    let raw = Raw::of(host);
    let entries = host.entries("request.withdrawn");
    assert_eq!(host.entries("state.generation")[0]["data"]["withdrawn"], requests.len());
    assert_eq!(entries.len(), requests.len(), "{entries:?}");
    for entry in requests {
        assert_eq!(status(host, entry), "withdrawn");
        let found: Vec<&Value> = entries.iter().filter(|one| one["data"]["request"] == entry["id"]).collect();
        assert_eq!(found.len(), 1, "{entries:?}");
        assert!(found[0]["data"]["session"].is_string() && found[0]["data"]["reason"].is_string(), "{}", found[0]);
        assert_eq!(code(&approve(&raw, entry)).1, "call_withdrawn");
        assert_eq!(code(&reject(&raw, entry, "no")).1, "call_withdrawn");
        assert_eq!(request(&raw, &entry["id"])["status"], "withdrawn", "{}", id(entry));
    }
    assert_eq!(inbox(&raw), Vec::<Value>::new());
    assert!(
        host.entries("request.used")
            .iter()
            .all(|entry| { requests.iter().all(|request| entry["data"]["request"] != request["id"]) })
    );
}

#[test]
fn restore_between_approval_and_its_use_withdraws_the_call() {
    let (site, home) = Waiting::make();
    let file = back_up(&home.host);
    let other = restore_elsewhere(&home.host, &file);
    other.up();
    check_withdrawn(&other, &[&home.pending, &home.approved]);
    assert_eq!(status(&other, &home.used), "done");
    assert_eq!(["roses", "lilies", "tulips"].map(|body| site.sent(body)), [1, 0, 0]);
    // The record of the restored home has no live approval.
    let sql = "SELECT count(*) FROM approvals WHERE state = 'live'";
    let live: i64 = crate::support::record::open(&other.home).query_row(sql, [], |row| row.get(0)).expect("a count");
    assert_eq!(live, 0);
    other.ctl(&["audit", "verify"]).ok();
    // The agent asks again, and this request has its effect once.
    let raw = Raw::of(&other);
    post(&raw, "tulips", &site.url("/notes"));
    assert_eq!(approve(&raw, &waiting(&raw)).0, 200);
    wait_for("the request at the site", || site.sent("tulips") == 1);
}

#[test]
fn restore_between_two_approvals_voids_the_first_one() {
    let (site, host) = failing_host();
    std::fs::write(host.home.join("policy.toml"), "[call.send]\napprovals = 2\n").expect("written");
    host.ctl(&["person", "add", "ada", "--role", "admin"]).ok();
    host.ctl(&["config", "reload"]).ok();
    let raw = Raw::of(&host);
    // The agent has no grant of this path, so people of the policy decide.
    post(&raw, "lilies", &site.url("/other"));
    let entry = waiting(&raw);
    let (answered, approved) = approve(&raw, &entry);
    assert_eq!((answered, approved["status"].as_str()), (200, Some("pending")), "{approved}");
    let other = restore_elsewhere(&host, &back_up(&host));
    other.up();
    assert_eq!(code(&approve(&Raw::of_person(&other, "ada"), &entry)).1, "call_withdrawn");
    check_withdrawn(&other, &[&entry]);
    assert!(site.lines().is_empty());
}
