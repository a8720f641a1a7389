//! Backups of a running and a stopped host, restored into an empty home and in place.
//!
//! `IRONCLAW_BACKUPS` sets the number of random moments; `IRONCLAW_SEED` repeats a run. See `restored` for homes that were copied by hand.
#![allow(clippy::print_stdout)] // the number of checked messages

mod interrupted;

use crate::chaos::kill::{SetOnDrop, answered, each_settled_once, retry, run_settings, send_messages};
use crate::security::tamper::outside;
use crate::support::client::{Client, Raw, check_refused};
use crate::support::hooks::{Hook, Receiver, add_shop};
use crate::support::host_fixture::{Answer, Build, TestHost, alive, wait_for};
use crate::support::site::{Site, grant};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// The number of moments without `IRONCLAW_BACKUPS`.
const BACKUPS: u64 = 2;

/// The most moments of one host. Every restore checks all its messages, so many moments of one host would take very long.
const BACKUPS_OF_A_HOST: u64 = 5;

/// The longest pause before a backup; a warm round takes a few milliseconds.
const PAUSE_MS_MAX: u64 = 400;

fn new_host() -> TestHost {
    let mut host = TestHost::own(Build::Plain);
    let data = outside(&host);
    host.set_env("XDG_DATA_HOME", data.to_str());
    host
}

/// Returns a host of another machine, with an empty home.
fn empty_host() -> TestHost {
    let host = new_host();
    std::fs::remove_dir_all(&host.home).expect("removed");
    host
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn beside(host: &TestHost, name: &str) -> PathBuf {
    host.home.with_file_name(name)
}
fn back_up(host: &TestHost, name: &str) -> PathBuf {
    let path = beside(host, name);
    host.ctl(&["backup", "create", text(&path)]).ok();
    path
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
}
#[track_caller]
fn code(answer: &Answer) -> String {
    assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
    let last = answer.stderr.lines().last().unwrap_or_default();
    let failure: Value = serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {}", answer.stderr));
    failure["error"]["code"].as_str().expect("a code").to_owned()
}

/// Proposes a change that needs two approvals, and approves it once. Returns its id.
fn approve_once(host: &TestHost, agent: &str) -> String {
    host.ctl(&["person", "add", "carol", "--role", "admin"]).ok();
    let proposed = host.submit(agent, "persona", json!({ "instructions": "Be brief." })).ok().json();
    let id = proposed["id"].as_str().expect("an id").to_owned();
    let approved = host.ctl(&["--json", "approve", &id]).ok().json();
    assert_eq!(approved["status"], "pending", "one approval is missing: {approved}");
    id
}

/// Checks that the approval of [`approve_once`] is void: the approval of another person, which completed it, has no effect.
fn check_approval_is_void(host: &TestHost, id: &str) {
    let show = || host.ctl(&["--json", "inbox", "show", id]).ok().json();
    assert_eq!(show()["status"], "doubtful");
    let shown = json!({ "approve": show()["shown_digest"] }).to_string();
    let (status, said) = Raw::of_person(host, "carol").ask("POST", &format!("/v1/waiting/{id}/decision"), &shown);
    assert_eq!(status, 200, "{said}");
    assert_ne!(show()["status"], "done");
    assert!(host.entries("change.applied").iter().all(|entry| entry["data"]["change"] != id));
}

/// Starts a restored host. Checks that every message of its record is answered once, that the approval of `change` is void, and that the
/// conversation continues.
fn check_continues(host: &TestHost, change: &str, seed: u64) {
    host.up();
    let client = Client::of(host);
    let recorded = host.entries("message.recorded");
    let ids: Vec<String> =
        recorded.iter().map(|entry| entry["data"]["message"].as_str().expect("an id").to_owned()).collect();
    let mut unknown = HashSet::new();
    for id in &ids {
        let view = retry("answer a message", || answered(&client, id));
        if view["receipt"] == "unknown" {
            unknown.insert(id.clone());
        }
    }
    each_settled_once(host, &ids, &unknown, seed);
    assert_eq!(host.entries("state.restored").len(), 1, "seed {seed}");
    assert!(!host.entries("state.generation").is_empty(), "seed {seed}");
    check_approval_is_void(host, change);
    let generations = host.entries("state.generation").len();
    assert!(host.say("one", "echo once more").contains("once more"), "seed {seed}");
    host.restart();
    assert_eq!(host.entries("state.generation").len(), generations, "another start begins no generation");
    host.down();
}

/// Sends messages over a channel and waits for the reply to each, until `over` is set.
fn send_over_channel(hook: &Hook, receiver: &Receiver, over: &AtomicBool) {
    for number in 0.. {
        if over.load(Ordering::SeqCst) {
            return;
        }
        let before = receiver.replies().len();
        hook.say(&format!("hook-{number}"), &format!("echo word-{number}"));
        wait_for("a reply over the channel", || receiver.replies().len() > before);
    }
}

#[test]
fn backup_under_load_continues_after_a_restore() {
    let (seed, moments) = run_settings("IRONCLAW_BACKUPS", BACKUPS);
    let mut rng = fastrand::Rng::with_seed(seed);
    for begun in (0..moments).step_by(BACKUPS_OF_A_HOST as usize) {
        back_up_under_load(&mut rng, BACKUPS_OF_A_HOST.min(moments - begun), seed);
    }
}

/// Makes backups at random moments while two agents and a channel work, and restores each.
fn back_up_under_load(rng: &mut fastrand::Rng, moments: u64, seed: u64) {
    let host = new_host();
    host.configure("[webhook]\nlisten = \"127.0.0.1:0\"\n");
    std::fs::write(host.home.join("policy.toml"), "[kind.persona]\napprovals = 2\n").expect("written");
    host.up();
    for name in ["a", "one", "two"] {
        host.agent(name);
    }
    let change = approve_once(&host, "one");
    let (receiver, hook) = add_shop(&host);
    let (over, answers) = (AtomicBool::new(false), [AtomicUsize::new(0), AtomicUsize::new(0)]);
    let files: Vec<PathBuf> = std::thread::scope(|scope| {
        let one = scope.spawn(|| send_messages(&Client::of(&host), "one", 1, &over, &answers[0]));
        let two = scope.spawn(|| send_messages(&Client::of(&host), "two", 3, &over, &answers[1]));
        let channel = scope.spawn(|| send_over_channel(&hook, &receiver, &over));
        let until = SetOnDrop(&over);
        wait_for("a first answer", || answers.iter().all(|count| count.load(Ordering::SeqCst) > 0));
        let files = (0..moments).map(|number| {
            std::thread::sleep(Duration::from_millis(rng.u64(..PAUSE_MS_MAX)));
            back_up(&host, &format!("{number}.backup"))
        });
        let files = files.collect();
        drop(until);
        one.join().expect("the sender got its answers");
        two.join().expect("the sender got its answers");
        channel.join().expect("the sender got its answers");
        files
    });
    assert_eq!(host.entries("backup.created").len() as u64, moments);
    println!("{moments} backups, {} messages", host.entries("message.recorded").len());
    host.down();
    let key = beside(&host, "key");
    std::fs::copy(host.home.join("master.key"), &key).expect("copied");
    for (number, file) in files.iter().enumerate() {
        let verified = host.ctl(&["--json", "backup", "verify", text(file)]).ok().json();
        assert_eq!(verified["ledger"]["ok"], true, "seed {seed}: {verified}");
        match number % 2 {
            0 => check_in_empty_home(file, &key, &change, seed),
            _ => check_in_place(&host, file, &change, seed),
        }
    }
    let replies = receiver.replies();
    let ids: HashSet<&str> = replies.iter().map(|reply| reply.id.as_str()).collect();
    assert_eq!(ids.len(), replies.len(), "seed {seed}: no delivery is sent twice");
}

fn check_in_empty_home(file: &Path, key: &Path, change: &str, seed: u64) {
    let other = empty_host();
    other.ctl(&["backup", "restore", text(file), "--key-file", text(key)]).ok();
    other.ctl(&["audit", "verify"]).ok();
    check_continues(&other, change, seed);
    other.ctl(&["audit", "verify"]).ok();
}

fn check_in_place(host: &TestHost, file: &Path, change: &str, seed: u64) {
    let restored = host.ctl(&["--json", "backup", "restore", text(file), "--replace", "--yes"]).ok().json();
    let former = PathBuf::from(restored["former"].as_str().expect("the former home"));
    assert!(former.join("state.db").exists() && former.parent() == host.home.parent());
    check_continues(host, change, seed);
    // Heads outside know the history that was replaced, until an owner accepts it.
    assert_eq!(host.ctl(&["audit", "verify"]).code, 1, "seed {seed}");
    host.up();
    host.ctl(&["audit", "accept", "--reason", "restored a backup"]).ok();
    host.down();
    host.ctl(&["audit", "verify"]).ok();
    std::fs::remove_dir_all(former).expect("removed");
}

#[test]
fn call_after_a_backup_is_not_made_again_by_its_restore() {
    let site = Site::start();
    let mut host = TestHost::own(Build::Failpoints);
    let data = outside(&host);
    host.set_env("XDG_DATA_HOME", data.to_str());
    grant(&host, &site, &["POST"], &["/notes"]);
    host.down();
    host.up_failing_at("turn_open");
    let pid = host.pid().expect("the host runs");
    let client = Client::of(&host);
    let post = format!("/allow send\npost tulips at {}", site.url("/notes"));
    let said = client.send("a", &post, "e1").expect("accepted");
    let message = said["message_id"].as_str().expect("an id");
    wait_for("the host to die", || !alive(pid));
    let file = back_up(&host, "b.backup");
    host.up();
    let view = retry("answer a message", || answered(&client, message));
    assert_eq!((view["calls"][0]["status"].as_str(), site.lines().len()), (Some("done"), 1), "{view}");
    host.down();
    host.ctl(&["backup", "restore", text(&file), "--replace", "--yes"]).ok();
    host.up();
    let view = retry("answer a message", || answered(&client, message));
    let call = &view["calls"][0];
    assert_eq!((call["status"].as_str(), call["code"].as_str()), (Some("refused"), Some("call_repeated")), "{view}");
    assert_eq!(site.lines().len(), 1);
    // The person asks again.
    client.send("a", &post, "e2").expect("accepted");
    wait_for("the request at the site", || site.lines().len() == 2);
}

#[test]
fn backup_has_workspaces_settings_and_no_key() {
    let host = new_host();
    host.up();
    host.agent("a");
    host.say("a", "write notes.txt: the plan");
    host.say("a", "write more.txt: more");
    host.down();
    let workspace = host.session_directory().join("workspace");
    std::os::unix::fs::symlink("/etc/passwd", workspace.join("link")).expect("linked");
    nix::unistd::mkfifo(&workspace.join("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    std::fs::write(host.home.join("config.toml"), "[session]\nidle_seconds = 77\n").expect("written");
    // No host runs. A named port may belong to the host of another home, so it gets no backup of this one.
    let path = beside(&host, "b.backup");
    assert_ne!(host.ctl(&["--api", "http://127.0.0.1:9", "backup", "create", text(&path)]).code, 0);
    let made = host.ctl(&["--json", "backup", "create", text(&path)]).ok().json();
    assert_eq!((&made["skipped"], &made["changed"]), (&json!(1), &json!(0)), "{made}");
    let bytes = std::fs::read(&path).expect("read");
    let has = |words: &[u8]| bytes.windows(words.len()).any(|window| window == words);
    assert!(has(b"ironclaw-backup\n") && !has(b"the plan") && !has(b"idle_seconds"));
    let key = std::fs::read(host.home.join("master.key")).expect("read");
    assert!(!has(&key));
    // The home of the other machine has only the key.
    let other = empty_host();
    std::fs::create_dir(&other.home).expect("made");
    std::fs::copy(host.home.join("master.key"), other.home.join("master.key")).expect("copied");
    set_mode(&other.home, 0o700);
    let restored = other.ctl(&["--json", "backup", "restore", text(&path)]).ok().json();
    assert!(restored["heads"].as_u64() > Some(0) && restored["former"].is_null(), "{restored}");
    let workspace = other.session_directory().join("workspace");
    assert_eq!(std::fs::read_to_string(workspace.join("notes.txt")).expect("restored").trim_end(), "the plan");
    assert_eq!(std::fs::read_link(workspace.join("link")).expect("a link"), Path::new("/etc/passwd"));
    assert!(!workspace.join("pipe").exists() && !other.home.join("heads").exists());
    let names = ["config.toml", "owner.token", "policy.toml"];
    for name in names {
        let read = |host: &TestHost| std::fs::read(host.home.join(name)).expect("read");
        assert_eq!(read(&host), read(&other), "{name}");
    }
    other.up();
    assert!(other.say("a", "read notes.txt").contains("the plan"));
    other.ctl(&["file", "remove", "a", "notes.txt"]).ok();
    other.ctl(&["file", "restore", "a", "notes.txt"]).ok();
    assert!(other.say("a", "read notes.txt").contains("the plan"), "the backup has the kept versions");
    assert!(other.entries("session.workspace_lost").is_empty());
    let left = std::fs::read_dir(other.home.parent().expect("a directory")).expect("read").flatten();
    let left: Vec<_> =
        left.map(|entry| entry.file_name()).filter(|name| name.as_encoded_bytes().starts_with(b".")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn unusable_backups_and_homes_are_refused_by_code() {
    let host = new_host();
    host.up();
    host.agent("a");
    let file = back_up(&host, "b.backup");
    let whole = std::fs::read(&file).expect("read");
    assert_eq!(code(&host.ctl(&["--json", "backup", "create", text(&file)])), "file_exists");
    host.ctl(&["backup", "create", text(&file), "--force"]).ok();
    let restore = |of: &Path| host.ctl(&["--json", "backup", "restore", text(of), "--replace", "--yes"]);
    assert_eq!(code(&restore(&file)), "host_running");
    host.down();
    assert_eq!(code(&host.ctl(&["--json", "backup", "restore", text(&file)])), "home_not_empty");
    let bad = beside(&host, "bad.backup");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for (bytes, expected) in [
        (&whole[..whole.len() - 1], "backup_truncated"),
        (&whole[..100], "backup_truncated"),
        (&whole[..80 + 2 * (64 * 1024 + 40)], "backup_truncated"),
        (flipped.as_slice(), "backup_changed"),
        (b"a letter".as_slice(), "backup_foreign"),
    ] {
        std::fs::write(&bad, bytes).expect("written");
        assert_eq!(code(&host.ctl(&["--json", "backup", "verify", text(&bad)])), expected);
        assert_eq!(code(&restore(&bad)), expected);
    }
    let other = beside(&host, "other.key");
    std::fs::write(&other, [9; 32]).expect("written");
    set_mode(&other, 0o600);
    let with_key = ["--json", "backup", "verify", text(&file), "--key-file", text(&other)];
    assert_eq!(code(&host.ctl(&with_key)), "backup_other_key");
    let empty = empty_host();
    assert_eq!(code(&empty.ctl(&["--json", "backup", "restore", text(&file)])), "key_missing");
    // A home with another key is not empty.
    let (key, host_key) = (empty.home.join("master.key"), host.home.join("master.key"));
    std::fs::create_dir(&empty.home).expect("made");
    set_mode(&empty.home, 0o700);
    std::fs::copy(&other, &key).expect("copied");
    let with_key = ["--json", "backup", "restore", text(&file), "--key-file", text(&host_key)];
    assert_eq!((code(&empty.ctl(&with_key)), key.exists()), ("home_not_empty".to_owned(), true));
    // Nothing was changed, and nothing remains.
    host.ctl(&["audit", "verify"]).ok();
    let parent = host.home.parent().expect("a directory");
    let left = std::fs::read_dir(parent).expect("read").flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("restor")).collect();
    assert!(left.is_empty(), "{left:?}");
    host.up();
    assert!(host.say("a", "echo still here").contains("still here"));
}

#[test]
fn key_of_an_empty_home_remains_if_settings_name_another() {
    let host = new_host();
    let elsewhere = beside(&host, "elsewhere.key");
    std::fs::rename(host.home.join("master.key"), &elsewhere).expect("moved");
    host.configure(&format!("[keys]\nmaster_key_file = {elsewhere:?}\n"));
    let file = back_up(&host, "b.backup");
    let other = empty_host();
    std::fs::create_dir(&other.home).expect("made");
    set_mode(&other.home, 0o700);
    std::fs::rename(&elsewhere, other.home.join("master.key")).expect("moved");
    let restore = |file: &Path| other.ctl(&["--json", "backup", "restore", text(file)]);
    let restored = restore(&file).ok().json();
    assert_eq!(restored["todo"].as_array().map(Vec::len), Some(1), "{restored}");
    std::fs::rename(other.home.join("master.key"), &elsewhere).expect("it is there");
    other.ctl(&["audit", "verify"]).ok();
}

#[test]
fn only_an_owner_gets_a_backup() {
    let host = new_host();
    host.up();
    let carol = Raw::add_person(&host, "carol", &["--role", "admin"]);
    check_refused(&carol.ask("POST", "/v1/backup", ""), 403, "role_too_low");
    assert!(host.entries("backup.created").is_empty());
    back_up(&host, "b.backup");
    let entries = host.entries("backup.created");
    assert!(entries.len() == 1 && entries[0]["data"]["by"].as_str().is_some_and(|by| by.starts_with("per_")));
}

#[test]
fn client_that_reads_nothing_does_not_hold_the_host() {
    let host = new_host();
    host.up();
    host.agent("a");
    host.say("a", "hello");
    let workspace = host.session_directory().join("workspace");
    std::fs::write(workspace.join("large"), vec![7; 16 << 20]).expect("written");
    let owner = Raw::of(&host);
    let _stalled = owner.begin("POST", "/v1/backup", "");
    wait_for("the begin of the backup", || host.entries("backup.created").len() == 1);
    let path = beside(&host, "b.backup");
    assert_eq!(code(&host.ctl(&["--json", "backup", "create", text(&path)])), "backup_running");
    assert!(!path.exists());
    assert!(host.say("a", "echo still here").contains("still here"));
    host.down();
    assert!(host.pid().is_none());
}
