//! A home without its record, its key or the log of the record: a start reports the loss and makes no replacement.
//!
//! The tests damage files only while no host runs. See `ops::rotation` for heads and archives.

use crate::support::host_fixture::TestHost;
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
    let host = TestHost::new().started_with("a");
    host.say("a", "hello");
    host.down();
    let state = host.home.join("state.db");
    let (away, token) = (host.home.with_file_name("away.db"), host.home.join("owner.token"));
    let before = std::fs::read(&token).expect("read");
    std::fs::rename(&state, &away).expect("moved");
    for empty in [false, true] {
        if empty {
            std::fs::write(&state, "").expect("written");
        }
        for command in [&["--json", "init"][..], &["--json", "up"]] {
            let refused = host.ctl(command);
            assert_eq!(refused.code, 1, "{command:?} {empty}: {}{}", refused.stdout, refused.stderr);
            assert_eq!(code_of(&refused.stderr), "record_missing", "{command:?} {empty}");
        }
        let run = host.command("ironclaw-host").args(["run", "--json", "--home"]).arg(&host.home).output();
        let run = run.expect("the host's program runs");
        assert_eq!((run.status.code(), &*code_of(&String::from_utf8_lossy(&run.stderr))), (Some(1), "record_missing"));
        assert!(std::fs::metadata(&state).map_or(0, |found| found.len()) == 0, "no record was made");
        assert!(std::fs::read(&token).expect("read") == before, "the owner's token is the same");
    }
    // With its record the home starts again, with the same token.
    std::fs::rename(&away, &state).expect("put back");
    host.up();
    assert!(host.say("a", "echo here again").contains("here again"));
}

#[test]
fn init_replaces_an_invalid_token_file_of_a_new_home() {
    let host = TestHost::new();
    let token = host.home.join("owner.token");
    for damaged in ["", "garbage", "ic_0000"] {
        std::fs::write(&token, damaged).expect("written");
        let made = host.ctl(&["--json", "init"]).ok().json();
        assert_eq!(made["made"], true, "{damaged}");
    }
    let kept = std::fs::read(&token).expect("read");
    assert_eq!(host.ctl(&["--json", "init"]).ok().json()["made"], false);
    assert!(std::fs::read(&token).expect("read") == kept, "a valid token is kept");
    host.up();
    host.status();
}

#[test]
fn init_makes_no_master_key_if_a_record_exists() {
    let host = TestHost::new();
    let (key, away) = (host.home.join("master.key"), host.home.with_file_name("away.key"));
    std::fs::rename(&key, &away).expect("moved");
    let refused = host.ctl(&["--json", "init"]);
    assert_eq!((refused.code, &*code_of(&refused.stderr)), (1, "key_missing"));
    assert!(!key.exists(), "no key was made");
    std::fs::rename(&away, &key).expect("put back");
    assert_eq!(host.ctl(&["--json", "init"]).ok().json()["made"], false);
}

/// Returns the kind of damage of the log from each entry about lost changes.
fn losses(host: &TestHost) -> Vec<String> {
    let lost = host.entries("state.changes_lost");
    lost.iter().map(|entry| entry["data"]["log"].as_str().expect("a word").to_owned()).collect()
}

#[test]
fn damaged_or_missing_log_is_reported_and_ends_approvals() {
    let host = TestHost::new().started_with("a");
    host.submit("a", "persona", r#"{"instructions":"Be brief."}"#).ok();
    host.down();
    let log = host.home.join("state.db-wal");
    assert!(!log.exists(), "a clean stop leaves no log");
    let mut expected = Vec::new();
    for (how, damage) in [("damaged", "flip"), ("missing", "remove"), ("missing", "empty"), ("damaged", "header")] {
        host.up();
        assert_eq!(losses(&host), expected, "{damage}");
        host.say("a", "echo one");
        host.kill_host();
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
        host.up();
        expected.push(how.to_owned());
        assert_eq!(losses(&host), expected, "{damage}");
        let warnings = host.status()["host"]["warnings"].to_string();
        assert!(warnings.contains("state.db-wal"), "{damage}: {warnings}");
        assert_eq!(host.entries("state.generation").len(), expected.len(), "{damage}");
        let changes = host.ctl(&["--json", "inbox", "list", "--type", "change"]).ok().json();
        assert_eq!(changes[0]["status"], "doubtful", "{damage}: {changes}");
        host.ctl(&["audit", "verify"]).ok();
        host.down();
    }
    // An unclean end loses no change, and commands without a host lose none either.
    host.up();
    host.say("a", "echo two");
    host.kill_host();
    host.ctl(&["audit", "verify"]).ok();
    host.ctl(&["audit", "rotate"]).ok();
    host.up();
    assert_eq!(losses(&host), expected);
}

#[test]
fn log_lost_after_init_beside_a_host_is_reported() {
    let host = TestHost::new().started_with("a");
    host.ctl(&["init"]).ok();
    host.say("a", "echo one");
    let log = host.home.join("state.db-wal");
    assert!(log.exists(), "the log of the running host still exists");
    host.kill_host();
    std::fs::remove_file(&log).expect("removed");
    host.up();
    assert_eq!(losses(&host), ["missing"]);
}

#[test]
fn lost_workspace_is_recorded_in_the_ledger() {
    let host = TestHost::new().started_with("a");
    host.say("a", "write a.txt: x");
    host.restart();
    host.say("a", "echo still there");
    assert!(host.entries("session.workspace_lost").is_empty());
    host.down();
    std::fs::remove_dir_all(host.session_directory().join("workspace")).expect("removed");
    host.up();
    host.say("a", "echo gone");
    let lost = || host.entries("session.workspace_lost");
    assert_eq!((lost().len(), &lost()[0]["data"]["session"]), (1, &host.session()["id"]));
    // The host records the loss also if the conversation was forgotten.
    host.down();
    let forget = ["deliveries", "calls", "messages", "items", "turns"].map(|table| format!("DELETE FROM {table};"));
    record::open_to_change(&host.home).execute_batch(&forget.concat()).expect("changed");
    record::restore_owner(&host);
    std::fs::remove_dir_all(host.session_directory().join("workspace")).expect("removed");
    host.up();
    host.say("a", "echo gone again");
    assert_eq!(lost().len(), 2);
}
