//! Tests of MCP servers in jails that reach hosts of the network, and of everything that they do not reach.
//!
//! They use the real programs with the scripted model, and a TLS server on loopback. The server is the script of `support::mcp_server`,
//! which asks by `curl`.

use super::mcp::{add, call, ready, show};
use crate::e2e::calls::why_last_call;
use crate::e2e::facts::page;
use crate::e2e::requests::waiting;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::mcp_server::program;
use crate::support::needs::needs;
use crate::support::site::LOOPBACK;
use crate::support::tls_site::{PAGE, TlsSite};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Starts a TLS server, and a host that admits the directory with the script and the certificate of the server.
fn host_with_site() -> (TlsSite, TestHost, TempDir) {
    let (site, directory) = (TlsSite::start(), program());
    std::fs::write(directory.path().join("ca.pem"), &site.certificate).expect("written");
    let path = directory.path().to_str().expect("UTF-8");
    let settings = format!("{LOOPBACK}[mounts]\nallow = [{path:?}]\n");
    let host = TestHost::own(Build::Plain).configured(&settings).started_with("a");
    (site, host, directory)
}

/// Returns the words of `mcp add` for the script with these options.
fn place<'a>(directory: &'a TempDir, options: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let path = directory.path().to_str().expect("UTF-8");
    [&["--mount", path][..], options, &["--", "perl", script]].concat()
}

fn script(directory: &TempDir) -> String {
    format!("/{}/server.pl", directory.path().file_name().expect("a name").to_str().expect("UTF-8"))
}

/// Has the server ask for an address with a body of so many bytes, in a conversation of its own.
fn ask(host: &TestHost, thread: &str, url: &str, bytes: usize) -> String {
    needs("curl");
    let arguments = json!({ "url": url, "bytes": bytes.to_string() });
    call(host, thread, &format!("/allow send -- use forge__ask {arguments} for {url} with {bytes} bytes")).1
}

fn noted(host: &TestHost) -> Value {
    host.entries("call.network").last().expect("an entry")["data"].clone()
}

#[test]
fn server_reaches_its_named_host_alone() {
    let (site, host, directory) = host_with_site();
    let (script, reached) = (script(&directory), format!("localhost:{}", site.port));
    ready(&host, "forge", &place(&directory, &["--host", &reached], &script), None);
    let shown = show(&host, "forge");
    let hosts = json!([{ "host": "localhost", "port": site.port, "upload_bytes_max": 65_536 }]);
    assert_eq!((&shown["hosts"], &shown["state"]), (&hosts, &json!("confirmed")), "{shown}");

    let answer = ask(&host, "good", &format!("https://{reached}/page"), 0);
    assert!(answer.contains(PAGE), "{answer}");
    let entry = noted(&host);
    assert_eq!(
        (&entry["tunnels"], &entry["refused"], &entry["hosts"]),
        (&json!(1), &json!(0), &json!(reached)),
        "{entry}"
    );

    let answer = ask(&host, "other", "https://example.org/page", 0);
    assert!(answer.contains("[the gateway refused CONNECT example.org:443: egress_new_host]"), "{answer}");
    let why = why_last_call(&host).to_string();
    assert!(why.contains("the gateway refused CONNECT example.org:443"), "the person sees the attempt: {why}");
    assert_eq!((&noted(&host)["codes"], &noted(&host)["refused"]), (&json!("egress_new_host"), &json!(1)));
    ask(&host, "plain", &format!("http://{reached}/page"), 0);
    let (_, answer) = call(
        &host,
        "direct",
        &format!("/allow send -- use forge__connect {{\"port\":\"{0}\"}} for port {0}", site.port),
    );
    assert!(answer.contains("refused by the jail"), "{answer}");
    assert_eq!(site.requests().len(), 1, "nothing else arrived: {:?}", site.requests());
    host.ctl(&["audit", "verify"]).ok();
}

/// A manifest of the script whose tool `look` only reads, with an argument that its operator marked as outward.
const LOOK_READS: &str = "[[tool]]\nname = \"look\"\nclass = \"read\"\nreach = \"outside\"\n\
    effect = \"lists {at}\"\narguments.at = { rule = \"free\", outward = true }\n";

#[test]
fn value_stays_with_a_server_without_a_network() {
    let (site, host, directory) = host_with_site();
    let (script, reached) = (script(&directory), format!("localhost:{}", site.port));
    ready(&host, "jailed", &place(&directory, &[], &script), Some(LOOK_READS));
    ready(&host, "hosted", &place(&directory, &["--host", &reached], &script), Some(LOOK_READS));
    let raw = Raw::of(&host);
    for (server, place, leaves) in [("jailed", "in a jail without a network", false), ("hosted", "localhost", true)] {
        call(&host, server, &format!("use {server}__connect {{\"port\":\"8129\"}}"));
        let entry = waiting(&raw);
        let shown = page(&raw, &entry);
        assert!(shown.contains(place), "{shown}");
        assert_eq!(entry["details"]["call"]["origins"] != json!([]), leaves, "{entry}");
        assert_eq!(shown.contains("no value leaves this machine"), !leaves, "{shown}");
        host.ctl(&["reject", entry["id"].as_str().expect("an id")]).ok();
        // The first result is text of others, and the second value is no typed one: it is too short for a word.
        let words = format!("use {server}__look {{\"at\":\"/\"}}");
        let thread = format!("{server}-look");
        assert_eq!(call(&host, &thread, &words).0["status"], "done", "{server}");
        let (said, _) = call(&host, &thread, &words);
        assert_eq!(said["status"], if leaves { "asked" } else { "done" }, "{said}");
        if leaves {
            assert_eq!(waiting(&raw)["reasons"][0]["reason"], "call_outward");
        }
    }
}

#[test]
fn server_sends_no_more_than_its_bound_in_a_call() {
    let (site, host, directory) = host_with_site();
    let (script, reached) = (script(&directory), format!("localhost:{}", site.port));
    let options = ["--host", &reached, "--upload-bytes", "4000"];
    ready(&host, "forge", &place(&directory, &options, &script), None);
    let url = format!("https://{reached}/page");
    let answer = ask(&host, "much", &url, 9_000);
    assert!(answer.contains("egress_upload") && !answer.contains(PAGE), "{answer}");
    // Each call has the whole bound.
    for thread in ["one", "two", "three"] {
        let answer = ask(&host, thread, &url, 1_000);
        assert!(answer.contains(PAGE), "{answer}");
    }
}

#[test]
fn host_that_no_server_may_reach_is_refused() {
    let (_site, host, directory) = host_with_site();
    let script = script(&directory);
    for wrong in ["*.example.org", "192.0.2.1", "example.org:53", "169.254.169.254"] {
        let words = [&["--json", "mcp", "add", "forge", "--yes"][..], &place(&directory, &["--host", wrong], &script)];
        let refused = host.ctl(&words.concat()).refused("host");
        assert!(refused.stderr.contains("mcp_host"), "{wrong}: {}", refused.stderr);
    }
    let usage = host.ctl(&["mcp", "add", "forge", "--url", "https://forge.example/mcp", "--host", "forge.example"]);
    assert_eq!(usage.code, 2, "{}", usage.stderr);
    let variable = ["--host", "forge.example", "--env", "https_proxy=text:http://192.0.2.1"];
    let words = [&["--json", "mcp", "add", "forge", "--yes"][..], &place(&directory, &variable, &script)];
    assert!(host.ctl(&words.concat()).refused("https_proxy").stderr.contains("mcp_environment"));
}

#[test]
fn another_host_needs_a_confirmation_of_the_tools() {
    let (site, host, directory) = host_with_site();
    let (script, reached) = (script(&directory), format!("localhost:{}", site.port));
    ready(&host, "forge", &place(&directory, &[], &script), None);
    let (_, answer) = call(&host, "none", "/allow send -- use forge__connect {\"port\":\"8129\"} for port 8129");
    assert!(answer.contains("refused by the jail"), "a server without hosts has no gateway: {answer}");
    add(&host, "forge", &place(&directory, &["--host", &reached], &script));
    let (said, _) =
        call(&host, "more", &format!("/allow send -- use forge__ask {{\"url\":\"https://{reached}/page\"}}"));
    assert_eq!(said["status"], "refused", "{said}");
    assert!(site.requests().is_empty(), "{:?}", site.requests());
}
