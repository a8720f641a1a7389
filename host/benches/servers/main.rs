//! The times of calls of MCP servers, of the judgement of control fields, of starts, of large catalogues, and of a clone through the gateway of
//! commands.
//!
//! Asserts no time: a noisy machine fails no bench, and only the ratios of one run are meaningful. See `docs/performance.md`.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

mod bare;
mod calls;
mod catalogue;
#[path = "../round/client.rs"]
mod client;
mod clone;
#[path = "../round/figures.rs"]
#[allow(dead_code)]
mod figures;
#[path = "../../tests/support/git_site.rs"]
#[allow(dead_code)]
mod git_site;
#[path = "../../tests/support/host_fixture.rs"]
#[allow(dead_code)]
mod host_fixture;
#[path = "../../tests/support/jail_fixture.rs"]
#[allow(dead_code)]
mod jail_fixture;
mod judged;
#[path = "../../tests/support/mcp_server.rs"]
#[allow(dead_code)]
mod mcp_server;
#[path = "../round/memory.rs"]
#[allow(dead_code)]
mod memory;
#[path = "../../tests/support/needs.rs"]
#[allow(dead_code)]
mod needs;
mod starts;
#[path = "../../tests/support/tls_site.rs"]
#[allow(dead_code)]
mod tls_site;

use client::Client;
use figures::Report;
use host_fixture::TestHost;
use serde_json::Value;
use std::path::Path;
use std::time::Instant;

fn main() {
    let part = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wanted = |name| part.as_deref().is_none_or(|part| part == name);
    host_fixture::cargo(
        &["build", "-p", "ironclaw-mcp", "--example", "mcp_server"],
        Path::new(env!("CARGO_BIN_EXE_ironclaw-host")),
    );
    let mut report = Report::default();
    if wanted("calls") {
        calls::bench(&mut report);
    }
    if wanted("judged") {
        judged::bench(&mut report);
    }
    if wanted("starts") {
        starts::bench(&mut report);
    }
    if wanted("catalogue") {
        catalogue::bench(&mut report);
    }
    if wanted("clone") {
        clone::bench(&mut report);
    }
    report.print();
}

/// Starts a host of the current user with these settings, because the host serves no client of another user.
fn home(settings: &str) -> TestHost {
    let user =
        if nix::unistd::geteuid().is_root() { jail_fixture::HostUser::Root } else { jail_fixture::HostUser::Ordinary };
    let host = TestHost::with(user, host_fixture::Build::Plain, None);
    host.configure(settings);
    host.up();
    host
}

/// Adds and confirms a server, with this manifest unless it is empty.
fn add(host: &TestHost, name: &str, place: &[&str], manifest: &str) {
    let words = [["--json", "mcp", "add", name, "--yes"].as_slice(), place].concat();
    let added: Value = host.ctl(&words).ok().json();
    let digest = added["digest"].as_str().expect("a digest").to_owned();
    let file = host.home.with_file_name("manifest.toml");
    std::fs::write(&file, manifest).expect("written");
    let with_manifest = ["--manifest", file.to_str().expect("UTF-8")];
    let options = if manifest.is_empty() { &[][..] } else { &with_manifest };
    host.ctl(&[&["mcp", "confirm", name, "--digest", &digest, "--yes"], options].concat()).ok();
}

/// Sends one message and waits for its receipt. Returns the seconds.
fn say(client: &mut Client, agent: &str, text: &str) -> f64 {
    say_with(client, agent, &serde_json::json!({ "text": text }))
}

/// The same with a whole body.
fn say_with(client: &mut Client, agent: &str, body: &Value) -> f64 {
    let body = body.to_string();
    let begun = Instant::now();
    let recorded = client.post(&format!("/v1/agents/{agent}/messages"), &body);
    let id = recorded["message_id"].as_str().expect("a message id").to_owned();
    let view = client.get(&format!("/v1/messages/{id}?wait_ms=60000"));
    let took = begun.elapsed().as_secs_f64();
    assert_eq!(view["status"], "delivered", "{view}");
    took
}
