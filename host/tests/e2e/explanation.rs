//! Tests of `ironctl explain`: it says of each request what the host does at such a request, and its commands change that.
//!
//! They use the real programs with the scripted model, and a server on loopback. See `requests`.

use super::requests::{approve, host_with, post, waiting};
use crate::support::client::Raw;
use crate::support::host_fixture::{TestHost, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn explain(host: &TestHost, words: &[&str]) -> Value {
    host.ctl(&[&["--json", "explain"], words].concat()).ok().json()
}

/// Returns the status of each request, with the code behind a colon.
fn judged(explained: &Value) -> BTreeMap<String, String> {
    let situations = explained["situations"].as_array().expect("a list");
    let one = |situation: &Value| {
        let of = situation["of"].as_str().map(|of| format!(" {of}")).unwrap_or_default();
        let code = situation["code"].as_str().map(|code| format!(":{code}")).unwrap_or_default();
        let request = situation["request"].as_str().expect("a word");
        (format!("{request}{of}"), format!("{}{code}", situation["status"].as_str().expect("a word")))
    };
    situations.iter().map(one).collect()
}

fn commands(explained: &Value) -> Vec<String> {
    let remedies = explained["remedies"].as_array().expect("a list");
    remedies.iter().map(|remedy| remedy["command"].as_str().expect("a command").to_owned()).collect()
}

/// Types a command of a remedy, with its words in capitals replaced.
fn type_command(host: &TestHost, command: &str, more: &[&str]) {
    let words: Vec<&str> = command.split(' ').skip(1).map(|word| word.trim_matches('\'')).collect();
    host.ctl(&[&words, more].concat()).ok();
}

/// The requests in the order of the table below.
const REQUESTS: [&str; 7] = [
    "person_asks",
    "person_asks_with_text_of_others",
    "person_typed_with_text_of_others",
    "person_does_not_ask",
    "schedule",
    "agent",
    "guest",
];

#[test]
fn explanation_has_the_judgement_of_each_request() {
    let (site, host, raw) = host_with(&["GET", "POST"], &["/notes"]);
    host.ctl(&["agent", "set", "a", "--add-tool", "run_command", "--yes"]).ok();
    let (guest, agent) = ("refused:call_principal", "refused:call_principal");
    let (runs, origin) = ("permitted", "asked:call_origin");
    let get = json!({ "url": site.url("/notes") }).to_string();
    let sent = json!({ "method": "POST", "url": site.url("/notes"), "headers": { "content-type": "text/plain" }, "body": "tulips" }).to_string();
    let other = json!({ "url": "https://other.example/" }).to_string();
    let new_host = "asked:egress_new_host";
    for (tool, arguments, expected) in [
        ("read_file", None, [runs, runs, runs, runs, runs, agent, guest]),
        ("write_file", None, [runs, runs, runs, runs, "refused:call_schedule", agent, guest]),
        ("run_command", None, [runs, runs, runs, runs, "refused:call_schedule", agent, guest]),
        ("http_fetch", None, [runs, runs, runs, runs, runs, agent, guest]),
        ("http_fetch", Some(&get), [runs, runs, runs, runs, runs, agent, guest]),
        ("http_fetch", Some(&sent), [runs, origin, runs, "asked:call_scope", "refused:call_schedule", agent, guest]),
        ("http_fetch", Some(&other), [new_host, new_host, new_host, new_host, "refused:call_schedule", agent, guest]),
        ("send_message", None, ["refused:call_tool_not_enabled"; 7]),
        ("fly", None, ["refused:call_tool_unknown"; 7]),
        ("read_file", Some(&r#"{"pathname":"a"}"#.to_owned()), ["refused:call_unclassified"; 7]),
        ("read_file", Some(&"[]".to_owned()), ["refused:call_malformed"; 7]),
    ] {
        let arguments: Vec<&str> = arguments.into_iter().map(String::as_str).collect();
        let explained = explain(&host, &[&["a", tool], &arguments[..]].concat());
        let expected = REQUESTS.map(str::to_owned).into_iter().zip(expected.map(str::to_owned)).collect();
        assert_eq!(judged(&explained), expected, "{tool} {arguments:?}: {explained}");
        assert_eq!(explained["example"], arguments.is_empty());
        assert_eq!(explained["known"], tool != "fly");
    }
    assert!(host.entries("call.recorded").is_empty() && site.lines().is_empty(), "no call is made");
    // The real request without a word asks the same person for the same reason.
    post(&raw, "tulips", &site.url("/notes"));
    let request = waiting(&raw);
    assert_eq!(request["reasons"][0]["reason"], "call_scope");
    let explained = explain(&host, &["a", "http_fetch", &sent]);
    assert_eq!(explained["situations"][3]["deciders"], json!(["owner"]), "{explained}");
    assert_eq!(approve(&raw, &request).0, 200);
    let shown = host.ctl(&["explain", "a", "http_fetch", &sent]).ok().stdout;
    assert!(shown.contains("policy (defaults): 1 of owner or admin"), "{shown}");
    for (words, code) in [
        (&["b", "read_file"][..], "agent_unknown"),
        (&["a", "read_file", "--as", "eve"], "person_unknown"),
        (&["a", "read_file", "--schedule", "sch_0"], "schedule_unknown"),
    ] {
        assert_eq!(host.ctl_error(&[&["explain"], words].concat())["code"], code, "{words:?}");
    }
    let member = Raw::add_person(&host, "Mara", &[]);
    assert_eq!(member.ask("POST", "/v1/tools/read_file/explain", r#"{"agent":"a"}"#).0, 403);
}

#[test]
fn command_of_an_explanation_changes_the_judgement() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    let sent = json!({ "method": "POST", "url": site.url("/notes"), "headers": { "content-type": "text/plain" }, "body": "tulips" }).to_string();
    let with = |explained: &Value, part: &str| {
        let all = commands(explained);
        all.iter().find(|command| command.contains(part)).unwrap_or_else(|| panic!("{part}: {all:?}")).clone()
    };
    // A tool that the agent lacks.
    let explained = explain(&host, &["a", "run_command"]);
    assert_eq!(explained["missing"], "call_tool_not_enabled");
    type_command(&host, &with(&explained, "--add-tool run_command"), &["--yes"]);
    assert_eq!(explain(&host, &["a", "run_command"])["missing"], Value::Null);
    // A schedule without and with a list.
    let made = host.ctl(&["--json", "schedule", "add", "a", "hello", "--every", "1d", "--yes"]).ok().json();
    let id = made["id"].as_str().or(made["schedule"].as_str()).map(str::to_owned);
    let id = id.unwrap_or_else(|| {
        let all = host.ctl(&["--json", "schedule", "list"]).ok().json();
        all[0]["id"].as_str().expect("an id").to_owned()
    });
    let explained = explain(&host, &["a", "http_fetch", &sent, "--schedule", &id]);
    let key = format!("schedule {id}");
    assert_eq!(judged(&explained)[&key], "refused:call_schedule");
    type_command(&host, &with(&explained, "schedule set"), &["--yes"]);
    assert_eq!(judged(&explain(&host, &["a", "http_fetch", &sent, "--schedule", &id]))[&key], "permitted");
    // A call that a person repeats.
    let explained = explain(&host, &["a", "http_fetch", &sent]);
    assert_eq!(judged(&explained)["person_does_not_ask"], "asked:call_scope");
    type_command(&host, &with(&explained, "allowance add"), &["--yes"]);
    let explained = explain(&host, &["a", "http_fetch", &sent]);
    assert_eq!(judged(&explained)["person_does_not_ask"], "permitted");
    assert_eq!(explained["situations"][3]["allowance"], explained["allowances"][0]["id"]);
    post(&raw, "tulips", &site.url("/notes"));
    wait_for("the call without a question", || site.sent("tulips") == 1);
    // It is an allowance of the owner, and of no other person.
    host.ctl(&["person", "add", "Bob", "--role", "admin"]).ok();
    let explained = explain(&host, &["a", "http_fetch", &sent, "--as", "Bob"]);
    assert_eq!(judged(&explained)["person_does_not_ask"], "asked:call_scope");
    assert_eq!(explained["situations"][3]["deciders"], json!(["Bob"]));
    // A trust group.
    host.agent("b");
    host.ctl(&["group", "add", "team", "a", "b", "--tools", "read_file", "--yes"]).ok();
    assert_eq!(judged(&explain(&host, &["a", "read_file"]))["agent team"], "permitted");
    assert_eq!(judged(&explain(&host, &["a", "write_file"]))["agent team"], "refused:call_principal");
    // The message of an agent is text of others, as at the real call.
    host.ctl(&["group", "add", "pair", "a", "b", "--tools", "http_fetch", "--yes"]).ok();
    assert_eq!(judged(&explain(&host, &["a", "http_fetch", &sent]))["agent pair"], "asked:call_origin");
    // A dangerous mode, and back.
    host.ctl(&["agent", "set", "a", "--mode", "dangerous_off", "--yes"]).ok();
    let explained = explain(&host, &["a", "http_fetch", &sent, "--as", "Bob"]);
    assert_eq!(judged(&explained)["person_does_not_ask"], "permitted");
    type_command(&host, &with(&explained, "--mode enforce"), &[]);
    let explained = explain(&host, &["a", "http_fetch", &sent, "--as", "Bob"]);
    assert_eq!(judged(&explained)["person_does_not_ask"], "asked:call_scope");
}

#[test]
fn explanation_promises_no_push_without_a_person() {
    let (_, host, _) = host_with(&["POST"], &["/notes"]);
    host.ctl(&["agent", "set", "a", "--add-tool", "run_command", "--yes"]).ok();
    let grant = ["egress", "grant", "a", "git.example", "--commands", "git", "--push", "--path", "/you/site", "--yes"];
    host.ctl(&grant).ok();
    let push = json!({ "url": "https://git.example/you/site", "branch": "main" }).to_string();
    let explained = explain(&host, &["a", "git_push", &push]);
    let judged = judged(&explained);
    assert!(judged["person_asks"].starts_with("asked:") && judged["schedule"].starts_with("refused:"), "{judged:?}");
    let offered = commands(&explained);
    let is_promise = |command: &String| command.contains("allowance") || command.contains("--may");
    assert!(!offered.iter().any(is_promise), "{offered:?}");
    let field = ["--field", "url=https://git.example/you/site", "--count", "3", "--until", "7d", "--yes"];
    let allowance = [&["allowance", "add", "a", "git_push"][..], &field].concat();
    assert_eq!(host.ctl_error(&allowance)["code"], "allowance_tool");
    let schedule = ["schedule", "add", "a", "push it", "--every", "1d", "--may", "git_push", "--yes"];
    assert_eq!(host.ctl_error(&schedule)["code"], "schedule_may");
    // A command with network needs both classes.
    let explained = explain(&host, &["a", "network_command"]);
    assert_eq!(explained["missing"], Value::Null, "{explained}");
    let offered = commands(&explained);
    assert!(offered.iter().any(|command| command.ends_with("--may exec --may send")), "{offered:?}");
}
