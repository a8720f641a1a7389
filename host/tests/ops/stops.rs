//! Tests of cancellation in each phase of a turn, and of the emergency stop under load, in a crash and over restarts.
//!
//! See `chaos::scale`.

use crate::chaos::scale::{answered, each_answered_once, world};
use crate::security::escape::attack::{Attacked, generate};
use crate::support::client::{Client, Raw};
use crate::support::host_fixture::{Build, World, alive, kill, wait_for};
use crate::support::jail_fixture::host_users;
use crate::support::many_sessions::name;
use crate::support::processes::{below, no_process_uses};
use crate::support::record;
use serde_json::{Value, json};
use std::fs::File;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

const CANCELLED: &str = "This was cancelled before there was an answer.";

/// Returns the host's notice for a message.
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
    let world = world("");
    world.up();
    world.agent("a");
    let client = Client::of(&world);
    let sent = client.send("a", "slow", "1").expect("recorded");
    wait_for("the request", || world.entries("model.asked").len() == 1);
    let session = text(&sent, "session_id");
    let cancelled = world.ctl(&["--json", "session", "cancel", &session]).ok().json();
    assert_eq!((&cancelled["running"], &cancelled["messages"][0]), (&true.into(), &sent["message_id"]));
    assert!(notice(&client, &text(&sent, "message_id")).starts_with(CANCELLED));
    let by = &world.entries("turn.cancelled")[0];
    assert_eq!((&by["type"], &by["data"]["turn"]), (&"META".into(), &cancelled["turn_id"]));
    let closed = &world.entries("turn.closed")[0]["data"];
    assert_eq!(closed["reason"], "cancelled");
    assert_eq!(world.session()["waiting"], 0);
    assert!(world.say("a", "hello").contains("Hello."), "the next message works");
    world.ctl(&["session", "cancel", &session]).refused("there is nothing to cancel");
    let shown = world.ctl(&["--json", "session", "show", &session]).ok().json();
    assert_eq!((&shown["failures"], world.entries("output.sealed").len()), (&0.into(), 1));
}

#[test]
fn waiting_message_is_cancelled_and_the_running_one_is_not() {
    let world = world("[session]\nawake_max = 1\n");
    world.up();
    ["a", "b"].iter().for_each(|agent| world.agent(agent));
    let client = Client::of(&world);
    let running = client.send("a", "slow", "1").expect("recorded");
    wait_for("the request", || world.entries("model.asked").len() == 1);
    let waiting = client.send("b", "hello", "2").expect("recorded");
    wait_for("it to wait", || client.status().expect("answers")["places"]["waiting"] == 1);
    let cancelled = world.ctl(&["--json", "session", "cancel", &text(&waiting, "session_id")]).ok().json();
    assert_eq!(cancelled["running"], false);
    assert!(notice(&client, &text(&waiting, "message_id")).starts_with(CANCELLED));
    wait_for("an empty queue", || client.status().expect("answers")["places"]["waiting"] == 0);
    let view = client.message(&text(&running, "message_id"), std::time::Duration::ZERO).expect("answers");
    assert_eq!(view["status"], "processing", "{view}");
    assert_eq!(world.entries("session.launching").len(), 1, "no session was launched for the cancelled message");
}

#[test]
fn cancelled_local_call_is_unknown_and_late_row_is_refused() {
    let attacked = Attacked::new("");
    let world = &attacked.world;
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
        let before = world.entries(stage).len();
        let answer = std::thread::scope(|scope| {
            let chat = scope.spawn(|| attacked.send("a", text, &script));
            wait_for(stage, || world.entries(stage).len() > before);
            session = attacked.id("a");
            if stage == "output.sealed" {
                let outcome = attacked.directory(&session).join("workspace/outcome.json");
                wait_for("the row to be written", || {
                    let seen: Option<Value> = serde_json::from_slice(&std::fs::read(&outcome).unwrap_or_default()).ok();
                    seen.is_some_and(|seen| seen["answers"].as_array().map(Vec::len) == Some(2))
                });
            }
            world.ctl(&["session", "cancel", &session]).ok();
            chat.join().expect("the thread ends").ok().json()
        });
        assert!(answer["reply"].as_str().is_some_and(|reply| reply.starts_with(CANCELLED)), "{answer}");
        assert_eq!(world.entries("turn.cancelled").len(), n + 1);
    }
    wait_for("the session to sleep", || attacked.session("a")["state"] == "asleep");
    assert_eq!(attacked.entries("row.refused", &session).len(), 1, "the late reply is refused");
    attacked.other_answers();
    assert!(attacked.say("a", "hello").chat["reply"].is_string(), "the next message works");
    world.down();
    let db = record::open(&world.home);
    assert_eq!(record::count(&db, "SELECT count(*) FROM calls WHERE state = 'unknown'"), 1);
    assert_eq!(record::count(&db, "SELECT count(*) FROM calls WHERE state = 'permitted'"), 0);
    assert_eq!(record::count(&db, "SELECT count(*) FROM sessions WHERE state <> 'live'"), 0);
}

/// Covers messages in a turn, waiting messages and messages after the stop.
#[test]
fn panic_stops_everything_and_resume_answers_exactly_once() {
    let world = world("[session]\nawake_max = 3\n");
    world.up();
    (0..4).for_each(|agent| world.agent(&name(agent)));
    let client = Client::of(&world);
    let send = |agent: usize, thread: &str, words: &str| {
        let event = format!("{agent}-{thread}-{words}");
        text(&client.send_in(&name(agent), thread, words, &event).expect("recorded"), "message_id")
    };
    let slow = send(0, "t", "slow");
    wait_for("the request", || world.entries("model.asked").len() == 1);
    let mut ids = vec![];
    for n in 0..6 {
        ids.extend((0..4).map(|agent| send(agent, &format!("t{}", n % 3), &format!("echo {n}"))));
    }
    let host = world.pid().expect("the host runs");
    let panicked = world.ctl(&["--json", "panic"]).ok().json();
    assert_eq!((&panicked["gone"], &panicked["by"]), (&true.into(), &"owner".into()), "{panicked}");
    wait_for("every jail to be gone", || below(host).len() == 1);
    let asked = ["session.launching", "model.asked", "turn.opened", "delivery.intended", "delivery.received"];
    let count = |world: &World| asked.map(|what| world.entries(what).len());
    let before = count(&world);
    let late = send(1, "late", "echo late");
    let view = client.message(&late, std::time::Duration::from_secs(5)).expect("answers");
    assert!(text(&view, "reason").starts_with("everything is stopped by owner"), "{view}");
    world.ctl(&["chat", &name(2), "hello"]).refused("everything is stopped by owner");
    let session = text(&view, "session_id");
    world.ctl(&["session", "cancel", &session]).ok();
    world.ctl(&["doctor", "--prove"]).refused("");
    assert!(world.ctl(&["status"]).ok().stdout.starts_with("EVERYTHING IS STOPPED since "));
    // A second stop, a kill and a start have no effect.
    assert_eq!(world.ctl(&["--json", "panic"]).ok().json()["since"], panicked["since"]);
    world.kill_host();
    world.up();
    assert_eq!(world.status()["stopped"]["by"], "owner");
    assert_eq!(below(world.pid().expect("the host runs")).len(), 1, "only the launcher runs");
    world.down();
    world.up();
    let after = count(&world);
    assert_eq!((after[0], after[1], after[4]), (before[0], before[1], before[4]), "no work began");
    assert_eq!(world.entries("host.panicked").len(), 1);
    assert_eq!(world.entries("host.panicked")[0]["type"], "META");
    // The slow message is cancelled, because its answer would take too long.
    let slow_session = text(&client.message(&slow, std::time::Duration::ZERO).expect("answers"), "session_id");
    world.ctl(&["session", "cancel", &slow_session]).ok();
    assert_eq!(world.ctl(&["--json", "resume"]).ok().json(), json!({ "resumed": true }));
    ids.extend([late, slow]);
    ids.iter().for_each(|id| answered(&client, id, 0));
    let hello =
        world.entries("message.recorded").iter().map(|entry| text(&entry["data"], "message")).collect::<Vec<_>>();
    hello.iter().for_each(|id| answered(&client, id, 0));
    each_answered_once(&world, &hello, 0);
    assert_eq!(hello.len(), ids.len() + 1, "every message and the one of `ironctl chat`");
    assert_eq!(world.entries("host.resumed").len(), 1);
    assert!(world.ctl(&["resume"]).ok().stdout.contains("nothing was stopped"));
    assert_eq!(world.status()["stopped"], Value::Null);
}

#[test]
fn host_killed_during_a_panic_starts_stopped() {
    for who in host_users() {
        let mut world = World::with(who, Build::Failpoints, None);
        world.up();
        world.agent("a");
        world.down();
        world.set_env("IRONCLAW_FAILPOINT", Some("panic"));
        world.up();
        world.set_env("IRONCLAW_FAILPOINT", None);
        world.say("a", "my name is Ada");
        let host = world.pid().expect("the host runs");
        // The command gets no answer and finds no process to kill, but its panic file stops the next start.
        assert!(world.ctl(&["panic"]).ok().stdout.contains("the next start will be stopped"), "{who:?}");
        wait_for("the host to be gone", || !alive(host));
        no_process_uses(&world.home);
        assert!(world.entries("host.panicked").is_empty(), "{who:?}: the host died before the entry");
        world.up();
        assert_eq!(world.status()["stopped"]["by"], "the panic file in the home", "{who:?}");
        assert!(!world.home.join("panic").exists(), "{who:?}: the stop is in the record");
        world.ctl(&["chat", "a", "what is my name?"]).refused("everything is stopped");
        world.ctl(&["resume"]).ok();
        wait_for("the answer", || world.entries("delivery.received").len() == 2);
        assert_eq!(world.say("a", "what is my name?"), "Your name is Ada.", "{who:?}");
        world.down();
        world.up();
        assert_eq!(world.status()["stopped"], Value::Null, "{who:?}: the resume lasts");
    }
}

#[test]
fn panic_works_without_a_host_and_kills_a_hanging_one() {
    let world = world("");
    assert!(world.ctl(&["panic"]).ok().stdout.contains("no host runs"));
    assert_eq!(world.ctl(&["resume"]).code, 3, "no host answers the resume");
    world.up();
    world.agent("a");
    world.ctl(&["chat", "a", "hello"]).refused("everything is stopped by the panic file in the home");
    world.ctl(&["resume"]).ok();
    wait_for("the answer", || world.entries("delivery.received").len() == 1);
    let host = world.pid().expect("the host runs");
    let jailed = below(host);
    assert_eq!(jailed.len(), 5, "{jailed:?}");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(host), nix::sys::signal::Signal::SIGSTOP).expect("ours");
    let panic = panic_in_the_background(&world);
    let answer = panic.wait_with_output().expect("the command ends");
    if !answer.status.success() {
        kill(host);
    }
    let words = String::from_utf8_lossy(&answer.stdout);
    assert!(words.contains(&format!("was killed (process {host})")), "{words}{answer:?}");
    wait_for("every jail to be gone", || jailed.keys().all(|process| !process.lives()));
    world.up();
    assert_eq!(world.status()["stopped"]["by"], "the panic file in the home");
}

fn panic_in_the_background(world: &World) -> Child {
    let mut command = world.command("ironctl");
    command.arg("--home").arg(&world.home).arg("panic").stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().expect("ironctl starts")
}

#[test]
fn panic_ends_a_running_self_test_at_once() {
    let world = world("");
    world.up();
    world.agent("a");
    world.say("a", "my name is Ada");
    let host = world.pid().expect("the host runs");
    let raw = Raw::of(&world);
    let path = format!("/v1/sessions/{}/prove", text(&world.session(), "id"));
    for (n, state) in ["awake", "asleep"].into_iter().enumerate() {
        assert_eq!(world.session()["state"], state);
        let before = below(host).len();
        let (status, proof) = std::thread::scope(|scope| {
            let proof = scope.spawn(|| raw.ask("POST", &path, ""));
            wait_for("a process of the self-test", || below(host).len() > before);
            let (status, panicked) = raw.ask("POST", "/v1/panic", "");
            assert_eq!((status, &panicked["gone"]), (200, &true.into()), "{state}: {panicked}");
            proof.join().expect("an answer")
        });
        let words = text(&proof["error"], "message");
        assert_eq!((status, words.as_str()), (503, "an emergency stop came before the self-test finished"), "{state}");
        let noted = world.entries("jail.not_proved");
        assert_eq!((noted.len(), &noted[n]["data"]["reason"]), (n + 1, &words.into()), "{state}");
        wait_for("every jail to be gone", || below(host).len() == 1);
        world.ctl(&["resume"]).ok();
    }
    assert_eq!(world.say("a", "what is my name?"), "Your name is Ada.");
}

#[test]
fn panic_file_during_a_resume_stops_the_host_again() {
    let world = world("");
    world.up();
    world.agent("a");
    world.say("a", "my name is Ada");
    world.ctl(&["panic"]).ok();
    let (file, is_over) = (world.home.join("panic"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // The resume removes the file. A new file is noticed at the end of the resume or later by the host.
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let _ = File::create(&file);
            }
            let _ = File::create(&file);
        });
        let resumed = world.ctl(&["--json", "resume"]);
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(resumed.ok().json(), json!({ "resumed": true }));
    });
    wait_for("the emergency stop by the file", || world.status()["stopped"]["by"] == "the panic file in the home");
    world.ctl(&["resume"]).ok();
    assert_eq!(world.status()["stopped"], Value::Null);
    assert_eq!(world.say("a", "what is my name?"), "Your name is Ada.");
}

/// A trigger that makes the record refuse a stop, as on a full disk.
const FULL: &str = "CREATE TRIGGER full BEFORE INSERT ON meta WHEN NEW.key = 'stopped' \
    BEGIN SELECT RAISE(ABORT, 'no room'); END;";

fn change_record(world: &World, sql: &str) {
    record::open_to_change(&world.home).execute_batch(sql).expect("changed");
    record::restore_owner(world);
}

#[test]
fn panic_that_cannot_be_recorded_still_stops_everything() {
    let world = world("");
    world.up();
    world.agent("a");
    world.say("a", "my name is Ada");
    world.down();
    change_record(&world, FULL);
    world.up();
    let (client, raw) = (Client::of(&world), Raw::of(&world));
    let (status, answer) = raw.ask("POST", "/v1/panic", "");
    assert_eq!((status, &answer["error"]["code"]), (500, &"internal".into()), "{answer}");
    assert_eq!(client.status().expect("answers")["stopped"]["by"], "owner");
    assert!(world.home.join("panic").exists(), "the stop lasts over a restart");
    let sent = client.send("a", "what is my name?", "1").expect("recorded");
    assert!(world.ctl(&["status"]).ok().stdout.starts_with("EVERYTHING IS STOPPED since "));
    assert_eq!(world.ctl(&["--json", "resume"]).ok().json(), json!({ "resumed": true }));
    answered(&client, &text(&sent, "message_id"), 0);
    assert_eq!(world.entries("host.resumed").len(), 1);
    assert_eq!(world.status()["stopped"], Value::Null);
    assert!(!world.home.join("panic").exists());
    assert!(world.ctl(&["resume"]).ok().stdout.contains("nothing was stopped"));
    // `ironctl panic` requires a stop that survives a restart. It kills a host that cannot record the stop.
    let host = world.pid().expect("the host runs");
    let panicked = world.ctl(&["panic"]).ok();
    assert!(panicked.stdout.contains(&format!("was killed (process {host})")), "{}", panicked.stdout);
    wait_for("the host to be gone", || !alive(host));
    assert!(world.home.join("panic").exists());
    change_record(&world, "DROP TRIGGER full");
    world.up();
    assert_eq!(world.status()["stopped"]["by"], "the panic file in the home");
}
