//! Tests of models that read less than the host sends: the host notices it, says so once, and sends shorter prompts.
//!
//! The real daemon and sandbox ask a model server on loopback, which behaves in a way of its own for each name of a model. See `memory`
//! for the summaries.

use crate::support::client::Client;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::model_server::{Act, Seen, Server};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Mutex;

const SETTINGS: &str = "[model]\nbackoff_ms = 1\n";

/// Tokens that the stand-in of Ollama says for each prompt.
const COUNTED: u64 = 4096;

/// Bytes of messages that it reads: the last ones.
const KEPT_BYTES: usize = 16 * 1024;

/// Bytes of one message of a person.
const MESSAGE_BYTES: usize = 5 * 1024;

/// The ways of servers with a small context, by the name of their model.
const REFUSING: [&str; 6] = ["template", "gemini", "lmstudio", "streamed", "length", "few-words"];

/// The tokens of a context in which a server counts the output that a request asks for.
const WITH_OUTPUT: u64 = 8192;

/// Servers that count the output, by the name of their model, with the words of their refusal: `@T` and `@M` are the tokens of the
/// prompt and of the output, `@S` is their sum.
const COUNTING_OUTPUT: [(&str, &str); 6] = [
    (
        "vllm",
        "This model's maximum context length is 8192 tokens. However, you requested @S tokens (@T in the messages, @M in the completion).",
    ),
    (
        "vllm-new",
        "You passed @T input tokens and requested @M output tokens. However, the model's context length is only 8192 tokens, resulting in \
         a maximum input length of 6144 tokens.",
    ),
    (
        "vllm-field",
        "'max_tokens' or 'max_completion_tokens' is too large: @M. This model's maximum context length is 8192 tokens and your request has \
         @T input tokens",
    ),
    (
        "sglang",
        "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of @S tokens.",
    ),
    (
        "tgi",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: @T `inputs` tokens and @M `max_new_tokens`",
    ),
    (
        "messages",
        "input length and `max_tokens` exceed context limit: @T + @M > 8192, decrease input length or `max_tokens` and try again",
    ),
];

/// Returns a stream with these words, this end, and a count of the prompt.
fn said(words: &str, finish: &str, prompt_tokens: u64) -> Act {
    let chunk = |delta: Value, finish: Value, usage: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        format!("data: {}\n\n", json!({ "choices": [choice], "usage": usage }))
    };
    let usage = json!({ "prompt_tokens": prompt_tokens, "completion_tokens": 1, "total_tokens": prompt_tokens + 1 });
    let words = chunk(json!({ "role": "assistant", "content": words }), Value::Null, Value::Null);
    Act::Events(vec![words, chunk(json!({}), json!(finish), usage), "data: [DONE]\n\n".to_owned()])
}

/// Returns the tokens of a request: this server counts four bytes as one.
fn tokens(seen: &Seen) -> u64 {
    seen.body.to_string().len() as u64 / 4
}

/// Returns what a server says whose model reads `reads` tokens and gets more.
fn refuse(model: &str, tokens: u64, reads: u64) -> Act {
    let error = |words: String| json!({ "error": { "code": 400, "message": words, "type": "invalid_request_error" } });
    match model {
        "template" => {
            let words = "Error rendering prompt with jinja template: No user query found in messages.";
            Act::Status(500, Vec::new(), json!({ "error": { "code": 500, "message": words } }).to_string())
        }
        "gemini" => {
            let words =
                format!("The input token count ({tokens}) exceeds the maximum number of tokens allowed ({reads}).");
            Act::Status(400, Vec::new(), error(words).to_string())
        }
        "lmstudio" => {
            let words = format!(
                "Trying to keep the first {tokens} tokens when context the overflows. However, the model is loaded with context length of \
                 only {reads} tokens, which is not enough."
            );
            Act::Status(400, Vec::new(), json!({ "error": words }).to_string())
        }
        "streamed" => {
            let words = format!("This model's maximum context length is {reads} tokens.");
            Act::Events(vec![format!("data: {}\n\n", error(words))])
        }
        "few-words" => said("The", "length", reads - 1),
        _ => said("", "length", reads - 1),
    }
}

/// Answers as Ollama does with a small context: it drops the beginning of a long prompt, and counts what is left.
fn stand_in(seen: &Seen) -> Act {
    let messages = seen.body["messages"].to_string();
    let from = messages.ceil_char_boundary(messages.len().saturating_sub(KEPT_BYTES));
    let is_instructed = messages[from..].contains("\"system\"");
    said(if is_instructed { "instructed" } else { "blind" }, "stop", COUNTED)
}

/// Starts the server. A refusing model reads the first request, and a message and a half more.
fn start() -> Server {
    let read: Mutex<HashMap<String, u64>> = Mutex::default();
    Server::start(move |seen| {
        let model = seen.body["model"].as_str().expect("a model").to_owned();
        if model == "counting" {
            return stand_in(seen);
        }
        let tokens = tokens(seen);
        let mut read = read.lock().expect("not poisoned");
        let more = (MESSAGE_BYTES + MESSAGE_BYTES / 2) as u64 / 4;
        let reads = *read.entry(model.clone()).or_insert_with(|| (tokens + more).div_ceil(1000) * 1000);
        drop(read);
        if tokens <= reads { said("answer", "stop", tokens) } else { refuse(&model, tokens, reads) }
    })
}

/// Refuses a request whose prompt and output are longer than the context.
fn counting_output(seen: &Seen) -> Act {
    let model = seen.body["model"].as_str().expect("a model");
    let words = COUNTING_OUTPUT.iter().find(|(name, _)| *name == model).expect("a known model").1;
    let (prompt, output) = (tokens(seen), seen.body["max_tokens"].as_u64().expect("a bound"));
    if prompt + output <= WITH_OUTPUT {
        return Act::Say("answer".to_owned());
    }
    let sum = (prompt + output).to_string();
    let words = words.replace("@T", &prompt.to_string()).replace("@M", &output.to_string()).replace("@S", &sum);
    let error = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": words } });
    Act::Status(400, Vec::new(), error.to_string())
}

fn add(host: &TestHost, server: &Server, model: &str) {
    let kind = if model == "messages" { "anthropic" } else { "openai" };
    let base = format!("{}/v1", server.url());
    let endpoint = ["--kind", kind, "--base-url", &base, "--model", model, "--no-key", "--no-test"];
    host.ctl(&[&["model", "add", model][..], &endpoint].concat()).ok();
    host.ctl(&["agent", "add", model, "--model", model]).ok();
}

/// Returns a message of five kilobytes.
fn message(number: usize) -> String {
    let words = format!("{number} lorem ipsum dolor sit amet ");
    words.repeat(MESSAGE_BYTES / words.len())
}

/// Returns the bytes of the conversation in each request to this model that is no request for a summary.
fn conversations(server: &Server, model: &str) -> Vec<usize> {
    let seen = server.seen();
    let of_model = seen.iter().filter(|seen| seen.body["model"] == model && !seen.system().contains("minutes"));
    let bytes = |seen: &Seen| seen.conversation().iter().skip(1).map(|(_, text)| text.len()).sum();
    of_model.map(bytes).collect()
}

fn learned(host: &TestHost, model: &str) -> Vec<Value> {
    let of_model = |entry: &Value| entry["data"]["model"] == model;
    host.entries("model.context_learned").into_iter().filter(of_model).collect()
}

/// Checks that chat, status, doctor and `why` say once that a model reads less.
fn check_said(host: &TestHost, model: &str, told_at: &Value) {
    let history = Client::of(host).history(model);
    let notes =
        history.iter().filter(|line| line.to_string().contains(&format!("ironctl model set {model} --context")));
    assert_eq!(notes.count(), 1, "{model}: {history:#?}");
    assert_eq!(learned(host, model).len(), 1, "{model}");
    let why = host.ctl(&["--json", "why", told_at["message_id"].as_str().expect("an id")]).ok().json();
    let stages = why["stages"].as_array().expect("stages");
    let stage = stages.iter().find(|stage| stage["stage"] == "model.context_learned");
    assert!(stage.is_some_and(|stage| stage["reason"].as_str().is_some_and(|why| why.contains("num_ctx"))), "{why}");
}

fn small_context(host: &TestHost, model: &str) -> Option<Value> {
    let status = host.status();
    let found = status["small_contexts"].as_array().into_iter().flatten().find(|small| small["model"] == model);
    found.cloned()
}

#[test]
fn model_that_counts_the_same_for_each_prompt_gets_less() {
    let server = start();
    let host = TestHost::own(Build::Plain).configured(SETTINGS).started();
    add(&host, &server, "counting");
    let (mut told_at, mut replies) = (Value::Null, Vec::new());
    for number in 0..6 {
        let view = host.chat("counting", &message(number));
        replies.push(view["reply"].clone());
        if told_at.is_null() && !learned(&host, "counting").is_empty() {
            told_at = view;
        }
    }
    assert!(replies.contains(&json!("blind")), "the server drops a part at first: {replies:?}");
    assert_eq!(replies[5], "instructed", "the model reads all of a shorter prompt: {replies:?}");
    check_said(&host, "counting", &told_at);
    let small = small_context(&host, "counting").expect("status names it");
    assert_eq!(small["tokens"], COUNTED, "{small}");
    let doctor = host.ctl(&["--json", "doctor"]).stdout;
    assert!(doctor.contains("ironctl model set counting --context"), "{doctor}");
    let sent = conversations(&server, "counting");
    let longest = sent.iter().max().expect("requests");
    assert!(sent[5] < 2 * MESSAGE_BYTES && *longest > 2 * MESSAGE_BYTES, "{sent:?}");
    assert!(!host.entries("summary.sealed").is_empty(), "a summary replaces the oldest part");

    // It is kept over a restart, and ends with the endpoint.
    host.restart();
    assert_eq!(small_context(&host, "counting").expect("kept")["tokens"], COUNTED);
    let base = format!("{}/v1", server.url());
    let again = ["model", "add", "counting", "--kind", "openai", "--base-url", &base, "--model", "counting"];
    host.ctl(&[&again[..], &["--no-key", "--no-test", "--replace"]].concat()).ok();
    assert_eq!(small_context(&host, "counting"), None);
}

#[test]
fn model_that_refuses_a_long_prompt_is_asked_again_with_less() {
    let server = start();
    let host = TestHost::own(Build::Plain).configured(SETTINGS).started();
    for model in REFUSING {
        add(&host, &server, model);
        let mut told_at = Value::Null;
        for number in 0..6 {
            let view = host.chat(model, &message(number));
            assert_eq!(view["reply"], "answer", "{model} {number}: {view}");
            if told_at.is_null() && !learned(&host, model).is_empty() {
                told_at = view;
            }
        }
        check_said(&host, model, &told_at);
        let refused = host.entries("model.failed").into_iter().filter(|entry| entry["data"]["model"] == model);
        let codes: Vec<_> = refused.map(|entry| entry["data"]["code"].clone()).collect();
        assert!(!codes.is_empty() && codes.iter().all(|code| code == "context_too_long"), "{model}: {codes:?}");
    }
    for stated in ["gemini", "lmstudio", "streamed"] {
        assert!(small_context(&host, stated).is_some(), "{stated}: one number that a server names is believed");
    }
    assert!(host.entries("model.refused").is_empty(), "no sandbox is at fault");
}

#[test]
fn learned_context_leaves_a_quarter_for_the_answer() {
    let server = Server::start(counting_output);
    let host = TestHost::own(Build::Plain).configured(SETTINGS).started();
    for (model, _) in COUNTING_OUTPUT {
        add(&host, &server, model);
        for number in 0..3 {
            let view = host.chat(model, &format!("hello {number}"));
            assert_eq!(view["reply"], "answer", "{model} {number}: {view}");
        }
        let seen = server.seen();
        let asked = seen.iter().filter(|seen| seen.body["model"] == model).map(|seen| seen.body["max_tokens"].clone());
        let asked: Vec<Value> = asked.collect();
        assert_eq!(asked, [8192, 2048, 2048, 2048].map(|tokens| json!(tokens)), "{model}: only the first is refused");
        assert_eq!(small_context(&host, model).expect("it is learned")["tokens"], WITH_OUTPUT, "{model}");
        assert_eq!(learned(&host, model).len(), 1, "{model}");
    }
    assert!(host.entries("model.failed").is_empty() && host.entries("summary.sealed").is_empty());
}

#[test]
fn set_context_bounds_a_conversation_that_runs() {
    let server = Server::start(|_| said("answer", "stop", 0));
    let host = TestHost::own(Build::Plain).started();
    add(&host, &server, "large");
    for number in 0..4 {
        host.chat("large", &message(number));
    }
    assert!(conversations(&server, "large")[3] > 4 * MESSAGE_BYTES);
    let settings = json!({ "context_tokens": 4096 });
    let new = json!({
        "name": "small", "kind": "openai", "base_url": format!("{}/v1", server.url()), "model": "large", "test": false,
        "settings": settings,
    });
    let (status, kept) = crate::support::client::Raw::of(&host).ask("POST", "/v1/models", &new.to_string());
    assert!(status < 300, "{kept}");
    // The session is awake, and its next request goes to the small model.
    host.ctl(&["agent", "set", "large", "--model", "small"]).ok();
    host.chat("large", &message(4));
    let sent = conversations(&server, "large");
    assert!(sent[sent.len() - 1] < 2 * MESSAGE_BYTES, "{sent:?}");
    let body = server.seen().pop().expect("a request").body;
    assert_eq!(body["max_tokens"], 1024, "an output has a quarter of the context");
    assert!(learned(&host, "small").is_empty() && small_context(&host, "small").is_none(), "the operator knows it");
    // Back to the large model, the conversation grows.
    host.ctl(&["agent", "set", "large", "--model", "large"]).ok();
    for number in 5..8 {
        host.chat("large", &message(number));
    }
    let sent = conversations(&server, "large");
    assert!(sent[sent.len() - 1] > 3 * MESSAGE_BYTES, "{sent:?}");
}
