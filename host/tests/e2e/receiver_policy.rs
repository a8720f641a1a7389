//! The receiver policy of an agent: the classes that each kind of author may ask it for, within the bound of the host.

use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost};
use serde_json::{Value, json};

/// Returns the classes of one kind of author, as `agent show` has them.
fn classes(host: &TestHost, author: &str) -> (Value, Value) {
    let shown = host.ctl(&["--json", "agent", "show", "a"]).ok().json();
    let scopes = shown["abilities"]["scopes"].as_array().unwrap_or_else(|| panic!("no scopes: {shown}")).clone();
    let scope = scopes.into_iter().find(|scope| scope["principal"] == author).expect("an author");
    (scope["may"].clone(), scope["unasked"].clone())
}

/// Returns the status and the code of the call that the script makes at a message.
fn call(host: &TestHost, words: &str) -> (String, Option<String>) {
    let said = host.chat("a", words);
    let id = said["message_id"].as_str().unwrap_or_else(|| panic!("no id: {said}"));
    let calls = Raw::of(host).get(&format!("/v1/messages/{id}")).1["calls"].clone();
    let call = calls.as_array().and_then(|calls| calls.last()).unwrap_or_else(|| panic!("no call: {said}"));
    (call["status"].as_str().expect("a status").to_owned(), call["code"].as_str().map(str::to_owned))
}

#[test]
fn agent_takes_from_a_person_what_its_policy_says() {
    let host = TestHost::own(Build::Plain).started_with("a");
    assert_eq!(call(&host, "write one.txt: tulips"), ("done".to_owned(), None));
    host.ctl(&["agent", "set", "a", "--may", "person=read,ask", "--yes"]).ok();
    assert_eq!(classes(&host, "person"), (json!(["read", "ask"]), json!(["read", "ask"])));
    for words in ["write two.txt: tulips", "/allow write\nwrite two.txt: tulips"] {
        let (status, code) = call(&host, words);
        assert_eq!((status.as_str(), code.as_deref()), ("refused", Some("call_principal")), "{words}");
    }
    // It also holds after a restart, and the ledger says who set it.
    host.restart();
    assert_eq!(call(&host, "write two.txt: tulips").1.as_deref(), Some("call_principal"));
    let entry = host.entries("agent.receiver").pop().expect("an entry");
    assert_eq!(entry["data"]["receiver"], r#"{"person":{"may":["read","ask"],"unasked":["read","ask"]}}"#, "{entry}");
    host.ctl(&["agent", "set", "a", "--may", "person=default", "--yes"]).ok();
    assert_eq!(call(&host, "write three.txt: tulips"), ("done".to_owned(), None));
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn bound_of_the_host_holds_at_once_for_every_agent() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let refused = host.ctl_error(&["agent", "set", "a", "--may", "guest=read", "--yes"]);
    assert_eq!(refused["code"], "receiver_bound", "{refused}");
    for wrong in ["unsigned=read", "guest=delete", "guest=read,read"] {
        assert_ne!(host.ctl(&["agent", "set", "a", "--may", wrong, "--yes"]).code, 0, "{wrong}");
    }
    let reload = |text: &str| {
        std::fs::write(host.home.join("policy.toml"), text).expect("written");
        host.ctl(&["config", "reload"]).ok();
    };
    reload("[receiver]\nguest = [\"read\"]\n");
    assert_eq!(classes(&host, "guest"), (json!([]), json!([])), "the bound alone opens no agent");
    let change =
        host.submit("a", "settings", json!({ "receiver": { "guest": { "may": ["read"], "unasked": ["read"] } } }));
    let page = change.ok().json();
    let id = page["id"].as_str().unwrap_or_else(|| panic!("no id: {page}")).to_owned();
    let shown = host.ctl(&["inbox", "show", &id]).ok().stdout;
    assert!(shown.contains("STRANGERS") && shown.contains("EVEN IF"), "{shown}");
    host.ctl(&["approve", &id, "--yes"]).ok();
    assert_eq!(classes(&host, "guest"), (json!(["read"]), json!(["read"])));
    reload("[receiver]\nguest = []\nperson = [\"read\"]\n");
    assert_eq!(classes(&host, "guest"), (json!([]), json!([])));
    assert_eq!(call(&host, "/allow write\nwrite one.txt: tulips").1.as_deref(), Some("call_principal"));
}
