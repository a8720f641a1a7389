//! Tests of servers that refuse what they attached themselves, or a message without words, through the library.
//!
//! See `profiles` for the rules of known providers.

use super::{ask, candidates, open, person, quick, spec};
use crate::support::model_server::{Act, Seen, Server};
use ironclaw_model::endpoint::{Endpoints, Kind};
use ironclaw_model::{Part, PastCall};
use serde_json::{Value, json};

/// A server that refuses a field of its own.
struct Strict {
    name: &'static str,
    kind: Kind,
    /// Returns whether a message of the model, or a call in it, is refused.
    refuses: fn(&Value) -> bool,
    words: &'static str,
}

const STRICT: [Strict; 7] = [
    Strict {
        name: "thoughts of Groq",
        kind: Kind::Openai,
        refuses: |message| message.get("reasoning").is_some(),
        words: "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning' is unsupported)]",
    },
    Strict {
        name: "other thoughts",
        kind: Kind::Openai,
        refuses: |message| message.get("reasoning_content").is_some(),
        words: "property 'messages.2.assistant.reasoning_content' is unsupported",
    },
    Strict {
        name: "a field of a call",
        kind: Kind::Openai,
        refuses: |message| message["tool_calls"][0].get("bar").is_some(),
        words: "messages.2.tool_calls.0.bar: Extra inputs are not permitted",
    },
    Strict {
        name: "content of LM Studio",
        kind: Kind::Openai,
        refuses: |message| message["content"].is_null(),
        words: "Invalid 'content': 'content' field must be a string or an array of objects.",
    },
    Strict {
        name: "content of Workers AI",
        kind: Kind::Openai,
        refuses: |message| message["content"].is_null(),
        words: "AiError: Bad input: Error: oneOf at '/' not met: Type mismatch of '/messages/2/content', 'string' not in 'null'",
    },
    Strict {
        name: "a thinking block",
        kind: Kind::Anthropic,
        refuses: |message| message["content"][0]["type"] == "thinking",
        words: "messages.1.content.0: block type 'thinking' is not supported by this model",
    },
    Strict {
        name: "a field of a block",
        kind: Kind::Anthropic,
        refuses: |message| message["content"].to_string().contains("caller"),
        words: "messages.1.content.0.tool_use.caller: Extra inputs are not permitted",
    },
];

/// The profiles of providers that refuse thoughts.
const PROFILES: [&str; 2] = ["groq", "cerebras"];

/// Returns an answer with a call and with everything that one of the servers refuses later.
fn call(kind: Kind, streams: bool) -> Act {
    let body = match kind {
        Kind::Anthropic => {
            let thinking = json!({ "type": "thinking", "thinking": "hm hm" });
            let call = json!({ "type": "tool_use", "id": "t", "name": "read_file", "input": { "path": "a" }, "caller": "direct" });
            json!({ "type": "message", "content": [thinking, call], "stop_reason": "tool_use" })
        }
        _ => {
            let function = json!({ "name": "read_file", "arguments": json!({ "path": "a" }).to_string() });
            let call = json!({ "index": 0, "id": "c", "type": "function", "function": function, "bar": 1 });
            let part =
                json!({ "content": null, "reasoning": "hm hm", "reasoning_content": "hm hm", "tool_calls": [call] });
            let field = if streams { "delta" } else { "message" };
            json!({ "choices": [{ "index": 0, field: part, "finish_reason": "tool_calls" }] })
        }
    };
    if streams && kind == Kind::Openai {
        Act::Events(vec![format!("data: {body}\n\n")])
    } else {
        Act::Raw(body.to_string())
    }
}

/// Makes a turn with a call, and returns the number of its requests.
async fn turn(endpoints: &Endpoints, server: &Server) -> usize {
    let before = server.seen().len();
    let output = ask(&candidates(endpoints, "local"), vec![person("read it")]).await.expect("a call").output;
    let call_id = "cal_01kagq8t000000000000000000".to_owned();
    let arguments = output.calls[0].arguments.clone();
    let past = PastCall { call_id: call_id.clone(), tool: "read_file".to_owned(), arguments };
    let parts = vec![
        person("read it"),
        Part::Assistant { text: output.text, calls: vec![past], attached: output.attached },
        Part::Result { call_id, tool: "read_file".to_owned(), ok: true, text: "words".to_owned() },
    ];
    let answered = ask(&candidates(endpoints, "local"), parts).await.expect("an answer behind the call");
    assert_eq!(answered.output.text, "done");
    server.seen().len() - before
}

fn has_result(seen: &Seen) -> bool {
    !seen.results().is_empty()
}

#[tokio::test]
async fn refused_field_of_the_server_is_left_out_and_learned() {
    for Strict { name, kind, refuses, words } in STRICT {
        for streams in [true, false] {
            let server = Server::start(move |seen| {
                let messages = seen.body["messages"].as_array().into_iter().flatten();
                let mut said = messages.filter(|message| message["role"] == "assistant");
                match said.any(refuses) {
                    true => Act::Status(400, Vec::new(), json!({ "error": { "message": words } }).to_string()),
                    false if has_result(seen) => Act::Say("done".to_owned()),
                    false => call(kind, streams),
                }
            });
            let local = spec("local", (kind, streams), &server.url());
            let endpoints = open(&quick(), vec![local.clone()]);
            let mut requests = Vec::new();
            for _ in 0..3 {
                requests.push(turn(&endpoints, &server).await);
            }
            assert_eq!(requests, [3, 3, 2], "{name}, streams {streams}");
            for profile in PROFILES.into_iter().filter(|_| words.contains("'reasoning'")) {
                let mut known = local.clone();
                known.settings.profile = Some(profile.to_owned());
                assert_eq!(turn(&open(&quick(), vec![known]), &server).await, 2, "{profile}");
            }
        }
    }
}

#[tokio::test]
async fn refusal_of_another_field_is_no_second_request() {
    let words = "messages.2.tool_calls.0.foo: Extra inputs are not permitted";
    let server = Server::start(move |seen| match has_result(seen) {
        true => Act::Status(400, Vec::new(), words.to_owned()),
        false => call(Kind::Openai, true),
    });
    let endpoints = open(&quick(), vec![spec("local", (Kind::Openai, true), &server.url())]);
    let call_id = "cal_01kagq8t000000000000000000".to_owned();
    let output = ask(&candidates(&endpoints, "local"), vec![person("read it")]).await.expect("a call").output;
    let past = PastCall { call_id: call_id.clone(), tool: "read_file".to_owned(), arguments: "{}".to_owned() };
    let parts = vec![
        person("read it"),
        Part::Assistant { text: output.text, calls: vec![past], attached: output.attached },
        Part::Result { call_id, tool: "read_file".to_owned(), ok: true, text: "words".to_owned() },
    ];
    let refused = super::failed(ask(&candidates(&endpoints, "local"), parts).await);
    // A shorter conversation passed.
    assert_eq!((refused.code(), server.seen().len()), ("conversation_fails", 2));
}

/// A server that wants calls of earlier messages in its own form.
struct Wants {
    name: &'static str,
    status: u16,
    words: &'static str,
    /// Returns whether a message of the model is refused.
    refuses: fn(&Value) -> bool,
    /// The requests of three conversations in a row.
    requests: [usize; 3],
}

const WANTS: [Wants; 4] = [
    Wants {
        name: "a template of Llama at llama.cpp",
        status: 500,
        words: "Jinja Exception: This model only supports single tool-calls at once!",
        refuses: |message| message["tool_calls"].as_array().is_some_and(|calls| calls.len() > 1),
        requests: [2, 2, 1],
    },
    Wants {
        name: "gpt-oss at Databricks",
        status: 400,
        words: "Multiple tool calls are not supported.",
        refuses: |message| message["tool_calls"].as_array().is_some_and(|calls| calls.len() > 1),
        requests: [2, 2, 1],
    },
    Wants {
        name: "a model of Moonshot behind a gateway",
        status: 400,
        words: "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        refuses: |message| {
            message["tool_calls"].is_array() && message["reasoning_content"].as_str().is_none_or(str::is_empty)
        },
        requests: [3, 3, 1],
    },
    Wants {
        name: "a model of DeepSeek that thinks",
        status: 400,
        words: "The `reasoning_content` in the thinking mode must be passed back to the API.",
        refuses: |message| message["tool_calls"].is_array() && message.get("reasoning_content").is_none(),
        requests: [3, 3, 1],
    },
];

#[tokio::test]
async fn calls_and_thoughts_are_sent_in_the_form_of_the_server() {
    let ids = ["cal_01kagq8t000000000000000001", "cal_01kagq8t000000000000000002"];
    let call = |id: &str| PastCall { call_id: id.to_owned(), tool: "read_file".to_owned(), arguments: "{}".to_owned() };
    let result = |id: &str| Part::Result {
        call_id: id.to_owned(),
        tool: "read_file".to_owned(),
        ok: true,
        text: format!("words of {id}"),
    };
    // Another model made these calls.
    let mut parts = vec![
        person("read both"),
        Part::Assistant { text: String::new(), calls: ids.map(call).to_vec(), attached: None },
    ];
    parts.extend(ids.map(result));
    for Wants { name, status, words, refuses, requests } in WANTS {
        for streams in [true, false] {
            let server = Server::start(move |seen| {
                let mut messages = seen.body["messages"].as_array().into_iter().flatten();
                match messages.any(refuses) {
                    true => Act::Status(status, Vec::new(), json!({ "error": { "message": words } }).to_string()),
                    false => Act::Say("done".to_owned()),
                }
            });
            let endpoints = open(&quick(), vec![spec("local", (Kind::Openai, streams), &server.url())]);
            let mut made = Vec::new();
            for _ in 0..3 {
                let before = server.seen().len();
                let answered = ask(&candidates(&endpoints, "local"), parts.clone()).await;
                let answered = answered.unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(answered.output.text, "done", "{name}");
                made.push(server.seen().len() - before);
            }
            assert_eq!(made, requests, "{name}, streams {streams}");
            let last = server.seen().last().expect("a request").body["messages"].clone();
            let results: Vec<Value> =
                last.as_array().expect("a list").iter().filter(|message| message["role"] == "tool").cloned().collect();
            assert_eq!(results.len(), 2, "{name}: each call has its result");
        }
    }
}
