//! Attacks on approvals of calls of MCP servers: another server, another call, a second use, and a server that takes over a name.
//!
//! See `security::requests` for the approvals of requests over the network.

use super::pending;
use crate::e2e::mcp::{add, call, host, ready, show};
use crate::e2e::requests::{approve, delivered, request, waiting};
use crate::support::client::{Raw, code};
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::mcp_server::HttpServer;
use crate::support::record;
use serde_json::{Value, json};

/// Makes the used approval of one request a live approval of another one, in the record of a stopped host, and starts the host.
fn borrow_approval(host: &TestHost, used: &Value, by: &Value) {
    host.down();
    let sql = "UPDATE approvals SET subject = BY, state = 'live', ended_at = NULL WHERE subject = USED; \
               UPDATE waiting SET status = 'approved', expires_at = expires_at + 3600000 WHERE id = BY";
    let quoted = |entry: &Value| format!("'{}'", entry["id"].as_str().expect("an id"));
    let sql = sql.replace("BY", &quoted(by)).replace("USED", &quoted(used));
    record::open_to_change(&host.home).execute_batch(&sql).expect("changed");
    record::restore_owner(host);
    host.up();
}

#[test]
fn approval_for_one_server_permits_no_call_of_another() {
    let (one, two) = (HttpServer::start(&[]), HttpServer::start(&[]));
    let host = host();
    ready(&host, "one", &["--url", &one.url], None);
    ready(&host, "two", &["--url", &two.url], None);
    let raw = Raw::of(&host);
    let first = pending(&raw, "use one__count");
    assert_eq!(code(&approve(&raw, &json!({ "id": first["id"], "shown_digest": "0".repeat(64) }))).1, "shown_differs");
    assert_eq!(approve(&raw, &first).0, 200);
    wait_for("the end of the call", || request(&raw, &first["id"])["status"] == "done");
    assert_eq!((one.counted(), two.counted()), (1, 0));
    assert_eq!(code(&approve(&raw, &first)).1, "request_decided", "an approved call runs once");

    let second = pending(&raw, "use two__count");
    assert_ne!(first["effect"], second["effect"]);
    let borrowed = json!({ "id": second["id"], "shown_digest": first["shown_digest"] });
    assert_eq!(code(&approve(&raw, &borrowed)).1, "shown_differs");
    borrow_approval(&host, &first, &second);
    let raw = Raw::of(&host);
    wait_for("the end of the request", || request(&raw, &second["id"])["status"] == "withdrawn");
    let refused = host.entries("approval.refused");
    let codes: Vec<&Value> = refused.iter().map(|entry| &entry["data"]["code"]).collect();
    assert_eq!(codes, ["approval_for_another"]);
    borrow_approval(&host, &second, &first);
    let raw = Raw::of(&host);
    wait_for("the end of the replay", || request(&raw, &first["id"])["status"] == "withdrawn");
    assert_eq!((one.counted(), two.counted()), (1, 0));
    assert_eq!(host.entries("request.used").len(), 1);
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn other_arguments_are_another_call() {
    let server = HttpServer::start(&[]);
    let host = host();
    ready(&host, "tests", &["--url", &server.url], None);
    let raw = Raw::of(&host);
    let asked = pending(&raw, "use tests__echo {\"text\":\"lilies\"}");
    delivered(&raw, &raw.send("a", "use tests__echo {\"text\":\"roses\"}"));
    let inbox = raw.get("/v1/waiting").1["entries"].clone();
    let other = inbox.as_array().and_then(|all| all.iter().find(|entry| entry["id"] != asked["id"])).expect("another");
    assert_eq!(
        (&asked["details"]["call"]["arguments"]["text"], &other["details"]["call"]["arguments"]["text"]),
        (&json!("lilies"), &json!("roses"))
    );
    assert_eq!(approve(&raw, &asked).0, 200);
    wait_for("the end of the call", || request(&raw, &asked["id"])["status"] == "done");
    assert_eq!(waiting(&raw)["id"], other["id"]);
    let started = host.entries("call.started");
    let digests: Vec<&Value> = started.iter().map(|entry| &entry["data"]["arguments_digest"]).collect();
    let used = host.entries("request.approved");
    assert_eq!(digests, [&used[0]["data"]["arguments_digest"]]);
}

#[test]
fn server_that_takes_over_a_name_has_no_grants() {
    let (old, new) = (HttpServer::start(&[]), HttpServer::start(&[]));
    let host = host();
    ready(&host, "tests", &["--url", &old.url], None);
    let raw = Raw::of(&host);
    let asked = pending(&raw, "use tests__count");
    let digest = add(&host, "tests", &["--url", &new.url])["digest"].as_str().expect("a digest").to_owned();
    let shown = show(&host, "tests");
    assert_eq!((&shown["state"], &shown["agents"]), (&json!("proposed"), &json!([])), "{shown}");
    let (said, _) = call(&host, "t1", "/allow send -- use tests__count");
    assert_eq!((&said["status"], &said["code"]), (&json!("refused"), &json!("call_tool_unknown")), "{said}");
    assert_eq!(code(&approve(&raw, &asked)).1, "call_withdrawn");
    let refused = host.ctl(&["--json", "mcp", "grant", "a", "tests", "--yes"]).refused("mcp_unconfirmed");
    assert_eq!(super::error(&refused.stderr)["code"], "mcp_unconfirmed");
    host.ctl(&["mcp", "confirm", "tests", "--digest", &digest, "--yes"]).ok();
    host.ctl(&["mcp", "grant", "a", "tests", "--yes"]).ok();
    let (said, _) = call(&host, "t2", "/allow send -- use tests__count");
    assert_eq!((&said["status"], old.counted(), new.counted()), (&json!("done"), 0, 1), "{said}");
}
