//! Tests of the bounds of a chain: hops, sends in a minute, tokens, and the sessions of different people.

use super::{connect, group, host_with, idle, pair, replies, taken};
use crate::support::client::{Client, Raw};
use crate::support::host_fixture::{Build, wait_for};
use serde_json::Value;

/// Rules with which each of two agents asks the other one again and again.
const PING_PONG: &str = r#"
[[rule]]
when = '^(ping|pong)$'
calls = [{ tool = "send_message", arguments = { to = "other", text = "pong" } }]
reply = "asked"
reply_error = "ended: {error}"
"#;

#[test]
fn two_agents_that_answer_each_other_stop_at_the_hop_limit() {
    let host = host_with(Build::Plain, "", PING_PONG);
    group(&host, &["a", "b"], "send_message");
    for (from, to) in [("a", "b"), ("b", "a")] {
        host.ctl(&["destination", "add", from, "other", "--agent", to, "--yes"]).ok();
    }
    host.chat("a", "ping");
    wait_for("the denial", || host.entries("call.refused").iter().any(|entry| entry["data"]["reason"] == "call_hops"));
    idle(&host);
    let hops: Vec<u64> = host.entries("agent.sent").iter().filter_map(|entry| entry["data"]["hop"].as_u64()).collect();
    assert_eq!(hops, [1, 2, 3, 4, 5]);
    let chains: std::collections::BTreeSet<String> =
        host.entries("agent.sent").iter().map(|entry| entry["data"]["chain"].to_string()).collect();
    assert_eq!(chains.len(), 1, "one trace");
    // Both sides hear of the denial: the sender by its result, the other one by a notice.
    let sessions = host.status()["sessions"].as_array().expect("a list").clone();
    let told = sessions.iter().filter(|session| {
        let id = session["id"].as_str().expect("an id");
        host.ctl(&["session", "export", id]).ok().stdout.contains("call_hops")
    });
    assert!(told.count() >= 2);
}

#[test]
fn sends_over_the_quota_are_denied_without_delaying_others() {
    let rules = r#"
[[rule]]
when = '^many$'
calls = [
  { tool = "send_message", arguments = { to = "b", text = "hello" } },
  { tool = "send_message", arguments = { to = "b", text = "hello" } },
  { tool = "send_message", arguments = { to = "b", text = "hello" } },
  { tool = "send_message", arguments = { to = "b", text = "hello" } },
  { tool = "send_message", arguments = { to = "b", text = "hello" } },
]
reply = "sent"
reply_error = "{error}"
"#;
    let host = pair("[agents]\nsends_per_minute = 3\n", rules);
    host.agent("c");
    group(&host, &["a", "b", "c"], "");
    connect(&host, "c", "b");
    host.chat("a", "many");
    let sent_by = |agent: &str| {
        let status = host.status();
        let of = |entry: &&Value| {
            let from = &entry["data"]["from"];
            let sessions = status["sessions"].as_array().expect("a list").iter();
            sessions.clone().any(|session| session["id"] == *from && session["agent"] == agent)
        };
        host.entries("agent.sent").iter().filter(of).count()
    };
    assert_eq!(sent_by("a"), 3);
    assert!(host.say("a", "send hello to b").contains("call_sends"));
    // Another agent is not held up.
    assert!(host.say("c", "send hello to b").contains("has your message"));
    // Neither a restart nor a second session resets the count.
    host.restart();
    let client = Client::of(&host);
    let id = client.send_in("a", "second", "send hello to b", "e2").expect("accepted")["message_id"].clone();
    let id = id.as_str().expect("an id").to_owned();
    wait_for("an answer", || {
        client.message(&id, std::time::Duration::ZERO).is_ok_and(|message| message["status"] == "delivered")
    });
    let reply = Raw::of(&host).get(&format!("/v1/messages/{id}")).1["reply"].to_string();
    assert!(reply.contains("call_sends"), "{reply}");
    assert_eq!(sent_by("a"), 3);
}

#[test]
fn budget_of_a_chain_ends_it() {
    let host = host_with(Build::Plain, "[budget]\ntokens_per_chain = 1\n", "");
    host.ctl(&["model", "add", "s", "--kind", "scripted", "--price-in", "1", "--price-out", "1", "--no-test"]).ok();
    host.ctl(&["agent", "set", "b", "--model", "s"]).ok();
    group(&host, &["a", "b"], "");
    connect(&host, "a", "b");
    host.chat("a", "send hello to b");
    taken(&host, 1);
    let refused = host.entries("budget.refused");
    assert_eq!((refused.len(), refused[0]["data"]["ceiling"].as_str()), (1, Some("tokens_per_chain")));
    // A person is not bounded by it.
    assert!(host.say("b", "hello").contains("Hello."));
}

#[test]
fn bug_24_answers_go_to_the_session_that_asked() {
    let host = pair("", "");
    let client = Client::of(&host);
    for (thread, text) in [("one", "send echo for one to b"), ("two", "send echo for two to b")] {
        client.send_in("a", thread, text, thread).expect("accepted");
    }
    taken(&host, 2);
    idle(&host);
    let sent = host.entries("agent.sent");
    let answered = host.entries("agent.answered");
    // Each session of `a` has a session of its own at `b`, and only that one answers it.
    for sent in &sent {
        let back = answered.iter().filter(|entry| entry["data"]["session"] == sent["data"]["from"]);
        let from: Vec<&Value> = back.map(|entry| &entry["data"]["from"]).collect();
        assert_eq!(from, [&sent["data"]["session"]]);
    }
    assert!(sent[0]["data"]["session"] != sent[1]["data"]["session"]);
    assert!(replies(&host, "a").is_empty(), "the default conversation gets nothing");
}
