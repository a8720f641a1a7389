//! Tests of the rules that the host proposes for the tools of a server, and of the page that a person accepts them by.
//!
//! They use the real programs, packages of a test for the name of a known server, and the servers of `support::listed_mcp`.

use super::mcp::{add, call, host, show};
use super::packages::Registry;
use super::requests::{approve, inbox, waiting};
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::listed_mcp::{Listed, ListedServers};
use crate::support::mcp_server::PYTHON;
use crate::support::model_server::{Act, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The listings of the package `mcp-server-git`, of several versions.
const GIT: &str = include_str!("../../judge/templates/listings/git.json");

/// Returns the tools of a version of that package.
pub(crate) fn git_tools() -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(GIT).expect("a listing");
    let mut tools: BTreeMap<String, Value> = BTreeMap::new();
    for tool in all {
        tools.entry(tool["name"].as_str().expect("a name").to_owned()).or_insert(tool);
    }
    tools.into_values().collect()
}

fn listed(tools: &[Value]) -> Listed {
    Listed::page(&tools.iter().map(Value::to_string).collect::<Vec<_>>())
}

/// Proposes the confirmation of what a server lists now, and returns the entry that waits, with its page.
pub(crate) fn proposed(host: &TestHost, raw: &Raw, server: &str) -> Value {
    let digest = show(host, server)["digest"].as_str().expect("a digest").to_owned();
    host.ctl(&["--json", "mcp", "confirm", server, "--digest", &digest, "--proposed"]).refused("change_pending");
    waiting(raw)
}

/// Returns the lines of a page that a person reads before the details.
fn read_lines(entry: &Value) -> Vec<&str> {
    let page = entry["shown"].as_str().expect("a page");
    let (read, _) = page.split_once("\nIDENTIFIERS\n").expect("the details");
    read.lines().filter(|line| !line.is_empty()).collect()
}

/// Returns fourteen tools of a kind that many servers have.
fn fourteen() -> Vec<Value> {
    let tool = |name: &str, arguments: &[&str], reads: bool| {
        let text = || json!({"type": "string", "description": "A text for the server."});
        let properties: Value = arguments.iter().map(|argument| ((*argument).to_owned(), text())).collect();
        json!({
            "name": name, "description": format!("Does what {name} says, with words of the server about it."),
            "annotations": {"readOnlyHint": reads}, "inputSchema": {"type": "object", "properties": properties}
        })
    };
    let mut tools: Vec<Value> = ["messages", "folders", "labels", "contacts", "events", "drafts"]
        .map(|of| tool(&format!("list_{of}"), &["folder", "query", "since"], true))
        .into();
    tools.extend(["message", "contact", "event"].map(|of| tool(&format!("get_{of}"), &["id"], true)));
    tools.push(tool("send_message", &["to", "subject", "body"], false));
    tools.push(tool("reply_message", &["id", "body"], false));
    tools.push(tool("delete_message", &["id"], false));
    tools.push(tool("create_event", &["title", "start", "end", "attendees"], false));
    tools.push(tool("update_contact", &["id", "email", "phone"], false));
    assert_eq!(tools.len(), 14);
    tools
}

#[test]
fn unknown_server_has_one_page_and_then_reads_unasked() {
    let (servers, host) = (ListedServers::start(), host());
    let raw = Raw::of(&host);
    let url = servers.list("mail", listed(&fourteen()));
    host.ctl_given("key-of-the-account", &["secret", "set", "mail"]).ok();
    add(&host, "mail", &["--url", &url, "--header", "Authorization=Bearer secret:mail"]);
    let entry = proposed(&host, &raw, "mail");
    let lines = read_lines(&entry);
    assert!(lines.len() <= 70, "{} lines:\n{}", lines.len(), lines.join("\n"));
    for tool in fourteen() {
        let row = format!("  \"{}\": ", tool["name"].as_str().expect("a name"));
        assert_eq!(lines.iter().filter(|line| line.starts_with(&row)).count(), 1, "{row}");
    }
    for rule in ["control email, leaves: \"to\"", "free, leaves [3]: \"query\""] {
        assert!(lines.iter().any(|line| line.contains(rule)), "{rule} is not in\n{}", lines.join("\n"));
    }
    assert_eq!(approve(&raw, &entry).0, 200);
    wait_for("the confirmation", || show(&host, "mail")["state"] == "confirmed");
    host.ctl(&["mcp", "grant", "a", "mail", "--yes"]).ok();
    let model = Server::start(|seen| match seen.results().len() {
        0 => Act::Call(String::new(), vec![("mail__list_messages".to_owned(), json!({ "folder": "inbox" }))]),
        // No person typed the id: it is from the list.
        read @ 1..5 => {
            Act::Call(String::new(), vec![("mail__get_message".to_owned(), json!({ "id": format!("m{read}") }))])
        }
        _ => Act::Say("read".to_owned()),
    });
    host.add_model(&model.url());
    host.ctl(&["agent", "set", "a", "--model", "m", "--yes"]).ok();
    let said = host.ctl(&["--json", "chat", "a", "look at my newest mails"]).ok().json();
    let calls = said["calls"].as_array().expect("calls");
    assert!(calls.len() == 5 && calls.iter().all(|call| call["status"] == "done"), "{said}");
    assert_eq!(inbox(&raw), Vec::<Value>::new(), "five reading calls of one server ask nothing");
    host.ctl(&["agent", "set", "a", "--model", "scripted", "--yes"]).ok();
    let (said, _) = call(&host, "t", "use mail__delete_message {\"id\":\"m1\"}");
    assert_eq!(said["status"], "asked", "{said}");
}

#[test]
fn upgrade_asks_about_the_changed_tools_alone() {
    let (servers, host) = (ListedServers::start(), host());
    let raw = Raw::of(&host);
    let mut tools = fourteen();
    let url = servers.list("mail", listed(&tools));
    add(&host, "mail", &["--url", &url]);
    approve(&raw, &proposed(&host, &raw, "mail"));
    wait_for("the confirmation", || show(&host, "mail")["state"] == "confirmed");
    host.ctl(&["mcp", "set", "mail", "list_events", "--class", "send", "--yes"]).ok();
    host.ctl(&["mcp", "grant", "a", "mail", "--yes"]).ok();
    tools[0]["description"] = json!("Lists other messages.");
    tools.push(json!({"name": "purge", "inputSchema": {"type": "object"}}));
    servers.list("mail", listed(&tools));
    host.ctl(&["--json", "mcp", "test", "mail"]).refused("mcp_changed");
    let entry = proposed(&host, &raw, "mail");
    let lines = read_lines(&entry);
    let rows: Vec<&str> =
        lines.iter().filter_map(|line| Some(line.strip_prefix("  \"")?.split_once("\": ")?.0)).collect();
    assert_eq!(rows, ["list_messages", "purge"], "{lines:?}");
    // The others stay in use meanwhile.
    let (said, _) = call(&host, "t", "use mail__get_event {\"id\":\"1\"}");
    assert_eq!(said["status"], "done", "{said}");
    let (said, _) = call(&host, "t", "use mail__list_messages");
    assert_eq!(said["code"], "call_server_changed", "{said}");
    assert_eq!(approve(&raw, &entry).0, 200);
    wait_for("the confirmation", || show(&host, "mail")["state"] == "confirmed");
    let classes: BTreeMap<String, Value> = show(&host, "mail")["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| (tool["name"].as_str().expect("a name").to_owned(), tool["class"].clone()))
        .collect();
    assert_eq!((&classes["list_events"], &classes["get_event"]), (&json!("send"), &json!("read")), "people chose them");
    assert_eq!((&classes["list_messages"], &classes["purge"]), (&json!("read"), &json!("send")));
    // An explanation of a call has the command for what the host proposes, and none for what keeps its class.
    let remedies = |tool: &str| host.ctl(&["--json", "explain", "a", tool, "{}"]).ok().json()["remedies"].to_string();
    assert!(remedies("mail__list_events").contains("ironctl mcp set mail list_events --class read"));
    assert!(!remedies("mail__delete_message").contains("ironctl mcp set"));
}

#[test]
fn known_server_has_its_template_and_its_twin_no_looser_rule() {
    let (registry, servers) = (Registry::new(), ListedServers::start());
    let host = TestHost::own(Build::Plain);
    let port = registry.port;
    host.configure(&format!("[packages]\npypi_index = \"http://127.0.0.1:{port}/simple/\"\nports = [{port}]\n"));
    host.up();
    host.agent("a");
    let raw = Raw::of(&host);
    let tools = git_tools();
    let listing = serde_json::to_string(&Value::Array(tools.clone()).to_string()).expect("a text");
    let source = PYTHON
        .replace("{\"tools\": [tool(\"length\"), tool(\"value\")]}", &format!("{{\"tools\": json.loads({listing})}}"));
    registry.publish_program("mcp_server_git", "mcp-server-git", &source, "");
    add(&host, "git", &["--pypi", "mcp-server-git", "--", "mcp-server-git"]);
    let entry = proposed(&host, &raw, "git");
    let lines = read_lines(&entry);
    assert!(lines.len() <= 40, "{} lines:\n{}", lines.len(), lines.join("\n"));
    let page = lines.join("\n");
    assert!(
        page.contains("By its package it is \"git\"")
            && page.contains("read [1], with free arguments that stay here: "),
        "{page}"
    );
    assert!(page.contains("no value of a call leaves this machine"), "{page}");
    approve(&raw, &entry);
    wait_for("the confirmation", || show(&host, "git")["state"] == "confirmed");
    // The same tools of another server.
    let url = servers.list("twin", listed(&tools));
    add(&host, "twin", &["--url", &url]);
    let entry = proposed(&host, &raw, "twin");
    let page = read_lines(&entry).join("\n");
    assert!(page.contains("!! It LOOKS LIKE \"git\" and is NOT \"git\""), "{page}");
    assert!(!page.contains(": read ["), "{page}");
    let twin = show(&host, "twin");
    let all = twin["tools"].as_array().expect("tools");
    assert!(all.iter().all(|tool| tool["class"] == "send" && tool["loosened"] == json!([])), "{twin}");
}
