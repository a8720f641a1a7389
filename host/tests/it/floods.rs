//! Sandboxes that ask too much, too long or not at all: each is stopped, and what others asked for is served.

use crate::attack::{Attacked, report};
use crate::world::wait_for;
use serde_json::{Value, json};

/// Refusals that one launch may have: the host's own bound.
const REFUSALS_MAX: usize = 64;

/// The script ends in quarantine, and the ledger says so in these words.
#[track_caller]
fn stopped(attacked: &Attacked, script: &Value, words: &str) {
    let chat = attacked.send("a", "hello", script).ok().json();
    assert_eq!(chat["notice"], true, "{chat}");
    let session = attacked.session("a");
    assert_eq!(session["state"], "quarantined", "{session}");
    let entries = attacked.entries("session.quarantined", &attacked.id("a"));
    assert_eq!(entries.last().expect("an entry")["data"]["reason"], words);
    attacked.other_answers();
    attacked.world.ctl(&["session", "release", &attacked.id("a")]).ok();
}

#[test]
fn a_sandbox_that_is_refused_again_and_again_is_stopped() {
    let attacked = Attacked::new("");
    let mut script = vec![report("call_00000000000000000000000000", "x"); REFUSALS_MAX + 1];
    script.push(json!("hang"));
    stopped(&attacked, &json!(script), "it was refused too often on its model socket");
    assert_eq!(attacked.refusals(&attacked.id("a")).len(), REFUSALS_MAX + 1, "no more of them stand in the ledger");
}

#[test]
fn a_sandbox_whose_rows_are_refused_again_and_again_is_stopped_and_hides_no_message() {
    let attacked = Attacked::new("");
    let row =
        json!({ "row": { "kind": "chat", "content": { "reply": "itm_00000000000000000000000000" }, "call": null } });
    let mut script = vec![row; REFUSALS_MAX + 1];
    script.extend([json!({ "ring": 1 }), json!("hang")]);
    stopped(&attacked, &json!(script), "too many of its rows were refused");
    let reply = attacked.world.say("a", "hello");
    assert!(reply.contains("Hello."), "what informs about refusals keeps no message from its turn: {reply}");
}

#[test]
fn a_session_that_is_stopped_in_the_middle_of_a_turn_sleeps_and_its_message_waits() {
    let attacked = Attacked::new("");
    attacked.say("a", "hello");
    let id = attacked.id("a");
    std::thread::scope(|scope| {
        // The third attempt would be the last one if a stop counted as a failure.
        let hanging = scope.spawn(|| attacked.send("a", "say one", &json!([{ "once": ["hang"] }])));
        wait_for("the turn", || attacked.session("a")["waiting"] == 1 && attacked.session("a")["state"] == "awake");
        attacked.world.ctl(&["session", "stop", &id]).ok();
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
fn a_sandbox_that_says_half_a_word_after_its_hello_keeps_nobody_waiting() {
    let attacked = Attacked::new("[session]\nlaunch_attempts_max = 1\n");
    let id = attacked.asleep();
    attacked.at_launch(&id, &json!([{ "hello": null }, "welcome", { "link": [7] }, "hang"]));
    let answer = attacked.world.ctl(&["chat", "a", "hello"]);
    assert!(answer.stderr.contains("was not ready"), "{}{}", answer.stdout, answer.stderr);
    assert_eq!(attacked.session("a")["state"], "parked");
    attacked.other_answers();
    attacked.world.down();
}
