//! Tests of the maintenance of the ledger: published heads, rotated chains, and recovery after a crash.
//!
//! See `security::tamper` for changed ledgers.

use crate::security::tamper::outside;
use crate::support::client;
use crate::support::host_fixture::{Build, World, alive, wait_for};
use crate::support::jail_fixture::{ORDINARY_UID, Who, host_users, own};
use crate::support::record;
use ironclaw_contract::operator::SignedHead;
use ironclaw_ledger::head;
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
fn whole(world: &World) -> Vec<Value> {
    let lines = world.ledger();
    let numbers: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "{:?}", world.who);
    assert!(world.ctl(&["audit", "verify"]).ok().stdout.starts_with(&format!("ok {} entries\n", numbers.len())));
    lines
}

#[test]
fn heads_are_published_as_the_ledger_grows_and_at_the_stop() {
    for who in host_users() {
        let world = World::with(who, Build::Plain, None);
        let directory = outside(&world);
        world.configure(&format!("[ledger]\nhead_every_entries = 10\nheads = \"{}\"\n", directory.display()));
        world.up();
        world.agent("a");
        world.say("a", "write a.txt: x");
        wait_for("a head of the running host", || !heads(&directory).is_empty());
        assert!(heads(&directory).iter().all(head::is_authentic), "{who:?}");
        world.down();
        let last = heads(&directory).into_iter().next_back().expect("a head");
        let lines = whole(&world);
        assert_eq!(last.seq + 1, next_of(&lines), "{who:?}: the last head covers the last entry");
        assert_eq!(lines[last.seq as usize]["data"]["what"], "host.stopped", "{who:?}");
        assert_eq!(lines[last.seq as usize]["hash"], last.hash.as_str(), "{who:?}");
        assert_eq!(
            (lines[0]["hash"].as_str(), lines[0]["data"]["key"].as_str()),
            (Some(&*last.ledger), Some(&*last.key))
        );
        // `ironctl audit head` works with and without a host.
        let file = world.home.parent().expect("a directory").join(format!("by-hand-{who:?}"));
        if who == client::own() {
            let path = file.to_str().expect("UTF-8");
            let printed = world.ctl(&["--json", "audit", "head", "--out", path]).ok().json();
            let read: SignedHead = serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("a head");
            assert_eq!(printed, serde_json::to_value(&read).expect("plain fields"), "{who:?}");
            assert!(head::is_authentic(&read) && read.seq == last.seq && read.hash == last.hash, "{who:?}");
            world.ctl(&["audit", "head", "--out", path]).refused("cannot write");
        }
        world.up();
        let asked = world.ctl(&["--json", "audit", "head"]).ok().json();
        assert!(asked["seq"].as_u64() > Some(last.seq), "{who:?}: {asked}");
        let warnings = world.status()["host"]["warnings"].to_string();
        assert!(!warnings.contains("head"), "{who:?}: {warnings}");
    }
}

#[test]
fn failure_to_publish_heads_is_only_a_warning() {
    for who in host_users() {
        let world = World::with(who, Build::Plain, None);
        let directory = outside(&world);
        let gone = directory.join("not-mounted");
        world.configure(&format!("[ledger]\nhead_every_entries = 4\nheads = \"{}\"\n", gone.display()));
        world.up();
        world.agent("a");
        world.say("a", "hello");
        let warned = || world.status()["host"]["warnings"].to_string().contains("was not kept in");
        wait_for("a warning", warned);
        assert!(world.say("a", "echo still here").contains("still here"), "{who:?}");
        assert_eq!(world.entries("ledger.head_not_kept").len(), 1, "{who:?}: one entry for all attempts");
        let asked = world.ctl(&["audit", "head"]).ok().stdout;
        assert!(asked.contains("warning: ") && asked.contains("not-mounted"), "{who:?}: {asked}");
        // The directory exists again. The next attempt is at the stop at the latest.
        std::fs::create_dir(&gone).expect("made");
        if who == Who::Ordinary {
            own(&gone, ORDINARY_UID);
        }
        world.down();
        assert_eq!(world.entries("ledger.head_kept_again").len(), 1, "{who:?}");
        assert!(!heads(&gone).is_empty(), "{who:?}");
        whole(&world);
    }
}

#[test]
fn missing_directory_for_heads_is_in_the_status() {
    let world = World::new();
    world.up();
    // The data directory of this user is in the home of the host.
    let warnings = world.status()["host"]["warnings"].to_string();
    assert!(warnings.contains("heads of the ledger are kept nowhere"), "{warnings}");
    assert!(!world.home.join(".local").exists(), "no directory was made in the home");
}

#[test]
fn default_directory_for_heads_belongs_to_the_user() {
    let mut world = World::new();
    let data = outside(&world);
    world.set_env("XDG_DATA_HOME", data.to_str());
    world.up();
    world.down();
    let usual: Vec<_> = std::fs::read_dir(data.join("ironclaw/heads")).expect("made").flatten().collect();
    assert_eq!(usual.len(), 1, "a home has one directory");
    let usual = usual[0].path();
    let kept = heads(&usual).len();
    assert!(kept >= 1);
    assert_eq!(usual.metadata().expect("made").permissions().mode() & 0o777, 0o700);
    let said = world.ctl(&["audit", "verify"]).ok().stdout;
    assert!(
        said.contains(&format!("outside heads {kept}\n")),
        "heads in the default directory are compared without an option: {said}"
    );
}

#[test]
fn directory_for_heads_in_the_home_is_refused() {
    let world = World::new();
    for inside in ["ledger", "new/deep"] {
        world.configure(&format!("[ledger]\nheads = \"{}\"\n", world.home.join(inside).display()));
        for command in [&["config", "check"][..], &["up", "--detach"], &["audit", "verify"]] {
            world.ctl(command).refused("inside of the home");
        }
    }
    world.configure("[ledger]\nheads = \"relative\"\n");
    world.ctl(&["config", "check"]).refused("must be an absolute path");
    for wrong in ["rotate_entries = 15", "rotate_days = 0", "head_every_entries = 0"] {
        world.configure(&format!("[ledger]\n{wrong}\n"));
        world.ctl(&["config", "check"]).refused("ledger.rotate_entries must be");
    }
}

#[test]
fn long_chain_is_rotated_and_why_explains_archived_entries() {
    for who in host_users() {
        let world = World::with(who, Build::Plain, None);
        world.configure("[ledger]\nrotate_entries = 24\n");
        world.up();
        world.agent("a");
        let first = world.chat("a", "write a.txt: x")["message_id"].as_str().expect("an id").to_owned();
        let before = world.ctl(&["--json", "why", &first]).ok().json();
        for number in 0..8 {
            world.say("a", &format!("echo {number}"));
        }
        let rotations = || world.entries("ledger.rotated").len();
        wait_for("two rotations", || rotations() >= 2);
        let after = world.ctl(&["--json", "why", &first]).ok().json();
        assert_eq!(after["stages"], before["stages"], "{who:?}");
        assert!(before["stages"].as_array().expect("a list").len() > 6, "{who:?}: {before}");
        for genesis in world.entries("ledger.rotated") {
            assert_eq!((&genesis["type"], &genesis["data"]["why"]), (&"GENESIS".into(), &"entries".into()), "{who:?}");
        }
        // `why` explains every message, also a message with entries in two chains.
        for message in world.entries("message.recorded") {
            let id = message["data"]["message"].as_str().expect("an id");
            let why = world.ctl(&["--json", "why", id]).ok().json();
            let stages: Vec<&str> =
                why["stages"].as_array().expect("a list").iter().filter_map(|stage| stage["stage"].as_str()).collect();
            assert_eq!(
                (stages.first(), stages.last()),
                (Some(&"message.recorded"), Some(&"delivery.received")),
                "{who:?}: {stages:?}"
            );
            let numbers: Vec<u64> =
                why["stages"].as_array().expect("a list").iter().filter_map(|s| s["seq"].as_u64()).collect();
            assert!(numbers.is_sorted() && stages.contains(&"turn.opened"), "{who:?}: {why}");
        }
        let tail = world.ctl(&["--json", "audit", "tail", "-n", "60"]).ok().stdout;
        assert_eq!(tail.lines().count(), 60, "{who:?}: the tail includes archives");
        whole(&world);
        // `why` names a missing archive.
        let archive = world.home.join("ledger/chain-000000000000.ndjson");
        std::fs::rename(&archive, world.home.join("ledger/away")).expect("moved");
        let output = world.ctl(&["why", &first]).ok().stdout;
        assert!(output.contains("chain-000000000000.ndjson"), "{who:?}: {output}");
        std::fs::rename(world.home.join("ledger/away"), &archive).expect("moved");
        world.down();
        let seal = std::fs::read_to_string(&archive).expect("read");
        assert_eq!(archive.metadata().expect("an archive").permissions().mode() & 0o777, 0o600, "{who:?}");
        let second = world.entries("ledger.rotated")[0]["data"]["continues_from"].clone();
        assert_eq!(second["archive"], ironclaw_contract::canonical::Digest::of(seal.as_bytes()).to_string(), "{who:?}");
    }
}

#[test]
fn ledger_is_rotated_by_command_with_and_without_a_host() {
    for who in host_users() {
        let world = World::with(who, Build::Plain, None);
        let offline = world.ctl(&["--json", "audit", "rotate"]).ok().json();
        assert_eq!(offline["first"], 0, "{who:?}: {offline}");
        world.ctl(&["audit", "rotate"]).refused("holds nothing but its genesis");
        world.up();
        let output = world.ctl(&["audit", "rotate"]).ok().stdout;
        assert!(output.starts_with("entries ") && output.contains("chain-"), "{who:?}: {output}");
        world.ctl(&["audit", "rotate"]).refused("holds nothing but its genesis");
        let by: Vec<Value> = world.entries("ledger.rotated").iter().map(|entry| entry["data"]["by"].clone()).collect();
        assert!(by.len() == 2 && by[0].is_null() && by[1].as_str().is_some_and(|by| by.starts_with("per_")), "{by:?}");
        world.down();
        whole(&world);
    }
}

#[test]
fn broken_chain_is_not_rotated() {
    let world = World::new();
    world.up();
    world.agent("a");
    world.down();
    {
        let db = record::open(&world.home);
        let change =
            "PRAGMA query_only = OFF; UPDATE ledger SET data = replace(data, '\"at\":1', '\"at\":2') WHERE seq = 2";
        db.execute_batch(change).expect("changed");
    }
    world.ctl(&["audit", "rotate"]).refused("not whole, so nothing was rotated: bad seq 2");
    world.up();
    world.ctl(&["audit", "rotate"]).refused("not whole, so nothing was rotated: bad seq 2");
    assert!(!world.home.join("ledger/chain-000000000000.ndjson").exists());
    assert_eq!(world.ctl(&["audit", "verify"]).stdout.split(':').next(), Some("bad seq 2"));
}

#[test]
fn host_killed_during_a_rotation_loses_no_entry() {
    for who in host_users() {
        let mut world = World::with(who, Build::Failpoints, None);
        world.up();
        world.agent("a");
        world.say("a", "hello");
        world.down();
        for (point, rotated) in [("chain_archived", false), ("chain_begun", false), ("chain_rotated", true)] {
            let before = whole(&world);
            let chains = world.entries("ledger.rotated").len();
            world.set_env("IRONCLAW_FAILPOINT", Some(point));
            world.up();
            world.set_env("IRONCLAW_FAILPOINT", None);
            let host = world.pid().expect("the host runs");
            assert_ne!(world.ctl(&["audit", "rotate"]).code, 0, "{who:?} {point}");
            wait_for(&format!("the host to die at {point}"), || !alive(host));
            let said = world.ctl(&["audit", "verify"]).ok().stdout;
            assert_eq!(said.contains("cut short"), !rotated, "{who:?} {point}: {said}");
            let after = whole(&world);
            assert!(after.starts_with(&before), "{who:?} {point}: an entry is missing or changed");
            assert_eq!(world.entries("ledger.rotated").len(), chains + usize::from(rotated), "{who:?} {point}");
            world.up();
            assert!(world.say("a", "echo on").contains("on"), "{who:?} {point}");
            world.ctl(&["audit", "rotate"]).ok();
            assert!(!world.ctl(&["audit", "verify"]).ok().stdout.contains("cut short"), "{who:?} {point}");
            world.down();
            whole(&world);
        }
    }
}

#[test]
fn home_without_a_head_key_gets_one_at_the_next_start() {
    let world = World::new();
    let directory = outside(&world);
    world.configure(&format!("[ledger]\nheads = \"{}\"\n", directory.display()));
    {
        let db = record::open(&world.home);
        let before = "PRAGMA query_only = OFF; DELETE FROM ledger_keys;";
        db.execute_batch(before).expect("as if it had never been made");
    }
    world.ctl(&["audit", "head"]).refused("");
    world.up();
    world.down();
    let made = world.entries("ledger.key_made");
    let head = &heads(&directory)[0];
    assert_eq!((made.len(), made[0]["data"]["key"].as_str()), (1, Some(head.key.as_str())));
    world.ctl(&["audit", "rotate"]).ok();
    whole(&world);
}

#[test]
fn archive_of_another_history_is_set_aside() {
    let world = World::new();
    world.up();
    world.agent("a");
    world.down();
    let state = world.home.join("state.db");
    let older = std::fs::read(&state).expect("readable");
    world.up();
    world.say("a", "echo what will be forgotten");
    world.ctl(&["audit", "rotate"]).ok();
    world.down();
    let archive = world.home.join("ledger/chain-000000000000.ndjson");
    let forgotten = std::fs::read(&archive).expect("archived");
    // Only the record is restored, and it does not know the archive.
    std::fs::write(&state, older).expect("put back");
    let verdict = world.ctl(&["audit", "verify"]);
    assert!(verdict.code == 1 && verdict.stdout.contains("older than its archive"), "{}", verdict.stdout);
    world.up();
    world.say("a", "echo something else");
    world.ctl(&["audit", "rotate"]).ok();
    let aside = world.home.join("ledger/chain-000000000000.aside-0");
    assert!(std::fs::read(&aside).expect("set aside") == forgotten);
    assert_eq!(world.entries("ledger.archive_set_aside")[0]["data"]["file"], "chain-000000000000.aside-0");
    whole(&world);
}
