//! A home without its record, its key or the log of the record: a start reports the loss and makes no replacement.
//!
//! The tests damage files only while no host runs. See `ops::rotation` for heads and archives.

use crate::support::host_fixture::World;
use crate::support::record;
use serde_json::Value;

/// Returns the code of a `--json` failure on standard error.
#[track_caller]
fn code_of(stderr: &str) -> String {
    let line = stderr.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("no JSON: {stderr}"));
    let failure: Value = serde_json::from_str(line).expect("JSON");
    failure["error"]["code"].as_str().expect("a code").to_owned()
}

#[test]
fn missing_or_empty_record_is_refused_and_not_replaced() {
    let world = World::new();
    world.up();
    world.agent("a");
    world.say("a", "hello");
    world.down();
    let state = world.home.join("state.db");
    let (away, token) = (world.home.with_file_name("away.db"), world.home.join("owner.token"));
    let before = std::fs::read(&token).expect("read");
    std::fs::rename(&state, &away).expect("moved");
    for empty in [false, true] {
        if empty {
            std::fs::write(&state, "").expect("written");
        }
        for command in [&["--json", "init"][..], &["--json", "up"]] {
            let refused = world.ctl(command);
            assert_eq!(refused.code, 1, "{command:?} {empty}: {}{}", refused.stdout, refused.stderr);
            assert_eq!(code_of(&refused.stderr), "record_missing", "{command:?} {empty}");
        }
        let run = world.command("ironclaw-host").args(["run", "--json", "--home"]).arg(&world.home).output();
        let run = run.expect("the host's program runs");
        assert_eq!((run.status.code(), &*code_of(&String::from_utf8_lossy(&run.stderr))), (Some(1), "record_missing"));
        assert!(std::fs::metadata(&state).map_or(0, |found| found.len()) == 0, "no record was made");
        assert!(std::fs::read(&token).expect("read") == before, "the owner's token is the same");
    }
    // With its record the home starts again, with the same token.
    std::fs::rename(&away, &state).expect("put back");
    world.up();
    assert!(world.say("a", "echo here again").contains("here again"));
}

#[test]
fn init_replaces_an_invalid_token_file_of_a_new_home() {
    let world = World::new();
    let token = world.home.join("owner.token");
    for damaged in ["", "garbage", "ic_0000"] {
        std::fs::write(&token, damaged).expect("written");
        let made = world.ctl(&["--json", "init"]).ok().json();
        assert_eq!(made["made"], true, "{damaged}");
    }
    let kept = std::fs::read(&token).expect("read");
    assert_eq!(world.ctl(&["--json", "init"]).ok().json()["made"], false);
    assert!(std::fs::read(&token).expect("read") == kept, "a valid token is kept");
    world.up();
    world.status();
}

#[test]
fn init_makes_no_master_key_if_a_record_exists() {
    let world = World::new();
    let (key, away) = (world.home.join("master.key"), world.home.with_file_name("away.key"));
    std::fs::rename(&key, &away).expect("moved");
    let refused = world.ctl(&["--json", "init"]);
    assert_eq!((refused.code, &*code_of(&refused.stderr)), (1, "key_missing"));
    assert!(!key.exists(), "no key was made");
    std::fs::rename(&away, &key).expect("put back");
    assert_eq!(world.ctl(&["--json", "init"]).ok().json()["made"], false);
}

/// Returns the kind of damage of the log from each entry about lost changes.
fn losses(world: &World) -> Vec<String> {
    let lost = world.entries("state.changes_lost");
    lost.iter().map(|entry| entry["data"]["log"].as_str().expect("a word").to_owned()).collect()
}

#[test]
fn damaged_or_missing_log_is_reported_and_ends_approvals() {
    let world = World::new();
    world.up();
    world.agent("a");
    world.submit("a", "persona", r#"{"instructions":"Be brief."}"#).ok();
    world.down();
    let log = world.home.join("state.db-wal");
    assert!(!log.exists(), "a clean stop leaves no log");
    let mut expected = Vec::new();
    for (how, damage) in [("damaged", "flip"), ("missing", "remove"), ("missing", "empty"), ("damaged", "header")] {
        world.up();
        assert_eq!(losses(&world), expected, "{damage}");
        world.say("a", "echo one");
        world.kill_host();
        let mut bytes = std::fs::read(&log).expect("a killed host leaves a log");
        match damage {
            "flip" => bytes[32 + 4120 + 2000] ^= 1,
            "header" => bytes[18] ^= 1,
            _ => bytes.clear(),
        }
        match damage {
            "remove" => std::fs::remove_file(&log).expect("removed"),
            _ => std::fs::write(&log, bytes).expect("written"),
        }
        world.up();
        expected.push(how.to_owned());
        assert_eq!(losses(&world), expected, "{damage}");
        let warnings = world.status()["host"]["warnings"].to_string();
        assert!(warnings.contains("state.db-wal"), "{damage}: {warnings}");
        assert_eq!(world.entries("state.generation").len(), expected.len(), "{damage}");
        let changes = world.ctl(&["--json", "change", "list"]).ok().json();
        assert_eq!(changes[0]["status"], "unknown", "{damage}: {changes}");
        world.ctl(&["audit", "verify"]).ok();
        world.down();
    }
    // An unclean end loses no change, and commands without a host lose none either.
    world.up();
    world.say("a", "echo two");
    world.kill_host();
    world.ctl(&["audit", "verify"]).ok();
    world.ctl(&["audit", "rotate"]).ok();
    world.up();
    assert_eq!(losses(&world), expected);
}

#[test]
fn log_lost_after_init_beside_a_host_is_reported() {
    let world = World::new();
    world.up();
    world.agent("a");
    world.ctl(&["init"]).ok();
    world.say("a", "echo one");
    let log = world.home.join("state.db-wal");
    assert!(log.exists(), "the log of the running host still exists");
    world.kill_host();
    std::fs::remove_file(&log).expect("removed");
    world.up();
    assert_eq!(losses(&world), ["missing"]);
}

#[test]
fn lost_workspace_is_recorded_in_the_ledger() {
    let world = World::new();
    world.up();
    world.agent("a");
    world.say("a", "write a.txt: x");
    world.down();
    world.up();
    world.say("a", "echo still there");
    assert!(world.entries("session.workspace_lost").is_empty());
    world.down();
    std::fs::remove_dir_all(world.session_directory().join("workspace")).expect("removed");
    world.up();
    world.say("a", "echo gone");
    let lost = || world.entries("session.workspace_lost");
    assert_eq!((lost().len(), &lost()[0]["data"]["session"]), (1, &world.session()["id"]));
    // The host records the loss also if the conversation was forgotten.
    world.down();
    let forget = ["deliveries", "calls", "messages", "items", "turns"].map(|table| format!("DELETE FROM {table};"));
    record::open_to_change(&world.home).execute_batch(&forget.concat()).expect("changed");
    record::restore_owner(&world);
    std::fs::remove_dir_all(world.session_directory().join("workspace")).expect("removed");
    world.up();
    world.say("a", "echo gone again");
    assert_eq!(lost().len(), 2);
}
