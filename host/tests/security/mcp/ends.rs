//! The ends of calls of MCP servers: cancelled, stopped, over the time of a turn, and with a process that is killed during the call.
//!
//! The server acts at most once, and the outcome is a result or an honest unknown. See `security::mcp` for deaths of the host.

use super::{SHORT_TURNS, why_call_of, why_of};
use crate::e2e::mcp::{call, host, ready};
use crate::e2e::requests::{answered, approve, request, waiting};
use crate::support::client::Raw;
use crate::support::host_fixture::{TestHost, kill, wait_for};
use crate::support::mcp_server::{HttpServer, program};
use crate::support::processes::descendants;
use serde_json::{Value, json};
use std::path::Path;

/// Adds the program of `support::mcp_server` as the server `local`.
pub(crate) fn add_program(host: &TestHost, directory: &Path) {
    let path = directory.to_str().expect("UTF-8");
    host.configure(&format!("[mounts]\nallow = [{path:?}]\n"));
    host.ctl(&["config", "reload"]).ok();
    let script = format!("/{}/server.pl", path.rsplit('/').next().expect("a name"));
    ready(host, "local", &["--mount", &format!("{path}:rw"), "--", "perl", &script], None);
}

/// Kills every process of this name below the host, and returns their number.
pub(crate) fn kill_all(host: &TestHost, name: &str) -> usize {
    let found = descendants(host.pid().expect("the host runs"));
    let named: Vec<i32> = found.iter().filter(|(_, comm)| *comm == name).map(|(process, _)| process.pid).collect();
    named.iter().for_each(|pid| kill(*pid));
    named.len()
}

fn session_of(host: &TestHost, message: &str) -> String {
    let why = host.ctl(&["--json", "why", message]).ok().json();
    why["message"]["session_id"].as_str().expect("an id").to_owned()
}

#[test]
fn cancelled_and_stopped_calls_are_cancelled_at_the_server() {
    let server = HttpServer::start(&["--behave", "hang"]);
    let host = host();
    ready(&host, "hang", &["--url", &server.url], None);
    let raw = Raw::of(&host);
    let message = raw.send("a", "/allow send -- use hang__count");
    wait_for("the act", || server.counted() == 1);
    host.ctl(&["session", "cancel", &session_of(&host, &message)]).ok();
    wait_for("the cancellation", || server.cancelled() == 1);
    assert_eq!(why_of(&host, &message), "unknown");

    let message = raw.send("a", "/allow send -- use hang__count {\"text\":\"twice\"}");
    answered(&host, &message);
    assert_eq!(server.counted(), 1, "an unknown argument is refused");
    let message = raw.send("a", "/allow send -- use hang__count");
    wait_for("the second act", || server.counted() == 2);
    host.ctl(&["panic"]).ok();
    wait_for("the second cancellation", || server.cancelled() == 2);
    assert_eq!(why_of(&host, &message), "unknown");
    host.ctl(&["resume"]).ok();
    // The message waits again, and the model gets the unknown outcome. The call is not made again.
    answered(&host, &message);
    assert_eq!((server.counted(), host.entries("call.started").len()), (2, 2));
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn request_of_a_server_in_a_call_given_up_is_shown() {
    let server = HttpServer::start(&["--behave", "elicit-hang"]);
    let host = host();
    ready(&host, "asks", &["--url", &server.url], None);
    let raw = Raw::of(&host);
    let check = |message: &str| {
        let mut why = Value::Null;
        let has_result = |why: &Value| why["result"].as_str().is_some_and(|text| text.contains("Type your password."));
        wait_for("the outcome", || {
            why = why_call_of(&host, message);
            why["status"] == "unknown" && has_result(&why)
        });
        let result = why["result"].as_str().expect("a text");
        assert!(result.contains("elicitation/create") && result.contains("unknown if the server acted"), "{why}");
    };
    let cancelled = raw.send("a", "/allow send -- use asks__echo {\"text\":\"roses\"}");
    wait_for("the refusal", || server.counted() == 1);
    host.ctl(&["session", "cancel", &session_of(&host, &cancelled)]).ok();
    check(&cancelled);

    // In other conversations, because this one has text of a server.
    let ask = |thread: &str, allow: &Value| {
        let body = json!({ "text": "use asks__echo {\"text\":\"lilies\"}", "thread": thread, "allow": allow });
        raw.send_body("a", &body)
    };
    let late = ask("late", &json!([]));
    answered(&host, &late);
    assert_eq!(approve(&raw, &waiting(&raw)).0, 200);
    wait_for("the refusal in the late call", || server.counted() == 2);
    let stopped = ask("stopped", &json!(["send"]));
    wait_for("the refusal in the third call", || server.counted() == 3);
    host.ctl(&["panic"]).ok();
    host.ctl(&["resume"]).ok();
    check(&late);
    check(&stopped);
    answered(&host, &stopped);
    assert_eq!((server.counted(), host.entries("call.started").len()), (3, 3));
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn late_call_at_an_emergency_stop_is_unknown() {
    let server = HttpServer::start(&["--behave", "hang"]);
    let host = host();
    ready(&host, "hang", &["--url", &server.url], None);
    let raw = Raw::of(&host);
    let message = raw.send("a", "use hang__count");
    answered(&host, &message);
    let entry = waiting(&raw);
    assert_eq!(approve(&raw, &entry).0, 200);
    wait_for("the act", || server.counted() == 1);
    host.ctl(&["panic"]).ok();
    wait_for("the cancellation", || server.cancelled() == 1);
    wait_for("the outcome", || why_of(&host, &message) == "unknown");
    assert_eq!(request(&raw, &entry["id"])["status"], "unknown");
    host.ctl(&["resume"]).ok();
    assert_eq!((server.counted(), host.entries("call.ran").len()), (1, 0));
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn progress_of_a_server_does_not_extend_a_call() {
    let server = HttpServer::start(&["--behave", "progress"]);
    let host = host();
    host.configure(SHORT_TURNS);
    host.restart();
    ready(&host, "slow", &["--url", &server.url], None);
    let (said, answer) = call(&host, "t", "/allow send -- use slow__count");
    assert!(answer.contains("unknown if the server acted") && !answer.contains("Progress of the server"), "{answer}");
    assert_eq!((&said["tool"], server.counted()), (&json!("slow__count"), 1), "{said}");
    wait_for("the cancellation", || server.cancelled() == 1);
}

#[test]
fn killed_server_or_sandbox_leaves_one_act_and_an_unknown() {
    let directory = program();
    let host = host();
    add_program(&host, directory.path());
    let raw = Raw::of(&host);
    let started = |count: usize| wait_for("the call", || host.entries("call.started").len() == count);
    let hung = |thread: &str| call(&host, thread, "/allow send -- use local__hung").1;
    // The process of the server, during a call.
    let message = raw.send("a", "/allow send -- use local__hang");
    let states = host.home.join("mcp/local");
    // A server that is killed between the opening of the file and its writing did not act.
    let is_written = |state: &std::path::Path| std::fs::read(state.join("hung")).is_ok_and(|acts| !acts.is_empty());
    let has_acted = || std::fs::read_dir(&states).is_ok_and(|all| all.flatten().any(|state| is_written(&state.path())));
    wait_for("the act", has_acted);
    assert!(kill_all(&host, "perl") > 0);
    answered(&host, &message);
    let shown = host.ctl(&["--json", "why", &call_of(&host)]).ok().json();
    assert!(shown["result"].as_str().is_some_and(|text| text.contains("unknown if the server acted")), "{shown}");
    // A new process has the same state, also after the death of an idle one.
    let acts = hung("t1");
    assert!(acts.contains("hung 1"), "{acts}");
    assert!(kill_all(&host, "perl") > 0);
    // A call before the host notices the death may have no answer.
    let mut number = 2..;
    wait_for("a new process", || hung(&format!("t{}", number.next().expect("a number"))) == acts);

    // The sandbox, during a call.
    let before = host.entries("call.started").len();
    let server = HttpServer::start(&["--behave", "hang"]);
    ready(&host, "hang", &["--url", &server.url], None);
    // Another conversation, because the first one has the result of a server.
    let body = json!({ "text": "use hang__count", "thread": "other", "allow": ["send"] });
    let message = raw.send_body("a", &body);
    started(before + 1);
    wait_for("the act", || server.counted() == 1);
    assert!(kill_all(&host, "ironclaw-sandbo") > 0, "{:?}", descendants(host.pid().expect("the host runs")));
    answered(&host, &message);
    assert_eq!((server.counted(), host.entries("call.started").len()), (1, before + 1));
    wait_for("the cancellation", || server.cancelled() == 1);
    host.ctl(&["audit", "verify"]).ok();
}
fn call_of(host: &TestHost) -> String {
    host.entries("call.started")[0]["data"]["call"].as_str().expect("an id").to_owned()
}

#[test]
fn server_that_always_fails_is_not_started_for_each_call() {
    const CALLS: usize = 8;
    let directory = program();
    let host = host();
    add_program(&host, directory.path());
    // Both users write to it: that of the test, and the one in the jail.
    std::fs::write(directory.path().join("broken"), "").expect("written");
    let answers: Vec<String> =
        (0..CALLS).map(|at| call(&host, &format!("t{at}"), "/allow send -- use local__count").1).collect();
    assert!(answers.iter().all(|answer| answer.contains("nothing was sent")), "{answers:?}");
    assert!(answers.iter().any(|answer| answer.contains("the host tries again in")), "{answers:?}");
    let failure = |server: &Value| server["failure"].as_str().is_some_and(|words| !words.is_empty());
    let listed = host.ctl(&["--json", "mcp", "list"]).ok().json();
    assert!(failure(&listed[0]), "{listed}");
    assert!(host.ctl(&["status"]).stdout.contains("MCP server local"), "{}", host.ctl(&["status"]).stdout);
    let checked = host.ctl(&["--json", "doctor"]).json();
    let checks = checked["checks"].as_array().expect("checks").iter();
    let of_server: Vec<&Value> = checks.filter(|check| check.to_string().contains("local")).collect();
    assert!(of_server.iter().any(|check| check["ok"] == false), "{checked}");
    // Once it works again, the next attempt clears the failure.
    std::fs::remove_file(directory.path().join("broken")).expect("removed");
    host.ctl(&["mcp", "test", "local"]).ok();
    host.ctl(&["audit", "verify"]).ok();
}
