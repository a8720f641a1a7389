//! The host's share of a request to a model: its endpoint, and the whole way of the first word, compared with a bare request for the same
//! bytes to the same local server.
//!
//! Asserts no time: a noisy machine fails no bench, and only the differences of one run are meaningful. See `docs/performance.md`.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

#[path = "../round/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "../round/figures.rs"]
#[allow(dead_code)]
mod figures;
#[path = "../../tests/support/host_fixture.rs"]
#[allow(dead_code)]
mod host_fixture;
#[path = "../../tests/support/jail_fixture.rs"]
#[allow(dead_code)]
mod jail_fixture;
#[path = "../../examples/model_server/server.rs"]
#[allow(dead_code)]
mod server;
mod whole_way;

use figures::{Report, Samples};
use ironclaw_contract::seam::socket::Purpose;
use ironclaw_model::endpoint::{self, Bounds, Candidate, Kind, Prices, Spec};
use ironclaw_model::streaming::PartialAnswer;
use ironclaw_model::{Allowance, Part, Prompt};
use server::{Act, Server};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Requests of one kind in a row, so that a slow minute of the machine affects both kinds.
const BLOCK: usize = 20;
/// Uncounted requests of each kind, and counted blocks.
const WARM_UP: usize = 20;
const BLOCKS: usize = 15;
/// Words of an answer.
const WORDS: usize = 64;
/// Messages of the conversation, and bytes of each.
const HISTORY: usize = 64;
const MESSAGE_BYTES: usize = 512;
/// The goal in milliseconds.
const GOAL_MS: f64 = 1.0;

fn main() {
    let mut report = Report::default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    let server = Server::start(|_| Act::Say("word ".repeat(WORDS)));
    for kind in [Kind::Openai, Kind::Anthropic] {
        for streams in [true, false] {
            measure(&mut report, &runtime, &server, kind, streams);
        }
    }
    whole_way::measure(&mut report);
    report.print();
}

fn measure(report: &mut Report, runtime: &tokio::runtime::Runtime, server: &Server, kind: Kind, streams: bool) {
    let candidates = [candidate(server, kind, streams)];
    let prompt = prompt();
    let ask = || runtime.block_on(ask(&candidates, &prompt));
    ask();
    // The bare request sends the same body as the endpoint.
    let body = server.seen().pop().expect("it was asked").body.to_string();
    let mut bare = Bare::connect(&server.url(), kind, body);
    for _ in 0..WARM_UP {
        ask();
        bare.ask();
    }
    let mut found: [Samples; 4] = Default::default();
    for _ in 0..BLOCKS {
        for _ in 0..BLOCK {
            let (first, whole) = ask();
            found[0].push(first);
            found[1].push(whole);
        }
        for _ in 0..BLOCK {
            let (first, whole) = bare.ask();
            found[2].push(first);
            found[3].push(whole);
        }
    }
    let name = match kind {
        Kind::Openai => "chat completions",
        Kind::Anthropic => "messages",
        Kind::Scripted => "script",
    };
    let how = if streams { "streamed" } else { "whole" };
    let [first, whole, bare_first, bare_whole] = &found;
    let key = |what: &str| format!("{}_{how}_{what}", name.replace(' ', "_"));
    if streams {
        report.times(&key("first"), &format!("{name}, {how}: asked → first word"), first);
        report.times(&key("bare_first"), "  … a bare request", bare_first);
        let added = first.p50() - bare_first.p50();
        report.milliseconds(&key("first_added"), &format!("  … added (goal: at most {GOAL_MS} ms)"), added);
    }
    report.times(&key("whole"), &format!("{name}, {how}: asked → all of it"), whole);
    report.times(&key("bare_whole"), "  … a bare request", bare_whole);
    report.milliseconds(&key("whole_added"), "  … added", whole.p50() - bare_whole.p50());
}

fn candidate(server: &Server, kind: Kind, streams: bool) -> Candidate {
    let base = match kind {
        Kind::Openai => format!("{}/v1", server.url()),
        Kind::Anthropic | Kind::Scripted => server.url(),
    };
    let spec = Spec {
        name: "local".to_owned(),
        kind,
        base_url: Some(base.parse().expect("a URL")),
        model: "small".to_owned(),
        key: None,
        fallbacks: Vec::new(),
        prices: Prices::default(),
        streams,
        takes_images: false,
        settings: Default::default(),
    };
    let endpoints = endpoint::open(&ironclaw_model::Config::default(), vec![spec]).expect("it opens");
    Candidate { endpoint: endpoints.get("local").expect("it is there").clone(), key: None, context_tokens: None }
}

/// Returns a conversation of a usual length.
fn prompt() -> Prompt {
    let said = |number: usize| {
        let text = format!("{number} ").repeat(MESSAGE_BYTES).split_at(MESSAGE_BYTES).0.to_owned();
        match number % 2 {
            0 => Part::Person { text },
            _ => Part::Assistant { text, calls: Vec::new(), attached: None },
        }
    };
    let parts = (0..=HISTORY).map(said).collect();
    Prompt { purpose: Purpose::Reply, system: "You are a test.".to_owned(), tools: Vec::new(), parts }
}

/// Returns the seconds until a listener gets the first word, and until the output is complete.
async fn ask(candidates: &[Candidate], prompt: &Prompt) -> (f64, f64) {
    let draft = PartialAnswer::default();
    let mut words = draft.watch();
    let begun = Instant::now();
    let first = tokio::spawn(async move {
        let seen = words.wait_for(|words| !words.text.is_empty()).await;
        seen.is_ok().then(|| begun.elapsed().as_secs_f64())
    });
    let until = tokio::time::Instant::now() + Duration::from_secs(60);
    let answered = endpoint::generate(candidates, prompt, Bounds { until, allowance: Allowance::NONE }, &draft)
        .await
        .expect("it is answered");
    let whole = begun.elapsed().as_secs_f64();
    assert_eq!(answered.output.text.split_whitespace().count(), WORDS);
    drop(draft);
    (first.await.expect("watching does not panic").unwrap_or(whole), whole)
}

/// A kept-alive connection and a prepared request: the minimal work of a request.
struct Bare {
    stream: BufReader<TcpStream>,
    request: String,
}

impl Bare {
    fn connect(url: &str, kind: Kind, body: String) -> Self {
        let address = url.strip_prefix("http://").expect("plain http");
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).expect("set");
        let (path, header) = match kind {
            Kind::Openai => ("/v1/chat/completions", ""),
            Kind::Anthropic | Kind::Scripted => ("/v1/messages", "anthropic-version: 2023-06-01\r\n"),
        };
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n{header}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        Self { stream: BufReader::new(stream), request }
    }

    fn ask(&mut self) -> (f64, f64) {
        let begun = Instant::now();
        self.stream.get_mut().write_all(self.request.as_bytes()).expect("the server reads");
        let mut length = None;
        loop {
            let header = self.line().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length: ") {
                length = Some(value.parse::<usize>().expect("a length"));
            }
        }
        let mut first = None;
        if let Some(length) = length {
            let mut body = vec![0; length];
            self.stream.read_exact(&mut body).expect("a body");
        } else {
            loop {
                let size = usize::from_str_radix(&self.line(), 16).expect("the size of a chunk");
                let mut chunk = vec![0; size + 2];
                self.stream.read_exact(&mut chunk).expect("a chunk");
                if first.is_none() && chunk.windows(4).any(|part| part == b"word") {
                    first = Some(begun.elapsed().as_secs_f64());
                }
                if size == 0 {
                    break;
                }
            }
        }
        let whole = begun.elapsed().as_secs_f64();
        (first.unwrap_or(whole), whole)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }
}
