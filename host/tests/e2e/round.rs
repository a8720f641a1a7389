//! Tests of the main path, end to end: a message of a person reaches a jailed agent, and the answer is delivered.

use crate::support::client::{Client, Raw, check_refused};
use crate::support::host_fixture::{Build, TestHost, WAIT_MAX, wait_for};
use crate::support::jail_fixture::host_users;
use serde_json::json;
use std::time::Duration;

#[test]
fn message_is_answered_by_a_jailed_agent() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None).started_with("a");
        let answer = host.chat("a", "hello");
        assert!(answer["reply"].as_str().is_some_and(|reply| reply.contains("not an AI model")), "{answer}");
        for field in ["message_id", "session_id", "turn_id"] {
            assert!(answer[field].is_string(), "{answer}");
        }
        let session = host.session();
        let operator = user.uid();
        for (what, jail) in [("sandbox", &session["jail"]), ("reader", &session["reader"]["jail"])] {
            let own = jail["own_namespaces"].as_array().unwrap_or_else(|| panic!("{user:?} {what}: {session}"));
            assert_eq!(own.len(), 7, "{user:?} {what}: {jail}");
            assert_eq!(jail["seccomp"], 2, "{user:?} {what}");
            assert_eq!(jail["no_new_privs"], true, "{user:?} {what}");
            assert_eq!(jail["landlock"], true, "{user:?} {what}");
            assert_eq!(jail["interfaces"], serde_json::json!(["lo down"]), "{user:?} {what}");
            let sets = jail["capabilities"].as_object().expect("sets");
            assert!(sets.len() == 5 && sets.values().all(|set| set == "0000000000000000"), "{user:?} {what}: {jail}");
            assert_ne!(jail["uid"], 0, "{user:?} {what}");
            assert_eq!(
                jail["uid"] == operator,
                user == crate::support::jail_fixture::HostUser::Ordinary,
                "{user:?} {what}"
            );
        }
        assert_eq!(session["jail"]["root"], serde_json::json!(["in", "out", "run", "workspace"]), "{user:?}");
        assert_eq!(session["reader"]["jail"]["root"], serde_json::json!(["out"]), "{user:?}");
        assert_eq!(host.ctl(&["audit", "verify"]).ok().stdout.split(' ').next(), Some("ok"));
    }
}

#[test]
fn conversation_survives_a_restart() {
    let host = TestHost::new().started_with("a");
    assert_eq!(
        host.say("a", "my name is Ada"),
        "(This is IronClaw's script, not an AI model: it answers by fixed rules.) Hello, Ada."
    );
    host.say("a", "write notes.txt: remember me");
    host.down();
    assert!(host.ctl(&["status"]).code == 3, "a stopped host must not answer");
    host.up();
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
    assert!(host.say("a", "read notes.txt").contains("remember me"));
}

#[test]
fn tool_that_the_agent_lacks_is_refused_and_it_is_notified() {
    let host = TestHost::new().started_with("a");
    for words in ["ask me what to do", "send hi to bob", "schedule daily: look", "install skill weather 1.0.0"] {
        let reply = host.say("a", words);
        assert!(reply.contains("call_tool_not_enabled"), "{reply}");
    }
    assert_eq!(host.entries("call.refused").len(), 4);
    assert!(host.entries("action.refused").is_empty());
}

#[test]
fn turn_over_its_limits_ends_with_one_notice() {
    let host = TestHost::new();
    host.configure("[turn]\nmodel_calls_max = 2\n");
    let host = host.started_with("a");
    let stops_by = |setting: &str, asked: usize| {
        let before = host.entries("model.asked").len();
        let answer = host.chat("a", "loop forever");
        let reply = answer["reply"].as_str().expect("a reply");
        assert!(reply.starts_with("I stopped: this turn reached its limit"), "{answer}");
        assert!(reply.contains(setting) && reply.contains("`continue`"), "{answer}");
        assert_eq!((&answer["notice"], host.entries("model.asked").len() - before), (&json!(true), asked), "{answer}");
    };
    stops_by("turn.model_calls_max", 2);
    assert_eq!(host.entries("delivery.received").len(), 1);
    // The limits are live: a process with other limits makes room for one with these.
    for (settings, setting, asked) in
        [("model_calls_max = 3", "turn.model_calls_max", 3), ("tool_calls_max = 1", "turn.tool_calls_max", 2)]
    {
        host.configure(&format!("[turn]\n{settings}\n"));
        host.ctl(&["config", "reload"]).ok();
        stops_by(setting, asked);
    }
    assert_eq!(
        host.say("a", "my name is Ada"),
        "(This is IronClaw's script, not an AI model: it answers by fixed rules.) Hello, Ada."
    );
}

#[test]
fn request_that_waits_returns_the_answer_and_marks_it_read() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let client = Client::of(&host);
    // The first message begins the session, and the second one finds it awake.
    for event in ["first", "second"] {
        let answered = client.send_and_wait("a", "my name is Ada", event, WAIT_MAX).expect("the host answers");
        let message = &answered["message"];
        assert_eq!((&message["status"], &message["receipt"]), (&json!("delivered"), &json!("received")), "{answered}");
        assert!(message["reply"].as_str().is_some_and(|reply| reply.contains("Ada")), "{answered}");
        assert_eq!(message["message_id"], answered["message_id"], "{answered}");
        let again = client.send_and_wait("a", "my name is Ada", event, WAIT_MAX).expect("the host answers");
        assert_eq!(again, answered, "the same event is the same message");
    }
    let (status, unread) = Raw::of(&host).get("/v1/unread");
    assert_eq!((status, &unread), (200, &json!([])));
    assert_eq!(host.entries("message.recorded").len(), 2);
    host.restart();
    let (status, unread) = Raw::of(&host).get("/v1/unread");
    assert_eq!((status, &unread), (200, &json!([])), "an orderly stop keeps the marks");
    let without = client.send("a", "hello", "third").expect("the host answers");
    assert!(without.get("message").is_none(), "{without}");
}

#[test]
fn wait_that_ends_returns_a_recorded_message() {
    let host = TestHost::own(Build::Plain);
    let script = host.home.join("script.toml");
    std::fs::write(&script, "[[rule]]\nwhen = '^slow'\nreply = 'done'\nwait_ms = 5000\n").expect("written");
    host.configure(&format!("[model]\nscript = {:?}\n", script.display().to_string()));
    host.up();
    host.agent("a");
    let client = Client::of(&host);
    // The first message begins the session, and the second one finds it awake.
    for event in ["first", "second"] {
        let recorded = client.send_and_wait("a", "slow", event, Duration::from_millis(1)).expect("the host answers");
        let view = &recorded["message"];
        assert!(["queued", "processing"].contains(&view["status"].as_str().expect("a status")), "{recorded}");
        let id = recorded["message_id"].as_str().expect("an id");
        let answered = client.message(id, WAIT_MAX).expect("the host has the message");
        assert_eq!(answered["status"], "delivered", "{answered}");
    }
}

#[test]
fn request_that_waits_ends_with_the_reason_of_a_stop() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let client = Client::of(&host);
    client.send_and_wait("a", "hello", "before", WAIT_MAX).expect("the host answers");
    host.ctl(&["panic"]).ok();
    // The client waits no longer than the host would.
    let stopped = client.send_and_wait("a", "hello", "during", WAIT_MAX).expect("the host answers");
    let view = &stopped["message"];
    assert_eq!(view["status"], "queued", "{stopped}");
    assert!(view["reason"].as_str().is_some_and(|reason| reason.contains("ironctl resume")), "{stopped}");
    host.ctl(&["resume"]).ok();
    let id = stopped["message_id"].as_str().expect("an id");
    assert_eq!(client.message(id, WAIT_MAX).expect("the host answers")["status"], "delivered");
}

#[test]
fn request_that_waits_is_refused_as_any_other() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let raw = Raw::of(&host);
    let path = "/v1/agents/a/messages?wait_ms=60000";
    check_refused(&raw.ask("POST", path, r#"{"text":" "}"#), 400, "message_empty");
    let (status, malformed) = raw.ask("POST", "/v1/agents/a/messages?wait_ms=soon", r#"{"text":"hello"}"#);
    assert_eq!(status, 400, "{malformed}");
    let sent = raw.ask("POST", path, r#"{"text":"hello","event_id":"one"}"#);
    assert_eq!(sent.0, 202, "{sent:?}");
    check_refused(&raw.ask("POST", path, r#"{"text":"other","event_id":"one"}"#), 409, "event_reused");
    assert_eq!(host.entries("message.recorded").len(), 1);
}

#[test]
fn removed_session_ends_a_wait_with_an_unknown_message() {
    let host = crate::chaos::scale::new_host("");
    host.up();
    host.agent("a");
    let raw = Raw::of(&host);
    let waiting = std::thread::spawn(move || {
        raw.ask("POST", "/v1/agents/a/messages?wait_ms=60000", r#"{"text":"slow","event_id":"one"}"#)
    });
    wait_for("the request to the model", || !host.entries("turn.opened").is_empty());
    let session = host.session()["id"].as_str().expect("an id").to_owned();
    host.ctl(&["session", "remove", &session, "--yes"]).ok();
    check_refused(&waiting.join().expect("the host answers"), 404, "message_unknown");
}
