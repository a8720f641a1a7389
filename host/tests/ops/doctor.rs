//! Tests of `ironctl doctor` with a running host: it asks model endpoints and connects to the receivers of channels.
//!
//! The endpoints are a model server on loopback. See `ops::model_cli` and `ops::preflight`.

use crate::support::host_fixture::TestHost;
use crate::support::model_server::{Act, Seen, Server};
use serde_json::Value;
use std::io::Read;
use std::net::TcpListener;
use std::time::Duration;

const KEY: &str = "sk-zinnober-4711-zinnober";

/// Answers requests with the right key, and refuses others.
fn guarded(seen: &Seen) -> Act {
    match &seen.key {
        Some(key) if key == KEY => Act::Say("ready".to_owned()),
        _ => {
            let body = r#"{"error":{"message":"Incorrect API key","type":"invalid_request_error"}}"#;
            Act::Status(401, vec![("content-type", "application/json".to_owned())], body.to_owned())
        }
    }
}

/// Runs `doctor` and returns its check of this name.
fn check(host: &TestHost, name: &str) -> Value {
    let report = host.ctl_bounded(&["--json", "doctor"]).json();
    let checks = report["checks"].as_array().expect("a list").clone();
    checks.into_iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {report}"))
}

#[test]
fn doctor_asks_model_endpoints_and_names_the_remedy() {
    let server = Server::start(guarded);
    let host = TestHost::new().started();
    assert_eq!(check(&host, "model scripted")["ok"], true);
    host.ctl_given(KEY, &["secret", "set", "lab"]).ok();
    let url = format!("{}/v1", server.url());
    let model = ["model", "add", "lab", "--kind", "openai", "--base-url", &url, "--model", "m", "--key", "secret:lab"];
    host.ctl(&model).ok();
    let before = server.seen().len();
    let answered = check(&host, "model lab");
    assert_eq!((&answered["ok"], server.seen().len()), (&Value::Bool(true), before + 1), "{answered}");
    assert!(answered["found"].as_str().is_some_and(|found| found.contains("key is accepted")), "{answered}");

    host.ctl_given("sk-karmesin", &["secret", "rotate", "lab"]).ok();
    let refused = check(&host, "model lab");
    assert_eq!(refused["ok"], false, "{refused}");
    assert!(refused["remedy"].as_str().is_some_and(|remedy| remedy.contains("key")), "{refused}");
    drop(server);
    let gone = check(&host, "model lab");
    assert_eq!(gone["ok"], false, "{gone}");
    assert!(gone["remedy"].as_str().is_some_and(|remedy| remedy.contains(&url)), "{gone}");
    host.ctl(&["doctor"]).refused("model lab");
}

#[test]
fn doctor_connects_to_receivers_and_sends_nothing() {
    let receiver = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = receiver.local_addr().expect("bound");
    let host = TestHost::new().started();
    host.ctl(&["channel", "add", "webhook", "shop", "--url", &format!("http://{address}/replies")]).ok();
    let reached = check(&host, "channel shop");
    assert_eq!(reached["ok"], true, "{reached}");
    let (mut connection, _) = receiver.accept().expect("the connection of the check");
    connection.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    let mut sent = Vec::new();
    connection.read_to_end(&mut sent).expect("the host closed it");
    assert!(sent.is_empty(), "{sent:?}");
    drop((connection, receiver));
    let gone = check(&host, "channel shop");
    assert_eq!(gone["ok"], false, "{gone}");
    assert!(gone["remedy"].as_str().is_some_and(|remedy| remedy.contains("ironctl channel test shop")), "{gone}");
    assert!(host.entries("delivery.sent").is_empty());
    host.ctl(&["panic"]).ok();
    assert!(check(&host, "channel shop")["found"].as_str().is_some_and(|found| found.contains("stopped")));
}
