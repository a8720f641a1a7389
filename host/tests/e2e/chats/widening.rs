//! Who may speak to an agent, and what it may reach, widens by an approved page only. Less takes effect at once.

use super::{say, send};
use crate::support::client::{Raw, check_refused};
use crate::support::hooks::{add_shop, new_host};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use serde_json::{Value, json};

/// Returns everything that decides who may speak to an agent, and what it may reach.
fn reach(host: &TestHost) -> Value {
    let read = |words: &[&str]| host.ctl(&[&["--json"], words].concat()).ok().json();
    let agents = [read(&["agent", "show", "a"]), read(&["agent", "show", "b"])];
    json!([agents, read(&["destination", "list"]), read(&["egress", "list"]), read(&["group", "list"])])
}

#[test]
fn nothing_widens_without_an_approved_page() {
    let host = new_host(Build::Plain, "");
    host.agent("b");
    let (receiver, hook) = add_shop(&host);
    let narrow = json!({ "agent": "a", "engage": "mention", "ignored": "drop" });
    let raw = Raw::of(&host);
    assert_eq!(raw.ask("POST", "/v1/channels/shop/agents", &narrow.to_string()).0, 200, "less takes effect at once");
    let before = reach(&host);
    for wider in [
        json!({ "engage": "mention_sticky" }),
        json!({ "engage": "all" }),
        json!({ "engage": "pattern", "pattern": "^x" }),
        json!({ "from": "all" }),
        json!({ "unknown": "request" }),
        json!({ "unknown": "public" }),
        json!({ "ignored": "accumulate" }),
        json!({ "sharing": "shared" }),
        json!({ "sharing": "agent" }),
        json!({ "agent": "b" }),
    ] {
        let mut body = narrow.clone();
        body.as_object_mut().expect("an object").extend(wider.as_object().expect("an object").clone());
        check_refused(&raw.ask("POST", "/v1/channels/shop/agents", &body.to_string()), 403, "page_unseen");
    }
    let new = json!({ "kind": "webhook", "name": "desk", "url": receiver.url, "agent": "a" });
    check_refused(&raw.ask("POST", "/v1/channels", &new.to_string()), 400, "request_malformed");
    host.add_linked_person("Bob", "shop:bob");
    let carol = json!({ "identity": "shop:carol" });
    check_refused(&raw.ask("POST", "/v1/people/Bob/identities", &carol.to_string()), 403, "page_unseen");
    let mut other = carol.clone();
    other["shown"] =
        raw.ask("POST", "/v1/people/owner/identities/review", &carol.to_string()).1["shown_digest"].clone();
    check_refused(&raw.ask("POST", "/v1/people/Bob/identities", &other.to_string()), 409, "shown_differs");
    check_refused(&raw.ask("POST", "/v1/people/Bob/role", r#"{"role":"admin"}"#), 403, "page_unseen");
    for command in [&["person", "link", "Bob", "shop:carol"][..], &["person", "set", "Bob", "--role", "admin"]] {
        host.ctl(&[&["--json"], command].concat()).refused("not_confirmed");
    }
    let bob = host.ctl(&["--json", "person", "show", "Bob"]).ok().json();
    assert!(bob["role"] == "member" && !bob.to_string().contains("carol"), "{bob}");
    let permissions = r#"{"grant":[{"identity":"shop:bob","role":"admin"}]}"#;
    let stranger = ["agent", "connect", "a", "shop", "--from", "all", "--unknown", "public"];
    for command in [
        &stranger[..],
        &["channel", "add", "webhook", "desk", "--url", &receiver.url, "--agent", "b"],
        &["destination", "add", "a", "ann", "--channel", "shop", "--to", "ann"],
        &["destination", "add", "a", "b", "--agent", "b"],
        &["group", "add", "all", "a", "b"],
        &["egress", "grant", "a", "example.org", "--path", "/x"],
    ] {
        let asked = host.ctl(&[&["--json"], command].concat());
        assert!(
            asked.code == 1 && asked.stderr.contains("change_pending"),
            "{command:?}: {} {}",
            asked.stdout,
            asked.stderr
        );
    }
    host.ctl(&["change", "submit", "--kind", "permissions", "--agent", "a", "--payload", permissions, "--reason", "r"])
        .ok();
    assert_eq!(reach(&host), before);
    check_refused(&send(&hook, "e1", "eve", "@a hello", &json!({ "mentions": ["a"] })), 403, "sender_unknown");
    let page = host.ctl(&[&stranger[..], &["--yes"]].concat()).ok().stdout;
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ").replace(" !!", "");
    assert!(page.contains("EVERYONE who can write to channel \"shop\" can then speak to agent \"a\""), "{page}");
    wait_for("the approved connection", || reach(&host)[0][0]["wirings"][0]["unknown"] == "public");
    assert!(!say(&hook, "e2", "eve", "hello", &json!({})).is_empty(), "a stranger may speak now");
}
