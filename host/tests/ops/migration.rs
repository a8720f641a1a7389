//! Tests of an upgrade and of the way back: a home of schema version 5 with this host, and a host that is older than its home.
//!
//! The fixture has rows of version 5, and the released scripts make its schema. See `state`.

use crate::support::client::{Client, own};
use crate::support::host_fixture::{Build, World};
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
fn of_version_5() -> World {
    let world = World::with(own(), Build::Plain, None);
    let path = world.home.join("state.db");
    std::fs::remove_file(&path).expect("removed");
    let key: Vec<u8> =
        (0..64).step_by(2).map(|at| u8::from_str_radix(&MASTER_KEY[at..at + 2], 16).expect("hex")).collect();
    std::fs::write(world.home.join("master.key"), key).expect("written");
    std::fs::write(world.home.join("owner.token"), OWNER_TOKEN).expect("written");
    let db = Connection::open(&path).expect("made");
    let key = record::master(&world.home).state_key();
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
    world
}

fn version(db: &Connection) -> i64 {
    record::count(db, "PRAGMA user_version")
}

#[test]
fn home_of_version_5_is_migrated_and_continues() {
    let world = of_version_5();
    world.up();
    assert_eq!(world.say("a", "what is my name?"), "Your name is Ada.");
    assert_eq!(Client::of(&world).history("a").len(), 10, "five questions, five answers");
    let entries = world.entries("state.migrated");
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (&entries[0]["data"]["from"], &entries[0]["data"]["snapshot"]),
        (&5.into(), &"state.db.before-v6".into())
    );
    let log = std::fs::read_to_string(world.home.join("logs/host.log")).expect("a log");
    assert!(log.contains("state.db.before-v6"), "{log}");
    world.down();
    assert!(world.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "));
    // Another start migrates nothing and makes no snapshot.
    world.up();
    world.down();
    assert_eq!(world.entries("state.migrated").len(), 1);
    let copy =
        ironclaw_state::open_to_look(&world.home.join("state.db.before-v6"), &record::master(&world.home).state_key());
    let copy = copy.expect("the snapshot has the same key");
    assert_eq!(version(&copy), 5);
    assert_eq!(record::count(&copy, "SELECT count(*) FROM messages"), 4);
    assert!(version(&record::open(&world.home)) > 5);
}

#[test]
fn older_host_refuses_a_newer_home_and_names_the_way_back() {
    let world = of_version_5();
    world.up();
    world.say("a", "echo newer");
    world.down();
    // A home of a later version makes this host the older one. It names the newest snapshot that it can open.
    let newer = record::open_to_change(&world.home);
    newer.execute_batch("PRAGMA user_version = 99;").expect("changed");
    drop(newer);
    let snapshot = |name: &str| world.home.join(name);
    std::fs::write(snapshot("state.db.before-v99"), "of a version that is newer still").expect("written");
    let answer = world.ctl(&["up", "--detach"]).refused("has schema 99");
    assert!(answer.stderr.contains("state.db.before-v6") && !answer.stderr.contains("before-v99"), "{}", answer.stderr);
    let commands = answer.stderr.split("the later changes: ").nth(1).expect("the commands").lines().next();
    let commands = commands.expect("a line").trim();
    let typed = Command::new("sh").args(["-c", commands]).status();
    assert!(typed.is_ok_and(|status| status.success()), "{commands}");
    world.up();
    assert_eq!(world.say("a", "what is my name?"), "Your name is Ada.");
    let history = Client::of(&world).history("a").iter().map(ToString::to_string).collect::<String>();
    assert!(!history.contains("newer"), "the snapshot has no later messages: {history}");
    assert!(world.home.join("state-v99/state.db").exists(), "the newer record is kept");
    assert!(Path::new(&world.home).join("state.db.before-v6").exists(), "the snapshot is kept");
}

#[test]
fn snapshot_goes_with_erased_content_or_a_replaced_key() {
    let world = of_version_5();
    world.up();
    let snapshot = world.home.join("state.db.before-v6");
    assert!(snapshot.exists());
    let id = world.session()["id"].as_str().expect("an id").to_owned();
    world.ctl(&["session", "remove", &id, "--yes"]).ok();
    assert!(!snapshot.exists(), "its key would open the erased conversation");
    assert_eq!(world.entries("state.snapshots_removed").len(), 1);
    world.down();
    let world = of_version_5();
    world.up();
    world.down();
    let snapshot = world.home.join("state.db.before-v6");
    assert!(snapshot.exists());
    let said = world.ctl(&["key", "rotate", "master", "--yes"]).ok().stdout;
    assert!(said.contains("state.db.before-v6") && !snapshot.exists(), "{said}");
    world.up();
    assert_eq!(world.say("a", "what is my name?"), "Your name is Ada.");
}
