//! Tests of MCP servers from their registration to the result of a call: at a URL on loopback, and as a program in a jail.
//!
//! They use the real programs with the scripted model, and the servers of `support::mcp_server`.

use super::requests::{approve, last_answer, waiting};
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::mcp_server::{ECHO_READS, HttpServer, program};
use serde_json::{Value, json};

/// Returns a host of this user with an agent.
pub(crate) fn host() -> TestHost {
    TestHost::own(Build::Plain).started_with("a")
}

/// Adds a server, and returns what `mcp add --json` prints.
pub(crate) fn add(host: &TestHost, name: &str, place: &[&str]) -> Value {
    let words = [["--json", "mcp", "add", name, "--yes"].as_slice(), place].concat();
    host.ctl(&words).ok().json()
}

/// Adds, confirms and grants a server.
pub(crate) fn ready(host: &TestHost, name: &str, place: &[&str], manifest: Option<&str>) {
    let added = add(host, name, place);
    let digest = added["digest"].as_str().expect("a digest").to_owned();
    let file = host.home.with_file_name("manifest.toml");
    let mut words = vec!["--json", "mcp", "confirm", name, "--digest", &digest, "--yes"];
    if let Some(manifest) = manifest {
        std::fs::write(&file, manifest).expect("written");
        words.extend(["--manifest", file.to_str().expect("UTF-8")]);
    }
    host.ctl(&words).ok();
    host.ctl(&["mcp", "grant", "a", name, "--yes"]).ok();
}
pub(crate) fn show(host: &TestHost, name: &str) -> Value {
    host.ctl(&["--json", "mcp", "show", name]).ok().json()
}

/// Asks the agent for a call in a conversation of its own, whose context has no text of others. Returns the judged call and the answer.
pub(crate) fn call(host: &TestHost, thread: &str, words: &str) -> (Value, String) {
    let said = host.ctl(&["--json", "chat", "a", "--thread", thread, words]).json();
    (said["calls"][0].clone(), said["reply"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn tool_of_a_server_is_confirmed_granted_asked_for_and_called() {
    let server = HttpServer::start(&[]);
    let host = host();
    let added = add(&host, "tests", &["--url", &server.url]);
    assert_eq!((&added["server"], added["change"].is_string()), (&json!("tests"), true), "{added}");
    let tools = added["tools"].as_array().expect("a list");
    let echo = tools.iter().find(|tool| tool["name"] == "echo").expect("echo");
    // Its server says that it only reads. People did not confirm that.
    assert_eq!((&echo["class"], &echo["arguments"]["text"]["rule"]), (&json!("read"), &json!("free")), "{echo}");
    assert_eq!(show(&host, "tests")["state"], "proposed");

    let refused = host.ctl(&["--json", "mcp", "grant", "a", "tests", "--yes"]).refused("confirm");
    assert!(refused.stderr.contains("mcp_unconfirmed"), "{}", refused.stderr);
    let digest = added["digest"].as_str().expect("a digest");
    host.ctl(&["mcp", "confirm", "tests", "--digest", digest, "--yes"]).ok();
    assert_eq!(show(&host, "tests")["state"], "confirmed");
    host.ctl(&["mcp", "grant", "a", "tests", "--yes"]).ok();

    // The message asks for nothing, so a call of the class `send` waits for its person.
    let raw = Raw::of(&host);
    let (status, recorded) = raw.say("a", "use tests__echo {\"text\":\"tulips\"}", None);
    assert_eq!(status, 202, "{recorded}");
    wait_for("a request", || raw.get("/v1/waiting").1["entries"].as_array().is_some_and(|entries| !entries.is_empty()));
    let entry = waiting(&raw);
    assert_eq!(entry["details"]["call"]["arguments"], json!({ "text": "tulips" }), "{entry}");
    assert!(entry["effect"].as_str().is_some_and(|effect| effect.contains("MCP server \"tests\"")), "{entry}");
    assert_eq!(approve(&raw, &entry).0, 200);
    wait_for("the result", || last_answer(&host).contains("tulips"));

    // A message that asks to send is its own yes.
    let (said, answer) = call(&host, "t", "/allow send -- use tests__echo {\"text\":\"roses\"}");
    assert_eq!((&said["status"], &said["tool"]), (&json!("done"), &json!("tests__echo")), "{said}");
    assert!(answer.contains("roses"), "{answer}");
}

#[test]
fn loosened_tool_runs_without_a_question() {
    let server = HttpServer::start(&[]);
    let host = host();
    ready(&host, "tests", &["--url", &server.url], Some(ECHO_READS));
    let (said, _) = call(&host, "t", "use tests__echo {\"text\":\"tulips\"}");
    assert_eq!((&said["status"], &said["class"]), (&json!("done"), &json!("read")), "{said}");
    let (counted, _) = call(&host, "t", "use tests__count");
    assert_eq!(counted["status"], "asked", "the others keep the strictest manifest: {counted}");
}

#[test]
fn changed_tool_is_refused_until_it_is_confirmed_again() {
    let server = HttpServer::start(&["--behave", "changed"]);
    let host = host();
    ready(&host, "tests", &["--url", &server.url], Some(ECHO_READS));
    // The second listing differs.
    let tested = host.ctl(&["--json", "mcp", "test", "tests"]);
    assert_eq!(tested.code, 1, "{}", tested.stderr);
    let shown = show(&host, "tests");
    assert_eq!(shown["state"], "changed", "{shown}");
    let (said, _) = call(&host, "t", "/allow send -- use tests__echo {\"text\":\"tulips\"}");
    assert_eq!((&said["status"], &said["code"]), (&json!("refused"), &json!("call_server_changed")), "{said}");
    let digest = shown["digest"].as_str().expect("a digest").to_owned();
    host.ctl(&["mcp", "confirm", "tests", "--digest", &digest, "--yes"]).ok();
    let (said, _) = call(&host, "t", "/allow send -- use tests__echo {\"text\":\"tulips\"}");
    assert_eq!(said["status"], "done", "{said}");
}

#[test]
fn program_in_a_jail_is_a_server_without_a_network() {
    let directory = program();
    let host = host();
    host.configure(&format!("[mounts]\nallow = [{:?}]\n", directory.path().to_str().expect("UTF-8")));
    host.ctl(&["config", "reload"]).ok();
    let path = directory.path().to_str().expect("UTF-8");
    let script = format!("/{}/server.pl", path.rsplit('/').next().expect("a name"));
    ready(&host, "local", &["--mount", path, "--", "perl", &script], None);
    assert_eq!(show(&host, "local")["transport"], "stdio");
    for (at, words) in
        [("/state", "home"), ("/workspace", "cannot look"), ("/proc", "cannot look"), ("/root", "cannot look")]
    {
        let wanted = format!("/allow send -- use local__look {{\"at\":\"{at}\"}} for {at}");
        let (_, answer) = call(&host, at.trim_start_matches('/'), &wanted);
        assert!(answer.contains(words), "{at}: {answer}");
    }
    let (_, answer) = call(&host, "t2", "/allow send -- use local__connect {\"port\":\"22\"}");
    assert!(answer.contains("refused by the jail"), "{answer}");
    // Each call reaches the same process, and a new one keeps its state.
    call(&host, "t3", "/allow send -- use local__count");
    call(&host, "t4", "/allow send -- use local__end");
    let (_, answer) = call(&host, "t5", "/allow send -- use local__count");
    assert!(answer.contains("count 2"), "{answer}");
}

#[test]
fn secret_in_an_error_of_a_listing_is_removed() {
    const KEY: &str = "s3cret-of-papers-00000000";
    let (server, directory) = (HttpServer::start(&["--behave", "leak"]), program());
    let path = directory.path().to_str().expect("UTF-8");
    let script = format!("/{}/server.pl", path.rsplit('/').next().expect("a name"));
    let host = host();
    host.configure(&format!("[mounts]\nallow = [{path:?}]\n"));
    host.ctl(&["config", "reload"]).ok();
    host.ctl_given(KEY, &["secret", "set", "papers"]).ok();
    ready(&host, "web", &["--url", &server.url, "--header", "Authorization=Bearer secret:papers"], None);
    ready(&host, "local", &["--mount", path, "--env", "KEY=secret:papers", "--", "perl", &script], None);
    std::fs::write(directory.path().join("leak"), "").expect("written");
    for name in ["web", "local"] {
        let tested = host.ctl(&["mcp", "test", name]);
        assert_eq!(tested.code, 1, "{}", tested.stderr);
        let listed = host.ctl(&["--json", "mcp", "list"]).ok().stdout;
        let (_, answer) = call(&host, name, &format!("/allow send -- use {name}__count"));
        for words in [tested.stderr, listed, answer] {
            assert!(words.contains("[secret removed]") && words.contains("is too old"), "{name}: {words}");
            assert!(!words.contains(KEY), "{name}: {words}");
        }
    }
}
