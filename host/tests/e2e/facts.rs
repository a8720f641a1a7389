//! Tests of the facts of a call: the page has the address and the secret that are sent, and a yes holds for these facts alone.
//!
//! They use the real programs with the scripted model, and a server on loopback. The properties of all facts are tested beside
//! `gateway::requests::facts`; commands, pushes and servers in `network_commands`, `git_push` and `mcp_hosts`.

use super::requests::{approve, host_with, post, request, waiting};
use crate::support::client::Raw;
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::site::Site;
use serde_json::{Value, json};

/// Returns the text of the page of a waiting request.
pub(crate) fn page(raw: &Raw, entry: &Value) -> String {
    request(raw, &entry["id"])["shown"].as_str().expect("a page").to_owned()
}
fn set_grant(host: &TestHost, site: &Site, rest: &Value) {
    let mut grant = json!({ "host": "127.0.0.1", "port": site.port, "methods": ["POST"], "paths": ["/notes"] });
    grant.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
    host.change("a", "egress", &grant);
}

#[test]
fn grant_that_gets_a_secret_needs_another_yes() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    for (name, value) in [("forge", "s3cret-of-forge\n"), ("other", "s3cret-of-other\n")] {
        host.ctl_given(value, &["secret", "set", name]).ok();
    }
    post(&raw, "tulips", &site.url("/notes"));
    let mut entry = waiting(&raw);
    assert!(!page(&raw, &entry).contains("\"forge\""), "{}", page(&raw, &entry));
    let set = |rest: Value| move |host: &TestHost, site: &Site| set_grant(host, site, &rest);
    let rotate = |host: &TestHost, _: &Site| drop(host.ctl_given("s3cret-2\n", &["secret", "rotate", "forge"]).ok());
    type Change = Box<dyn Fn(&TestHost, &Site)>;
    let changes: [(&str, Change); 7] = [
        ("a secret", Box::new(set(json!({ "secret": "forge" })))),
        ("another secret", Box::new(set(json!({ "secret": "other" })))),
        ("no secret", Box::new(set(json!({})))),
        ("the first secret again", Box::new(set(json!({ "secret": "forge" })))),
        ("another value", Box::new(rotate)),
        ("another path", Box::new(set(json!({ "secret": "forge", "paths": ["/notes", "/other"] })))),
        ("another size", Box::new(set(json!({ "secret": "forge", "upload_bytes_max": 100 })))),
    ];
    for (name, change) in changes {
        change(&host, &site);
        assert_eq!(approve(&raw, &entry).1["error"]["code"], "shown_differs", "{name}");
        let now = waiting(&raw);
        assert_eq!(now["id"], entry["id"], "{name}");
        assert_ne!(now["shown_digest"], entry["shown_digest"], "{name}");
        let has_secret = page(&raw, &now).contains("secret of this host: none");
        assert_eq!(has_secret, name == "no secret", "{name}");
        entry = now;
    }
    assert!(site.lines().is_empty(), "{:?}", site.lines());
    let shown = page(&raw, &entry);
    assert!(shown.contains("\"forge\"") && !shown.contains("s3cret"), "{shown}");
    assert_eq!(approve(&raw, &entry).0, 200);
    wait_for("the end of the call", || request(&raw, &entry["id"])["status"] == "done");
    let seen = site.seen.lock().expect("a list").clone();
    assert!(seen.len() == 1 && seen[0].contains("Bearer s3cret-2"), "{seen:?}");
}

#[test]
fn page_has_the_address_that_is_requested() {
    let (site, _host, raw) = host_with(&["POST"], &["/notes/{number}"]);
    let port = site.port;
    for (written, sent) in [
        (format!("http://127.0.0.1:{port}/public/docs/../../notes/1"), "/notes/1"),
        (format!("http://127.0.0.1:{port}/notes/%2e%2E/notes/./2"), "/notes/2"),
        (format!("http://0177.0.0.1:{port}/notes/%33"), "/notes/3"),
        (format!("http://2130706433:{port}/notes/4#top"), "/notes/4"),
        (format!("HTTP://0x7f.1:{port}/notes/a%2fb%c3%a9"), "/notes/a%2Fb%C3%A9"),
    ] {
        post(&raw, "tulips", &written);
        let entry = waiting(&raw);
        let address = site.url(sent);
        assert_eq!(entry["details"]["call"]["arguments"]["url"], json!(address), "{written}");
        let effect = entry["effect"].as_str().unwrap_or_default();
        assert!(effect.contains(&address) && !effect.contains(&written), "{effect}");
        assert_eq!(approve(&raw, &entry).0, 200, "{written}");
        wait_for("the end of the call", || request(&raw, &entry["id"])["status"] == "done");
        assert_eq!(site.lines().last().map(String::as_str), Some(format!("POST {sent} HTTP/1.1").as_str()));
    }
}
