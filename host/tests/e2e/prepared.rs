//! Tests of the conversations that a start wakes before their next message.

use crate::support::host_fixture::{TestHost, wait_for};
use serde_json::Value;

/// Starts a host with these agents, and sends a message to each in this order.
fn talked(configuration: &str, agents: &[&str]) -> TestHost {
    let host = TestHost::new().configured(configuration).started();
    for agent in agents {
        host.agent(agent);
        host.say(agent, "hello");
    }
    host
}

fn session(host: &TestHost, agent: &str) -> Value {
    let status = host.status();
    let sessions = status["sessions"].as_array().expect("a list");
    sessions.iter().find(|session| session["agent"] == agent).unwrap_or_else(|| panic!("{status}")).clone()
}

fn id(session: &Value) -> &str {
    session["id"].as_str().expect("an id")
}

fn wait_until_awake(host: &TestHost, agent: &str) {
    wait_for("the session to be awake", || session(host, agent)["state"] == "awake");
}

/// Returns the number of launches of the agent's session since the newest start of the host.
fn launches(host: &TestHost, agent: &str) -> usize {
    let session = session(host, agent);
    let entries = host.ledger();
    let start = entries.iter().rposition(|entry| entry["data"]["what"] == "host.started").expect("a start");
    let is_launch = |entry: &&Value| entry["data"]["what"] == "session.launching";
    entries[start..].iter().filter(is_launch).filter(|entry| entry["data"]["session"] == id(&session)).count()
}

#[test]
fn session_in_use_is_awake_after_a_restart_before_any_message() {
    let host = talked("", &["a"]);
    for restart in [TestHost::down, TestHost::kill_host] {
        restart(&host);
        let turns = host.entries("turn.opened").len();
        host.up();
        wait_until_awake(&host, "a");
        assert_eq!(host.entries("turn.opened").len(), turns, "it has no turn");
        host.say("a", "hello again");
        assert_eq!(launches(&host, "a"), 1, "the message finds it awake");
    }
}

#[test]
fn stopped_session_stays_asleep_after_a_restart() {
    let host = talked("", &["a", "b"]);
    host.ctl(&["session", "stop", id(&session(&host, "b"))]).ok();
    host.restart();
    // `b` is newer, so it would be the first.
    wait_until_awake(&host, "a");
    assert_eq!((&session(&host, "b")["state"], launches(&host, "b")), (&"asleep".into(), 0));
    host.say("b", "hello again");
    host.restart();
    wait_until_awake(&host, "b");
}

#[test]
fn emergency_stop_keeps_sessions_asleep_after_a_restart() {
    let host = talked("", &["a"]);
    host.ctl(&["panic"]).ok();
    host.restart();
    assert_eq!((&session(&host, "a")["state"], launches(&host, "a")), (&"asleep".into(), 0));
    host.ctl(&["resume"]).ok();
    host.say("a", "hello again");
}

#[test]
fn prepared_sessions_leave_half_of_the_slots_free() {
    let host = talked("[session]\nawake_max = 4\nawake_per_agent_max = 4\n", &["a", "b", "c"]);
    host.restart();
    // The newest first.
    wait_until_awake(&host, "c");
    wait_until_awake(&host, "b");
    assert_eq!((&session(&host, "a")["state"], launches(&host, "a")), (&"asleep".into(), 0));
    host.say("a", "hello again");
    assert_eq!(["a", "b", "c"].map(|agent| launches(&host, agent)), [1, 1, 1]);
}
