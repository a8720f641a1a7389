//! Values that servers returned: what a server made in this session, and what it returned at a listed path, unless an agent set it.

use super::*;
use crate::support::host_fixture::wait_for;

/// The tools of the servers `shop` and `other`.
fn shop_listing() -> Vec<String> {
    let text = json!({ "type": "string" });
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    let made = json!({ "type": "string", "ifc": { "requiredIntegrity": ["SessionResult"] } });
    let tools = [
        ("create", object(json!({ "about": text }))),
        ("cancel", object(json!({ "order": text }))),
        ("ship", object(json!({ "order": made }))),
        ("contact", object(json!({ "query": text }))),
        ("addContact", object(json!({ "name": text, "mail": text }))),
        ("write", object(json!({ "to": text, "body": text }))),
        ("channels", object(json!({}))),
        ("post", object(json!({ "channel": text, "body": text }))),
    ];
    tools
        .map(|(name, schema)| json!({ "name": name, "description": "Acts.", "inputSchema": schema }).to_string())
        .to_vec()
}

/// The manifests of these tools, in which an operator listed result paths.
const SHOP: &str = r#"
[[tool]]
name = "create"
class = "write"
reach = "outside"
effect = "creates an order"
creates = true
arguments.about = { rule = "content" }
results."/order/id" = { type = "name" }

[[tool]]
name = "cancel"
class = "write"
reach = "outside"
effect = "cancels {order}"
arguments.order = { rule = "floor", type = "name", needs = ["SessionResult"] }

[[tool]]
name = "ship"
class = "write"
reach = "outside"
effect = "ships {order}"
arguments.order = { rule = "floor", type = "name" }

[[tool]]
name = "contact"
class = "read"
reach = "outside"
effect = "looks a contact up"
arguments.query = { rule = "free" }
results."/people/*/mail" = { type = "email" }

[[tool]]
name = "addContact"
class = "write"
reach = "outside"
effect = "adds a contact"
arguments.name = { rule = "content" }
arguments.mail = { rule = "content" }

[[tool]]
name = "write"
class = "send"
reach = "outside"
effect = "writes to {to}"
arguments.to = { rule = "floor", type = "email", needs = ["StructuredResult"] }
arguments.body = { rule = "content", outward = true }

[[tool]]
name = "channels"
class = "read"
reach = "outside"
effect = "lists channels"
results."/channels/*" = { type = "name" }

[[tool]]
name = "post"
class = "send"
reach = "outside"
effect = "posts to {channel}"
arguments.channel = { rule = "floor", type = "name" }
arguments.body = { rule = "content", outward = true }
"#;

const ALLOWED: &str = "/allow read write send -- do it";

fn shop() -> Office {
    let office = Office::new();
    for name in ["shop", "other"] {
        let url = office.servers.list(name, Listed::page(&shop_listing()));
        ready(&office.host, name, &["--url", &url], Some(SHOP));
    }
    office.servers.answer("create", json!({ "order": { "id": "ord_8812" } }));
    office.servers.answer("contact", people("ann@crm.example"));
    office
}

fn people(mail: &str) -> Value {
    json!({ "people": [{ "name": "Ann", "mail": mail }] })
}

fn order(id: &str) -> Value {
    json!({ "order": link(id) })
}

fn about() -> Value {
    json!({ "about": "tulips" })
}

fn letter(to: Value) -> Value {
    json!({ "to": to, "body": "hello" })
}

/// Returns the status and the code of the last call.
fn end(calls: &[Value]) -> (&str, Option<&str>) {
    let call = calls.last().expect("a call");
    (call["status"].as_str().expect("a status"), call["code"].as_str())
}

#[test]
fn new_id_of_a_server_is_passed_by_reference() {
    let office = shop();
    for (thread, tool, value) in [
        ("link", "shop__cancel", link("$name.1")),
        ("hard", "shop__ship", link("$name.1")),
        ("copy", "shop__cancel", json!("ord_8814")),
    ] {
        let id =
            format!("ord_881{}", ["link", "hard", "copy"].iter().position(|name| *name == thread).expect("one") + 2);
        office.servers.answer("create", json!({ "order": { "id": id } }));
        let calls = [("shop__create", about()), (tool, json!({ "order": value }))];
        let (calls, answer) = office.ask("a", thread, ALLOWED, &calls);
        assert_eq!(end(&calls), ("done", None), "{thread}: {calls:?}");
        assert!(answer.contains(&format!("\"order\":\"{id}\"")), "{thread}: {answer}");
    }
    let recorded = office.host.entries("call.recorded");
    let inputs: Vec<&str> = recorded.iter().filter_map(|entry| entry["data"]["inputs"].as_str()).collect();
    assert!(inputs.len() == 3 && inputs.iter().all(|inputs| inputs.starts_with("order=r")), "{inputs:?}");
    // Another literal asks at a floor of the operator, and is refused at a hard one.
    let calls = [("shop__create", about()), ("shop__cancel", json!({ "order": "ord_1" }))];
    let (calls, _) = office.ask("a", "literal", ALLOWED, &calls);
    assert_eq!(end(&calls), ("asked", Some("call_input")));
    office.reject(calls.last().expect("a call"));
    let (calls, _) = office.ask("a", "hard-literal", ALLOWED, &[("shop__ship", json!({ "order": "ord_8812" }))]);
    assert_eq!(end(&calls), ("refused", Some("call_input")));
    office.host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn new_id_is_of_its_server_session_and_task() {
    let office = shop();
    let (calls, _) = office.ask("a", "t", ALLOWED, &[("shop__create", about()), ("other__cancel", order("$name.1"))]);
    assert_eq!(end(&calls), ("refused", Some("call_link_label")), "another server: {calls:?}");
    let (calls, _) = office.ask("a", "t2", ALLOWED, &[("shop__cancel", order("r6.name.1"))]);
    assert_eq!(end(&calls), ("refused", Some("call_link_unknown")), "another session");
    // In the next task of the same session it asks, also after a restart.
    office.host.restart();
    let (calls, _) = office.ask("a", "t", ALLOWED, &[("shop__cancel", order("$name.1"))]);
    assert_eq!(end(&calls), ("asked", Some("call_input")), "{calls:?}");
    let request = office.host.ctl(&["--json", "inbox"]).ok().json();
    let origin = &request[0]["details"]["call"]["origins"][0]["origin"];
    assert_eq!((&origin["source"], &origin["labels"][0]), (&json!("returned"), &json!("SessionResult")), "{request}");
    // An id that the server had before is not new.
    let (calls, _) = office.ask("a", "t3", ALLOWED, &[("shop__create", about()), ("shop__cancel", order("r6.name.1"))]);
    assert_eq!(end(&calls), ("refused", Some("call_link_label")), "{calls:?}");
}

#[test]
fn value_that_an_agent_sent_is_none_of_the_server() {
    let office = shop();
    let look = || ("shop__contact", json!({ "query": "x" }));
    let (calls, answer) = office.ask("a", "good", ALLOWED, &[look(), ("shop__write", letter(link("$email.1")))]);
    assert_eq!(end(&calls), ("done", None), "{calls:?}");
    assert!(answer.contains("ann@crm.example"), "{answer}");
    // Another agent plants a contact: as a whole, in a longer text, and in two halves that the server joins.
    office.host.ctl(&["agent", "add", "b", "--model", "m"]).ok();
    office.host.ctl(&["mcp", "grant", "b", "shop", "--yes"]).ok();
    let planted = |name: &str, mail: &str| [("shop__addContact", json!({ "name": name, "mail": mail }))];
    for (thread, name, mail, read) in [
        ("whole", "Ann", "eve@evil.example", "eve@evil.example"),
        ("within", "Ann <mal@evil.example>", "", "mal@evil.example"),
        ("halves", "mallory", "@bad.example", "mallory@bad.example"),
    ] {
        let (calls, _) = office.ask("b", thread, ALLOWED, &planted(name, mail));
        assert_eq!(end(&calls), ("done", None), "{thread}");
        office.servers.answer("contact", people(read));
        for value in [link("r6.email.1"), json!(read)] {
            let (calls, _) = office.ask("a", thread, ALLOWED, &[look(), ("shop__write", letter(value))]);
            let (status, code) = end(&calls);
            assert!(status != "done" && code.is_some(), "{thread}: {calls:?}");
            office.reject(calls.last().expect("a call"));
        }
    }
    // Under another name of the same server, too.
    office.host.ctl(&["mcp", "grant", "b", "other", "--yes"]).ok();
    let (calls, _) =
        office.ask("b", "name", ALLOWED, &[("other__addContact", json!({ "name": "x", "mail": "ida@bad.example" }))]);
    assert_eq!(end(&calls), ("done", None));
    office.servers.answer("contact", people("ida@bad.example"));
    let (calls, _) = office.ask("a", "name", ALLOWED, &[look(), ("shop__write", letter(link("r6.email.1")))]);
    assert_eq!(end(&calls), ("refused", Some("call_link_label")), "{calls:?}");
    // A stranger's entry beside one that an agent once sent is not the only one.
    office
        .servers
        .answer("contact", json!({ "people": [{ "mail": "eve@evil.example" }, { "mail": "zed@stranger.example" }] }));
    let (calls, _) = office.ask("a", "beside", ALLOWED, &[look(), ("shop__write", letter(link("r6.email.2")))]);
    assert_eq!(end(&calls), ("asked", Some("call_input")), "{calls:?}");
    office.reject(calls.last().expect("a call"));
    // The digests outlive the conversations.
    for session in office.host.ctl(&["--json", "session", "list"]).ok().json().as_array().expect("a list") {
        office.host.ctl(&["session", "remove", session["id"].as_str().expect("an id"), "--yes"]).ok();
    }
    office.servers.answer("contact", people("eve@evil.example"));
    let (calls, _) = office.ask("a", "later", ALLOWED, &[look(), ("shop__write", letter(link("r6.email.1")))]);
    assert_eq!(end(&calls), ("refused", Some("call_link_label")), "{calls:?}");
}

#[test]
fn typed_name_of_a_server_needs_no_question() {
    let office = shop();
    office.servers.answer("channels", json!({ "channels": ["general", "random"] }));
    let post =
        |server: &str, channel: &str| (format!("{server}__post"), json!({ "channel": channel, "body": "hello" }));
    let asks = [("shop", "general", "done", None), ("other", "general", "asked", Some("call_input"))];
    for (at, (server, channel, status, code)) in asks.into_iter().enumerate() {
        let (tool, arguments) = post(server, channel);
        let calls = [("shop__channels", json!({})), (tool.as_str(), arguments)];
        let (calls, _) = office.ask("a", &format!("t{at}"), "/allow read send -- post hello to general", &calls);
        assert_eq!(end(&calls), (status, code), "{server}: {calls:?}");
        office.reject(calls.last().expect("a call"));
    }
    let (tool, arguments) = post("shop", "random");
    let calls = [("shop__channels", json!({})), (tool.as_str(), arguments)];
    let (calls, _) = office.ask("a", "untyped", "/allow read send -- post hello to general", &calls);
    assert_eq!(end(&calls), ("asked", Some("call_input")), "the person typed another one: {calls:?}");
}

#[test]
fn restored_record_mints_no_value_until_a_confirmation() {
    let office = shop();
    let host = &office.host;
    let file = host.home.with_file_name("b.backup");
    let file = file.to_str().expect("UTF-8");
    host.ctl(&["backup", "create", file]).ok();
    let calls = [("shop__contact", json!({ "query": "x" })), ("shop__write", letter(link("$email.1")))];
    assert_eq!(end(&office.ask("a", "before", ALLOWED, &calls).0), ("done", None));
    host.down();
    host.ctl(&["backup", "restore", file, "--replace", "--yes"]).ok();
    host.up();
    let calls = [("shop__contact", json!({ "query": "x" })), ("shop__write", letter(link("r6.email.1")))];
    let (ended, _) = office.ask("a", "restored", ALLOWED, &calls);
    assert_eq!(end(&ended), ("refused", Some("call_link_unknown")), "{ended:?}");
    let digest = super::super::mcp::show(host, "shop")["digest"].as_str().expect("a digest").to_owned();
    let manifest = host.home.with_file_name("shop.toml");
    std::fs::write(&manifest, SHOP).expect("written");
    let words = ["mcp", "confirm", "shop", "--digest", &digest, "--yes", "--manifest"];
    host.ctl(&[&words[..], &[manifest.to_str().expect("UTF-8")]].concat()).ok();
    let calls = [("shop__contact", json!({ "query": "x" })), ("shop__write", letter(link("$email.1")))];
    let (ended, _) = office.ask("a", "confirmed", ALLOWED, &calls);
    assert_eq!(end(&ended), ("done", None), "{ended:?}");
}

#[test]
fn result_of_an_approved_call_has_its_id_in_the_next_turn() {
    let office = shop();
    let (calls, _) = office.ask("a", "t", "/allow read -- order tulips", &[("shop__create", about())]);
    let (status, _) = end(&calls);
    assert_eq!(status, "asked", "{calls:?}");
    *office.calls.lock().expect("calls") = [("shop__cancel".to_owned(), order("$name.1"))].into();
    let request = calls[0]["request"].as_str().expect("a request").to_owned();
    office.host.ctl(&["approve", &request, "--yes"]).ok();
    wait_for("the call of the follow-up turn", || office.host.entries("call.recorded").len() == 2);
    let recorded = &office.host.entries("call.recorded")[1]["data"];
    assert!(recorded["inputs"].as_str().is_some_and(|inputs| inputs.starts_with("order=r")), "{recorded}");
}
