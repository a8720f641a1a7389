//! Tests of an upgrade and of the way back: a home of schema version 5 with this host, and a host that is older than its home.
//!
//! The fixture has rows of version 5, and the released scripts make its schema. See `state`.

use crate::support::client::{Client, current_user};
use crate::support::host_fixture::{Build, TestHost};
use crate::support::record;
use rusqlite::Connection;
use std::path::Path;
use std::process::Command;

/// The master key of that home. It never protected other data.
const MASTER_KEY: &str = "65754e85a17b46db5df8984f5328cd69fcebe1ea60bca4cdbf4dca5e918a49bd";

/// The token of its owner.
const OWNER_TOKEN: &str = "ict_5e1a1226ecf5c902dd8229937e4635139b4d5edc92d0223e7ce2efa364d6326b";

/// The schema of version 5, script by script.
const SCHEMA: [&str; 5] = [
    include_str!("../../state/src/v1.sql"),
    include_str!("../../state/src/v2.sql"),
    include_str!("../../state/src/v3.sql"),
    include_str!("../../state/src/v4.sql"),
    include_str!("../../state/src/v5.sql"),
];

const ROWS: &str = include_str!("migration/v5.sql");

/// Makes a home as version 5 left it.
fn of_version_5() -> TestHost {
    let host = TestHost::with(current_user(), Build::Plain, None);
    let path = host.home.join("state.db");
    std::fs::remove_file(&path).expect("removed");
    let key: Vec<u8> =
        (0..64).step_by(2).map(|at| u8::from_str_radix(&MASTER_KEY[at..at + 2], 16).expect("hex")).collect();
    std::fs::write(host.home.join("master.key"), key).expect("written");
    std::fs::write(host.home.join("owner.token"), OWNER_TOKEN).expect("written");
    let db = Connection::open(&path).expect("made");
    let key = record::master(&host.home).state_key();
    db.execute_batch(&format!(
        "PRAGMA key = \"x'{}'\"; PRAGMA cipher_page_size = 4096; PRAGMA cipher_hmac_algorithm = HMAC_SHA256; \
         PRAGMA journal_mode = WAL; PRAGMA foreign_keys = OFF;",
        key.to_hex().as_str()
    ))
    .expect("the key is right");
    for script in SCHEMA {
        db.execute_batch(script).expect("a script of version 5");
    }
    db.execute_batch(&format!("{ROWS} PRAGMA user_version = 5;")).expect("rows of version 5");
    host
}

fn version(db: &Connection) -> i64 {
    record::count(db, "PRAGMA user_version")
}

#[test]
fn home_of_version_5_is_migrated_and_continues() {
    let host = of_version_5();
    host.up();
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
    assert_eq!(Client::of(&host).history("a").len(), 10, "five questions, five answers");
    let entries = host.entries("state.migrated");
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (&entries[0]["data"]["from"], &entries[0]["data"]["snapshot"]),
        (&5.into(), &"state.db.before-v6".into())
    );
    let log = std::fs::read_to_string(host.home.join("logs/host.log")).expect("a log");
    assert!(log.contains("state.db.before-v6"), "{log}");
    host.down();
    assert!(host.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "));
    // Another start migrates nothing and makes no snapshot.
    host.up();
    host.down();
    assert_eq!(host.entries("state.migrated").len(), 1);
    let copy =
        ironclaw_state::open_to_look(&host.home.join("state.db.before-v6"), &record::master(&host.home).state_key());
    let copy = copy.expect("the snapshot has the same key");
    assert_eq!(version(&copy), 5);
    assert_eq!(record::count(&copy, "SELECT count(*) FROM messages"), 4);
    assert!(version(&record::open(&host.home)) > 5);
}

#[test]
fn older_host_refuses_a_newer_home_and_names_the_way_back() {
    let host = of_version_5();
    host.up();
    host.say("a", "echo newer");
    host.down();
    // A home of a later version makes this host the older one. It names the newest snapshot that it can open.
    let newer = record::open_to_change(&host.home);
    newer.execute_batch("PRAGMA user_version = 99;").expect("changed");
    drop(newer);
    let snapshot = |name: &str| host.home.join(name);
    std::fs::write(snapshot("state.db.before-v99"), "of a version that is newer still").expect("written");
    let answer = host.ctl(&["up", "--detach"]).refused("has schema 99");
    assert!(answer.stderr.contains("state.db.before-v6") && !answer.stderr.contains("before-v99"), "{}", answer.stderr);
    let commands = answer.stderr.split("the later changes: ").nth(1).expect("the commands").lines().next();
    let commands = commands.expect("a line").trim();
    let typed = Command::new("sh").args(["-c", commands]).status();
    assert!(typed.is_ok_and(|status| status.success()), "{commands}");
    host.up();
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
    let history = Client::of(&host).history("a").iter().map(ToString::to_string).collect::<String>();
    assert!(!history.contains("newer"), "the snapshot has no later messages: {history}");
    assert!(host.home.join("state-v99/state.db").exists(), "the newer record is kept");
    assert!(Path::new(&host.home).join("state.db.before-v6").exists(), "the snapshot is kept");
}

#[test]
fn snapshot_goes_with_erased_content_or_a_replaced_key() {
    let host = of_version_5();
    host.up();
    let snapshot = host.home.join("state.db.before-v6");
    assert!(snapshot.exists());
    let id = host.session()["id"].as_str().expect("an id").to_owned();
    host.ctl(&["session", "remove", &id, "--yes"]).ok();
    assert!(!snapshot.exists(), "its key would open the erased conversation");
    assert_eq!(host.entries("state.snapshots_removed").len(), 1);
    host.down();
    let host = of_version_5();
    host.up();
    host.down();
    let snapshot = host.home.join("state.db.before-v6");
    assert!(snapshot.exists());
    let said = host.ctl(&["key", "rotate", "master", "--yes"]).ok().stdout;
    assert!(said.contains("state.db.before-v6") && !snapshot.exists(), "{said}");
    host.up();
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
}
