//! Tests of the main path, end to end: a message of a person reaches a jailed agent, and the answer is delivered.

use crate::support::host_fixture::{Build, TestHost};
use crate::support::jail_fixture::host_users;

#[test]
fn message_is_answered_by_a_jailed_agent() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None);
        host.up();
        host.agent("a");
        let answer = host.chat("a", "hello");
        assert!(answer["reply"].as_str().is_some_and(|reply| reply.contains("not an AI model")), "{answer}");
        for field in ["message_id", "session_id", "turn_id"] {
            assert!(answer[field].is_string(), "{answer}");
        }
        let session = host.session();
        let operator = if user == crate::support::jail_fixture::HostUser::Root {
            0
        } else {
            crate::support::jail_fixture::ORDINARY_UID
        };
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
    let host = TestHost::new();
    host.up();
    host.agent("a");
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
fn tool_without_a_handler_is_refused_and_the_agent_notified() {
    let host = TestHost::new();
    host.up();
    host.agent("a");
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
    host.up();
    host.agent("a");
    let answer = host.chat("a", "loop forever");
    assert!(
        answer["reply"].as_str().is_some_and(|reply| reply.starts_with("I stopped: this turn reached its limit")),
        "{answer}"
    );
    assert_eq!(answer["notice"], true, "{answer}");
    assert_eq!(host.entries("delivery.received").len(), 1);
    assert_eq!(
        host.say("a", "my name is Ada"),
        "(This is IronClaw's script, not an AI model: it answers by fixed rules.) Hello, Ada."
    );
}
