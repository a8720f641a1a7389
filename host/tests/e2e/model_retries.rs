//! Tests of the attempts at an endpoint and of partial answers, through the library.
//!
//! See `models`.

use crate::e2e::models::{acting_server, ask, candidates, failed, open, person, prompt, quick, spec, status, within};
use crate::support::model_server::{Act, Server};
use ironclaw_model::endpoint::{self, Kind};
use ironclaw_model::streaming::PartialAnswer;
use ironclaw_model::{Config, Cut};
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test]
async fn resting_endpoint_gets_all_attempts_if_it_is_the_last() {
    let asked = AtomicU32::new(0);
    let server = Server::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        // Four failures begin a rest. Then a success, a failure and a success follow.
        0..=3 | 5 => status(503, &[]),
        _ => Act::Say("well".to_owned()),
    });
    let config = Config { failures_max: 1, rest_ms: 3_600_000, ..quick() };
    let endpoints = open(&config, vec![spec("sole", (Kind::Openai, false), &server.url())]);
    let candidates = candidates(&endpoints, "sole");
    let tried = failed(ask(&candidates, vec![person("hello")]).await);
    assert_eq!(tried.failures[0].tries, 3);
    let answered = ask(&candidates, vec![person("hello")]).await.expect("a resting endpoint is used if it is the last");
    assert_eq!(answered.output.text, "well");
    assert_eq!(ask(&candidates, vec![person("hello")]).await.expect("a retry succeeds").output.text, "well");
}

#[tokio::test]
async fn connection_closed_before_an_answer_is_reported_as_closed() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // Reads the request, so that only the answer is missing.
            let mut bytes = [0; 4096];
            if stream.readable().await.is_ok() {
                let _ = stream.try_read(&mut bytes);
            }
        }
    });
    for streams in [true, false] {
        let endpoints = open(&quick(), vec![spec("local", (Kind::Openai, streams), &base)]);
        let failed = failed(ask(&candidates(&endpoints, "local"), vec![person("hello")]).await);
        assert_eq!((failed.code(), failed.failures[0].tries), ("closed", 3));
        assert!(!failed.sentence().contains("in the middle"), "{failed}");
    }
}

#[tokio::test]
async fn partial_answer_at_the_deadline_is_kept_with_a_mark() {
    for kind in [Kind::Openai, Kind::Anthropic] {
        let (server, _act) = acting_server(Act::Stall("half of it".to_owned()));
        let endpoints = open(&quick(), vec![spec("local", (kind, true), &server.url())]);
        let (draft, until) = (PartialAnswer::default(), Instant::now() + Duration::from_secs(4));
        let prompt = prompt(vec![person("hello")]);
        let answered = endpoint::generate(&candidates(&endpoints, "local"), &prompt, within(until), &draft).await;
        let answered = answered.expect("a partial answer");
        assert_eq!((answered.output.text.as_str(), answered.output.cut), ("half of it", Some(Cut::Time)));
        assert!(answered.usage.output_tokens > 0);
    }
}

#[tokio::test]
async fn partial_answer_at_the_deadline_does_not_end_a_rest() {
    let asked = AtomicU32::new(0);
    let failing = Server::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0..3 => status(503, &[]),
        _ => Act::Stall("half of it".to_owned()),
    });
    let working = Server::start(|_| Act::Say("well".to_owned()));
    let config = Config { failures_max: 1, rest_ms: 3_600_000, ..quick() };
    let (first, second) =
        (spec("ill", (Kind::Openai, true), &failing.url()), spec("well", (Kind::Openai, true), &working.url()));
    let endpoints = open(&config, vec![first, second]);
    let sole = candidates(&endpoints, "ill");
    failed(ask(&sole, vec![person("hello")]).await);
    let until = Instant::now() + Duration::from_secs(3);
    let cut = endpoint::generate(&sole, &prompt(vec![person("hello")]), within(until), &PartialAnswer::default()).await;
    assert!(cut.expect("a partial answer").output.text.starts_with("half of it"));
    let both: Vec<_> = sole.into_iter().chain(candidates(&endpoints, "well")).collect();
    assert_eq!(ask(&both, vec![person("hello")]).await.expect("the other endpoint answers").output.text, "well");
    assert_eq!(failing.seen().len(), 4, "the resting endpoint gets no further request");
}

#[tokio::test]
async fn refused_output_bound_is_sent_in_the_form_of_the_server() {
    let server = Server::start(|seen| {
        let complaint =
            |words: &str| Act::Status(400, Vec::new(), json!({ "error": { "message": words } }).to_string());
        match (&seen.body["max_tokens"], &seen.body["max_completion_tokens"]) {
            (bound, _) if !bound.is_null() => {
                complaint("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
            }
            (_, bound) if bound.as_u64() > Some(4096) => complaint("'max_completion_tokens' is too large: 8192"),
            _ => Act::Say("well".to_owned()),
        }
    });
    let endpoints = open(&quick(), vec![spec("local", (Kind::Openai, false), &server.url())]);
    let candidates = candidates(&endpoints, "local");
    assert_eq!(ask(&candidates, vec![person("hello")]).await.expect("an output").output.text, "well");
    assert_eq!(server.seen().len(), 3);
    // The second answer that agrees teaches the field.
    assert_eq!(ask(&candidates, vec![person("hello")]).await.expect("an output").output.text, "well");
    assert_eq!(server.seen().len(), 6);
    assert_eq!(ask(&candidates, vec![person("hello")]).await.expect("an output").output.text, "well");
    let seen = server.seen();
    assert_eq!(seen.len(), 7, "the refused field and the bound are remembered");
    assert!(seen[6..].iter().all(|seen| seen.body["max_tokens"].is_null()));
}

#[tokio::test]
async fn output_bound_lowered_for_a_long_prompt_is_not_kept() {
    let server = Server::start(|seen| {
        let (prompt, bound) = (seen.body["messages"].to_string().len() as u64, seen.body["max_tokens"].as_u64());
        if prompt + bound.expect("a bound") <= 20_000 {
            return Act::Say("well".to_owned());
        }
        let words =
            "max_tokens too large: this model's context length is 20000 and your request has 15000 input tokens";
        Act::Status(400, Vec::new(), json!({ "error": { "message": words } }).to_string())
    });
    let endpoints = open(&quick(), vec![spec("local", (Kind::Openai, false), &server.url())]);
    let candidates = candidates(&endpoints, "local");
    for said in ["hello".to_owned(), "long ".repeat(3000), "hello".to_owned()] {
        assert_eq!(ask(&candidates, vec![person(&said)]).await.expect("an output").output.text, "well");
    }
    let bounds: Vec<u64> = server.seen().iter().filter_map(|seen| seen.body["max_tokens"].as_u64()).collect();
    assert_eq!(bounds, [bounds[0], bounds[0], 5000, 1024, bounds[0]], "a quarter of the context, then less");
}
