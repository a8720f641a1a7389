//! The first word of a model on its whole way: from the model through a running host to the stream of a person.
//!
//! The model waits a moment before its first word, so that the person's stream is open by then. The bare request waits as long.

use super::client::Client;
use super::figures::{Report, Samples};
use super::host_fixture::{Build, TestHost};
use super::jail_fixture::HostUser;
use super::server::{Act, Server};
use super::{BLOCK, BLOCKS, Bare, GOAL_MS};
use ironclaw_model::endpoint::Kind;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The time that the model waits before its first word.
const THINKS: Duration = Duration::from_millis(20);

pub(crate) fn measure(report: &mut Report) {
    let asked = Arc::new(Mutex::new(Instant::now()));
    let server = {
        let asked = Arc::clone(&asked);
        Server::start(move |_| {
            *asked.lock().expect("no holder panics") = Instant::now();
            Act::After(THINKS, Box::new(Act::Say("word ".repeat(super::WORDS))))
        })
    };
    let host = host(&server);
    let mut person = Person::of(&host);
    let asked_at = || *asked.lock().expect("no holder panics");
    let (sent, first) = person.message();
    assert!(sent < first, "the person gets the word after the message");
    let body = server.seen().pop().expect("it was asked").body.to_string();
    let mut bare = Bare::connect(&server.url(), Kind::Openai, body);
    let mut found: [Samples; 3] = Default::default();
    // The first block is not counted.
    for block in 0..=BLOCKS {
        for _ in 0..BLOCK {
            let (sent, first) = person.message();
            if block > 0 {
                found[0].push((asked_at() - sent).as_secs_f64());
                found[1].push((first - asked_at()).as_secs_f64());
            }
        }
        for _ in 0..BLOCK {
            let begun = Instant::now();
            let (first, _) = bare.ask();
            if block > 0 {
                found[2].push((begun + Duration::from_secs_f64(first) - asked_at()).as_secs_f64());
            }
        }
    }
    let [way_there, way_back, bare] = &found;
    report.times("whole_asked", "whole way: message → the model is asked", way_there);
    report.times("whole_first", "whole way: the model is asked → first word at the person", way_back);
    report.times("whole_bare", "  … at a bare client", bare);
    let added = way_back.p50() - bare.p50();
    report.milliseconds("whole_added", &format!("  … added (goal: at most {GOAL_MS} ms)"), added);
}

fn host(server: &Server) -> TestHost {
    let user = if nix::unistd::geteuid().is_root() { HostUser::Root } else { HostUser::Ordinary };
    let host = TestHost::with(user, Build::Plain, None);
    host.up();
    let base = format!("{}/v1", server.url());
    host.ctl(&["model", "add", "m", "--kind", "openai", "--base-url", &base, "--model", "small", "--no-test"]).ok();
    host.ctl(&["agent", "add", "a", "--model", "m"]).ok();
    host
}

/// A person who follows each of their messages.
struct Person {
    client: Client,
    socket: String,
    token: String,
}

impl Person {
    fn of(host: &TestHost) -> Self {
        let read = |name: &str| std::fs::read_to_string(host.home.join(name)).expect("a running host's home");
        let run: Value = serde_json::from_str(&read("run.json")).expect("JSON");
        let socket = run["socket"].as_str().expect("a path").to_owned();
        Self { client: Client::connect(host), socket, token: read("owner.token").trim().to_owned() }
    }

    /// Sends a message and follows it to its end. Returns the times at which it was sent and at which the first word arrived.
    fn message(&mut self) -> (Instant, Instant) {
        let mut stream = UnixStream::connect(&self.socket).expect("the host listens");
        let sent = Instant::now();
        let recorded = self.client.post("/v1/agents/a/messages", r#"{"text":"hello"}"#);
        let id = recorded["message_id"].as_str().expect("a message id");
        let token = &self.token;
        let request = format!(
            "GET /v1/messages/{id}/events HTTP/1.1\r\nhost: ironclaw\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("the host reads");
        let mut first = None;
        for line in BufReader::new(stream).lines() {
            if line.expect("the stream of the message") == "event: draft" {
                first.get_or_insert_with(Instant::now);
            }
        }
        (sent, first.expect("the model's first word"))
    }
}
