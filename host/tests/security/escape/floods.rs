//! Sandboxes that send too many requests, too large ones or none. The host ends each, and other sessions are served.

use super::attack::{Attacked, output, report};
use super::attempt::{Attempt, attempt, reply, ring, run_attempts};
use crate::support::host_fixture::wait_for;
use serde_json::{Value, json};

pub(crate) fn attempts() -> Vec<Attempt> {
    let repeat = |times: u32, step: Value| json!({ "repeat": { "times": times, "step": step } });
    vec![
        attempt("number_of_model_requests_of_a_turn_is_bounded", move |_| {
            vec![output(), reply("$output.item"), repeat(5, output()), repeat(3, output()), ring(), json!("leave")]
        })
        .requests(&["budget"; 3]),
        attempt("number_of_calls_of_a_turn_is_bounded", move |_| {
            let reports = (0..4).map(|call| report(&format!("$calls.{call}.call_id"), "x"));
            reports.fold(vec![output()], |steps, step| [steps, vec![step]].concat())
        })
        .asks("read much")
        .answered("That did not work")
        .calls(&["call_no_room"; 2]),
        attempt("size_of_results_of_a_turn_is_bounded", move |_| {
            let mut long = report("$calls.0.call_id", "");
            long["ask"]["body"] = json!({ "$times": "x", "count": 1200 });
            let mut other = report("$calls.1.call_id", "");
            other["ask"]["body"] = json!({ "$times": "x", "count": 1200 });
            vec![output(), long, other]
        })
        .asks("read much")
        .answered("That did not work")
        .calls(&["call_no_room"; 2])
        .requests(&["budget"]),
        attempt("five_hundred_requests_for_items_write_no_entry", move |_| {
            vec![repeat(500, json!({ "ask": { "ask": "items", "after_seq": 0 } }))]
        }),
        attempt("sandbox_that_never_reads_is_ended_at_the_deadline", |_| {
            let items = json!({ "ask": "items", "after_seq": 0 });
            vec![json!({ "dial": 1 }), json!({ "deaf": { "request": items, "times": 1_000_000 } })]
        })
        .ended("reached its limit of 6 seconds"),
    ]
}

#[test]
fn resources_of_a_turn_are_bounded() {
    run_attempts(
        "[turn]\nmodel_calls_max = 6\ntool_calls_max = 4\nresult_bytes_max = 2000\nseconds_max = 6\n",
        attempts(),
    );
}

/// The host's limit of refusals in one launch.
const REFUSALS_MAX: usize = 64;

/// Runs a script that ends in a quarantine, and checks the reason in the ledger.
#[track_caller]
fn check_quarantined(attacked: &Attacked, script: &Value, words: &str) {
    let chat = attacked.send("a", "hello", script).ok().json();
    assert_eq!(chat["notice"], true, "{chat}");
    wait_for("the quarantine", || attacked.session("a")["state"] == "quarantined");
    let entries = attacked.entries("session.quarantined", &attacked.id("a"));
    assert_eq!(entries.last().expect("an entry")["data"]["reason"], words);
    attacked.check_other_agent();
    attacked.host.ctl(&["session", "release", &attacked.id("a")]).ok();
}

#[test]
fn sandbox_with_too_many_refused_requests_is_stopped() {
    let attacked = Attacked::new("");
    let mut script = vec![report("call_00000000000000000000000000", "x"); REFUSALS_MAX + 1];
    script.push(json!("hang"));
    check_quarantined(&attacked, &json!(script), "the sandbox was refused too often on its model socket");
    assert_eq!(attacked.refusals(&attacked.id("a")).len(), REFUSALS_MAX + 1, "the ledger has no further refusals");
}

#[test]
fn sandbox_with_endless_requests_for_items_is_stopped() {
    let attacked = Attacked::new("");
    let ask = json!({ "ask": { "ask": "items", "after_seq": 0 } });
    let script = json!([{ "repeat": { "times": 100_000, "step": ask } }, "hang"]);
    check_quarantined(&attacked, &script, "the sandbox was refused too often on its model socket");
    let refusals = attacked.refusals(&attacked.id("a"));
    assert!(refusals.iter().all(|refusal| refusal == "budget"), "{refusals:?}");
}

#[test]
fn sandbox_with_too_many_refused_rows_is_stopped() {
    let attacked = Attacked::new("");
    let row =
        json!({ "row": { "kind": "chat", "content": { "reply": "itm_00000000000000000000000000" }, "call": null } });
    let mut script = vec![row; REFUSALS_MAX + 1];
    script.extend([json!({ "ring": 1 }), json!("hang")]);
    check_quarantined(&attacked, &json!(script), "too many of its rows were refused");
    let reply = attacked.host.say("a", "hello");
    assert!(reply.contains("Hello."), "a notice about refusals blocks no message: {reply}");
}

#[test]
fn session_stopped_during_a_turn_sleeps_and_keeps_its_message() {
    let attacked = Attacked::new("");
    attacked.say("a", "hello");
    let id = attacked.id("a");
    std::thread::scope(|scope| {
        // If a stop counted as a failed attempt, the third attempt would be the last one.
        let hanging = scope.spawn(|| attacked.send("a", "say one", &json!([{ "once": ["hang"] }])));
        wait_for("the turn", || attacked.session("a")["waiting"] == 1 && attacked.session("a")["state"] == "awake");
        attacked.host.ctl(&["session", "stop", &id]).ok();
        let session = attacked.session("a");
        assert_eq!((&session["state"], &session["waiting"]), (&json!("asleep"), &json!(1)), "it stays asleep");
        assert!(!hanging.is_finished());
        attacked.say("a", "hello");
        let answer = hanging.join().expect("no panic").ok().json();
        assert_eq!(answer["notice"], false, "the message was answered after the next wake: {answer}");
    });
    assert_eq!(attacked.entries("session.stopped", &id).len(), 1);
    assert!(attacked.entries("session.parked", &id).is_empty());
}

#[test]
fn silent_sandbox_is_ended_after_the_handshake_timeout() {
    let silent = json!(["hang"]);
    let half = json!([{ "hello": null }, "welcome", { "link": [7] }, "hang"]);
    let within = "did not say hello, or was not ready, within 10000 ms";
    // Both scripts wait for the handshake timeout, so they run concurrently.
    std::thread::scope(|scope| {
        for script in [silent, half] {
            scope.spawn(move || {
                let attacked = Attacked::new("[session]\nlaunch_attempts_max = 1\n");
                let id = attacked.make_sleeping_session();
                attacked.set_launch_script(&id, &script);
                let answer = attacked.host.ctl(&["chat", "a", "hello"]);
                assert!(answer.code == 1 && answer.stderr.contains(within), "{}{}", answer.stdout, answer.stderr);
                assert_eq!(attacked.session("a")["state"], "parked");
                attacked.check_other_agent();
                attacked.set_launch_script(&id, &Value::Null);
                attacked.host.ctl(&["session", "release", &id]).ok();
                assert!(attacked.host.say("a", "hello").contains("Hello."), "a released session answers");
                attacked.host.down();
                assert!(attacked.host.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "));
            });
        }
    });
}
