//! Tests of browsers in the jails of MCP servers: their pages, and one that takes a page of a granted host.
//!
//! `security/mcp_jail.rs` tests what the jail shows, and `tunnels` that the gateway refuses an encrypted ClientHello.

use super::mcp::{call, ready};
use crate::support::host_fixture::{Build, TestHost};
use crate::support::needs::needs;
use crate::support::site::LOOPBACK;
use crate::support::tls_site::{PAGE, TlsSite};
use serde_json::json;

/// The extension with an encrypted ClientHello.
const ECH: u16 = 0xfe0d;

#[test]
fn page_names_the_jail_of_a_browser_and_what_lacks_one() {
    needs("apt-get");
    needs("npm");
    let host = TestHost::own(Build::Plain).started_with("a");
    let playwright = "@playwright/mcp@0.0.83";
    for (kind, agent, payload, is_browser, lacks) in [
        (
            "mcp_register",
            None,
            json!({ "name": "one", "command": ["x"], "packages": { "apt": ["chromium"], "npm": [playwright] } }),
            true,
            false,
        ),
        (
            "mcp_register",
            None,
            json!({ "name": "two", "command": ["x"], "packages": { "npm": [playwright] } }),
            false,
            true,
        ),
        (
            "mcp_register",
            None,
            json!({ "name": "three", "command": ["x"], "packages": { "npm": ["cowsay"] } }),
            false,
            false,
        ),
        ("packages", Some("a"), json!({ "apt": ["chromium"], "npm": [] }), true, false),
        ("packages", Some("a"), json!({ "apt": [], "npm": ["puppeteer"] }), false, true),
        ("packages", Some("a"), json!({ "apt": ["chromium-headless-shell"], "npm": [playwright] }), false, true),
    ] {
        let payload = payload.to_string();
        let words = ["--json", "change", "submit", "--kind", kind, "--payload", &payload, "--reason", "it is time"];
        let of_agent: &[&str] = if agent.is_some() { &["--agent", "a"] } else { &[] };
        let submitted = host.ctl(&[&words[..], of_agent].concat()).ok().json();
        let id = submitted["id"].as_str().expect("an id").to_owned();
        let page = host.ctl(&["inbox", "show", &id]).ok().stdout;
        let found = (page.contains("EncryptedClientHelloEnabled=false"), page.contains("NO BROWSER"));
        assert_eq!(found, (is_browser, lacks), "{payload}: {page}");
        let shell = payload.contains("headless-shell");
        let found = (page.contains("WITHOUT A SANDBOX"), page.contains("REFUSED BROWSER"));
        assert_eq!(found, (is_browser, shell), "{payload}: {page}");
        host.ctl(&["reject", &id]).ok();
    }
}

#[test]
#[ignore = "it needs the registries of apt and npm; `.ci/long browser` runs it"]
fn published_browser_takes_a_page_of_a_granted_host() {
    needs("apt-get");
    needs("npm");
    let site = TlsSite::start();
    let host = TestHost::own(Build::Plain).configured(LOOPBACK).started_with("a");
    let reached = format!("localhost:{}", site.port);
    let packages =
        ["--npm", "@playwright/mcp@0.0.83", "--apt", "chromium", "--host", &reached, "--upload-bytes", "1048576"];
    let command = ["--", "playwright-mcp", "--headless", "--isolated", "--ignore-https-errors"];
    let browser = ["--executable-path", "/usr/bin/chromium"];
    ready(&host, "browser", &[&packages[..], &command, &browser].concat(), None);
    let arguments = json!({ "url": format!("https://{reached}/page") });
    let (said, answer) = call(&host, "t1", &format!("/allow send -- use browser__browser_navigate {arguments}"));
    assert_eq!(said["status"], "done", "{said} {answer}");
    let (said, answer) = call(&host, "t2", "/allow send -- use browser__browser_snapshot {}");
    assert!(said["status"] == "done" && answer.contains(PAGE), "{said} {answer}");
    let hellos = site.extensions();
    assert!(!hellos.is_empty() && hellos.iter().all(|hello| !hello.contains(&ECH)), "{hellos:x?}");
    let arguments = json!({ "url": "https://other.example/" });
    let (_, answer) = call(&host, "t3", &format!("/allow send -- use browser__browser_navigate {arguments}"));
    assert!(answer.contains("egress_new_host") && answer.contains("other.example"), "{answer}");
}
