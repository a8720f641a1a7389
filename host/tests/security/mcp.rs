//! Attacks through MCP servers: misbehaviour during a call, hidden words, changed tools, borrowed approvals, and deaths of the host.
//!
//! They use the real programs, the servers of `support::mcp_server`, and the count of the acts that a server made. See `e2e::mcp` for
//! servers that behave.

mod approvals;
pub(crate) mod ends;
mod hidden;

use crate::e2e::calls::why_last_call;
use crate::e2e::mcp::{call, host, ready, show};
use crate::e2e::requests::{answered, approve, delivered, request, waiting};
use crate::support::client::{Raw, code};
use crate::support::host_fixture::{TestHost, alive, wait_for};
use crate::support::mcp_server::{ECHO_READS, HttpServer, program};
use serde_json::{Value, json};

/// A setting for turns whose calls get a few seconds.
const SHORT_TURNS: &str = "[turn]\nseconds_max = 9\n";

/// Six minutes, over the age of a listing that a call may rely on.
const OLD_MS: i64 = 360_000;

/// Asks for a call that needs a person, and returns its entry in the inbox once the agent answered.
fn pending(raw: &Raw, text: &str) -> Value {
    delivered(raw, &raw.send("a", text));
    waiting(raw)
}

/// Returns the answer and the code of a stage of the newest call.
fn stage(host: &TestHost, name: &str) -> (Value, Value) {
    let why = why_last_call(host);
    let stages = why["stages"].as_array().expect("stages");
    let found = stages.iter().find(|found| found["stage"] == name).unwrap_or_else(|| panic!("{name}: {why}"));
    (found["answer"].clone(), found["code"].clone())
}

/// Returns the error that `ironctl --json` printed.
fn error(stderr: &str) -> Value {
    let last = stderr.lines().last().unwrap_or_default();
    serde_json::from_str::<Value>(last).unwrap_or_else(|failed| panic!("{failed}: {stderr}"))["error"].clone()
}

#[test]
fn misbehaving_server_acts_once_and_the_outcome_is_honest() {
    let host = host();
    let cases: [(&str, &[&str], &str, &[&str]); 9] = [
        ("crash", &[], "unknown", &["unknown: MCP server", "unknown if the server acted"]),
        ("flood", &[], "unknown", &["unknown: MCP server", "unknown if the server acted"]),
        ("huge", &[], "unknown", &["unknown: MCP server", "unknown if the server acted"]),
        ("unasked", &[], "done", &["asked"]),
        ("elicit", &[], "done", &["elicitation/create", "Type your password.", "Nothing was answered"]),
        (
            "elicit-crash",
            &[],
            "unknown",
            &["unknown if the server acted", "Type your password.", "Nothing was answered"],
        ),
        (
            "input-required",
            &["--stateless"],
            "failed",
            &["elicitation/create", "Type your password.", "Nothing was answered"],
        ),
        (
            "open-url",
            &["--stateless"],
            "failed",
            &["elicitation/create", "https://login.example.com/confirm", "Nothing was answered"],
        ),
        ("unauthorized", &[], "unknown", &["unknown: MCP server", "401", "unknown if the server acted"]),
    ];
    for (behave, arguments, status, words) in cases {
        let server = HttpServer::start(&[&["--behave", behave], arguments].concat());
        ready(&host, behave, &["--url", &server.url], None);
        let (said, answer) = call(&host, behave, &format!("/allow send -- use {behave}__count"));
        assert_eq!((&said["status"], server.counted()), (&json!(status), 1), "{behave}: {said} {answer}");
        // The person sees the attempt also without the answer of the model.
        let shown = why_last_call(&host)["result"].as_str().expect("a text").to_owned();
        for words in words {
            assert!(answer.contains(words) && shown.contains(words), "{behave}: {answer} {shown}");
        }
        assert!(!answer.contains("not asked") && !shown.contains('\u{200b}'), "{behave}: {answer} {shown}");
        assert_eq!(host.entries("call.started").len(), host.entries("call.ran").len(), "{behave}");
    }
    // The host continues to work, also after a server that hangs.
    host.configure(SHORT_TURNS);
    host.restart();
    let (hanging, well) = (HttpServer::start(&["--behave", "hang"]), HttpServer::start(&[]));
    ready(&host, "hang", &["--url", &hanging.url], None);
    ready(&host, "well", &["--url", &well.url], Some(ECHO_READS));
    call(&host, "hang", "hello");
    let (_, answer) = call(&host, "hang", "/allow send -- use hang__count");
    assert!(answer.contains("unknown if the server acted"), "{answer}");
    assert_eq!(hanging.counted(), 1);
    let (said, answer) = call(&host, "well", "use well__echo {\"text\":\"tulips\"}");
    assert_eq!((&said["status"], answer.contains("tulips")), (&json!("done"), true), "{said} {answer}");
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn server_with_500_tools_is_refused_with_its_bound() {
    let server = HttpServer::start(&["--behave", "many"]);
    let host = host();
    let refused = host.ctl(&["--json", "mcp", "add", "many", "--url", &server.url, "--yes"]).refused("300 tools");
    let error = error(&refused.stderr);
    assert_eq!(error["code"], "mcp_unreachable", "{error}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("mcp test many")), "{error}");
    assert_eq!((show(&host, "many")["state"].clone(), show(&host, "many")["tools"].clone()), (json!("new"), json!([])));
}

#[test]
fn tool_that_changes_between_two_calls_is_refused_by_name() {
    let server = HttpServer::start(&["--behave", "changed"]);
    let mut host = TestHost::with_clock().started_with("a");
    ready(&host, "tests", &["--url", &server.url], None);
    let raw = Raw::of(&host);
    let asked = pending(&raw, "use tests__echo {\"text\":\"lilies\"}");
    let (said, answer) = call(&host, "t1", "/allow send -- use tests__echo {\"text\":\"tulips\"}");
    assert_eq!((&said["status"], answer.contains("tulips")), (&json!("done"), true), "{said} {answer}");
    assert!(host.entries("mcp.changed").is_empty());
    // The second listing, which precedes a call after five minutes, differs.
    host.shift_clock(OLD_MS);
    let (said, _) = call(&host, "t2", "/allow send -- use tests__echo {\"text\":\"roses\"}");
    assert_eq!((&said["status"], &said["code"]), (&json!("refused"), &json!("call_server_changed")), "{said}");
    assert_eq!(stage(&host, "granted"), (json!("deny"), json!("call_server_changed")));
    let changed = host.entries("mcp.changed");
    assert_eq!((changed.len(), &changed[0]["data"]["server"]), (1, &json!("tests")), "{changed:?}");
    let tools = show(&host, "tests")["tools"].clone();
    let listed = |name: &str| tools.as_array().and_then(|all| all.iter().find(|tool| tool["name"] == name).cloned());
    assert_eq!(listed("echo").expect("echo")["listed"], "changed", "{tools}");
    // A request of the time before is withdrawn, and another tool of the server continues.
    assert_eq!(code(&approve(&raw, &asked)).1, "call_withdrawn");
    assert_eq!(request(&raw, &asked["id"])["status"], "withdrawn");
    assert_eq!(host.entries("request.used").len(), 0);
    let (said, _) = call(&host, "t3", "/allow send -- use tests__count");
    assert_eq!((&said["status"], server.counted()), (&json!("done"), 1), "{said}");
    let started = host.entries("call.started");
    let tools: Vec<&Value> = started.iter().map(|entry| &entry["data"]["tool"]).collect();
    assert_eq!(tools, ["tests__echo", "tests__count"]);
}

#[test]
fn each_changed_part_that_a_model_reads_is_refused() {
    let mut host = TestHost::with_clock().started_with("a");
    let parts = ["changed-schema", "changed-annotation", "changed-instructions"];
    let servers = parts.map(|part| HttpServer::start(&["--behave", part]));
    for (part, server) in parts.iter().zip(&servers) {
        ready(&host, part, &["--url", &server.url], None);
        let (said, _) = call(&host, part, &format!("/allow send -- use {part}__count"));
        assert_eq!(said["status"], "done", "{part}: {said}");
    }
    // A listing over the same connection has the old instructions, so the last server is asked over a new one.
    host.ctl(&["mcp", "test", "changed-instructions"]);
    host.shift_clock(OLD_MS);
    for (part, server) in parts.iter().zip(&servers) {
        let (said, _) = call(&host, &format!("{part}-2"), &format!("/allow send -- use {part}__count"));
        // No model gets the instructions of a server, so no person has to read them before the next call.
        let (status, code, state, counted) = match *part {
            "changed-instructions" => ("done", Value::Null, "confirmed", 2),
            _ => ("refused", json!("call_server_changed"), "changed", 1),
        };
        assert_eq!((&said["status"], &said["code"]), (&json!(status), &code), "{part}: {said}");
        let shown = show(&host, part);
        assert_eq!((&shown["state"], server.counted()), (&json!(state), counted), "{part}: {shown}");
    }
    let changed = host.entries("mcp.changed");
    assert_eq!(
        changed.iter().map(|entry| entry["data"]["server"].clone()).collect::<std::collections::HashSet<_>>().len(),
        3
    );
}

#[test]
fn program_that_says_it_changed_is_listed_before_the_next_call() {
    let directory = program();
    let path = directory.path().to_str().expect("UTF-8");
    let host = host();
    host.configure(&format!("[mounts]\nallow = [{path:?}]\n"));
    host.ctl(&["config", "reload"]).ok();
    let script = format!("/{}/server.pl", path.rsplit('/').next().expect("a name"));
    ready(&host, "local", &["--mount", path, "--", "perl", &script], None);
    let (said, answer) = call(&host, "t1", "/allow send -- use local__change");
    assert_eq!((&said["status"], answer.contains("it changed")), (&json!("done"), true), "{said} {answer}");
    let (said, _) = call(&host, "t2", "/allow send -- use local__look {\"at\":\"/state\"} for /state");
    assert_eq!((&said["status"], &said["code"]), (&json!("refused"), &json!("call_server_changed")), "{said}");
    assert_eq!(host.entries("mcp.changed").len(), 1);
}

#[test]
fn revoked_unknown_and_ungranted_tools_are_refused_by_code() {
    let server = HttpServer::start(&[]);
    let host = host();
    ready(&host, "tests", &["--url", &server.url], None);
    host.ctl(&["mcp", "grant", "a", "tests", "--tools", "echo", "--yes"]).ok();
    let (said, _) = call(&host, "t", "/allow send -- use tests__echo {\"text\":\"tulips\"}");
    assert_eq!(said["status"], "done", "{said}");
    for (thread, tool) in [("u", "tests__none"), ("g", "tests__count"), ("s", "other__count")] {
        let (said, _) = call(&host, thread, &format!("/allow send -- use {tool}"));
        assert_eq!((&said["status"], &said["code"]), (&json!("refused"), &json!("call_tool_unknown")), "{tool} {said}");
        assert_eq!(stage(&host, "known"), (json!("deny"), json!("call_tool_unknown")), "{tool}");
    }
    // An argument that the schema does not have has no rule.
    let (said, _) = call(&host, "x", "/allow send -- use tests__echo {\"text\":\"tulips\",\"to\":\"x\"}");
    assert_eq!((&said["status"], &said["code"]), (&json!("refused"), &json!("call_unclassified")), "{said}");
    let raw = Raw::of(&host);
    let asked = pending(&raw, "use tests__echo {\"text\":\"lilies\"}");
    host.ctl(&["mcp", "revoke", "a", "tests", "--yes"]).ok();
    let (said, _) = call(&host, "r", "/allow send -- use tests__echo {\"text\":\"tulips\"}");
    assert_eq!((&said["status"], &said["code"]), (&json!("refused"), &json!("call_tool_unknown")), "{said}");
    assert_eq!(code(&approve(&raw, &asked)).1, "call_withdrawn");
    assert_eq!((host.entries("call.started").len(), server.counted()), (1, 0));
}

#[test]
fn host_death_around_a_call_leaves_one_act() {
    let server = HttpServer::start(&[]);
    let mut host = TestHost::with_clock().started_with("a");
    ready(&host, "tests", &["--url", &server.url], None);
    let mut acts = 0;
    for (point, is_approved) in
        [("call_started", false), ("call_started", true), ("call_sent", false), ("call_sent", true)]
    {
        host.down();
        host.up_failing_at(point);
        let (raw, pid) = (Raw::of(&host), host.pid().expect("the host runs"));
        let thread = format!("{point}-{is_approved}");
        let allow = if is_approved { json!([]) } else { json!(["send"]) };
        let body = json!({ "text": "use tests__count", "thread": thread, "allow": allow });
        let message = raw.send_body("a", &body);
        if is_approved {
            delivered(&raw, &message);
            let entry = waiting(&raw);
            let path = format!("/v1/waiting/{}/decision", entry["id"].as_str().expect("an id"));
            drop(raw.try_ask("POST", &path, &json!({ "approve": entry["shown_digest"] }).to_string()));
        }
        wait_for(&format!("the host to die at {point}"), || !alive(pid));
        host.up();
        answered(&host, &message);
        acts += u64::from(point == "call_sent");
        assert_eq!(server.counted(), acts, "{thread}");
        assert_eq!(why_of(&host, &message), "unknown", "{thread}");
    }
    assert_eq!(host.entries("call.started").len(), 4);
    host.ctl(&["audit", "verify"]).ok();
}

/// Returns the status of the first call of a message.
fn why_of(host: &TestHost, message: &str) -> Value {
    why_call_of(host, message)["status"].clone()
}

/// Returns the explanation of the first call of a message.
fn why_call_of(host: &TestHost, message: &str) -> Value {
    let recorded = host.entries("call.recorded");
    let turns = host.ctl(&["--json", "why", message]).ok().stdout;
    let of_message = recorded.iter().find(|entry| turns.contains(entry["data"]["call"].as_str().expect("an id")));
    let made = of_message.unwrap_or_else(|| panic!("no call: {turns}"))["data"]["call"].clone();
    host.ctl(&["--json", "why", made.as_str().expect("an id")]).ok().json()
}
