//! Tests of the order and the time limits of a chain of endpoints.
//!
//! `models` tests the failures of a single endpoint. See `examples/model_server/server.rs`.

use super::{VARIANTS, acting_server, ask, candidates, failed, open, person, prompt, quick, spec, status, within};
use crate::support::model_server::Act;
use ironclaw_model::endpoint::{self, Bounds, Kind, Prices, Spec};
use ironclaw_model::fault::Fault;
use ironclaw_model::streaming::PartialAnswer;
use ironclaw_model::{Allowance, Config};
use std::time::Duration;
use tokio::time::Instant;
fn closed_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

#[tokio::test]
async fn small_allowance_prevents_another_attempt() {
    let (cut, _cut) = acting_server(Act::Cut("some words".to_owned()));
    let (working, _working) = acting_server(Act::Say("here".to_owned()));
    let mut first = spec("first", (Kind::Openai, true), &cut.url());
    first.fallbacks = vec!["second".to_owned()];
    let endpoints = open(&quick(), vec![first, spec("second", (Kind::Openai, true), &working.url())]);
    let until = Instant::now() + Duration::from_secs(60);
    let thought = prompt(vec![person("hello")]).estimate(Prices::default(), false);
    let allowance = Allowance { tokens: thought.input_tokens + thought.output_tokens, ..Allowance::NONE };
    let (bounds, prompt) = (Bounds { until, allowance }, prompt(vec![person("hello")]));
    let answered =
        endpoint::generate(&candidates(&endpoints, "first"), &prompt, bounds, &PartialAnswer::default()).await;
    let failed = failed(answered);
    assert_eq!((cut.seen().len(), working.seen().len()), (1, 0), "{failed:?}");
    assert_eq!(failed.failures[1].fault, Fault::OverCeiling);
}

#[tokio::test]
async fn slow_endpoint_is_cancelled_in_time_for_the_fallback() {
    for kind in [Kind::Openai, Kind::Anthropic] {
        let (drips, _drips) = acting_server(Act::Drip);
        let (working, _working) = acting_server(Act::Say("here".to_owned()));
        let mut first = spec("first", (kind, true), &drips.url());
        first.fallbacks = vec!["second".to_owned()];
        let alone = Spec { fallbacks: Vec::new(), ..spec("alone", (kind, true), &drips.url()) };
        let config = Config { stream_ms: 1_500, ..quick() };
        let endpoints = open(&quick(), vec![first, spec("second", (kind, true), &working.url())]);
        let (until, draft) = (Instant::now() + Duration::from_secs(4), PartialAnswer::default());
        let prompt = prompt(vec![person("a")]);
        let answered = endpoint::generate(&candidates(&endpoints, "first"), &prompt, within(until), &draft).await;
        assert_eq!(answered.expect("an output").endpoint, "second");
        let endpoints = open(&config, vec![alone]);
        assert_eq!(failed(ask(&candidates(&endpoints, "alone"), vec![person("a")]).await).code(), "late");
    }
}

#[tokio::test]
async fn second_fallback_answers_if_the_first_is_down() {
    let closed = closed_address();
    let (broken, _broken) = acting_server(status(500, &[]));
    let (busy, _busy) = acting_server(status(429, &[("retry-after", "30")]));
    let (working, _working) = acting_server(Act::Say("here".to_owned()));
    for variant in VARIANTS {
        let mut first = spec("first", variant, &closed);
        first.fallbacks = vec!["gone".to_owned(), "second".to_owned(), "third".to_owned()];
        let mut second = spec("second", variant, &broken.url());
        second.fallbacks = vec!["first".to_owned(), "fourth".to_owned()];
        let third = spec("third", variant, &busy.url());
        let fourth = spec("fourth", (Kind::Openai, true), &working.url());
        let endpoints = open(&quick(), vec![first, second, third, fourth]);
        let chain: Vec<String> = endpoints.chain("first").iter().map(|endpoint| endpoint.spec.name.clone()).collect();
        assert_eq!(chain, ["first", "second", "third", "fourth"]);
        let asked = busy.seen().len();
        let answered = ask(&candidates(&endpoints, "first"), vec![person("hello")]).await.expect("an output");
        assert_eq!((answered.endpoint.as_str(), answered.output.text.as_str()), ("fourth", "here"));
        assert_eq!(busy.seen().len() - asked, 1, "a busy endpoint gets one attempt if there is another");
    }
}

#[tokio::test]
async fn last_endpoint_of_the_longest_chain_is_used() {
    let variant = (Kind::Openai, false);
    let (broken, _broken) = acting_server(status(500, &[]));
    let (working, _working) = acting_server(Act::Say("here".to_owned()));
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut specs: Vec<Spec> = names.iter().map(|name| spec(name, variant, &broken.url())).collect();
    specs[0].fallbacks = names[1..].iter().map(|name| (*name).to_owned()).collect();
    specs[7] = spec("h", variant, &working.url());
    let endpoints = open(&quick(), specs);
    let answered = ask(&candidates(&endpoints, "a"), vec![person("hello")]).await.expect("an output");
    assert_eq!(answered.endpoint, "h");
}

#[tokio::test]
async fn failure_of_all_endpoints_names_each_and_can_recover() {
    let variant = (Kind::Openai, true);
    let closed = closed_address();
    let (server, current) = acting_server(status(401, &[]));
    let mut first = spec("first", variant, &closed);
    first.fallbacks = vec!["second".to_owned()];
    let endpoints = open(&quick(), vec![first, spec("second", variant, &server.url())]);
    let failed = failed(ask(&candidates(&endpoints, "first"), vec![person("hello")]).await);
    let faults: Vec<Fault> = failed.failures.iter().map(|failure| failure.fault).collect();
    assert_eq!(faults, [Fault::Unreachable, Fault::KeyRefused]);
    assert!(failed.sentence().contains("`first` cannot be reached"), "{failed}");
    assert!(failed.sentence().contains("`ironctl secret rotate test-key`"), "{failed}");
    *current.lock().expect("not poisoned") = Act::Say("here".to_owned());
    assert_eq!(
        ask(&candidates(&endpoints, "first"), vec![person("hello")]).await.expect("an output").endpoint,
        "second"
    );
}

#[tokio::test]
async fn failing_endpoint_is_used_last_or_if_it_is_alone() {
    let variant = (Kind::Openai, false);
    let (failing, failing_act) = acting_server(status(500, &[]));
    let (working, working_act) = acting_server(Act::Say("second".to_owned()));
    let mut first = spec("first", variant, &failing.url());
    first.fallbacks = vec!["second".to_owned()];
    let config = Config { failures_max: 2, rest_ms: 3_600_000, ..quick() };
    let endpoints = open(&config, vec![first, spec("second", variant, &working.url())]);
    let candidates = candidates(&endpoints, "first");
    for _ in 0..3 {
        let answered = ask(&candidates, vec![person("hello")]).await.expect("an output");
        assert_eq!(answered.output.text, "second");
    }
    assert_eq!(failing.seen().len(), 2, "the endpoint rests after two failures");
    *working_act.lock().expect("not poisoned") = status(401, &[]);
    let failed = failed(ask(&candidates, vec![person("hello")]).await);
    assert_eq!(
        failed.failures.iter().map(|failure| failure.endpoint.as_str()).collect::<Vec<_>>(),
        ["second", "first"]
    );
    assert_eq!(failing.seen().len(), 5, "the last endpoint gets all attempts");
    *failing_act.lock().expect("not poisoned") = Act::Say("first".to_owned());
    for _ in 0..2 {
        assert_eq!(ask(&candidates, vec![person("hello")]).await.expect("an output").output.text, "first");
    }
}

#[tokio::test]
async fn hanging_endpoint_leaves_time_for_the_fallback() {
    for variant in [(Kind::Openai, false), (Kind::Openai, true)] {
        let (silent, _silent) = acting_server(Act::Hang);
        let (working, _working) = acting_server(Act::Say("here".to_owned()));
        let mut first = spec("first", variant, &silent.url());
        first.fallbacks = vec!["second".to_owned()];
        let endpoints = open(&quick(), vec![first, spec("second", variant, &working.url())]);
        let (until, draft) = (Instant::now() + Duration::from_secs(4), PartialAnswer::default());
        let candidates = candidates(&endpoints, "first");
        let answered = endpoint::generate(&candidates, &prompt(vec![person("a")]), within(until), &draft).await;
        assert_eq!(answered.expect("an output").endpoint, "second");
    }
}
