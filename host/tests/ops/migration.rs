//! Tests of an upgrade and of the way back: the note and the snapshot of a migration, and a host that is older than its home.
//!
//! No later schema exists yet, so a copy of the record serves as the snapshot. See `migrations` of `ironclaw_state`.

use crate::support::client::Client;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::record;
use ironclaw_state::migrations::NEWEST;
use rusqlite::Connection;
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;

/// Returns a stopped host whose agent knows a name, and a snapshot of its record.
fn with_snapshot() -> (TestHost, PathBuf) {
    let host = TestHost::own(Build::Plain).started_with("a");
    host.say("a", "my name is Ada.");
    host.down();
    let snapshot = host.home.join(snapshot_name());
    std::fs::copy(host.home.join("state.db"), &snapshot).expect("copied");
    (host, snapshot)
}

/// Returns the name of the snapshot that a migration to the next version takes.
fn snapshot_name() -> String {
    format!("state.db.before-v{}", NEWEST + 1)
}

fn version(db: &Connection) -> i64 {
    record::count(db, "PRAGMA user_version")
}

#[test]
fn migrated_home_continues_and_the_ledger_names_the_snapshot() {
    let (host, snapshot) = with_snapshot();
    let note = json!({ "from": NEWEST, "to": NEWEST + 1, "snapshot": snapshot_name() });
    let migrated = record::open_to_change(&host.home);
    let sql = "INSERT INTO meta (key, value) VALUES ('migrated', ?1)";
    migrated.execute(sql, [note.to_string()]).expect("as a migration notes it");
    drop(migrated);
    host.up();
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
    assert_eq!(Client::of(&host).history("a").len(), 4, "two questions, two answers");
    let entries = host.entries("state.migrated");
    assert_eq!(entries.len(), 1);
    for field in ["from", "to", "snapshot"] {
        assert_eq!(entries[0]["data"][field], note[field]);
    }
    host.down();
    assert!(host.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "));
    // Another start names it no more.
    host.up();
    host.down();
    assert_eq!(host.entries("state.migrated").len(), 1);
    let copy = ironclaw_state::open_to_look(&snapshot, &record::master(&host.home).state_key());
    let copy = copy.expect("the snapshot has the same key");
    assert_eq!(version(&copy), NEWEST);
    assert_eq!(record::count(&copy, "SELECT count(*) FROM messages"), 1);
    assert_eq!(version(&record::open(&host.home)), NEWEST);
}

#[test]
fn older_host_refuses_a_newer_home_and_names_the_way_back() {
    let (host, _) = with_snapshot();
    host.up();
    host.say("a", "echo newer");
    host.down();
    // A home of a later version makes this host the older one. It names the newest snapshot that it can open.
    let newer = record::open_to_change(&host.home);
    newer.execute_batch("PRAGMA user_version = 99;").expect("changed");
    drop(newer);
    std::fs::write(host.home.join("state.db.before-v99"), "of a version that is newer still").expect("written");
    let answer = host.ctl(&["up", "--detach"]).refused("has schema 99");
    let said = &answer.stderr;
    assert!(said.contains(&snapshot_name()) && !said.contains("before-v99"), "{said}");
    let commands = said.split("the later changes: ").nth(1).expect("the commands").lines().next();
    let commands = commands.expect("a line").trim();
    let typed = Command::new("sh").args(["-c", commands]).status();
    assert!(typed.is_ok_and(|status| status.success()), "{commands}");
    host.up();
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
    let history = Client::of(&host).history("a").iter().map(ToString::to_string).collect::<String>();
    assert!(!history.contains("newer"), "the snapshot has no later messages: {history}");
    assert!(host.home.join("state-v99/state.db").exists(), "the newer record is kept");
    assert!(host.home.join("state-v99").join(snapshot_name()).exists(), "the snapshot is kept");
}

#[test]
fn snapshot_goes_with_erased_content_or_a_replaced_key() {
    let (host, snapshot) = with_snapshot();
    host.up();
    assert!(snapshot.exists());
    let id = host.session()["id"].as_str().expect("an id").to_owned();
    host.ctl(&["session", "remove", &id, "--yes"]).ok();
    assert!(!snapshot.exists(), "its key would open the erased conversation");
    assert_eq!(host.entries("state.snapshots_removed").len(), 1);
    host.down();
    let (host, snapshot) = with_snapshot();
    let said = host.ctl(&["key", "rotate", "master", "--yes"]).ok().stdout;
    assert!(said.contains(&snapshot_name()) && !snapshot.exists(), "{said}");
    host.up();
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
}
