//! Tests of the maintenance of the ledger: published heads, rotated chains, and recovery after a crash.
//!
//! See `security::tamper` for changed ledgers.

use crate::security::tamper::outside;
use crate::support::host_fixture::{Build, TestHost, alive, wait_for};
use crate::support::jail_fixture::{HostUser, ORDINARY_UID, host_users, set_owner};
use crate::support::record;
use ironclaw_ledger::head;
use ironclaw_operator::SignedHead;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn heads(directory: &Path) -> Vec<SignedHead> {
    let kept = head::all(directory).expect("a directory");
    kept.into_iter().map(|kept| kept.head.expect("a head")).collect()
}

fn next_of(export: &[Value]) -> u64 {
    export.iter().filter_map(|line| line["seq"].as_u64()).max().expect("entries") + 1
}

/// Checks that the ledger has every number once, in order, over all chains.
#[track_caller]
fn whole(host: &TestHost) -> Vec<Value> {
    let lines = host.ledger();
    let numbers: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "{:?}", host.user);
    assert!(host.ctl(&["audit", "verify"]).ok().stdout.starts_with(&format!("ok {} entries\n", numbers.len())));
    lines
}

#[test]
fn heads_are_published_as_the_ledger_grows_and_at_the_stop() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None);
        let directory = outside(&host);
        host.configure(&format!("[ledger]\nhead_every_entries = 10\nheads = \"{}\"\n", directory.display()));
        host.up();
        host.agent("a");
        host.say("a", "write a.txt: x");
        wait_for("a head of the running host", || !heads(&directory).is_empty());
        assert!(heads(&directory).iter().all(head::is_authentic), "{user:?}");
        host.down();
        let last = heads(&directory).into_iter().next_back().expect("a head");
        let lines = whole(&host);
        assert_eq!(last.seq + 1, next_of(&lines), "{user:?}: the last head covers the last entry");
        assert_eq!(lines[last.seq as usize]["data"]["what"], "host.stopped", "{user:?}");
        assert_eq!(lines[last.seq as usize]["hash"], last.hash.as_str(), "{user:?}");
        assert_eq!(
            (lines[0]["hash"].as_str(), lines[0]["data"]["key"].as_str()),
            (Some(&*last.ledger), Some(&*last.key))
        );
        // `ironctl audit head` works with and without a host.
        let file = host.home.parent().expect("a directory").join(format!("by-hand-{user:?}"));
        if user == HostUser::current() {
            let path = file.to_str().expect("UTF-8");
            let printed = host.ctl(&["--json", "audit", "head", "--out", path]).ok().json();
            let read: SignedHead = serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("a head");
            assert_eq!(printed, serde_json::to_value(&read).expect("plain fields"), "{user:?}");
            assert!(head::is_authentic(&read) && read.seq == last.seq && read.hash == last.hash, "{user:?}");
            host.ctl(&["audit", "head", "--out", path]).refused("cannot write");
        }
        host.up();
        let asked = host.ctl(&["--json", "audit", "head"]).ok().json();
        assert!(asked["seq"].as_u64() > Some(last.seq), "{user:?}: {asked}");
        let warnings = host.status()["host"]["warnings"].to_string();
        assert!(!warnings.contains("head"), "{user:?}: {warnings}");
    }
}

#[test]
fn failure_to_publish_heads_is_only_a_warning() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None);
        let directory = outside(&host);
        let gone = directory.join("not-mounted");
        host.configure(&format!("[ledger]\nhead_every_entries = 4\nheads = \"{}\"\n", gone.display()));
        host.up();
        host.agent("a");
        host.say("a", "hello");
        let warned = || host.status()["host"]["warnings"].to_string().contains("was not kept in");
        wait_for("a warning", warned);
        assert!(host.say("a", "echo still here").contains("still here"), "{user:?}");
        assert_eq!(host.entries("ledger.head_not_kept").len(), 1, "{user:?}: one entry for all attempts");
        let asked = host.ctl(&["audit", "head"]).ok().stdout;
        assert!(asked.contains("warning: ") && asked.contains("not-mounted"), "{user:?}: {asked}");
        // The directory exists again. The next attempt is at the stop at the latest.
        std::fs::create_dir(&gone).expect("made");
        if user == HostUser::Ordinary {
            set_owner(&gone, ORDINARY_UID);
        }
        host.down();
        assert_eq!(host.entries("ledger.head_kept_again").len(), 1, "{user:?}");
        assert!(!heads(&gone).is_empty(), "{user:?}");
        whole(&host);
    }
}

#[test]
fn missing_directory_for_heads_is_in_the_status() {
    let host = TestHost::new().started();
    // The data directory of this user is in the home of the host.
    let warnings = host.status()["host"]["warnings"].to_string();
    assert!(warnings.contains("heads of the ledger are kept nowhere"), "{warnings}");
    assert!(!host.home.join(".local").exists(), "no directory was made in the home");
}

#[test]
fn default_directory_for_heads_belongs_to_the_user() {
    let mut host = TestHost::new();
    let data = outside(&host);
    host.set_env("XDG_DATA_HOME", data.to_str());
    host.up();
    host.down();
    let usual: Vec<_> = std::fs::read_dir(data.join("ironclaw/heads")).expect("made").flatten().collect();
    assert_eq!(usual.len(), 1, "a home has one directory");
    let usual = usual[0].path();
    let kept = heads(&usual).len();
    assert!(kept >= 1);
    assert_eq!(usual.metadata().expect("made").permissions().mode() & 0o777, 0o700);
    let said = host.ctl(&["audit", "verify"]).ok().stdout;
    assert!(
        said.contains(&format!("outside heads {kept}\n")),
        "heads in the default directory are compared without an option: {said}"
    );
}

#[test]
fn directory_for_heads_in_the_home_is_refused() {
    let host = TestHost::new();
    for inside in ["ledger", "new/deep"] {
        host.configure(&format!("[ledger]\nheads = \"{}\"\n", host.home.join(inside).display()));
        for command in [&["config", "check"][..], &["up", "--detach"], &["audit", "verify"]] {
            host.ctl(command).refused("inside of the home");
        }
    }
    host.configure("[ledger]\nheads = \"relative\"\n");
    host.ctl(&["config", "check"]).refused("must be an absolute path");
    for (name, value) in [("rotate_entries", 15), ("rotate_days", 0), ("head_every_entries", 0)] {
        host.configure(&format!("[ledger]\n{name} = {value}\n"));
        host.ctl(&["config", "check"]).refused(&format!("ledger.{name} must be"));
    }
}

#[test]
fn long_chain_is_rotated_and_why_explains_archived_entries() {
    for user in host_users() {
        let host =
            TestHost::with(user, Build::Plain, None).configured("[ledger]\nrotate_entries = 24\n").started_with("a");
        let first = host.chat("a", "write a.txt: x")["message_id"].as_str().expect("an id").to_owned();
        let before = host.ctl(&["--json", "why", &first]).ok().json();
        for number in 0..8 {
            host.say("a", &format!("echo {number}"));
        }
        let rotations = || host.entries("ledger.rotated").len();
        wait_for("two rotations", || rotations() >= 2);
        let after = host.ctl(&["--json", "why", &first]).ok().json();
        assert_eq!(after["stages"], before["stages"], "{user:?}");
        assert!(before["stages"].as_array().expect("a list").len() > 6, "{user:?}: {before}");
        for genesis in host.entries("ledger.rotated") {
            assert_eq!((&genesis["type"], &genesis["data"]["why"]), (&"GENESIS".into(), &"entries".into()), "{user:?}");
        }
        // `why` explains every message, also a message with entries in two chains.
        for message in host.entries("message.recorded") {
            let id = message["data"]["message"].as_str().expect("an id");
            let why = host.ctl(&["--json", "why", id]).ok().json();
            let stages: Vec<&str> =
                why["stages"].as_array().expect("a list").iter().filter_map(|stage| stage["stage"].as_str()).collect();
            assert_eq!(
                (stages.first(), stages.last()),
                (Some(&"message.recorded"), Some(&"delivery.received")),
                "{user:?}: {stages:?}"
            );
            let numbers: Vec<u64> =
                why["stages"].as_array().expect("a list").iter().filter_map(|s| s["seq"].as_u64()).collect();
            assert!(numbers.is_sorted() && stages.contains(&"turn.opened"), "{user:?}: {why}");
        }
        let tail = host.ctl(&["--json", "audit", "tail", "-n", "60"]).ok().stdout;
        assert_eq!(tail.lines().count(), 60, "{user:?}: the tail includes archives");
        whole(&host);
        // `why` names a missing archive.
        let archive = host.home.join("ledger/chain-000000000000.ndjson");
        std::fs::rename(&archive, host.home.join("ledger/away")).expect("moved");
        let output = host.ctl(&["why", &first]).ok().stdout;
        assert!(output.contains("chain-000000000000.ndjson"), "{user:?}: {output}");
        std::fs::rename(host.home.join("ledger/away"), &archive).expect("moved");
        host.down();
        let seal = std::fs::read_to_string(&archive).expect("read");
        assert_eq!(archive.metadata().expect("an archive").permissions().mode() & 0o777, 0o600, "{user:?}");
        let second = host.entries("ledger.rotated")[0]["data"]["continues_from"].clone();
        assert_eq!(
            second["archive"],
            ironclaw_contract::canonical::Digest::of(seal.as_bytes()).to_string(),
            "{user:?}"
        );
    }
}

#[test]
fn ledger_is_rotated_by_command_with_and_without_a_host() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None);
        let offline = host.ctl(&["--json", "audit", "rotate"]).ok().json();
        assert_eq!(offline["first"], 0, "{user:?}: {offline}");
        host.ctl(&["audit", "rotate"]).refused("holds nothing but its genesis");
        host.up();
        let output = host.ctl(&["audit", "rotate"]).ok().stdout;
        assert!(output.starts_with("entries ") && output.contains("chain-"), "{user:?}: {output}");
        host.ctl(&["audit", "rotate"]).refused("holds nothing but its genesis");
        let by: Vec<Value> = host.entries("ledger.rotated").iter().map(|entry| entry["data"]["by"].clone()).collect();
        assert!(by.len() == 2 && by[0].is_null() && by[1].as_str().is_some_and(|by| by.starts_with("per_")), "{by:?}");
        host.down();
        whole(&host);
    }
}

#[test]
fn broken_chain_is_not_rotated() {
    let host = TestHost::new().started_with("a");
    host.down();
    {
        let db = record::open(&host.home);
        let change =
            "PRAGMA query_only = OFF; UPDATE ledger SET data = replace(data, '\"at\":1', '\"at\":2') WHERE seq = 2";
        db.execute_batch(change).expect("changed");
    }
    host.ctl(&["audit", "rotate"]).refused("not whole, so nothing was rotated: bad seq 2");
    host.up();
    host.ctl(&["audit", "rotate"]).refused("not whole, so nothing was rotated: bad seq 2");
    assert!(!host.home.join("ledger/chain-000000000000.ndjson").exists());
    assert_eq!(host.ctl(&["audit", "verify"]).stdout.split(':').next(), Some("bad seq 2"));
}

#[test]
fn host_killed_during_a_rotation_loses_no_entry() {
    for user in host_users() {
        let mut host = TestHost::with(user, Build::Failpoints, None).started_with("a");
        host.say("a", "hello");
        host.down();
        for (point, rotated) in [("chain_archived", false), ("chain_begun", false), ("chain_rotated", true)] {
            let before = whole(&host);
            let chains = host.entries("ledger.rotated").len();
            host.up_failing_at(point);
            let host_pid = host.pid().expect("the host runs");
            assert_ne!(host.ctl(&["audit", "rotate"]).code, 0, "{user:?} {point}");
            wait_for(&format!("the host to die at {point}"), || !alive(host_pid));
            let said = host.ctl(&["audit", "verify"]).ok().stdout;
            assert_eq!(said.contains("cut short"), !rotated, "{user:?} {point}: {said}");
            let after = whole(&host);
            assert!(after.starts_with(&before), "{user:?} {point}: an entry is missing or changed");
            assert_eq!(host.entries("ledger.rotated").len(), chains + usize::from(rotated), "{user:?} {point}");
            host.up();
            assert!(host.say("a", "echo on").contains("on"), "{user:?} {point}");
            host.ctl(&["audit", "rotate"]).ok();
            assert!(!host.ctl(&["audit", "verify"]).ok().stdout.contains("cut short"), "{user:?} {point}");
            host.down();
            whole(&host);
        }
    }
}

#[test]
fn home_without_a_head_key_gets_one_at_the_next_start() {
    let host = TestHost::new();
    let directory = outside(&host);
    host.configure(&format!("[ledger]\nheads = \"{}\"\n", directory.display()));
    {
        let db = record::open(&host.home);
        let before = "PRAGMA query_only = OFF; DELETE FROM ledger_keys;";
        db.execute_batch(before).expect("as if it had never been made");
    }
    host.ctl(&["audit", "head"]).refused("");
    host.up();
    host.down();
    let made = host.entries("ledger.key_made");
    let head = &heads(&directory)[0];
    assert_eq!((made.len(), made[0]["data"]["key"].as_str()), (1, Some(head.key.as_str())));
    host.ctl(&["audit", "rotate"]).ok();
    whole(&host);
}

#[test]
fn archive_of_another_history_is_set_aside() {
    let host = TestHost::new().started_with("a");
    host.down();
    let state = host.home.join("state.db");
    let older = std::fs::read(&state).expect("readable");
    host.up();
    host.say("a", "echo what will be forgotten");
    host.ctl(&["audit", "rotate"]).ok();
    host.down();
    let archive = host.home.join("ledger/chain-000000000000.ndjson");
    let forgotten = std::fs::read(&archive).expect("archived");
    // Only the record is restored, and it does not know the archive.
    std::fs::write(&state, older).expect("put back");
    let verdict = host.ctl(&["audit", "verify"]);
    assert!(verdict.code == 1 && verdict.stdout.contains("older than its archive"), "{}", verdict.stdout);
    host.up();
    host.say("a", "echo something else");
    host.ctl(&["audit", "rotate"]).ok();
    let aside = host.home.join("ledger/chain-000000000000.aside-0");
    assert!(std::fs::read(&aside).expect("set aside") == forgotten);
    assert_eq!(host.entries("ledger.archive_set_aside")[0]["data"]["file"], "chain-000000000000.aside-0");
    whole(&host);
}
