//! Tests of the profiles of providers with stand-ins that know the rules of each, through the library.
//!
//! `settings` has the tests through the daemon. The stand-ins have the rules of the providers' documents, written here once more.

use super::{ask, candidates, open, person, prompt, quick, spec, within};
use crate::support::model_server::{Act, Api, Seen, Server};
use ironclaw_model::context_size::ContextSign;
use ironclaw_model::endpoint::{self, Kind};
use ironclaw_model::profile;
use ironclaw_model::streaming::PartialAnswer;
use ironclaw_model::{Part, PastCall};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// The rules of a provider.
#[derive(Debug, Clone, Copy)]
struct Rules {
    profile: &'static str,
    /// The fields that limit an output; others are refused.
    limits: &'static [&'static str],
    /// True if it refuses `stream_options`.
    refuses_usage: bool,
    /// True if ids of calls have exactly nine letters and digits.
    nine: bool,
    header: &'static str,
    /// True if each message with calls has thoughts in `reasoning_content`.
    thoughts: bool,
}

const BOTH: &[&str] = &["max_tokens", "max_completion_tokens"];
const OLD: &[&str] = &["max_tokens"];
const NEW: &[&str] = &["max_completion_tokens"];

const fn rules(profile: &'static str, limits: &'static [&'static str]) -> Rules {
    Rules { profile, limits, refuses_usage: false, nine: false, header: "authorization", thoughts: false }
}

/// Every profile with the rules of its provider.
const ALL: &[Rules] = &[
    Rules { header: "x-api-key", ..rules("anthropic", OLD) },
    rules("openai", NEW),
    rules("openrouter", OLD),
    rules("groq", NEW),
    Rules { refuses_usage: true, nine: true, ..rules("mistral", OLD) },
    rules("deepseek", OLD),
    Rules { thoughts: true, ..rules("moonshot", OLD) },
    rules("gemini", OLD),
    rules("together", OLD),
    rules("xai", NEW),
    rules("fireworks", OLD),
    rules("cerebras", NEW),
    rules("cohere", OLD),
    rules("nvidia", OLD),
    rules("sambanova", OLD),
    Rules { header: "api-key", ..rules("azure", BOTH) },
    rules("ollama", OLD),
    rules("llamacpp", BOTH),
    rules("vllm", BOTH),
    rules("lmstudio", OLD),
];

/// Returns the complaint about a request that breaks the rules.
fn broken(rules: Rules, seen: &Seen) -> Option<String> {
    let limits = BOTH.iter().filter(|field| seen.body.get(**field).is_some());
    if let Some(field) = limits.clone().find(|field| !rules.limits.contains(field)) {
        return Some(format!("Unsupported parameter: '{field}' is not supported with this model."));
    }
    if limits.count() != 1 {
        return Some("one limit is needed".to_owned());
    }
    if rules.refuses_usage && seen.body.get("stream_options").is_some() {
        return Some("stream_options: extra inputs are not permitted".to_owned());
    }
    if seen.key_header != Some(rules.header) {
        return Some("no key".to_owned());
    }
    let messages = seen.body["messages"].as_array().into_iter().flatten();
    let is_bare = |message: &Value| {
        message["tool_calls"].is_array() && message["reasoning_content"].as_str().is_none_or(str::is_empty)
    };
    if rules.thoughts && messages.clone().any(is_bare) {
        return Some("thinking is enabled but reasoning_content is missing in assistant tool call message".to_owned());
    }
    let ids = messages.filter_map(|message| message["tool_call_id"].as_str());
    let is_short = |id: &str| id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric());
    ids.into_iter().find(|id| rules.nine && !is_short(id)).map(|id| format!("the id {id} has another length"))
}

#[tokio::test]
async fn two_turns_with_a_tool_work_with_each_profile() {
    let names: Vec<&str> = profile::all().iter().map(|profile| profile.name.as_str()).collect();
    assert_eq!(names, ALL.iter().map(|rules| rules.profile).collect::<Vec<_>>());
    for rules in ALL.iter().copied() {
        for streams in [true, false] {
            let server = Server::start(move |seen| match (broken(rules, seen), seen.results().len()) {
                (Some(words), _) => Act::Status(400, Vec::new(), json!({ "error": { "message": words } }).to_string()),
                (None, 0) => Act::Call(String::new(), vec![("read_file".to_owned(), json!({ "path": "a" }))]),
                (None, _) => Act::Say("done".to_owned()),
            });
            let kind = profile::find(rules.profile).expect("a profile").kind;
            let mut spec = spec("local", (kind, streams), &server.url());
            spec.settings.profile = Some(rules.profile.to_owned());
            let endpoints = open(&quick(), vec![spec]);
            let mut parts = Vec::new();
            for turn in 0..2 {
                parts.push(person("read it"));
                let asked = ask(&candidates(&endpoints, "local"), parts.clone()).await;
                let output = asked.unwrap_or_else(|failed| panic!("{rules:?}: {failed}")).output;
                let call_id = format!("cal_01kagq8t00000000000000000{turn}");
                let call = PastCall {
                    call_id: call_id.clone(),
                    tool: "read_file".into(),
                    arguments: output.calls[0].arguments.clone(),
                };
                parts.push(Part::Assistant { text: output.text, calls: vec![call], attached: output.attached });
                parts.push(Part::Result { call_id, tool: "read_file".into(), ok: true, text: "words".into() });
                let output = ask(&candidates(&endpoints, "local"), parts.clone()).await.expect("an answer").output;
                assert_eq!(output.text, "done", "{rules:?}");
                parts.push(Part::Assistant { text: output.text, calls: Vec::new(), attached: output.attached });
            }
            assert_eq!(server.seen().len(), 4, "{rules:?}: the profile needs no second try");
            assert!(kind == Kind::Anthropic || server.seen().iter().all(|seen| seen.api == Api::Chat));
        }
    }
}

#[tokio::test]
async fn operator_value_precedes_the_profile_and_is_never_changed() {
    let server = Server::start(|seen| match seen.body.get("max_tokens") {
        Some(_) => Act::Status(400, Vec::new(), "max_tokens is not supported, use max_completion_tokens".to_owned()),
        None => Act::Say("hello".to_owned()),
    });
    let mut spec = spec("local", (Kind::Openai, true), &server.url());
    spec.settings.profile = Some("openai".to_owned());
    spec.settings.output_tokens_max = Some(99);
    let by_profile = open(&quick(), vec![spec.clone()]);
    let answered = ask(&candidates(&by_profile, "local"), vec![person("hello")]).await.expect("an output");
    assert_eq!((answered.output.text.as_str(), server.seen().len()), ("hello", 1));
    assert_eq!(server.seen()[0].body["max_completion_tokens"], 99, "the endpoint has a bound of its own");
    spec.settings.quirks = [("limit_field".to_owned(), "max_tokens".to_owned())].into();
    let by_operator = open(&quick(), vec![spec]);
    let (draft, until) = (PartialAnswer::default(), Instant::now() + Duration::from_secs(60));
    let asked = [candidates(&by_operator, "local")];
    let refused = endpoint::generate(&asked[0], &prompt(vec![person("hello")]), within(until), &draft).await;
    assert_eq!(super::failed(refused).code(), "bad_request");
    assert_eq!(server.seen().len(), 2, "the operator's value is sent once");
}

#[tokio::test]
async fn learned_context_lowers_the_output_in_the_same_request() {
    let server = Server::start(|seen| match seen.body["max_tokens"].as_u64() {
        Some(tokens) if tokens > 4096 => {
            let words = format!("maximum context length is 8192 tokens. However, you requested {}", tokens + 100);
            Act::Status(400, Vec::new(), json!({ "error": { "message": words } }).to_string())
        }
        _ => Act::Say("hello".to_owned()),
    });
    for (kind, set, bounds) in [
        (Kind::Openai, None, [8192, 2048, 2048]),
        (Kind::Anthropic, None, [8192, 2048, 2048]),
        (Kind::Openai, Some(5000), [5000, 2048, 4096]),
    ] {
        let before = server.seen().len();
        let mut spec = spec("local", (kind, true), &server.url());
        spec.settings.output_tokens_max = set;
        let endpoints = open(&quick(), vec![spec]);
        let mut candidates = candidates(&endpoints, "local");
        let answered = ask(&candidates, vec![person("hello")]).await.expect("an output");
        assert_eq!(answered.context, Some(ContextSign::Stated(8192)), "{kind}");
        candidates[0].context_tokens = Some(8192);
        let answered = ask(&candidates, vec![person("hello")]).await.expect("an output");
        assert_eq!(answered.context, None, "{kind}: it is known");
        let asked: Vec<_> = server.seen()[before..].iter().map(|seen| seen.body["max_tokens"].as_u64()).collect();
        assert_eq!(asked, bounds.map(Some), "{kind}, {set:?}");
    }
}
