//! Tests of the kept versions of files: an agent overwrites and deletes files of an earlier task, and a person restores them.
//!
//! They use the real programs. The bounds are tested beside `host/src/sessions/files/versions.rs`.

use crate::support::client::{Raw, code};
use crate::support::host_fixture::{Build, TestHost, alive, wait_for};
use crate::support::jail_fixture::host_users;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

fn in_session(host: &TestHost, name: &str) -> PathBuf {
    host.session_directory().join(name)
}

fn history(host: &TestHost) -> Value {
    host.ctl(&["--json", "file", "history", "a"]).ok().json()
}

/// Returns path and reason of each version, sorted.
fn versions(host: &TestHost) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let found = history(host);
    let versions = found["versions"].as_array().expect("versions").iter();
    let mut versions: Vec<_> = versions.map(|version| (text(&version["path"]), text(&version["why"]))).collect();
    versions.sort();
    versions
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(path, why)| ((*path).to_owned(), (*why).to_owned())).collect()
}

/// Bytes that are no text.
fn data() -> Vec<u8> {
    (0..70_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

#[test]
fn versions_that_are_gone_are_reported_at_the_next_start() {
    let host = TestHost::new();
    host.up();
    host.ctl(&["agent", "add", "a", "--tool", "write_file"]).ok();
    host.say("a", "write plan.txt: the first plan");
    let session = host.session()["id"].as_str().expect("an id").to_owned();
    host.down();
    fs::remove_dir_all(in_session(&host, "versions")).expect("removed");
    host.up();
    assert!(host.status()["host"]["warnings"].to_string().contains(&session));
    assert_eq!(host.entries("session.versions_lost").len(), 1);
    host.down();
    host.up();
    assert!(!host.status()["host"]["warnings"].to_string().contains(&session), "once");
    assert_eq!(host.entries("session.versions_lost").len(), 1);
}

#[test]
fn restore_brings_back_what_an_agent_overwrote_and_deleted() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None).started();
        host.ctl(&["agent", "add", "a", "--tool", "run_command", "--tool", "read_file", "--tool", "write_file"]).ok();
        host.say("a", "hello");
        let own = super::files::shared_directory();
        let file = own.path().join("data.bin");
        fs::write(&file, data()).expect("written");
        host.ctl(&["file", "put", "a", &file.display().to_string()]).ok();
        host.say("a", "read data.bin");
        assert!(!in_session(&host, "versions").exists(), "{user:?}: a turn without such a call costs nothing");
        host.say("a", "write plan.txt: the first plan");
        assert_eq!(versions(&host), [], "{user:?}");

        // A later task.
        host.say("a", "write plan.txt: another plan");
        let said = host.say("a", "run rm data.bin && echo gone");
        assert!(said.contains("gone"), "{user:?}: {said}");
        assert!(!in_session(&host, "workspace/data.bin").exists());
        let kept = versions(&host);
        assert_eq!(kept[0], pairs(&[("data.bin", "deleted")])[0], "{user:?}");
        assert_eq!((kept.len(), kept[1].0.as_str()), (2, "plan.txt"), "{user:?}: {kept:?}");
        let restored = host.ctl(&["--json", "file", "restore", "a", "data.bin"]).ok().json();
        assert_eq!(restored["bytes"], data().len(), "{user:?}");
        assert_eq!(fs::read(in_session(&host, "workspace/data.bin")).expect("restored"), data(), "{user:?}");
        let restored = host.ctl(&["--json", "file", "restore", "a", "plan.txt"]).ok().json();
        let read = |name: &str| fs::read_to_string(in_session(&host, name)).expect("restored");
        assert_eq!(read("workspace/plan.txt"), "the first plan", "{user:?}");
        assert!(host.say("a", "read plan.txt").contains("the first plan"), "{user:?}: the agent owns the file");
        let replaced = restored["replaced"].to_string();
        host.ctl(&["file", "restore", "a", "plan.txt", "--version", &replaced, "--to", "old/plan.txt"]).ok();
        assert_eq!(read("workspace/old/plan.txt"), "another plan", "{user:?}");
        assert_eq!(read("workspace/plan.txt"), "the first plan", "{user:?}");
        host.ctl(&["file", "restore", "a", "plan.txt"]).ok();
        assert_eq!(read("workspace/plan.txt"), "another plan", "{user:?}: a restore can be undone");

        let entries = host.entries("file.restored");
        assert_eq!((entries.len(), &entries[0]["data"]["bytes"]), (4, &json!(data().len())), "{user:?}");
        assert!(entries.iter().all(|entry| entry["type"] == "META" && !entry.to_string().contains("plan")));
    }
}

#[test]
fn history_names_the_turn_and_what_was_left_out() {
    let host = TestHost::own(Build::Plain).started_with("a");
    host.say("a", "write a.txt: one");
    host.say("a", "write a.txt: two");
    let turn = history(&host)["turn"].clone();
    host.say("a", "hello");
    let large = fs::File::create(in_session(&host, "workspace/large")).expect("made");
    large.set_len(33 << 20).expect("extended");
    host.say("a", "write b.txt: three");
    let found = history(&host);
    assert_eq!((&found["versions"][0]["turn"], &found["versions"][0]["bytes"]), (&turn, &json!(3)), "{found}");
    assert_ne!(found["turn"], turn, "the last turn with such a call");
    assert_eq!(found["left_out"], json!([{ "shown": "large", "why": "file_bytes" }]));
    assert_eq!((&found["left_out_total"], &found["failure"]), (&json!(1), &Value::Null));
    let printed = host.ctl(&["file", "history", "a", "a.txt"]).ok();
    assert!(printed.stdout.contains("a.txt") && printed.stdout.contains(turn.as_str().expect("an id")));

    // Another file that has its name cannot be kept, and is not replaced.
    fs::rename(in_session(&host, "workspace/large"), in_session(&host, "workspace/a.txt")).expect("renamed");
    let answer = |path: &str, body: &Value| {
        let raw = Raw::of(&host);
        let session = host.session()["id"].as_str().expect("an id").to_owned();
        raw.ask("POST", &format!("/v1/sessions/{session}/files/{path}"), &body.to_string())
    };
    assert_eq!(code(&answer("restore", &json!({ "path": "a.txt" }))), (409, "file_not_kept"));
    assert_eq!(code(&answer("restore", &json!({ "path": "b.txt" }))), (404, "file_version_unknown"));
    assert_eq!(code(&answer("restore", &json!({ "path": "../b.txt" }))), (400, "file_path"));
    assert_eq!(code(&answer("restore", &json!({ "path": "a.txt", "to": "b\n" }))), (400, "file_path"));
    assert_eq!(fs::metadata(in_session(&host, "workspace/a.txt")).expect("there").len(), 33 << 20);
    assert!(host.entries("file.restored").is_empty());
}

#[test]
fn call_runs_if_its_files_cannot_be_kept() {
    let host = TestHost::new().started_with("a");
    host.say("a", "write a.txt: one");
    fs::write(in_session(&host, "versions/index.json"), "{").expect("damaged");
    assert!(host.say("a", "write a.txt: two").contains("I wrote"));
    assert_eq!(fs::read_to_string(in_session(&host, "workspace/a.txt")).expect("there"), "two");
    let failure = history(&host)["failure"].as_str().expect("a failure").to_owned();
    assert!(failure.contains("index.json") && failure.contains("damaged"), "{failure}");
    fs::remove_dir_all(in_session(&host, "versions")).expect("removed");
    fs::write(in_session(&host, "versions"), "in its place").expect("written");
    assert!(host.say("a", "write a.txt: three").contains("I wrote"));
    fs::remove_file(in_session(&host, "versions")).expect("removed");
    assert!(history(&host)["failure"].is_string());
    host.say("a", "write a.txt: four");
    assert_eq!(history(&host)["failure"], Value::Null);
}

#[test]
fn versions_survive_a_killed_host_and_go_with_their_session() {
    let mut host = TestHost::own(Build::Failpoints).started_with("a");
    host.say("a", "write a.txt: one");
    host.down();
    host.up_failing_at("versions_kept");
    let pid = host.pid().expect("the host runs");
    let (status, recorded) = Raw::of(&host).say("a", "write a.txt: two", None);
    assert_eq!(status, 202, "{recorded}");
    wait_for("the host to die between the copy and the verdict", || !alive(pid));
    assert_eq!(fs::read_to_string(in_session(&host, "workspace/a.txt")).expect("there"), "one");
    assert!(in_session(&host, "versions/index.json").exists());
    host.up();
    let id = recorded["message_id"].as_str().expect("an id").to_owned();
    wait_for("an answer", || host.ctl(&["--json", "why", &id]).ok().json()["message"]["status"] == "delivered");
    // The host does not repeat a call of a turn that it cut short.
    host.say("a", "write a.txt: three");
    assert_eq!(versions(&host).len(), 1);
    host.ctl(&["file", "restore", "a", "a.txt"]).ok();
    assert_eq!(fs::read_to_string(in_session(&host, "workspace/a.txt")).expect("there"), "one");

    let (place, session) = (host.session_directory(), host.session()["id"].as_str().expect("an id").to_owned());
    host.ctl(&["session", "remove", &session, "--yes"]).ok();
    assert!(!place.exists());
    host.ctl(&["file", "history", &session]).refused("no session");
}
