//! Tests of cancellation in each phase of a turn, and of the emergency stop under load, in a crash and over restarts.
//!
//! See `chaos::scale`.

use crate::chaos::scale::{answered, each_answered_once, new_host};
use crate::security::escape::attack::{Attacked, generate};
use crate::support::client::{Client, Raw, check_refused};
use crate::support::host_fixture::{Build, TestHost, alive, kill, wait_for};
use crate::support::jail_fixture::host_users;
use crate::support::many_sessions::name;
use crate::support::processes::{descendants, no_process_uses, used};
use crate::support::record;
use serde_json::{Value, json};
use std::fs::File;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

const CANCELLED: &str = "This was cancelled before there was an answer.";
pub(crate) fn notice(client: &Client, id: &str) -> String {
    answered(client, id, 0);
    let view = client.message(id, std::time::Duration::ZERO).expect("the host answers");
    assert_eq!(view["notice"], true, "{view}");
    view["reply"].as_str().expect("words").to_owned()
}

pub(crate) fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_else(|| panic!("{key} in {value}")).to_owned()
}

#[test]
fn turn_with_a_model_request_in_flight_is_cancelled() {
    let host = new_host("");
    host.up();
    host.agent("a");
    let client = Client::of(&host);
    let sent = client.send("a", "slow", "1").expect("recorded");
    wait_for("the request", || host.entries("model.asked").len() == 1);
    let session = text(&sent, "session_id");
    let cancelled = host.ctl(&["--json", "session", "cancel", &session]).ok().json();
    assert_eq!((&cancelled["running"], &cancelled["messages"][0]), (&true.into(), &sent["message_id"]));
    assert!(notice(&client, &text(&sent, "message_id")).starts_with(CANCELLED));
    let by = &host.entries("turn.cancelled")[0];
    assert_eq!((&by["type"], &by["data"]["turn"]), (&"META".into(), &cancelled["turn_id"]));
    let closed = &host.entries("turn.closed")[0]["data"];
    assert_eq!(closed["reason"], "cancelled");
    assert_eq!(host.session()["waiting"], 0);
    assert!(host.say("a", "hello").contains("Hello."), "the next message works");
    host.ctl(&["session", "cancel", &session]).refused("there is nothing to cancel");
    let shown = host.ctl(&["--json", "session", "show", &session]).ok().json();
    assert_eq!((&shown["failures"], host.entries("output.sealed").len()), (&0.into(), 1));
}

#[test]
fn waiting_message_is_cancelled_and_the_running_one_is_not() {
    let host = new_host("[session]\nawake_max = 1\n");
    host.up();
    ["a", "b"].iter().for_each(|agent| host.agent(agent));
    let client = Client::of(&host);
    let running = client.send("a", "slow", "1").expect("recorded");
    wait_for("the request", || host.entries("model.asked").len() == 1);
    let waiting = client.send("b", "hello", "2").expect("recorded");
    wait_for("it to wait", || client.status().expect("answers")["places"]["waiting"] == 1);
    let cancelled = host.ctl(&["--json", "session", "cancel", &text(&waiting, "session_id")]).ok().json();
    assert_eq!(cancelled["running"], false);
    assert!(notice(&client, &text(&waiting, "message_id")).starts_with(CANCELLED));
    wait_for("an empty queue", || client.status().expect("answers")["places"]["waiting"] == 0);
    let view = client.message(&text(&running, "message_id"), std::time::Duration::ZERO).expect("answers");
    assert_eq!(view["status"], "processing", "{view}");
    assert_eq!(host.entries("session.launching").len(), 1, "no session was launched for the cancelled message");
}

#[test]
fn cancelled_local_call_is_unknown_and_late_row_is_refused() {
    let attacked = Attacked::new("");
    let host = &attacked.host;
    let reply = json!({ "row": { "content": { "reply": "$output.item" } } });
    // The test sees the answer to this request, which follows the row.
    let written = json!({ "ask": { "ask": "items", "after_seq": 0 } });
    let cases = [
        // A call without a result, and a reply that is written without a bell.
        ("list .", json!([generate(json!(["$own"])), "hang"]), "call.recorded"),
        ("hello", json!([generate(json!(["$own"])), reply, written, "hang"]), "output.sealed"),
    ];
    let mut session = String::new();
    for (n, (text, script, stage)) in cases.into_iter().enumerate() {
        let before = host.entries(stage).len();
        let answer = std::thread::scope(|scope| {
            let chat = scope.spawn(|| attacked.send("a", text, &script));
            wait_for(stage, || host.entries(stage).len() > before);
            session = attacked.id("a");
            if stage == "output.sealed" {
                let outcome = attacked.directory(&session).join("workspace/outcome.json");
                wait_for("the row to be written", || {
                    let seen: Option<Value> = serde_json::from_slice(&std::fs::read(&outcome).unwrap_or_default()).ok();
                    seen.is_some_and(|seen| seen["answers"].as_array().map(Vec::len) == Some(2))
                });
            }
            host.ctl(&["session", "cancel", &session]).ok();
            chat.join().expect("the thread ends").ok().json()
        });
        assert!(answer["reply"].as_str().is_some_and(|reply| reply.starts_with(CANCELLED)), "{answer}");
        assert_eq!(host.entries("turn.cancelled").len(), n + 1);
    }
    wait_for("the session to sleep", || attacked.session("a")["state"] == "asleep");
    assert_eq!(attacked.entries("row.refused", &session).len(), 1, "the late reply is refused");
    attacked.check_other_agent();
    assert!(attacked.say("a", "hello").chat["reply"].is_string(), "the next message works");
    host.down();
    let db = record::open(&host.home);
    assert_eq!(record::count(&db, "SELECT count(*) FROM calls WHERE state = 'unknown'"), 1);
    assert_eq!(record::count(&db, "SELECT count(*) FROM calls WHERE state = 'permitted'"), 0);
    assert_eq!(record::count(&db, "SELECT count(*) FROM sessions WHERE state <> 'live'"), 0);
}

/// Covers messages in a turn, waiting messages and messages after the stop.
#[test]
fn panic_stops_everything_and_resume_answers_exactly_once() {
    let host = new_host("[session]\nawake_max = 3\n");
    host.up();
    (0..4).for_each(|agent| host.agent(&name(agent)));
    let client = Client::of(&host);
    let send = |agent: usize, thread: &str, words: &str| {
        let event = format!("{agent}-{thread}-{words}");
        text(&client.send_in(&name(agent), thread, words, &event).expect("recorded"), "message_id")
    };
    let slow = send(0, "t", "slow");
    wait_for("the request", || host.entries("model.asked").len() == 1);
    let mut ids = vec![];
    for n in 0..6 {
        ids.extend((0..4).map(|agent| send(agent, &format!("t{}", n % 3), &format!("echo {n}"))));
    }
    let host_pid = host.pid().expect("the host runs");
    let panicked = host.ctl(&["--json", "panic"]).ok().json();
    assert_eq!((&panicked["gone"], &panicked["by"]), (&true.into(), &"owner".into()), "{panicked}");
    wait_for("every jail to be gone", || descendants(host_pid).len() == 1);
    let asked = ["session.launching", "model.asked", "turn.opened", "delivery.intended", "delivery.received"];
    let count = |host: &TestHost| asked.map(|what| host.entries(what).len());
    let before = count(&host);
    let late = send(1, "late", "echo late");
    let view = client.message(&late, std::time::Duration::from_secs(5)).expect("answers");
    assert!(text(&view, "reason").starts_with("everything is stopped by owner"), "{view}");
    host.ctl(&["chat", &name(2), "hello"]).refused("everything is stopped by owner");
    let session = text(&view, "session_id");
    host.ctl(&["session", "cancel", &session]).ok();
    host.ctl(&["doctor", "--prove"]).refused("");
    assert!(host.ctl(&["status"]).ok().stdout.starts_with("EVERYTHING IS STOPPED since "));
    // A second stop, a kill and a start have no effect.
    assert_eq!(host.ctl(&["--json", "panic"]).ok().json()["since"], panicked["since"]);
    host.kill_host();
    host.up();
    assert_eq!(host.status()["stopped"]["by"], "owner");
    assert_eq!(descendants(host.pid().expect("the host runs")).len(), 1, "only the launcher runs");
    host.restart();
    let after = count(&host);
    assert_eq!((after[0], after[1], after[4]), (before[0], before[1], before[4]), "no work began");
    assert_eq!(host.entries("host.panicked").len(), 1);
    assert_eq!(host.entries("host.panicked")[0]["type"], "META");
    // The slow message is cancelled, because its answer would take too long.
    let slow_session = text(&client.message(&slow, std::time::Duration::ZERO).expect("answers"), "session_id");
    host.ctl(&["session", "cancel", &slow_session]).ok();
    assert_eq!(host.ctl(&["--json", "resume"]).ok().json(), json!({ "resumed": true }));
    ids.extend([late, slow]);
    ids.iter().for_each(|id| answered(&client, id, 0));
    let hello =
        host.entries("message.recorded").iter().map(|entry| text(&entry["data"], "message")).collect::<Vec<_>>();
    hello.iter().for_each(|id| answered(&client, id, 0));
    each_answered_once(&host, &hello, 0);
    assert_eq!(hello.len(), ids.len() + 1, "every message and the one of `ironctl chat`");
    assert_eq!(host.entries("host.resumed").len(), 1);
    assert!(host.ctl(&["resume"]).ok().stdout.contains("nothing was stopped"));
    assert_eq!(host.status()["stopped"], Value::Null);
}

#[test]
fn host_killed_during_a_panic_starts_stopped() {
    for user in host_users() {
        let mut host = TestHost::with(user, Build::Failpoints, None).started_with("a");
        host.down();
        host.up_failing_at("panic");
        host.say("a", "my name is Ada");
        let host_pid = host.pid().expect("the host runs");
        // The command gets no answer and finds no process to kill, but its panic file stops the next start.
        assert!(host.ctl(&["panic"]).ok().stdout.contains("the next start will be stopped"), "{user:?}");
        wait_for("the host to be gone", || !alive(host_pid));
        no_process_uses(&host.home);
        assert!(host.entries("host.panicked").is_empty(), "{user:?}: the host died before the entry");
        host.up();
        assert_eq!(host.status()["stopped"]["by"], "the panic file in the home", "{user:?}");
        assert!(!host.home.join("panic").exists(), "{user:?}: the stop is in the record");
        host.ctl(&["chat", "a", "what is my name?"]).refused("everything is stopped");
        host.ctl(&["resume"]).ok();
        wait_for("the answer", || host.entries("delivery.received").len() == 2);
        assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.", "{user:?}");
        host.restart();
        assert_eq!(host.status()["stopped"], Value::Null, "{user:?}: the resume lasts");
    }
}

#[test]
fn panic_works_without_a_host_and_kills_a_hanging_one() {
    let host = new_host("");
    assert!(host.ctl(&["panic"]).ok().stdout.contains("no host runs"));
    assert_eq!(host.ctl(&["resume"]).code, 3, "no host answers the resume");
    host.up();
    host.agent("a");
    host.ctl(&["chat", "a", "hello"]).refused("everything is stopped by the panic file in the home");
    host.ctl(&["resume"]).ok();
    wait_for("the answer", || host.entries("delivery.received").len() == 1);
    let host_pid = host.pid().expect("the host runs");
    let jailed = used(host_pid);
    assert_eq!(jailed.len(), 5, "{jailed:?}");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(host_pid), nix::sys::signal::Signal::SIGSTOP).expect("ours");
    let panic = panic_in_the_background(&host);
    let answer = panic.wait_with_output().expect("the command ends");
    if !answer.status.success() {
        kill(host_pid);
    }
    let words = String::from_utf8_lossy(&answer.stdout);
    assert!(words.contains(&format!("was killed (process {host_pid})")), "{words}{answer:?}");
    wait_for("every jail to be gone", || jailed.keys().all(|process| !process.is_alive()));
    host.up();
    assert_eq!(host.status()["stopped"]["by"], "the panic file in the home");
}

fn panic_in_the_background(host: &TestHost) -> Child {
    let mut command = host.command("ironctl");
    command.arg("--home").arg(&host.home).arg("panic").stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().expect("ironctl starts")
}

#[test]
fn panic_ends_a_running_self_test_at_once() {
    let host = new_host("");
    host.up();
    host.agent("a");
    host.say("a", "my name is Ada");
    let host_pid = host.pid().expect("the host runs");
    let raw = Raw::of(&host);
    let path = format!("/v1/sessions/{}/prove", text(&host.session(), "id"));
    for (n, state) in ["awake", "asleep"].into_iter().enumerate() {
        assert_eq!(host.session()["state"], state);
        let before = used(host_pid).len();
        let (status, proof) = std::thread::scope(|scope| {
            let proof = scope.spawn(|| raw.ask("POST", &path, ""));
            wait_for("a process of the self-test", || used(host_pid).len() > before);
            let (status, panicked) = raw.ask("POST", "/v1/panic", "");
            assert_eq!((status, &panicked["gone"]), (200, &true.into()), "{state}: {panicked}");
            proof.join().expect("an answer")
        });
        let words = text(&proof["error"], "message");
        assert_eq!((status, words.as_str()), (503, "an emergency stop came before the self-test finished"), "{state}");
        let noted = host.entries("jail.not_proved");
        assert_eq!((noted.len(), &noted[n]["data"]["reason"]), (n + 1, &words.into()), "{state}");
        wait_for("every jail to be gone", || descendants(host_pid).len() == 1);
        host.ctl(&["resume"]).ok();
    }
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
}

#[test]
fn panic_file_during_a_resume_stops_the_host_again() {
    let host = new_host("");
    host.up();
    host.agent("a");
    host.say("a", "my name is Ada");
    host.ctl(&["panic"]).ok();
    let (file, is_over) = (host.home.join("panic"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // The resume removes the file. A new file is noticed at the end of the resume or later by the host.
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let _ = File::create(&file);
            }
            let _ = File::create(&file);
        });
        let resumed = host.ctl(&["--json", "resume"]);
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(resumed.ok().json(), json!({ "resumed": true }));
    });
    wait_for("the emergency stop by the file", || host.status()["stopped"]["by"] == "the panic file in the home");
    host.ctl(&["resume"]).ok();
    assert_eq!(host.status()["stopped"], Value::Null);
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
}

/// A trigger that makes the record refuse a stop, as on a full disk.
const FULL: &str = "CREATE TRIGGER full BEFORE INSERT ON meta WHEN NEW.key = 'stopped' \
    BEGIN SELECT RAISE(ABORT, 'no room'); END;";

fn change_record(host: &TestHost, sql: &str) {
    record::open_to_change(&host.home).execute_batch(sql).expect("changed");
    record::restore_owner(host);
}

#[test]
fn panic_that_cannot_be_recorded_still_stops_everything() {
    let host = new_host("");
    host.up();
    host.agent("a");
    host.say("a", "my name is Ada");
    host.down();
    change_record(&host, FULL);
    host.up();
    let (client, raw) = (Client::of(&host), Raw::of(&host));
    check_refused(&raw.ask("POST", "/v1/panic", ""), 500, "internal");
    assert_eq!(client.status().expect("answers")["stopped"]["by"], "owner");
    assert!(host.home.join("panic").exists(), "the stop lasts over a restart");
    let sent = client.send("a", "what is my name?", "1").expect("recorded");
    assert!(host.ctl(&["status"]).ok().stdout.starts_with("EVERYTHING IS STOPPED since "));
    assert_eq!(host.ctl(&["--json", "resume"]).ok().json(), json!({ "resumed": true }));
    answered(&client, &text(&sent, "message_id"), 0);
    assert_eq!(host.entries("host.resumed").len(), 1);
    assert_eq!(host.status()["stopped"], Value::Null);
    assert!(!host.home.join("panic").exists());
    assert!(host.ctl(&["resume"]).ok().stdout.contains("nothing was stopped"));
    // `ironctl panic` requires a stop that survives a restart. It kills a host that cannot record the stop.
    let host_pid = host.pid().expect("the host runs");
    let panicked = host.ctl(&["panic"]).ok();
    assert!(panicked.stdout.contains(&format!("was killed (process {host_pid})")), "{}", panicked.stdout);
    wait_for("the host to be gone", || !alive(host_pid));
    assert!(host.home.join("panic").exists());
    change_record(&host, "DROP TRIGGER full");
    host.up();
    assert_eq!(host.status()["stopped"]["by"], "the panic file in the home");
}
