//! Tests of the tools of an agent: their list, changes of the list, and the resulting prompt.
//!
//! They use the real programs, and a model server on loopback that records the prompts. See `changes`.

use crate::e2e::streaming;
use crate::support::host_fixture::TestHost;
use crate::support::model_server::{Act, Seen, Server};
use serde_json::{Value, json};

const USUAL: [&str; 7] =
    ["list_dir", "read_file", "recall", "remember", "request_capability_change", "search_files", "write_file"];

fn tools_of(host: &TestHost, agent: &str) -> Vec<String> {
    let shown = host.ctl(&["--json", "agent", "show", agent]).ok().json();
    let mut tools: Vec<String> = serde_json::from_value(shown["enabled_tools"].clone()).expect("names");
    tools.sort();
    tools
}

fn refusal(host: &TestHost, payload: &Value) -> String {
    host.submit("a", "enabled_tools", payload).error()["code"].as_str().expect("a code").to_owned()
}

#[test]
fn agent_has_exactly_the_tools_it_was_created_with() {
    let host = TestHost::new().started_with("a");
    assert_eq!(tools_of(&host, "a"), USUAL);
    host.ctl(&["agent", "add", "b", "--tool", "read_file"]).ok();
    assert_eq!(tools_of(&host, "b"), ["read_file"]);
    let reply = host.say("b", "change persona to a pirate");
    assert!(reply.contains("call_tool_not_enabled"), "{reply}");
    assert_eq!(host.entries("call.refused").len(), 1);
    for (tool, words) in
        [("send_message", "an agent with a destination has it"), ("read_skill", "an agent with a skill has it")]
    {
        let answer = host.ctl(&["agent", "add", "c", "--tool", tool]).refused(words);
        assert!(
            answer.stderr.contains("request_capability_change"),
            "the refusal lists the valid tools: {}",
            answer.stderr
        );
    }
}

#[test]
fn adding_and_removing_tools_keeps_the_others() {
    let host = TestHost::new().started_with("a");
    let answer = host.submit("a", "enabled_tools", json!({ "add": ["run_command"] })).ok().json();
    let id = answer["id"].as_str().expect("an id");
    let shown = host.ctl(&["inbox", "show", id]).ok().stdout;
    assert!(shown.contains("Added: \"run_command\".\n  Removed: none."), "{shown}");
    assert_eq!(host.ctl(&["--json", "approve", id]).ok().json()["status"], "done");
    let mut with_commands: Vec<&str> = USUAL.into_iter().chain(["run_command"]).collect();
    with_commands.sort_unstable();
    assert_eq!(tools_of(&host, "a"), with_commands);
    host.change("a", "enabled_tools", &json!({ "add": ["recall"], "remove": ["run_command", "write_file"] }));
    assert_eq!(tools_of(&host, "a"), USUAL.into_iter().filter(|tool| *tool != "write_file").collect::<Vec<_>>());

    for (payload, code) in [
        (json!({ "add": ["fly"] }), "tool_unknown"),
        (json!({ "remove": ["fly"] }), "tool_unknown"),
        (json!({ "add": ["send_message"] }), "tool_unhandled"),
        (json!(["read_file", "read_skill"]), "tool_unhandled"),
        (json!({ "add": ["recall"] }), "change_empty"),
        (json!({}), "payload_malformed"),
        (json!({ "add": ["recall"], "remove": ["recall"] }), "payload_malformed"),
        (json!({ "add": ["recall"], "all": [] }), "payload_malformed"),
    ] {
        assert_eq!(refusal(&host, &payload), code, "{payload}");
    }
}

#[test]
fn agent_proposes_one_more_tool_in_the_chat() {
    let host = TestHost::new().started_with("a");
    let reply = host.say("a", r#"change enabled_tools {"add":["run_command"]} because I want it to count lines"#);
    assert!(reply.contains("pending as chg_"), "{reply}");
    let waiting = host.ctl(&["--json", "inbox", "list", "--type", "change"]).ok().json();
    let id = waiting[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(host.ctl(&["--json", "approve", &id]).ok().json()["status"], "done");
    assert_eq!(tools_of(&host, "a").len(), USUAL.len() + 1);
}

#[test]
fn model_sees_the_outcome_last_and_no_text_of_the_script() {
    let server = Server::start(|seen: &Seen| Act::Say(format!("answer to: {}", seen.asked())));
    let host = streaming::new_host("", &server, "openai", &[]);
    host.ctl(&["agent", "set", "a", "--model", "scripted"]).ok();
    host.say("a", "hello");
    let reply = host.say("a", "change persona to a pirate");
    assert!(reply.contains("pending as chg_"), "{reply}");
    let waiting = host.ctl(&["--json", "inbox", "list", "--type", "change"]).ok().json();
    let id = waiting[0]["id"].as_str().expect("an id").to_owned();
    host.ctl(&["reject", &id, "--reason", "no thanks"]).ok();
    host.ctl(&["agent", "set", "a", "--model", "m"]).ok();
    host.say("a", "first words");
    host.say("a", "second words");

    let seen = server.seen();
    let [.., first, second] = &seen[..] else { panic!("the model server needs two requests") };
    let shown = first.body["messages"].to_string();
    assert!(!shown.contains("Say help to see") && !shown.contains("it answers by fixed rules"), "{shown}");
    assert!(!shown.contains("in place of an answer") && !shown.contains("pending as"), "{shown}");
    let order = ["hello", "a pirate", "a script of the host, and no model", "no thanks", "first words"];
    let places: Vec<Option<usize>> = order.iter().map(|words| shown.find(words)).collect();
    assert!(places.iter().all(Option::is_some), "{places:?}: {shown}");
    assert!(shown.find("no thanks") > shown.find("a pirate") && shown.find("first words") > shown.find("no thanks"));
    // The next prompt begins with the bytes of this one.
    let stem = shown.strip_suffix(r#"","role":"user"}]"#).expect("the prompt ends with a message of the user");
    assert!(second.body["messages"].to_string().starts_with(stem), "{second:?}");
    let offered: Vec<&str> = first.body["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    let mut offered_sorted = offered;
    offered_sorted.sort_unstable();
    assert_eq!(offered_sorted, USUAL);
}

#[test]
fn tool_show_has_the_rule_of_the_policy_that_applies() {
    let host = TestHost::new();
    let policy = |text: &str| std::fs::write(host.home.join("policy.toml"), text).expect("written");
    policy("[call.send]\nexpires_hours = 2\nrequester_may_approve = false\n");
    host.up();
    let rules = |tool: &str| host.ctl(&["--json", "tool", "show", tool]).ok().json()["rules"].clone();
    let usual = json!({
        "class": "read", "roles": ["owner", "admin"], "approvals": 1, "requester_may_approve": true, "expires_hours": 24
    });
    let send = json!({
        "class": "send", "table": "call.send", "roles": ["owner", "admin"], "approvals": 1,
        "requester_may_approve": false, "expires_hours": 2
    });
    assert_eq!(rules("http_fetch"), json!([usual, send]));
    assert_eq!((rules("read_file"), rules("request_capability_change")), (json!([usual]), json!([])));
    let shown = host.ctl(&["tool", "show", "http_fetch"]).ok().stdout;
    for row in [["(defaults)", "counts", "after 24 h"], ["[call.send]", "does not count", "after 2 h"]] {
        assert!(shown.lines().any(|line| row.iter().all(|word| line.contains(word))), "{row:?}: {shown}");
    }
    policy("[call.send]\nexpires_hours = 2\n[tool.http_fetch]\nroles = [\"owner\"]\n");
    host.ctl(&["config", "reload"]).ok();
    let all = rules("http_fetch");
    let tables: Vec<_> = all.as_array().expect("rules").iter().map(|rule| rule["table"].as_str()).collect();
    assert_eq!(tables, [Some("tool.http_fetch"), Some("tool.http_fetch")]);
    assert_eq!((&all[1]["roles"], &all[1]["expires_hours"]), (&json!(["owner"]), &json!(2)), "it extends its class");
    assert_eq!(rules("send_message")[0]["table"], "call.send");
    let of_api: Value = host.ctl(&["--json", "tool", "list"]).ok().json();
    let fetch = of_api.as_array().expect("tools").iter().find(|tool| tool["name"] == "http_fetch").expect("the tool");
    assert_eq!(fetch["rules"], all);
}
