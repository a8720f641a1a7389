//! Tests of an agent with 300 tools of MCP servers: the listing in two levels, the search, and the calls of found tools.
//!
//! They use the real programs, a model server that acts as a weak model, and the scripted model. See `mcp` for few tools.

use super::mcp::{add, call};
use crate::support::host_fixture::{Build, TestHost};
use crate::support::mcp_server::HttpServer;
use crate::support::model_server::{Act, Seen, Server};
use serde_json::{Value, json};

/// Servers with 60 tools each.
const SERVERS: usize = 5;

/// Bytes of the system text and the tools of a request: the bound on tools of servers, and the rest of a usual prompt.
const HEAD_BYTES_MAX: usize = (40 << 10) + 8 * 1024;

fn tools(seen: &Seen) -> Vec<String> {
    let tools = seen.body["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned)).collect()
}

/// Searches with loose words, and then calls the tool that it got.
fn act_weak(seen: &Seen) -> Act {
    let one = |tool: &str, arguments: Value| Act::Call(String::new(), vec![(tool.to_owned(), arguments)]);
    let letter = tools(seen).into_iter().find(|name| name.ends_with("send_letter"));
    match (seen.results().last(), letter) {
        (Some(result), _) if !result.starts_with("{\"tools\"") => Act::Say(result.clone()),
        (_, Some(letter)) => one(&letter, json!({ "to": "mara", "text": "tulips" })),
        (None, None) => one("find_tools", json!({ "query": "customers, letters to be posting" })),
        (Some(result), None) => Act::Say(format!("not found: {result}")),
    }
}

/// Starts servers with 300 tools together. The last one has the tool for letters.
pub(crate) fn start() -> Vec<HttpServer> {
    let letter = |at| if at + 1 == SERVERS { &["--letter"][..] } else { &[] };
    (0..SERVERS).map(|at| HttpServer::start(&[&["--reports", "57"], letter(at)].concat())).collect()
}

/// Gives these agents the tools of all servers.
pub(crate) fn give(host: &TestHost, agents: &[&str], servers: &[HttpServer]) {
    for (at, server) in servers.iter().enumerate() {
        let name = format!("s{at}");
        let added = add(host, &name, &["--url", &server.url]);
        host.ctl(&["mcp", "confirm", &name, "--digest", added["digest"].as_str().expect("a digest"), "--yes"]).ok();
        for agent in agents {
            host.ctl(&["mcp", "grant", agent, &name, "--yes"]).ok();
        }
    }
}

#[test]
fn weak_model_finds_and_calls_a_tool_among_300() {
    let model = Server::start(act_weak);
    let servers = start();
    let host = TestHost::own(Build::Plain).started_with("a");
    host.add_model(&model.url());
    host.ctl(&["agent", "add", "weak", "--model", "m"]).ok();
    give(&host, &["a", "weak"], &servers);

    // The definitions that people confirmed are no text of others, so the call needs no person after the search.
    let ask = |words: &str| host.ctl(&["--json", "chat", "weak", words]).ok().json();
    let said = ask("/allow send -- write \"tulips\" to mara");
    let statuses: Vec<(&Value, &Value)> =
        said["calls"].as_array().expect("calls").iter().map(|call| (&call["tool"], &call["status"])).collect();
    assert_eq!(
        statuses,
        [(&json!("find_tools"), &json!("done")), (&json!("s4__send_letter"), &json!("done"))],
        "{said}"
    );
    let seen = model.seen();
    assert_eq!(seen.len(), 3);
    assert!(!tools(&seen[0]).iter().any(|name| name.contains("__")), "{:?}", tools(&seen[0]));
    assert!(seen[0].system().contains("You have 301 tools of MCP servers."), "{}", seen[0].system());
    assert!(tools(&seen[1]).contains(&"s4__send_letter".to_owned()), "{:?}", tools(&seen[1]));
    for request in &seen {
        let bytes = request.system().len() + request.body["tools"].to_string().len();
        assert!(bytes <= HEAD_BYTES_MAX, "{bytes}");
    }

    // Another turn, after a restart, has the found definitions.
    host.restart();
    // This call needs a person, because the conversation has the result of a server.
    host.ctl(&["--json", "chat", "weak", "/allow send -- write to mara once more"]);
    assert!(tools(&model.seen()[3]).contains(&"s4__send_letter".to_owned()));

    // The scripted model, which gets the same lists.
    let (found, answer) = call(&host, "t1", "find a tool for letters");
    assert_eq!((&found["status"], &found["class"]), (&json!("done"), &json!("read")), "{found}");
    assert!(answer.contains("s4__send_letter") && answer.contains("\"parameters\""), "{answer}");
    // A tool whose definition the model did not get is judged like any other.
    let (said, _) = call(&host, "t2", "use s2__report_5");
    assert_eq!((&said["status"], &said["code"]), (&json!("asked"), &json!("call_scope")), "{said}");
    let (said, answer) = call(&host, "t3", "/allow send -- use s2__report_5 {\"day\":\"monday\"}");
    assert_eq!((&said["status"], answer.contains("the text of report_5")), (&json!("done"), true), "{said} {answer}");
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn search_for_tools_needs_a_large_catalogue() {
    let host = super::mcp::host();
    let (said, _) = call(&host, "t", "find a tool for letters");
    assert_eq!((&said["status"], &said["code"]), (&json!("refused"), &json!("call_tool_not_enabled")), "{said}");
    let refused = host.ctl(&["--json", "agent", "set", "a", "--add-tool", "find_tools"]).refused("cannot be enabled");
    assert!(refused.stderr.contains("tool_unhandled"), "{}", refused.stderr);
}
