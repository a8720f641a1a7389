//! Sandboxes that break the contract: the host refuses, quarantines or parks each one and states the cause.
//!
//! The host continues, and another session is not disturbed. See `attack` for the form of an attack.

use super::attack::{Attacked, FAST_FAILURE, exists};
use crate::support::host_fixture::{kill, wait_for};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
fn handshake() -> Vec<Value> {
    vec![json!({ "hello": null }), json!("welcome"), json!("open"), json!({ "ring": 1 })]
}

/// Checks that the session is halted in this state, with these words in `status` and an entry in the ledger. Returns its id.
#[track_caller]
fn check_halted(attacked: &Attacked, state: &str, words: &str) -> String {
    let id = attacked.id("a");
    wait_for("the session to be halted", || attacked.session("a")["state"] == state);
    let session = attacked.session("a");
    let reason = session["reason"].as_str().unwrap_or_default();
    assert!(reason.contains(words), "{session}");
    let entries = attacked.entries(&format!("session.{state}"), &id);
    let entry = entries.last().expect("the ledger has an entry");
    assert_eq!(entry["type"], "RETRACT");
    // The ledger has only words of the host. `status` also has the detail, which may quote the sandbox.
    let own = entry["data"]["reason"].as_str().unwrap_or_default();
    assert!(!own.is_empty() && reason.starts_with(own), "{entry}");
    attacked.check_other_agent();
    id
}

/// Releases a session and checks that it answers.
#[track_caller]
fn check_release(attacked: &Attacked, id: &str) {
    attacked.host.ctl(&["session", "release", id]).ok();
    let reply = attacked.host.say("a", "hello");
    assert!(reply.contains("Hello."), "{reply}");
}

/// Lets launches fail until the session is parked or quarantined. Checks that it launches again after a release.
#[track_caller]
fn check_refused_launch(attacked: &Attacked, id: &str, script: Value, state: &str, words: &[&str]) {
    attacked.set_launch_script(id, &script);
    let answer = attacked.host.ctl(&["chat", "a", "hello"]);
    assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
    for words in words {
        assert!(answer.stderr.contains(words), "{words}: {}", answer.stderr);
    }
    assert!(answer.stderr.contains(state) && answer.stderr.contains("session release"), "{}", answer.stderr);
    check_halted(attacked, state, words[0]);
    attacked.set_launch_script(id, &Value::Null);
    check_release(attacked, id);
    attacked.host.ctl(&["session", "stop", id]).ok();
}

#[test]
fn invalid_handshake_halts_the_session_with_a_reason() {
    let attacked = Attacked::new(FAST_FAILURE);
    let id = attacked.make_sleeping_session();
    let ours = ironclaw_contract::seam::fingerprint();
    let drifted = "0".repeat(64);
    let frame = |length: u32, text: &str| {
        let bytes: Vec<u8> = length.to_be_bytes().into_iter().chain(text.bytes()).collect();
        json!({ "link": bytes })
    };
    let twice = json!([{ "hello": null }, "welcome", { "hello": null }, "hang"]);
    for (script, state, words) in [
        (json!([{ "hello": drifted }, "hang"]), "parked", vec![drifted.as_str(), ours.as_str()]),
        (twice, "quarantined", vec!["asked for its key a second time"]),
        (json!([frame(5000, ""), "hang"]), "quarantined", vec!["a frame of its handshake is over the limit"]),
        (json!([frame(u32::MAX, ""), "hang"]), "quarantined", vec!["a frame of its handshake is over the limit"]),
        (json!([frame(7, "garbage"), "hang"]), "quarantined", vec!["neither a hello nor a fatal"]),
        (json!([frame(0, ""), "hang"]), "quarantined", vec!["neither a hello nor a fatal"]),
        (json!([frame(100, "cut"), "exit"]), "parked", vec!["the link to the sandbox of", "is cut"]),
        (json!([{ "link": [0, 0] }, "exit"]), "parked", vec!["the link to the sandbox of", "is cut"]),
        // The host notices this at the check of the walls or at the link.
        (json!([{ "hello": null }, "exit"]), "parked", vec![id.as_str()]),
        (json!(["exit"]), "parked", vec!["the link to the sandbox of"]),
    ] {
        check_refused_launch(&attacked, &id, script, state, &words);
    }
}

#[test]
fn damaged_or_foreign_inbound_queue_is_rebuilt() {
    let attacked = Attacked::new("");
    let id = attacked.make_sleeping_session();
    attacked.check_other_agent();
    let other = attacked.id("b");
    attacked.host.ctl(&["session", "stop", &other]).ok();
    let queue = |id: &str| attacked.directory(id).join("in/inbound.db");
    let foreign = std::fs::read(queue(&other)).expect("a file");
    let own = std::fs::read(queue(&id)).expect("a file");
    let torn = [&own[..4096], &[0xa5; 4096]].concat();
    for (count, damaged) in [foreign, vec![0xa5; 12_288], torn, b"SQLite format 3\0".repeat(256)].iter().enumerate() {
        std::fs::write(queue(&id), damaged).expect("written");
        assert!(attacked.host.say("a", "hello").contains("Hello."), "damage {count}");
        let entries = attacked.entries("inbound.rebuilt", &id);
        assert_eq!(entries.len(), count + 1, "damage {count}");
        let reason = entries[count]["data"]["reason"].as_str().expect("a reason");
        assert_eq!(reason, format!("cannot open inbound queue of {id}: wrong key or damaged file"));
        attacked.host.ctl(&["session", "stop", &id]).ok();
    }
    attacked.check_other_agent();
}

/// Replaces a queue with a link, a directory or a pipe.
fn replace_queue(what: &str, path: &Path, victim: &Path) {
    // The queue may not exist.
    let _ = std::fs::remove_file(path);
    let mode = nix::sys::stat::Mode::from_bits_truncate(0o666);
    match what {
        "a link" => std::os::unix::fs::symlink(victim, path).expect("a link"),
        "a directory" => std::fs::create_dir(path).expect("a directory"),
        "a pipe" => nix::unistd::mkfifo(path, mode).expect("a pipe"),
        other => panic!("{other}"),
    }
}

fn remove_replacement(path: &Path) {
    if path.is_dir() && !path.is_symlink() {
        std::fs::remove_dir(path).expect("removed");
    } else {
        std::fs::remove_file(path).expect("removed");
    }
}

#[test]
fn non_file_as_inbound_queue_parks_the_session() {
    let attacked = Attacked::new(FAST_FAILURE);
    let id = attacked.make_sleeping_session();
    let victim = attacked.host.home.join("owner.token");
    let token = std::fs::read(&victim).expect("a token");
    let queue = attacked.directory(&id).join("in/inbound.db");
    for what in ["a link", "a directory", "a pipe"] {
        replace_queue(what, &queue, &victim);
        attacked.host.ctl(&["chat", "a", "hello"]).refused(&format!("inbound.db: it is {what}"));
        check_halted(&attacked, "parked", &format!("it is {what}"));
        remove_replacement(&queue);
        check_release(&attacked, &id);
        attacked.host.ctl(&["session", "stop", &id]).ok();
    }
    assert_eq!(std::fs::read(&victim).expect("the file exists"), token);
}

#[test]
fn non_queue_as_outbound_queue_quarantines_the_session() {
    let attacked = Attacked::new(FAST_FAILURE);
    let id = attacked.make_sleeping_session();
    let victim = attacked.host.home.join("owner.token");
    let token = std::fs::read(&victim).expect("a token");
    let queue = attacked.directory(&id).join("out/outbound.db");
    for (what, words) in [
        ("a link", "it is a link, not a regular file"),
        ("a directory", "it is a directory, not a regular file"),
        ("a pipe", "it is a pipe"),
    ] {
        replace_queue(what, &queue, &victim);
        check_replaced_queue(&attacked, &id, words);
    }
    // The sandbox replaces the queue and then reports success.
    let mut garbage = handshake();
    garbage.insert(3, json!({ "plant": "garbage" }));
    check_refused_launch(&attacked, &id, json!(garbage), "quarantined", &["wrong key or damaged file"]);
    let mut directory = handshake();
    directory.insert(3, json!({ "plant": "directory" }));
    check_refused_launch(&attacked, &id, json!(directory), "quarantined", &["it is a directory"]);
    assert_eq!(std::fs::read(&victim).expect("the file exists"), token);
}

/// Checks the quarantine after a queue was replaced while its session slept. The sandbox cannot open the queue and still rings.
#[track_caller]
fn check_replaced_queue(attacked: &Attacked, id: &str, words: &str) {
    attacked.host.ctl(&["chat", "a", "hello"]).refused(words);
    check_halted(attacked, "quarantined", words);
    check_release(attacked, id);
    attacked.host.ctl(&["session", "stop", id]).ok();
}

#[test]
fn session_with_a_damaged_key_is_refused_with_a_reason() {
    for key in ["queue_key", "content_key"] {
        let attacked = Attacked::new(FAST_FAILURE);
        let id = attacked.make_sleeping_session();
        attacked.host.down();
        let (first, second) = (
            format!("SELECT {key} FROM sessions WHERE id = ?1"),
            format!("UPDATE sessions SET {key} = ?2 WHERE id = ?1"),
        );
        let kept: Vec<u8> = attacked.state().query_row(&first, [&id], |row| row.get(0)).expect("a key");
        let mut damaged = kept.clone();
        damaged[40] ^= 1;
        attacked.state().execute(&second, rusqlite::params![id, damaged]).expect("changed");
        attacked.host.up();
        let answer = attacked.host.ctl(&["chat", "a", "hello", "--wait", "20s"]);
        assert_eq!(answer.code, 1, "{key}: {}", answer.stdout);
        assert!(answer.stderr.contains("made under another key, or changed"), "{key}: {}", answer.stderr);
        attacked.check_other_agent();
        if key == "queue_key" {
            check_halted(&attacked, "parked", "the wrapped queue key does not open");
        }
        attacked.host.down();
        attacked.state().execute(&second, rusqlite::params![id, kept]).expect("changed");
        attacked.host.up();
        if key == "queue_key" {
            check_release(&attacked, &id);
        }
        assert!(attacked.host.say("a", "hello").contains("Hello."), "{key}");
    }
}

#[test]
fn journal_that_names_another_file_does_not_delete_it() {
    let attacked = Attacked::new("[turn]\nseconds_max = 6\n");
    attacked.say("a", "hello");
    let id = attacked.id("a");
    // SQLite deletes only files with the name of a super-journal, so the attacker names such a file.
    let victim = attacked.host.home.join("other.db-mj0123459ab");
    // The file must also name the journal. It names the path of the host and the path of the copy in this test.
    let copy = tempfile::tempdir().expect("a temporary directory");
    let out = attacked.directory(&id).join("out");
    let named = [out.as_path(), copy.path()].map(|place| format!("{}\0", place.join("outbound.db-journal").display()));
    std::fs::write(&victim, named.concat()).expect("written");
    let script = json!([{ "journal": victim.display().to_string() }, { "ring": 1 }, "hang"]);
    let played = attacked.play("a", "hello", &script);
    assert!(
        played.chat["reply"].as_str().is_some_and(|reply| reply.contains("reached its limit of 6 seconds")),
        "{}",
        played.chat
    );
    wait_for("the session to sleep", || attacked.session("a")["state"] == "asleep");
    assert!(exists(&out.join("outbound.db-journal")), "the host does not recover a sandbox's journal");
    let copied =
        Command::new("cp").arg(out.join("outbound.db")).arg(out.join("outbound.db-journal")).arg(copy.path()).status();
    assert!(copied.is_ok_and(|status| status.success()));
    assert!(attacked.host.say("a", "hello").contains("Hello."), "the next launch recovers the journal in its jail");
    assert!(!exists(&out.join("outbound.db-journal")));
    attacked.check_other_agent();
    attacked.host.down();
    assert!(exists(&victim));

    // The control of this test opens the same file outside of a jail, which deletes the named file.
    let key = attacked.queue_key(&id);
    let copy = copy.path().join("outbound.db");
    ironclaw_contract::seam::outbound::OutboundWriter::open(&copy, &key).expect("opens");
    assert!(!exists(&victim), "the journal of the attacker works outside of a jail");
}

#[test]
fn flood_of_bells_delays_neither_deadline_nor_stop() {
    let attacked = Attacked::new("[turn]\nseconds_max = 6\n");
    attacked.say("a", "hello");
    attacked.check_other_agent();
    let id = attacked.id("a");
    std::thread::scope(|scope| {
        let flooding = scope.spawn(|| attacked.send("a", "hello", &json!(["flood"])).ok().json());
        wait_for("the flood", || attacked.session("a")["waiting"] == 1);
        while !flooding.is_finished() {
            attacked.check_other_agent();
        }
        let chat = flooding.join().expect("answered");
        assert!(chat["reply"].as_str().is_some_and(|reply| reply.contains("reached its limit of 6 seconds")), "{chat}");
    });
    let at = |what: &str| attacked.entries(what, &id).last().expect("an entry")["data"]["at"].as_i64().expect("a time");
    let late = at("turn.closed") - at("turn.opened");
    assert!(late < 12_000, "the turn was closed after {late} ms");
    assert!(attacked.host.say("a", "hello").contains("Hello."));

    let attacked = Attacked::new("");
    attacked.say("a", "hello");
    let id = attacked.id("a");
    std::thread::scope(|scope| {
        let flooding = scope.spawn(|| attacked.send("a", "hello", &json!([{ "once": ["flood"] }])).ok().json());
        let marker = attacked.directory(&id).join("workspace/once");
        wait_for("the flood", || exists(&marker));
        attacked.host.ctl(&["session", "stop", &id]).ok();
        let chat = flooding.join().expect("answered");
        assert!(chat["reply"].as_str().is_some_and(|reply| reply.contains("Hello.")), "{chat}");
    });
}

#[test]
fn unresponsive_sandbox_is_ended_at_the_deadline_with_notice() {
    let attacked = Attacked::new("[turn]\nseconds_max = 6\n");
    let played = attacked.play("a", "hello", &json!(["hang"]));
    assert_eq!(played.chat["notice"], true);
    let reply = played.chat["reply"].as_str().unwrap_or_default();
    assert_eq!(
        reply,
        "I stopped: this turn reached its limit of 6 seconds before an answer. Completed work is kept. Say `continue` to go on. The setting is turn.seconds_max in config.toml."
    );
    attacked.check_other_agent();
    let played = attacked.say("a", "hello");
    let reply = played.chat["reply"].as_str().unwrap_or_default();
    assert!(reply.contains("Hello."), "{reply}");
    let reader = attacked.session("a")["reader"]["pid"].clone();
    assert!(reader.is_number(), "{reader}");
}

#[test]
fn sandbox_that_keeps_a_lock_is_ended_after_a_bounded_wait() {
    let attacked = Attacked::new(FAST_FAILURE);
    let held = json!([{ "once": [{ "sql_held": "BEGIN EXCLUSIVE" }, { "ring": 1 }, "hang"] }]);
    let chat = attacked.send("a", "hello", &held).ok().json();
    assert!(chat["reply"].as_str().is_some_and(|reply| reply.contains("Hello.")), "the next launch answers: {chat}");
    let id = attacked.id("a");
    let requeued = attacked.entries("turn.closed", &id).into_iter().filter(|entry| entry["type"] == "RETRACT").count();
    assert_eq!(requeued, 1);
    attacked.check_other_agent();
    attacked.host.ctl(&["session", "stop", &id]).ok();

    let mut holding = handshake();
    holding.insert(3, json!("hold_inbound"));
    attacked.set_launch_script(&id, &json!(holding));
    let chat = attacked.host.chat("a", "hello");
    let reply = chat["reply"].as_str().unwrap_or_default();
    assert!(
        chat["notice"] == true && reply.contains("I was parked") && reply.contains("is locked by another process"),
        "{chat}"
    );
    check_halted(&attacked, "parked", "inbound.db is locked by another process");
    attacked.set_launch_script(&id, &Value::Null);
    check_release(&attacked, &id);
}

#[test]
fn sandbox_that_dies_at_every_start_is_parked() {
    let attacked = Attacked::new(FAST_FAILURE);
    let id = attacked.make_sleeping_session();
    attacked.set_launch_script(&id, &json!([{ "hello": null }, "welcome", "open", { "ring": 1 }, "exit"]));
    let chat = attacked.host.chat("a", "hello");
    assert_eq!(chat["notice"], true, "{chat}");
    let reply = chat["reply"].as_str().unwrap_or_default();
    assert!(reply.contains("I was parked: my process failed 2 times in a row"), "{reply}");
    assert!(reply.contains(&format!("ironctl session release {id}")), "{reply}");
    check_halted(&attacked, "parked", "its process ended");
    attacked.host.ctl(&["chat", "a", "are you there?"]).refused("is parked (its process ended)");
    attacked.set_launch_script(&id, &Value::Null);
    check_release(&attacked, &id);
    attacked.host.ctl(&["session", "release", &id]).refused("neither parked nor quarantined");
}

#[test]
fn second_death_of_a_reader_at_one_row_quarantines() {
    let attacked = Attacked::new("");
    attacked.say("a", "hello");
    let reader = || i32::try_from(attacked.session("a")["reader"]["pid"].as_i64().unwrap_or_default()).expect("a pid");
    let first = reader();
    assert!(first > 0);
    kill(first);
    wait_for("another reader", || ![0, first].contains(&reader()));
    assert!(attacked.host.say("a", "hello").contains("Hello."), "the second reader reads rows");
    assert_eq!(attacked.session("a")["state"], "awake");
    // The host has accepted a row since, so this counts as a first death. The next one is the second.
    let second = reader();
    assert!(second > 0);
    kill(second);
    let mut third = 0;
    wait_for("a third reader", || {
        third = reader();
        ![0, first, second].contains(&third)
    });
    kill(third);
    let id = check_halted(&attacked, "quarantined", "the reader of its outbound queue died twice");
    attacked.host.ctl(&["chat", "a", "hello"]).refused("died twice");
    check_release(&attacked, &id);
}

#[test]
fn released_session_answers_and_keeps_the_invalid_queue() {
    let attacked = Attacked::new("");
    attacked.say("a", "my name is Ada");
    let bad = json!([{ "sql": "CREATE TABLE x (y);" }, { "ring": 1 }, "hang"]);
    attacked.play("a", "hello", &bad);
    let id = check_halted(&attacked, "quarantined", "its schema is not the contract's");
    attacked.restore_sandbox();
    attacked.host.ctl(&["session", "release", &id]).ok();
    let reply = attacked.host.say("a", "what is my name?");
    assert!(reply.contains("Your name is Ada"), "{reply}");
    let kept = attacked.directory(&id).join("out.quarantined-0/outbound.db");
    assert!(exists(&kept), "the invalid queue is kept for an analysis");
    assert_eq!(attacked.entries("session.released", &id).len(), 1);
}
