//! Tests of the bundled MCP server, from `mcp add demo` to its mailbox.
//!
//! They use the real programs with the scripted model. See `mcp` for other servers.

use super::mcp::{add, call};
use super::requests::waiting;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::jail_fixture::HostUser;
use serde_json::{Value, json};

const MAIL: &str = r#"use demo__send_mail {"to":"mara@example.org","subject":"plants","text":"tulips"}"#;

/// Returns a host of this user with an agent that has the tools of the bundled server.
fn host_of(user: HostUser) -> TestHost {
    let host = TestHost::with(user, Build::Plain, None).started_with("a");
    let added = add(&host, "demo", &[]);
    let digest = added["digest"].as_str().expect("a digest");
    host.ctl(&["mcp", "confirm", "demo", "--digest", digest, "--yes"]).ok();
    host.ctl(&["mcp", "grant", "a", "demo", "--yes"]).ok();
    host
}

/// Returns the answer to a call that the request asks for.
fn allowed(host: &TestHost, thread: &str, tool: &str) -> String {
    let (said, answer) = call(host, thread, &format!("/allow send -- use demo__{tool}"));
    assert_eq!(said["status"], "done", "{said}");
    answer
}

#[test]
fn demo_needs_no_setting_and_sends_one_mail_for_each_yes() {
    let host = host_of(HostUser::current());
    let shown: Value = host.ctl(&["--json", "mcp", "show", "demo"]).ok().json();
    assert_eq!(shown["command"], json!(["ironclaw-mcp-demo", "/usr/share/ironclaw-mcp-demo"]));
    assert_eq!((&shown["state"], &shown["transport"]), (&json!("confirmed"), &json!("stdio")));

    // The message asks for nothing, so the mail waits for its person.
    let raw = Raw::of(&host);
    let (status, recorded) = raw.say("a", MAIL, None);
    assert_eq!(status, 202, "{recorded}");
    wait_for("a request", || raw.get("/v1/waiting").1["entries"].as_array().is_some_and(|entries| !entries.is_empty()));
    assert_eq!(waiting(&raw)["details"]["call"]["arguments"]["to"], "mara@example.org");
    assert!(allowed(&host, "empty", "read_mailbox").contains("the mailbox is empty"));

    let (said, _) = call(&host, "mail", &format!("/allow send -- {MAIL} for mara@example.org"));
    assert_eq!((&said["status"], &said["tool"]), (&json!("done"), &json!("demo__send_mail")), "{said}");
    let mailbox = allowed(&host, "box", "read_mailbox");
    assert_eq!(mailbox.matches("mara@example.org").count(), 1, "{mailbox}");
    assert!(mailbox.contains("tulips"), "{mailbox}");
}

#[test]
fn demo_keeps_its_counter_over_a_restart_of_the_host() {
    let host = host_of(HostUser::Ordinary);
    assert!(allowed(&host, "one", "count").contains('1'));
    assert!(allowed(&host, "files", "list_files").contains("garden.txt"));
    let read = allowed(&host, "read", r#"read_file {"name":"garden.txt"}"#);
    assert!(read.contains("Tulips"), "{read}");
    host.ctl(&["down"]).ok();
    host.up();
    let counted = allowed(&host, "two", "count");
    assert!(counted.contains('2') && !counted.contains('1'), "{counted}");
}
