//! Tests of endpoints with a loopback server that fails in every way, through the library.
//!
//! They start no daemon. See `fallbacks`, `profiles`, `sent_back`, `settings` (which starts a daemon) and `examples/model_server/server.rs`.

mod fallbacks;
mod profiles;
mod sent_back;
mod settings;

use crate::support::model_server::{Act, Api, Seen, Server};
use ironclaw_contract::seam::limits::BODY_BYTES_MAX;
use ironclaw_contract::seam::socket::Purpose;
use ironclaw_model::endpoint::{self, Bounds, Candidate, Endpoint, Endpoints, Kind, Prices, Spec};
use ironclaw_model::fault::Failed;
use ironclaw_model::streaming::PartialAnswer;
use ironclaw_model::{Allowance, Answered, Config, Error, Part, PastCall, Prompt, ToolSchema, Usage};
use ironclaw_state::keys::SecretText;
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// A secret in every failing answer. No other output may contain it.
const KEY: &str = "sk-not-to-be-seen-anywhere";
const WORDS: &str = "words of the provider";

/// Both APIs, with and without streaming.
const VARIANTS: [(Kind, bool); 4] =
    [(Kind::Openai, false), (Kind::Openai, true), (Kind::Anthropic, false), (Kind::Anthropic, true)];

pub(crate) fn spec(name: &str, (kind, streams): (Kind, bool), base: &str) -> Spec {
    Spec {
        name: name.to_owned(),
        kind,
        base_url: Some(Url::parse(base).expect("a URL")),
        model: "small".to_owned(),
        key: Some("test-key".to_owned()),
        fallbacks: Vec::new(),
        prices: Prices { input: 1_000_000, output: 2_000_000 },
        streams,
        takes_images: false,
        settings: Default::default(),
    }
}

pub(crate) fn open(config: &Config, specs: Vec<Spec>) -> Endpoints {
    endpoint::open(config, specs).expect("it opens")
}

pub(crate) fn candidates(endpoints: &Endpoints, name: &str) -> Vec<Candidate> {
    let candidate = |endpoint: Arc<Endpoint>| {
        let key = endpoint.spec.key.as_ref().map(|_| SecretText::new(KEY.to_owned()));
        Candidate { endpoint, key, context_tokens: None }
    };
    endpoints.chain(name).into_iter().map(candidate).collect()
}

pub(crate) fn prompt(parts: Vec<Part>) -> Prompt {
    let parameters = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let tool =
        |name: &str| ToolSchema { name: name.into(), description: "a tool".into(), parameters: parameters.clone() };
    let tools = vec![tool("write_file"), tool("read_file")];
    Prompt { purpose: Purpose::Reply, system: "be brief".into(), tools, parts }
}

pub(crate) fn person(text: &str) -> Part {
    Part::Person { text: text.to_owned() }
}

/// Returns bounds with a deadline and no other limit.
pub(crate) fn within(until: Instant) -> Bounds {
    Bounds { until, allowance: Allowance::NONE }
}

pub(crate) async fn ask(candidates: &[Candidate], parts: Vec<Part>) -> Result<Answered, Error> {
    let until = Instant::now() + Duration::from_secs(60);
    endpoint::generate(candidates, &prompt(parts), within(until), &PartialAnswer::default()).await
}

pub(crate) fn failed(answered: Result<Answered, Error>) -> Failed {
    match answered {
        Err(Error::Failed(failed)) => failed,
        other => panic!("the request did not fail: {other:?}"),
    }
}

/// Returns settings with short retry intervals, and with long time limits for a busy machine.
pub(crate) fn quick() -> Config {
    Config { backoff_ms: 1, tries_max: 3, failures_max: 1000, ..Config::default() }
}

/// Starts a server whose response can be changed later.
pub(crate) fn acting_server(act: Act) -> (Server, Arc<Mutex<Act>>) {
    let current = Arc::new(Mutex::new(act));
    let now = Arc::clone(&current);
    (Server::start(move |_| now.lock().expect("not poisoned").clone()), current)
}

pub(crate) fn status(status: u16, headers: &[(&'static str, &str)]) -> Act {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Act::Status(status, headers, json!({ "error": { "message": format!("{WORDS}: {KEY}") } }).to_string())
}

#[tokio::test]
async fn conversation_with_tools_works_over_both_apis() {
    let respond = |seen: &Seen| {
        let call = |tool: &str, arguments| (tool.to_owned(), arguments);
        match &seen.results()[..] {
            [] => {
                let first = call("write_file", json!({ "path": "a", "content": "é \"quoted\"\n" }));
                Act::Call("I write.".to_owned(), vec![first, call("read_file", json!({}))])
            }
            [_, _] => Act::Call(String::new(), vec![call("read_file", json!({ "path": "a" }))]),
            results => Act::Say(format!("The file says: {}", results[results.len() - 1])),
        }
    };
    for variant in VARIANTS {
        let server = Server::start(respond);
        let endpoints = open(&quick(), vec![spec("local", variant, &server.url())]);
        let candidates = candidates(&endpoints, "local");
        let mut parts = vec![person("write and read")];
        let mut said = Vec::new();
        let answer = loop {
            let draft = PartialAnswer::default();
            let until = Instant::now() + Duration::from_secs(60);
            let answered = endpoint::generate(&candidates, &prompt(parts.clone()), within(until), &draft)
                .await
                .expect("an output");
            assert_eq!(answered.endpoint, "local");
            assert!(answered.usage.input_tokens > 0 && answered.usage.cost_micros > 0, "{variant:?} {answered:?}");
            if variant.1 {
                assert_eq!(draft.watch().borrow().text, answered.output.text, "{variant:?}");
            }
            if answered.output.calls.is_empty() {
                break answered.output.text;
            }
            let past = |(n, call): (usize, &ironclaw_model::WantedCall)| PastCall {
                call_id: format!("cal_{}_{n}", said.len()),
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
            };
            let calls: Vec<PastCall> = answered.output.calls.iter().enumerate().map(past).collect();
            let results = calls.iter().map(|call| Part::Result {
                call_id: call.call_id.clone(),
                tool: call.tool.clone(),
                ok: true,
                text: format!("did {}", call.arguments),
            });
            let results: Vec<Part> = results.collect();
            said.push((answered.output.text.clone(), calls.len()));
            parts.push(Part::Assistant { text: answered.output.text, calls, attached: answered.output.attached });
            parts.extend(results);
        };
        assert_eq!(said, [("I write.".to_owned(), 2), (String::new(), 1)], "{variant:?}");
        assert_eq!(answer, "The file says: did {\"path\":\"a\"}", "{variant:?}");
        let seen = server.seen();
        assert_eq!(seen.len(), 3, "{variant:?}");
        for seen in seen {
            assert_eq!((seen.key.as_deref(), seen.streams()), (Some(KEY), variant.1));
            assert_eq!(seen.api == Api::Chat, variant.0 == Kind::Openai);
            assert!(!seen.body.to_string().contains(KEY));
        }
    }
}

#[tokio::test]
async fn failure_never_quotes_the_provider_and_can_recover() {
    // The time limit is short only if the server never sends a byte.
    let waits = Config { first_byte_ms: 300, whole_ms: 300, ..quick() };
    let stalls = Config { idle_ms: 300, ..quick() };
    let huge = format!("{} ", "a".repeat(1023)).repeat(BODY_BYTES_MAX / 1024 + 1);
    let both = [
        (status(401, &[]), "key_refused", 1),
        (status(403, &[]), "key_refused", 1),
        (status(402, &[]), "no_credit", 1),
        (status(404, &[]), "model_unknown", 1),
        (status(400, &[]), "bad_request", 1),
        (status(413, &[]), "context_too_long", 1),
        (status(302, &[("location", "http://127.0.0.1:9/")]), "redirected", 1),
        (status(429, &[]), "rate_limited", 3),
        (status(429, &[("retry-after", "86400")]), "rate_limited", 1),
        (status(500, &[]), "server_error", 3),
        (status(500, &[("x-should-retry", "false")]), "server_error", 1),
        (status(503, &[("retry-after", "1e300")]), "overloaded", 1),
        (status(429, &[("x-ratelimit-reset-requests", "6m0s")]), "rate_limited", 1),
        (status(408, &[]), "server_error", 3),
        (status(529, &[("retry-after", "0")]), "overloaded", 3),
        (Act::Hang, "silent", 1),
        (Act::Cut("half of it".to_owned()), "cut", 3),
        (Act::Raw(format!("<html>{WORDS}")), "malformed", 1),
        (Act::Raw("{}".to_owned()), "malformed", 1),
        (Act::Raw(json!({ "error": { "code": 503, "message": WORDS } }).to_string()), "overloaded", 3),
        (Act::Events(vec!["data: {\n\n".to_owned()]), "malformed", 1),
        (Act::Events(vec![format!("data: {}\n\n", json!({ "error": { "message": WORDS } }))]), "server_error", 3),
        (Act::Say(huge), "too_large", 1),
        (Act::Flood(200), "too_large", 1),
        (Act::Flood(400), "bad_request", 1),
    ];
    let streams_only = [(Act::Stall("half of it".to_owned()), "stalled", 1)];
    for variant in VARIANTS {
        let (server, current) = acting_server(Act::Hang);
        let open = |config: &Config| open(config, vec![spec("local", variant, &server.url())]);
        let (patient, waiting, stalling) = (open(&quick()), open(&waits), open(&stalls));
        for (act, code, tries) in both.iter().chain(streams_only.iter().filter(|_| variant.1)) {
            let before = server.seen().len();
            *current.lock().expect("not poisoned") = act.clone();
            let endpoints = match *code {
                "silent" => &waiting,
                "stalled" => &stalling,
                _ => &patient,
            };
            let failed = failed(ask(&candidates(endpoints, "local"), vec![person("hello")]).await);
            let shown = format!("{act:?}").chars().take(80).collect::<String>();
            assert_eq!((failed.code(), failed.failures[0].tries), (*code, *tries), "{variant:?} {shown}");
            assert_eq!(server.seen().len() - before, *tries as usize, "{variant:?} {shown}");
            let sentence = failed.sentence();
            assert!(sentence.contains("`local`"), "{sentence}");
            let everything = format!("{sentence} {failed:?} {failed}");
            assert!(!everything.contains(WORDS) && !everything.contains(KEY), "{everything}");
            let detail = failed.failures[0].detail.for_operator().unwrap_or_default();
            assert!(!detail.contains(KEY), "{detail}");
            if let Act::Status(..) = act {
                assert_eq!(detail, format!("{WORDS}: [key]"));
            }
        }
        *current.lock().expect("not poisoned") = Act::Say("recovered".to_owned());
        let answered = ask(&candidates(&patient, "local"), vec![person("hello")]).await.expect("an output");
        assert_eq!(answered.output.text, "recovered");
    }
}

#[tokio::test]
async fn retry_waits_as_long_as_the_endpoint_asks() {
    for variant in VARIANTS {
        let asked = Mutex::new(Vec::new());
        let server = Server::start(move |_| {
            let mut asked = asked.lock().expect("not poisoned");
            asked.push(std::time::Instant::now());
            match asked.len() {
                1 => status(429, &[("retry-after", "1")]),
                2 => Act::Cut("half".to_owned()),
                _ => Act::Say(format!("{}", asked[1].duration_since(asked[0]).as_millis())),
            }
        });
        let endpoints = open(&quick(), vec![spec("local", variant, &server.url())]);
        let draft = PartialAnswer::default();
        let until = Instant::now() + Duration::from_secs(60);
        let candidates = candidates(&endpoints, "local");
        let answered = endpoint::generate(&candidates, &prompt(vec![person("a")]), within(until), &draft)
            .await
            .expect("an output");
        let waited: u64 = answered.output.text.parse().expect("a number");
        assert!(waited >= 1000, "{waited} ms");
        // The text of a failed attempt is discarded.
        assert_eq!(draft.watch().borrow().attempt, 3);
        if variant.1 {
            assert_eq!(draft.watch().borrow().text, answered.output.text);
        }
    }
}

#[tokio::test]
async fn usage_of_an_interrupted_stream_is_counted() {
    for kind in [Kind::Openai, Kind::Anthropic] {
        let (server, _act) = acting_server(Act::Cut("some words".to_owned()));
        let endpoints = open(&quick(), vec![spec("local", (kind, true), &server.url())]);
        let failed = failed(ask(&candidates(&endpoints, "local"), vec![person("hello")]).await);
        assert!(failed.usage.input_tokens > 0 && failed.usage.output_tokens > 0, "{failed:?}");
    }
}

#[tokio::test]
async fn attempt_with_unknown_outcome_is_counted() {
    let waits = Config { first_byte_ms: 200, whole_ms: 200, ..quick() };
    let start = json!({ "type": "message_start", "message": { "usage": { "input_tokens": 1, "output_tokens": 1 } } });
    let words = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "words ".repeat(100) } });
    let cut = [start, words].map(|event| format!("data: {event}\n\n")).to_vec();
    let thought = prompt(vec![person("hello")]).estimate(Prices { input: 1_000_000, output: 2_000_000 }, false);
    for (act, input, output) in [
        (Act::Hang, thought.input_tokens, thought.output_tokens),
        (Act::Raw(format!("<html>{WORDS}")), thought.input_tokens, thought.output_tokens),
        (Act::Events(cut), 3 * thought.input_tokens, 3 * 150),
    ] {
        let config = if matches!(act, Act::Hang) { waits.clone() } else { quick() };
        let (server, _act) = acting_server(act);
        let endpoints = open(&config, vec![spec("local", (Kind::Anthropic, true), &server.url())]);
        let failed = failed(ask(&candidates(&endpoints, "local"), vec![person("hello")]).await);
        assert_eq!(failed.usage.output_tokens, output, "{failed:?}");
        assert!(failed.usage.input_tokens >= input && failed.usage.cost_micros > 0, "{failed:?}");
    }
    let (server, _act) = acting_server(status(500, &[]));
    let endpoints = open(&quick(), vec![spec("local", (Kind::Anthropic, true), &server.url())]);
    let failed = failed(ask(&candidates(&endpoints, "local"), vec![person("hello")]).await);
    assert_eq!(failed.usage, Usage::default(), "a refusal uses no tokens");
}

#[tokio::test]
async fn request_ends_at_the_deadline_of_its_caller() {
    for variant in VARIANTS {
        let (server, current) = acting_server(Act::Hang);
        let endpoints = open(&quick(), vec![spec("local", variant, &server.url())]);
        let candidates = candidates(&endpoints, "local");
        let wait = status(500, &[("retry-after", "30")]);
        for (act, code, wait_ms) in [(Act::Hang, "silent", 400), (wait, "server_error", 20_000)] {
            *current.lock().expect("not poisoned") = act;
            let (until, draft) = (Instant::now() + Duration::from_millis(wait_ms), PartialAnswer::default());
            let answered = endpoint::generate(&candidates, &prompt(vec![person("a")]), within(until), &draft).await;
            assert_eq!(failed(answered).code(), code, "{variant:?}");
        }
        let (past, draft, asked) = (Instant::now(), PartialAnswer::default(), server.seen().len());
        assert_eq!(
            failed(endpoint::generate(&candidates, &prompt(vec![person("a")]), within(past), &draft).await).code(),
            "silent"
        );
        assert_eq!(server.seen().len(), asked, "no request is sent after the deadline");
    }
}

#[tokio::test]
async fn request_is_cancelled_if_its_caller_is_gone() {
    struct Gone(Arc<AtomicU32>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let endpoints = open(&quick(), vec![spec("local", (Kind::Openai, true), &base)]);
    let gone = Arc::new(AtomicU32::new(0));
    let guard = Gone(Arc::clone(&gone));
    let asking = tokio::spawn(async move {
        let _guard = guard;
        ask(&candidates(&endpoints, "local"), vec![person("hello")]).await
    });
    let (stream, _) = listener.accept().await.expect("a connection");
    let mut bytes = [0; 1024];
    while stream.try_read(&mut bytes).is_err() {
        stream.readable().await.expect("readable");
    }
    asking.abort();
    assert!(asking.await.expect_err("it was aborted").is_cancelled());
    assert_eq!(gone.load(Ordering::SeqCst), 1);
    // The server stops when the connection ends.
    loop {
        stream.readable().await.expect("readable");
        match stream.try_read(&mut bytes) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
}

#[tokio::test]
async fn deviating_answers_of_servers_are_understood() {
    let whole =
        json!({ "choices": [{ "message": { "role": "assistant", "content": "at once" }, "finish_reason": "stop" }] });
    let chunk = |delta: serde_json::Value| format!("data: {}\n\n", json!({ "choices": [{ "delta": delta }] }));
    let comment = ": OPENROUTER PROCESSING\n\n".to_owned();
    let events = vec![
        comment.clone(),
        chunk(json!({ "content": "in " })),
        comment,
        chunk(json!({ "content": "pieces" })),
        "data: [DONE]\n\n".to_owned(),
    ];
    for (streams, act, text) in [
        (true, Act::Raw(whole.to_string()), "at once"),
        (false, Act::Events(events.clone()), "in pieces"),
        (true, Act::Events(events.iter().map(|event| event.replace('\n', "\r\n")).collect()), "in pieces"),
    ] {
        let (server, _act) = acting_server(act);
        let endpoints = open(&quick(), vec![spec("local", (Kind::Openai, streams), &server.url())]);
        let answered = ask(&candidates(&endpoints, "local"), vec![person("hello")]).await.expect("an output");
        assert_eq!(answered.output.text, text);
        assert!(answered.usage.input_tokens > 0 && answered.usage.output_tokens > 0, "estimated: {answered:?}");
    }
}

#[tokio::test]
async fn refused_stream_usage_is_not_requested_again() {
    let server = Server::start(|seen| match seen.body.get("stream_options") {
        Some(_) => Act::Status(422, Vec::new(), json!({ "detail": "stream_options: extra inputs" }).to_string()),
        None => Act::Say("hello".to_owned()),
    });
    let endpoints = open(&quick(), vec![spec("local", (Kind::Openai, true), &server.url())]);
    for requests in [2, 4, 5, 6] {
        let answered = ask(&candidates(&endpoints, "local"), vec![person("hello")]).await.expect("an output");
        assert_eq!(answered.output.text, "hello");
        assert_eq!(server.seen().len(), requests, "it is learned from two answers");
    }
}

#[tokio::test]
async fn key_goes_only_to_its_address_and_is_checked_before_sending() {
    let variant = (Kind::Openai, false);
    let (elsewhere, _elsewhere) = acting_server(Act::Say("stolen".to_owned()));
    let (server, _act) =
        acting_server(status(307, &[("location", &format!("{}/v1/chat/completions", elsewhere.url()))]));
    let endpoints = open(&quick(), vec![spec("local", variant, &server.url())]);
    let redirected = failed(ask(&candidates(&endpoints, "local"), vec![person("hello")]).await);
    assert_eq!(redirected.code(), "redirected");
    assert!(elsewhere.seen().is_empty());

    let mut candidates = candidates(&endpoints, "local");
    candidates[0].key = None;
    assert_eq!(failed(ask(&candidates, vec![person("hello")]).await).code(), "no_key");
    candidates[0].key = Some(SecretText::new("line\nfolded".to_owned()));
    assert_eq!(failed(ask(&candidates, vec![person("hello")]).await).code(), "key_unusable");
    assert_eq!(server.seen().len(), 1);
    assert!(!format!("{candidates:?}").contains("folded"));

    // A server without TLS does not receive the key either.
    let secure = spec("local", variant, &server.url().replace("http:", "https:"));
    let endpoints = open(&quick(), vec![secure]);
    let untrusted = failed(ask(&self::candidates(&endpoints, "local"), vec![person("hello")]).await);
    assert_eq!(untrusted.code(), "untrusted", "{:?}", untrusted.failures[0].detail.for_operator());
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn endpoint_with_invalid_settings_is_not_opened() {
    let config = Config::default();
    let good = spec("good", (Kind::Openai, true), "https://api.example/v1");
    for bad in [
        Spec { base_url: None, ..good.clone() },
        Spec { base_url: Some(Url::parse("http://8.8.8.8/v1").expect("a URL")), ..good.clone() },
        Spec { base_url: Some(Url::parse("https://user:pass@api.example/v1").expect("a URL")), ..good.clone() },
        Spec { name: "scripted".to_owned(), ..good.clone() },
    ] {
        let error = endpoint::open(&config, vec![bad.clone()]).expect_err("it cannot be asked").to_string();
        assert!(error.starts_with(&format!("cannot open the model endpoint `{}`: ", bad.name)), "{error}");
        assert!(!error.contains("pass@"), "{error}");
    }
    let script = Spec { name: "fixed".to_owned(), kind: Kind::Scripted, base_url: None, key: None, ..good.clone() };
    let endpoints = open(&config, vec![good, script]);
    assert_eq!(endpoints.names().collect::<Vec<_>>(), ["fixed", "good", "scripted"]);
    let answered = ask(&candidates(&endpoints, "fixed"), vec![person("echo hi")]).await.expect("an output");
    assert_eq!((answered.endpoint.as_str(), answered.usage.cost_micros > 0), ("fixed", true));
}

#[tokio::test]
async fn endpoint_test_is_one_small_request_and_shows_the_answer() {
    for variant in VARIANTS {
        let (server, current) = acting_server(Act::Say("ready".to_owned()));
        let endpoints = open(&quick(), vec![spec("local", variant, &server.url())]);
        let candidates = candidates(&endpoints, "local");
        let probe = Endpoint::probe(&candidates[0]).await.expect("it answers");
        assert_eq!(probe.output.text, "ready");
        assert!(probe.usage.input_tokens > 0);
        assert_eq!(server.seen()[0].body["tools"].as_array().map(Vec::len), Some(1));
        assert_eq!(Endpoint::models(&candidates[0]).await.expect("a list"), ["small"]);

        *current.lock().expect("not poisoned") = status(500, &[]);
        let Err(Error::Failed(failed)) = Endpoint::probe(&candidates[0]).await else {
            panic!("the test of the endpoint must fail")
        };
        assert_eq!((failed.code(), failed.failures[0].tries), ("server_error", 1));
        assert_eq!(failed.failures[0].detail.for_operator(), Some("words of the provider: [key]"));
        assert_eq!(server.seen().len(), 2);
    }
}
