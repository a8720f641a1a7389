//! Tests of restored, moved and copied homes and of damaged archives: the checks by heads and archives, and accepted breaks.
//!
//! See `chaos::lost_record` for a missing record, and `security::tamper` for a changed ledger.

use crate::security::tamper::{outside, perl};
use crate::support::hooks::{Receiver, add_place};
use crate::support::host_fixture::{TestHost, copy_with_owners, wait_for};
use crate::support::record::open_to_change;
use ironclaw_ledger::head;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn warnings(host: &TestHost) -> String {
    host.status()["host"]["warnings"].to_string()
}

/// Returns the exit code and the output of `audit verify --json`.
fn verified(host: &TestHost) -> (i32, Value) {
    let answer = host.ctl(&["--json", "audit", "verify"]);
    (answer.code, answer.json())
}

fn restore(kept: &Path, home: &Path) {
    std::fs::remove_dir_all(home).expect("removed");
    copy_with_owners(kept, home);
}

#[test]
fn accepted_break_is_named_in_every_later_verification() {
    let host = TestHost::new();
    let heads = outside(&host);
    host.configure(&format!("[ledger]\nheads = {heads:?}\n"));
    host.up();
    host.agent("a");
    host.ctl(&["audit", "accept", "--reason", "nothing happened"]).refused("nothing to accept");
    host.down();
    let kept = host.home.with_file_name("kept");
    copy_with_owners(&host.home, &kept);
    host.up();
    host.say("a", "echo forgotten");
    host.ctl(&["audit", "rotate"]).ok();
    host.say("a", "echo forgotten too");
    host.down();
    restore(&kept, &host.home);
    host.up();
    assert!(warnings(&host).contains("know another history"));
    host.say("a", "echo instead");
    let (code, bad) = verified(&host);
    assert_eq!((code, &bad["ok"]), (1, &false.into()), "{bad}");
    let reason = "the disk died; \"monday's\" backup";
    let accepted = host.ctl(&["--json", "audit", "accept", "--reason", reason]).ok().json();
    assert!(accepted["heads"].as_u64() > Some(0), "{accepted}");
    assert!(!warnings(&host).contains("know another history"));
    let entry = &host.entries("ledger.break_accepted")[0];
    assert_eq!((&entry["seq"], &entry["data"]["reason"]), (&accepted["seq"], &reason.into()));
    assert!(entry["data"]["by"].as_str().is_some_and(|by| by.starts_with("per_")));
    // The ledger becomes longer than the other history, over a rotation and a start.
    for text in ["one", "two", "three"] {
        host.say("a", &format!("echo {text}"));
    }
    host.ctl(&["audit", "rotate"]).ok();
    host.restart();
    assert!(!warnings(&host).contains("know another history"));
    host.down();
    let (code, whole) = verified(&host);
    assert_eq!((code, &whole["accepted"][0]["seq"]), (0, &accepted["seq"]), "{whole}");
    assert_eq!((&whole["accepted"][0]["reason"], &whole["accepted"][0]["from"]), (&reason.into(), &accepted["from"]));
    // The Perl verifier reports the same.
    let export = host.home.with_file_name("ledger.ndjson");
    std::fs::write(&export, host.ctl(&["audit", "export"]).ok().stdout).expect("written");
    let (shown, of) = (heads.display().to_string(), export.display().to_string());
    let by_host = host.ctl(&["audit", "verify", "--file", &of, "--heads", &shown]).ok();
    assert!(by_host.stdout.contains("   accepted at "), "{}", by_host.stdout);
    assert_eq!(perl(&export, &heads), (0, by_host.stdout));
    // Another break fails the verification again.
    restore(&kept, &host.home);
    assert_eq!(verified(&host).0, 1);
}

/// Makes the record refuse an acceptance, and checks that no archive is renamed.
fn refused_accept_moves_no_archive(host: &TestHost) {
    let names = || {
        let found = std::fs::read_dir(host.home.join("ledger")).expect("archives");
        found.map(|entry| entry.expect("a name").file_name()).collect::<BTreeSet<_>>()
    };
    let (before, db) = (names(), open_to_change(&host.home));
    let trigger = "CREATE TRIGGER refuse BEFORE INSERT ON meta WHEN new.key = 'accepted_history' \
                   BEGIN SELECT RAISE(ABORT, 'refused'); END";
    db.execute_batch(trigger).expect("made");
    assert_eq!(host.ctl(&["audit", "accept", "--reason", "only the record was saved"]).code, 1);
    assert_eq!(names(), before);
    db.execute_batch("DROP TRIGGER refuse").expect("removed");
}

#[test]
fn record_older_than_its_archives_is_named_and_accepted() {
    let host = TestHost::new().started_with("a");
    host.down();
    let (state, kept) = (host.home.join("state.db"), host.home.with_file_name("kept.db"));
    copy_with_owners(&state, &kept);
    host.up();
    for text in ["one", "two"] {
        host.say("a", &format!("echo {text}"));
        host.ctl(&["audit", "rotate"]).ok();
    }
    host.down();
    std::fs::rename(&kept, &state).expect("put back");
    host.up();
    assert!(warnings(&host).contains("older than its archive"));
    let counts =
        |host: &TestHost| (host.entries("ledger.behind_archives").len(), host.entries("state.generation").len());
    assert_eq!(counts(&host), (1, 1));
    assert_eq!(verified(&host).0, 1);
    refused_accept_moves_no_archive(&host);
    let accepted = host.ctl(&["--json", "audit", "accept", "--reason", "only the record was saved"]).ok().json();
    assert_eq!(accepted["archives"].as_array().map(Vec::len), Some(2), "{accepted}");
    let (code, whole) = verified(&host);
    assert_eq!((code, whole["accepted"].as_array().map(Vec::len)), (0, Some(1)), "{whole}");
    host.say("a", "echo on");
    host.ctl(&["audit", "rotate"]).ok();
    host.restart();
    assert_eq!(counts(&host), (1, 1));
    assert_eq!(verified(&host).0, 0);
}

/// Returns the single directory of heads in the data directory of the user.
fn heads_directory(data: &Path) -> PathBuf {
    let mut found: Vec<_> = std::fs::read_dir(data.join("ironclaw/heads")).expect("made").flatten().collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0).path()
}

fn count(directory: &Path) -> usize {
    head::all(directory).expect("a directory").len()
}

#[test]
fn heads_follow_a_moved_home_and_reveal_a_copy() {
    let mut host = TestHost::new();
    let data = outside(&host);
    host.set_env("XDG_DATA_HOME", data.to_str());
    host.configure("[ledger]\nhead_every_seconds = 1\n");
    host.up();
    host.agent("a");
    host.down();
    let directory = heads_directory(&data);
    let ledger = host.ctl(&["--json", "audit", "head"]).ok().json()["ledger"].as_str().expect("an id").to_owned();
    assert_eq!(directory.file_name().and_then(|name| name.to_str()), Some(&ledger[..16]));
    // An earlier version named the directory after the path of the home, and the home was moved later.
    let before = count(&directory);
    std::fs::rename(&directory, directory.with_file_name("0123456789ab")).expect("renamed");
    assert_eq!(verified(&host).1["heads"], before, "the heads are found without a host");
    let moved = host.home.with_file_name("moved");
    std::fs::rename(&host.home, &moved).expect("moved");
    let original = std::mem::replace(&mut host.home, moved);
    host.up();
    assert!(!warnings(&host).contains("no earlier head"));
    host.down();
    assert_eq!(heads_directory(&data), directory);
    assert!(count(&directory) > before && verified(&host).1["heads"] == count(&directory));
    assert!(host.entries("ledger.copy_found").is_empty(), "a moved home is not a copy");
    // A copy runs at the former path of the home, and then both hosts run at once.
    copy_with_owners(&host.home, &original);
    let first = std::mem::replace(&mut host.home, original);
    host.up();
    let (copy, second) = (host.pid().expect("the host runs"), host.home.clone());
    assert_eq!(host.entries("ledger.copy_found").len(), 1);
    host.say("a", "echo of the copy");
    host.home = first;
    host.up();
    host.say("a", "echo of the original");
    host.say("a", "echo of the original again");
    host.home = second;
    let noticed = || {
        host.say("a", "echo on");
        !host.entries("ledger.copy_runs").is_empty()
    };
    wait_for("the copy to notice that another host signs heads", noticed);
    let warned = warnings(&host);
    assert!(warned.contains("is running too"), "{warned}");
    host.kill_host();
    assert!(!crate::support::host_fixture::alive(copy));
    host.home = host.home.with_file_name("moved");
}

#[test]
fn missing_earlier_heads_are_reported() {
    let host = TestHost::new();
    let heads = outside(&host);
    host.configure(&format!("[ledger]\nheads = {heads:?}\n"));
    host.up();
    assert!(!warnings(&host).contains("no earlier head"), "a new ledger has none");
    host.down();
    for kept in head::all(&heads).expect("a directory") {
        std::fs::remove_file(heads.join(kept.name)).expect("removed");
    }
    host.up();
    assert!(warnings(&host).contains("no earlier head"));
}

#[test]
fn head_is_published_seconds_after_a_change() {
    let host = TestHost::new();
    let heads = outside(&host);
    host.configure(&format!("[ledger]\nheads = {heads:?}\nhead_every_seconds = 1\n"));
    host.up();
    host.agent("a");
    let newest =
        || head::all(&heads).expect("a directory").into_iter().filter_map(|kept| kept.head).map(|head| head.seq).max();
    for text in ["one", "two"] {
        let before = newest();
        host.say("a", &format!("echo {text}"));
        wait_for("a newer head", || newest() > before);
    }
    // The first head is kept. Each later head replaces the one before.
    wait_for("the removal of the previous head", || count(&heads) <= 2);
}

#[test]
fn provisional_head_is_replaced_after_a_failed_publication() {
    let host = TestHost::new();
    let heads = outside(&host);
    host.configure(&format!("[ledger]\nheads = {heads:?}\nhead_every_seconds = 1\n"));
    host.up();
    host.agent("a");
    let place = Receiver::accepting();
    add_place(&host, &place, &[]);
    wait_for("a provisional head", || count(&heads) == 2);
    let away = heads.with_file_name("away");
    std::fs::rename(&heads, &away).expect("moved");
    host.say("a", "echo one");
    wait_for("a head that cannot be kept", || !host.entries("ledger.head_not_kept").is_empty());
    wait_for("the notification", || host.entries("notification.received").len() == 1);
    let told = place.notifications();
    assert!(told.len() == 1 && told[0].contains("a head of the ledger was not kept"), "{told:?}");
    let last = head::all(&away).expect("a directory").into_iter().max_by_key(|kept| kept.name.clone()).expect("two");
    std::fs::rename(&away, &heads).expect("put back");
    host.down();
    assert!(!heads.join(&last.name).exists(), "the last head of the host replaces the provisional one");
    assert_eq!(count(&heads), 2, "the first head and the last one");
}

#[test]
fn invalid_or_damaged_archive_is_named_at_once() {
    let host = TestHost::own(crate::support::host_fixture::Build::Plain).started_with("a");
    let message = host.chat("a", "write a.txt: x")["message_id"].as_str().expect("an id").to_owned();
    host.ctl(&["audit", "rotate"]).ok();
    let archive = host.home.join("ledger/chain-000000000000.ndjson");
    let (whole, away) = (std::fs::read_to_string(&archive).expect("read"), archive.with_extension("away"));
    std::fs::rename(&archive, &away).expect("moved");
    for damage in ["cut", "flipped", "empty", "binary", "directory", "fifo", "dangling"] {
        let written = match damage {
            "cut" => whole.as_bytes()[..whole.len() / 2].to_vec(),
            "flipped" => whole.replacen("\"at\":1", "\"at\":2", 6).into_bytes(),
            "binary" => vec![0xff; 4000],
            _ => Vec::new(),
        };
        match damage {
            "directory" => std::fs::create_dir(&archive).expect("made"),
            "fifo" => nix::unistd::mkfifo(&archive, nix::sys::stat::Mode::S_IRWXU).expect("made"),
            "dangling" => std::os::unix::fs::symlink("nowhere", &archive).expect("made"),
            _ => std::fs::write(&archive, written).expect("written"),
        }
        let verify = host.ctl_bounded(&["audit", "verify"]);
        let said = verify.stdout + &verify.stderr;
        assert_eq!(verify.code, 1, "{damage}: {said}");
        assert!(said.contains("chain-000000000000.ndjson"), "{damage}: {said}");
        let why = host.ctl_bounded(&["--json", "why", &message]).ok().json();
        let unknown = why["stages"]
            .as_array()
            .expect("a list")
            .iter()
            .any(|stage| stage["stage"] == "ledger.archived" && stage["outcome"] == "unknown");
        assert!(unknown, "{damage}: {why}");
        if damage == "directory" { std::fs::remove_dir(&archive) } else { std::fs::remove_file(&archive) }
            .expect("removed");
    }
    std::fs::rename(&away, &archive).expect("put back");
    assert_eq!(verified(&host).0, 0);
    // If the whole directory is lost, its chains are missing, and rotation still works.
    std::fs::remove_dir_all(host.home.join("ledger")).expect("removed");
    let (code, bad) = verified(&host);
    assert_eq!((code, &bad["class"]), (1, &"missing".into()), "{bad}");
    host.say("a", "echo on");
    host.ctl(&["audit", "rotate"]).ok();
    assert_eq!(std::fs::read_dir(host.home.join("ledger")).expect("a new directory of archives").count(), 1);
}
