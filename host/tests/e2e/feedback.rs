//! Tests of messages for people: a missing answer, the cause of a failure, and the next command.
//!
//! They use the real programs with a model server on loopback. See `ops::model_cli` and `chaos::failures`.

use crate::support::client::{Raw, check_refused};
use crate::support::host_fixture::{Answer, Build, TestHost, kill, wait_for};
use crate::support::model_server::{Act, Seen, Server};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Starts a host whose agent `a` uses a model server with this closure.
fn with_model(respond: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> (Server, TestHost) {
    let server = Server::start(respond);
    let host = TestHost::new().started();
    add(&host, &server, "m", &["--no-test"]).ok();
    host.ctl(&["agent", "add", "a", "--model", "m"]).ok();
    (server, host)
}

fn add(host: &TestHost, server: &Server, name: &str, more: &[&str]) -> Answer {
    let base = format!("{}/v1", server.url());
    let words = ["model", "add", name, "--kind", "openai", "--base-url", &base, "--model", "small"];
    host.ctl(&[&words[..], more].concat())
}

#[test]
fn call_without_a_row_fails_and_the_turn_continues() {
    let (_server, host) = with_model(|seen| {
        let arguments = match seen.asked().as_str() {
            "schedule" => json!({ "kind": "schedule_task", "prompt": "p", "recurrence": "daily" }),
            "ask" => json!({ "kind": "ask_user_question", "question": "q" }),
            _ => json!({ "kind": "skill_install", "payload": { "skill": "s", "version": "1" }, "reason": "r" }),
        };
        match seen.results().as_slice() {
            [] => Act::Call(String::new(), vec![("request_capability_change".to_owned(), arguments)]),
            [result, ..] => Act::Say(format!("The host said: {result}")),
        }
    });
    for asked in ["install", "ask", "schedule"] {
        let chat = host.chat("a", asked);
        assert_eq!(chat["notice"], Value::Bool(false), "{chat}");
        assert!(chat["reply"].as_str().is_some_and(|reply| reply.starts_with("The host said: ")), "{chat}");
    }
    assert_eq!(host.entries("call.refused").len(), 3);
}

#[test]
fn unanswered_message_fails_with_a_reason_on_stderr() {
    let (_server, host) = with_model(|seen| match seen.asked().as_str() {
        "hello" => Act::Say("Hi.".to_owned()),
        _ => Act::Status(401, Vec::new(), "{}".to_owned()),
    });
    let said = host.ctl(&["chat", "a", "hello"]).ok();
    assert_eq!(said.stdout, "Hi.\n");
    for words in [["chat", "a", "fail"], ["message", "retry", "last"]] {
        let failed = host.ctl(&words);
        assert_eq!((failed.code, failed.stdout.as_str()), (1, ""), "{}", failed.stderr);
        assert!(failed.stderr.contains("`ironctl message retry msg_"), "{}", failed.stderr);
    }
    let scripted = host.ctl(&["--json", "message", "retry", "last"]).ok().json();
    assert_eq!(scripted["notice"], Value::Bool(true), "{scripted}");
    let why = host.ctl(&["--json", "why"]).ok().json();
    assert_eq!(why["failure"]["code"], "key_wanted", "{why}");
    let (summary, message) = (why["summary"].as_str(), why["failure"]["message"].as_str().expect("a sentence"));
    assert!(summary.is_some_and(|summary| summary.contains(message) && summary.contains("key_wanted")), "{why}");
}

#[test]
fn wait_that_ends_early_names_what_the_message_waits_for() {
    let (server, host) = with_model(|_| Act::Hang);
    let given_up = |text: &str| {
        let error = host.ctl_error(&["chat", "a", text, "--wait", "200ms"]);
        assert_eq!(error["code"], "no_answer_yet", "{error}");
        error["message"].as_str().expect("words").to_owned()
    };
    let first = given_up("first").split(' ').next().expect("an id").to_owned();
    wait_for("the model is asked", || !server.seen().is_empty());
    wait_for("the request is recorded", || !host.entries("model.asked").is_empty());
    let second = given_up("second");
    assert!(second.contains(&format!("your message {first} first")) && second.contains("--wait"), "{second}");
    let why = host.ctl(&["--json", "why", &first]).ok().json();
    assert!(why["summary"].as_str().is_some_and(|summary| summary.contains("its model, the endpoint m")), "{why}");
}

#[test]
fn every_output_is_bounded_and_test_outputs_are_small() {
    let server = Server::start(|_| Act::Say("ready".to_owned()));
    let host = TestHost::new().configured("[model]\noutput_tokens_max = 777\n").started();
    add(&host, &server, "m", &[]).ok();
    host.ctl(&["agent", "add", "a", "--model", "m"]).ok();
    assert_eq!(host.say("a", "hello"), "ready");
    let bounds: Vec<Value> = server.seen().iter().map(|seen| seen.body["max_tokens"].clone()).collect();
    assert_eq!(bounds, [json!(32), json!(777)]);
}

#[test]
fn failed_endpoint_test_has_a_matching_hint() {
    let wants_key = Server::start(|_| Act::Status(401, Vec::new(), "{}".to_owned()));
    let closes = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed = format!("http://{}/v1", closes.local_addr().expect("an address"));
    drop(closes);
    let host = TestHost::new().started();
    let hint = |base: &str| {
        let error = host.ctl_error(&["model", "add", "m", "--kind", "openai", "--base-url", base, "--model", "small"]);
        assert_eq!(error["code"], "model_test_failed", "{error}");
        error["hint"].as_str().expect("a hint").to_owned()
    };
    let keyless = hint(&format!("{}/v1", wants_key.url()));
    assert!(keyless.contains("--key-env"), "{keyless}");
    let away = hint(&closed);
    assert!(away.contains(&closed) && !away.contains("key"), "{away}");
}

#[test]
fn secret_in_the_header_of_an_mcp_server_is_in_use() {
    let host = TestHost::new().started();
    host.ctl_given("s3cret-of-the-calendar", &["secret", "set", "calendar"]).ok();
    let server = json!({
        "name": "calendar", "url": "https://calendar.example", "tools": [{ "name": "list_events" }],
        "headers": [{ "name": "Authorization", "secret": "calendar", "scheme": "Bearer" }],
    });
    let asked = ["change", "submit", "--kind", "mcp_register", "--payload", &server.to_string(), "--reason", "r"];
    let asked = host.ctl(&[&["--json"][..], &asked].concat()).ok().json();
    host.ctl(&["approve", asked["id"].as_str().expect("an id")]).ok();
    let secrets = host.ctl(&["--json", "secret", "list"]).ok().json();
    assert_eq!(secrets[0]["used_by"], json!(["MCP server calendar"]), "{secrets}");
    host.ctl(&["secret", "remove", "calendar", "--yes"]).refused("MCP server calendar");
}

#[test]
fn message_that_failed_after_kills_names_the_host_and_retry() {
    let (_server, host) = with_model(|seen| match seen.asked().as_str() {
        "hang" => Act::Hang,
        _ => Act::Say("Hi.".to_owned()),
    });
    assert_eq!(host.say("a", "hello"), "Hi.");
    let sent = host.ctl(&["--json", "chat", "a", "hang", "--wait", "10ms"]);
    assert_eq!(sent.code, 1, "{}", sent.stderr);
    let id = host.ctl(&["--json", "why"]).ok().json()["message"]["message_id"].as_str().expect("an id").to_owned();
    for attempt in 1..=3 {
        wait_for("a request to the model", || host.entries("turn.opened").len() > attempt);
        host.kill_host();
        host.up();
    }
    let view = || host.ctl(&["--json", "why", &id]).ok().json();
    wait_for("the notice about the failed message", || view()["message"]["status"] == "delivered");
    let why = view();
    let reply = why["message"]["reply"].as_str().expect("a notice");
    assert!(reply.contains("the host itself ended") && reply.contains("may be done"), "{reply}");
    assert!(reply.contains(&format!("`ironctl message retry {id}`")), "{reply}");
    let closed: Vec<Value> = host.entries("turn.closed").iter().map(|entry| entry["data"]["reason"].clone()).collect();
    assert_eq!(closed, ["replied", "the host ended", "the host ended", "given up: the host ended"]);
}

#[test]
fn sandbox_death_after_an_erased_turn_is_named() {
    let was_asked = AtomicBool::new(false);
    let (_server, host) = with_model(move |seen| match seen.asked().as_str() {
        "hang" if !was_asked.swap(true, Ordering::SeqCst) => Act::Hang,
        _ => Act::Say("Hi.".to_owned()),
    });
    assert_eq!(host.say("a", "hello"), "Hi.");
    let first = host.session()["id"].clone();
    host.ctl(&["agent", "add", "b", "--model", "m"]).ok();
    assert_eq!(host.say("b", "hello"), "Hi.");
    host.restart();
    // The newest turn is erased with its conversation, so the next turn gets the same number.
    let sessions = host.ctl(&["--json", "session", "list"]).ok().json();
    let sessions = sessions.as_array().expect("a list").iter().map(|session| session["id"].as_str().expect("an id"));
    let newest = sessions.into_iter().find(|id| first != *id).expect("the session of b");
    host.ctl(&["session", "remove", newest, "--yes"]).ok();
    host.ctl(&["chat", "a", "hang", "--wait", "10ms"]);
    wait_for("the turn to open", || host.entries("turn.opened").len() == 3);
    wait_for("a process", || host.session()["pid"].is_i64());
    kill(host.session()["pid"].as_i64().expect("awake") as i32);
    wait_for("the turn to close", || host.entries("turn.closed").len() >= 3);
    assert_eq!(host.entries("turn.closed")[2]["data"]["reason"], "its sandbox went away");
}

#[test]
fn chat_that_loses_its_host_names_the_recorded_message() {
    let (server, host) = with_model(|_| Act::Hang);
    let mut command = host.command("ironctl");
    command.arg("--home").arg(&host.home).args(["--json", "chat", "a", "hello", "--wait", "60s"]);
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let running = command.spawn().expect("ironctl runs");
    wait_for("a request to the model", || !server.seen().is_empty());
    host.kill_host();
    let ended = running.wait_with_output().expect("the command ends");
    assert_eq!(ended.status.code(), Some(3));
    let report: Value = serde_json::from_slice(&ended.stderr).expect("one JSON document");
    assert_eq!(report["error"]["code"], "host_lost");
    assert!(report["error"]["message"].as_str().is_some_and(|words| words.contains("msg_") && words.contains("kept")));
}

#[test]
fn list_of_notes_mentions_the_omitted_notes() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let raw = Raw::of(&host);
    let listed = || host.ctl(&["--json", "memory", "list", "a"]).ok().json().as_array().map(Vec::len);
    let more = || raw.get("/v1/agents/a/memory").1["more"].as_bool();
    for n in 0..200 {
        let (status, kept) =
            raw.ask("POST", "/v1/agents/a/memory", &json!({ "text": format!("note {n}") }).to_string());
        assert_eq!(status, 200, "{kept}");
    }
    assert_eq!((listed(), more()), (Some(200), Some(false)));
    host.ctl(&["memory", "add", "a", "one more"]).ok();
    assert_eq!((listed(), more()), (Some(200), Some(true)));
    let shown = host.ctl(&["memory", "list", "a"]).ok();
    assert!(shown.stderr.contains("memory search"), "{}", shown.stderr);
}

#[test]
fn mistyped_agent_gets_the_nearest_name_as_a_hint() {
    let host = TestHost::new().started_with("assistant");
    host.ctl(&["chat", "asistant", "hello"]).refused("did you mean assistant?");
}

#[test]
fn mistyped_name_reveals_no_foreign_agent_to_members() {
    let host = TestHost::own(Build::Plain).started_with("assistant");
    host.change("assistant", "permissions", &json!({ "access": "members" }));
    let mara = Raw::add_person(&host, "mara", &[]);
    let refused = mara.get("/v1/agents/asistant");
    check_refused(&refused, 404, "agent_unknown");
    assert!(!refused.1.to_string().contains("assistant"), "{refused:?}");
    let token = host.home.join("mara.token");
    std::fs::write(&token, &mara.token).expect("written");
    std::fs::set_permissions(&token, Permissions::from_mode(0o600)).expect("own file");
    let token = token.to_str().expect("a path");
    let refused = host.ctl(&["--token-file", token, "agent", "show", "asistant"]).refused("there is no agent");
    assert!(!refused.stderr.contains("assistant"), "{}", refused.stderr);
}

#[test]
fn connecting_a_channel_names_its_former_agent() {
    let host = TestHost::new().started_with("clerk");
    host.agent("nova");
    let made = ["channel", "add", "webhook", "desk", "--url", "http://127.0.0.1:9/", "--agent", "clerk", "--yes"];
    host.ctl(&made).ok();
    let connected = host.ctl(&["agent", "connect", "nova", "desk", "--yes"]).ok().stdout;
    assert!(connected.contains("\"clerk\"") && connected.contains("LOSES"), "the page names it: {connected}");
    assert!(connected.ends_with("connected nova to desk; clerk is disconnected\n"), "{connected}");
    let again = host.ctl(&["--json", "agent", "connect", "nova", "desk"]).ok().json();
    assert_eq!(again["agent"], "nova", "nothing widens, so no page is needed");
}

#[test]
fn usage_of_a_script_is_marked() {
    let (_server, host) = with_model(|_| Act::Say("Hi.".to_owned()));
    host.agent("b");
    host.say("a", "hello");
    host.say("b", "hello");
    let usage = host.ctl(&["--json", "usage"]).ok().json();
    for row in usage["rows"].as_array().expect("rows") {
        assert_eq!(row["scripted"] == true, row["model"] == "scripted", "{row}");
    }
    assert!(host.ctl(&["usage"]).ok().stdout.contains("(no model)"));
}
