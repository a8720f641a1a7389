//! Tests of conversations with a server that refuses a user directly behind a tool, after each end of a turn without an answer.
//!
//! The real daemon asks a model server on loopback. See `prompts` for the notices in a prompt.

use crate::e2e::streaming;
use crate::ops::stops::text;
use crate::support::client::Client;
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::model_server::{Act, Seen, Server};
use serde_json::json;
use std::time::Duration;

const SETTINGS: &str = "[model]\nbackoff_ms = 1\n";

/// Returns the refusal of a strict server, if the conversation breaks its order of roles.
pub(super) fn refused(seen: &Seen) -> Option<Act> {
    let messages = seen.body["messages"].as_array().expect("messages");
    let breaks = |pair: &[serde_json::Value]| {
        let (first, second) = (&pair[0], &pair[1]);
        let (is_tool, is_same) = (first["role"] == "tool", first["role"] == second["role"]);
        (is_tool && second["role"] == "user") || (!is_tool && is_same) || second["content"] == ""
    };
    let is_broken = messages.windows(2).any(breaks) || messages.last().is_some_and(|last| last["role"] == "assistant");
    is_broken.then(|| {
        let words = "Unexpected role 'user' after role 'tool'";
        Act::Status(400, Vec::new(), json!({ "object": "error", "message": words }).to_string())
    })
}

fn act(seen: &Seen) -> Act {
    if let Some(refused) = refused(seen) {
        return refused;
    }
    let asked = seen.asked();
    match (asked.as_str(), seen.results().is_empty()) {
        ("fail" | "hang" | "empty", true) => {
            let arguments = json!({ "path": "a.txt", "content": "x" });
            Act::Call(String::new(), vec![("write_file".to_owned(), arguments)])
        }
        ("fail", false) => Act::Status(500, Vec::new(), "{}".to_owned()),
        ("hang", false) => Act::Hang,
        ("empty", false) => Act::Say(String::new()),
        _ => Act::Say(format!("answer to {asked}")),
    }
}

/// Cancels a turn whose model hangs behind a result.
fn cancel(host: &TestHost, server: &Server) {
    let client = Client::of(host);
    let sent = client.send("b", "hang", "1").expect("recorded");
    let is_hanging = |seen: &Seen| seen.asked() == "hang" && !seen.results().is_empty();
    wait_for("the request behind the result", || server.seen().iter().any(is_hanging));
    host.ctl(&["session", "cancel", &text(&sent, "session_id")]).ok();
    let ended = client.message(&text(&sent, "message_id"), Duration::from_secs(60)).expect("an end");
    assert_eq!(ended["notice"], true, "{ended}");
}

#[test]
fn strict_server_answers_after_any_end_behind_a_tool() {
    let server = Server::start(act);
    let host = streaming::new_host(SETTINGS, &server, "openai", &["--no-key"]);
    host.ctl(&["agent", "add", "b", "--model", "m"]).ok();
    host.ctl(&["agent", "add", "c", "--model", "m"]).ok();
    assert_eq!(host.chat("a", "fail")["notice"], true);
    cancel(&host, &server);
    assert_eq!(host.chat("c", "empty")["notice"], true);
    for agent in ["a", "b", "c"] {
        assert_eq!(host.say(agent, "go on"), "answer to go on", "{agent}");
        // Later prompts have no notice, but still the result.
        assert_eq!(host.say(agent, "and again"), "answer to and again", "{agent}");
    }
}
