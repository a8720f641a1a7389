//! Tests of the endpoints for machines: liveness, readiness, and metrics without personal data.
//!
//! They use the real sockets. See `chaos::failures` for a host that is not ready.

use crate::support::client::{Client, Raw, check_refused, exchange};
use crate::support::host_fixture::{Build, TestHost};
use serde_json::json;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

/// Returns `/metrics` over the unix socket, with the owner's token.
pub(crate) fn scrape(host: &TestHost) -> (u16, String) {
    let run: serde_json::Value =
        serde_json::from_slice(&std::fs::read(host.home.join("run.json")).expect("it runs")).expect("JSON");
    let mut stream = UnixStream::connect(run["socket"].as_str().expect("a socket")).expect("the host listens");
    let token = std::fs::read_to_string(host.home.join("owner.token")).expect("a token");
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nhost: ironclaw\r\nconnection: close\r\nauthorization: Bearer {}\r\n\r\n",
        token.trim()
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status"), body.to_owned())
}

/// Returns the value of each metric by its name with labels.
pub(crate) fn figures(host: &TestHost) -> HashMap<String, f64> {
    let (status, text) = scrape(host);
    assert_eq!(status, 200, "{text}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap_or(f64::NAN)))
        .collect()
}

#[test]
fn request_without_a_token_gets_only_liveness_and_readiness() {
    let host = TestHost::own(Build::Plain).configured("[api]\nlisten = \"127.0.0.1:0\"\n").started();
    let raw = Raw::of(&host);
    assert_eq!(raw.get_with(&[], "/healthz"), (200, json!({ "alive": true })));
    assert_eq!(raw.get_with(&[], "/readyz"), (200, json!({ "ready": true })));
    for path in ["/metrics", "/healthz/", "/readyz/x", "//healthz", "/v1/status", "/openapi.json"] {
        let (status, answer) = raw.get_with(&[], path);
        assert_eq!((status, &answer["error"]["code"]), (401, &json!("token_missing")), "{path}");
    }
    let (status, _) = raw.ask_with("POST", "/healthz", &[], "");
    assert_eq!(status, 405, "only GET is allowed");
    // Requests of a foreign web page or to a foreign host name are refused first.
    let port = raw.port();
    let over_port = |headers: &[(&str, &str)], path: &str| {
        let (status, _, answer) =
            exchange(TcpStream::connect(&port).expect("the host listens"), "GET", path, headers, "");
        (status, answer)
    };
    for path in ["/healthz", "/readyz", "/metrics"] {
        let foreign = over_port(&[("host", &port), ("origin", "https://evil.example")], path);
        assert_eq!((foreign.0, &foreign.1["error"]["code"]), (403, &json!("origin_foreign")), "{path}");
        let rebound = over_port(&[("host", "evil.example")], path);
        assert_eq!((rebound.0, &rebound.1["error"]["code"]), (403, &json!("host_foreign")), "{path}");
    }
    assert_eq!(over_port(&[("host", &port)], "/readyz"), (200, json!({ "ready": true })));
}

#[test]
fn metrics_count_events_and_contain_no_id_name_or_text() {
    let host = TestHost::own(Build::Plain).started_with("parrot-agent");
    host.say("parrot-agent", "echo a-secret-word");
    host.say("parrot-agent", "hello");
    Raw::of(&host).get_with(&[], "/v1/status");
    let found = figures(&host);
    let is = |name: &str, value: f64| assert_eq!(found.get(name), Some(&value), "{name}: {found:#?}");
    is("ironclaw_messages_total{outcome=\"recorded\"}", 2.0);
    is("ironclaw_turns_opened_total", 2.0);
    is("ironclaw_turns_closed_total{outcome=\"answered\"}", 2.0);
    is("ironclaw_deliveries_total{outcome=\"received\"}", 2.0);
    is("ironclaw_model_requests_total{endpoint=\"scripted\",result=\"answered\"}", 2.0);
    is("ironclaw_model_request_seconds_count{endpoint=\"scripted\"}", 2.0);
    is("ironclaw_api_refused_total{code=\"token_missing\",via=\"unix\"}", 1.0);
    is("ironclaw_sessions_awake", 1.0);
    is("ironclaw_sessions{standing=\"live\"}", 1.0);
    is("ironclaw_ready", 1.0);
    is("ironclaw_panicked", 0.0);
    is("ironclaw_turns_open", 0.0);
    is("ironclaw_state_commits_total{outcome=\"done\"}", found["ironclaw_state_commit_seconds_count"]);
    let last = host.ledger().last().expect("entries")["seq"].as_u64().expect("a number");
    assert!(found["ironclaw_ledger_seq"] <= last as f64 && found["ironclaw_ledger_seq"] > 10.0);
    let (_, text) = scrape(&host);
    for secret in ["a-secret-word", "parrot-agent", "ses_", "msg_", "trn_", "per_", "tok_", "owner"] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn stopped_host_is_alive_but_not_ready_and_says_why() {
    let host = TestHost::own(Build::Plain).started();
    host.ctl(&["panic"]).ok();
    let raw = Raw::of(&host);
    check_refused(&raw.get_with(&[], "/readyz"), 503, "panicked");
    assert_eq!(raw.get_with(&[], "/healthz").0, 200);
    assert_eq!(figures(&host)["ironclaw_ready"], 0.0);
    host.ctl(&["resume"]).ok();
    assert_eq!(raw.get_with(&[], "/readyz").0, 200);
    Client::of(&host).status().expect("the host answers");
}
