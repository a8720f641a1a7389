//! Tests of what an answer of a model contains: calls in pieces, opaque state, thoughts, and calls that are written as text.
//!
//! The real daemon asks a model server on loopback. See `models` for endpoints, and `ironclaw_model` for the forms of answers.

use crate::e2e::streaming::new_host;
use crate::support::client::Raw;
use crate::support::model_server::{Act, Seen, Server};
use serde_json::{Value, json};

/// Returns the events of a stream of Chat Completions with these pieces of its message.
fn chat(deltas: &[Value], end: &str) -> Act {
    let event = |choice: Value| format!("data: {}\n\n", json!({ "choices": [choice] }));
    let mut events: Vec<String> = deltas.iter().map(|delta| event(json!({ "index": 0, "delta": delta }))).collect();
    events.push(event(json!({ "index": 0, "delta": {}, "finish_reason": end })));
    events.push("data: [DONE]\n\n".to_owned());
    Act::Events(events)
}

/// Returns the events of a stream of Messages with these blocks.
fn messages(blocks: &[Value]) -> Act {
    let mut events = vec![json!({ "type": "message_start", "message": { "usage": { "input_tokens": 1 } } })];
    for (index, block) in blocks.iter().enumerate() {
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    events.push(json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }));
    events.push(json!({ "type": "message_stop" }));
    let event = |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    Act::Events(events.into_iter().map(event).collect())
}

/// Returns the messages of the model in a request.
fn said(seen: &Seen) -> Vec<Value> {
    let messages = seen.body["messages"].as_array().into_iter().flatten();
    messages.filter(|message| message["role"] == "assistant").cloned().collect()
}

/// Returns a piece of a call that writes a file.
fn write(index: Value, id: &Value, path: &str) -> Value {
    let arguments = json!({ "path": path, "content": path }).to_string();
    let mut call =
        json!({ "id": id, "type": "function", "function": { "name": "write_file", "arguments": arguments } });
    if !index.is_null() {
        call["index"] = index;
    }
    call
}

#[test]
fn two_calls_of_any_numbering_write_two_files() {
    let forms: [(&str, Value, Value); 4] = [
        ("one index, empty id", json!(0), json!("")),
        ("one index, no id", json!(0), Value::Null),
        ("no index, one id", Value::Null, json!("c")),
        ("no index, no id", Value::Null, Value::Null),
    ];
    let of_server = forms.clone();
    let server = Server::start(move |seen: &Seen| {
        if !seen.results().is_empty() {
            return Act::Say("Done.".to_owned());
        }
        let asked = seen.asked();
        let (form, index, id) = of_server.iter().find(|(form, ..)| asked.contains(form)).expect("a form");
        let calls = ["a.txt", "b.txt"].map(|file| write(index.clone(), id, &format!("{form} {file}")));
        if asked.contains("one chunk") {
            return chat(&[json!({ "tool_calls": calls })], "tool_calls");
        }
        if asked.contains("no stream") {
            let choice = json!({ "message": { "content": null, "tool_calls": calls }, "finish_reason": "tool_calls" });
            return Act::Raw(json!({ "choices": [choice] }).to_string());
        }
        chat(&calls.map(|call| json!({ "tool_calls": [call] })), "tool_calls")
    });
    let host = new_host("", &server, "openai", &[]);
    for (form, ..) in &forms {
        for way in ["one chunk", "two chunks", "no stream"] {
            let answer = host.chat("a", &format!("write the files: {form}, {way}"));
            assert_eq!(answer["reply"], "Done.", "{form}, {way}: {answer}");
            let seen = server.seen().pop().expect("a request");
            let results = seen.results();
            assert_eq!(results.len(), 2, "{form}, {way}: {results:?}");
            assert!(results.iter().all(|result| !result.contains("failed")), "{form}, {way}: {results:?}");
        }
        for file in ["a.txt", "b.txt"] {
            let path = format!("{form} {file}");
            let written = host.session_directory().join("workspace").join(&path);
            assert_eq!(std::fs::read_to_string(&written).expect("a file"), path);
        }
    }
}

#[test]
fn opaque_state_comes_back_to_its_endpoint_alone() {
    let signature = "c2lnbmF0dXJl".repeat(7);
    let state = json!({ "google": { "thought_signature": signature } });
    let details = json!([{ "type": "reasoning.encrypted", "data": signature, "index": 0 }]);
    let (of_call, of_message) = (state.clone(), details.clone());
    let strict = Server::start(move |seen: &Seen| {
        let refused =
            || Act::Status(400, Vec::new(), json!({ "error": { "message": "a signature is missing" } }).to_string());
        let is_of_turn = seen.asked().contains("write");
        for message in said(seen).iter().filter(|message| message["tool_calls"].is_array()) {
            let call = &message["tool_calls"][0];
            let is_whole = call["extra_content"] == of_call
                && call["function"]["thought_signature"] == "inner-signature-1"
                && call["id"] == "c"
                && message["reasoning_details"] == of_message
                && (message["reasoning_content"] == "I write it.") == is_of_turn;
            if !is_whole {
                return refused();
            }
        }
        if !seen.results().is_empty() || !seen.asked().contains("write") {
            return Act::Say("Done.".to_owned());
        }
        let mut call = write(json!(0), &json!("c"), "a.txt");
        call["extra_content"] = of_call.clone();
        call["function"]["thought_signature"] = json!("inner-signature-1");
        let thought = json!({ "reasoning_content": "I write it." });
        chat(&[thought, json!({ "tool_calls": [call] }), json!({ "reasoning_details": of_message })], "tool_calls")
    });
    let other = Server::start(|_| Act::Say("Hello from another model.".to_owned()));
    let host = new_host("", &strict, "openai", &[]);
    assert_eq!(host.say("a", "write the file"), "Done.");
    host.restart();
    assert_eq!(host.say("a", "thanks"), "Done.", "the state survives a restart");
    let base = format!("{}/v1", other.url());
    host.ctl(&["model", "add", "o", "--kind", "openai", "--base-url", &base, "--model", "small", "--no-test"]).ok();
    host.ctl(&["agent", "set", "a", "--model", "o"]).ok();
    let answer = host.chat("a", "hello");
    assert_eq!(answer["reply"], "Hello from another model.");
    let foreign = other.seen().pop().expect("a request").body.to_string();
    for secret in [signature.as_str(), "inner-signature-1", "I write it.", "extra_content", r#""id":"c""#] {
        assert!(!foreign.contains(secret), "{secret}: {foreign}");
    }
    let session = answer["session_id"].as_str().expect("an id");
    let (_, shown) = Raw::of(&host).get(&format!("/v1/sessions/{session}/transcript"));
    let shown = shown.to_string();
    assert!(!shown.contains(&signature) && !shown.contains("I write it."), "{shown}");
    host.ctl(&["agent", "set", "a", "--model", "m"]).ok();
    assert_eq!(host.say("a", "once more"), "Done.", "the endpoint gets its state again");
}

#[test]
fn thinking_blocks_come_back_in_front_of_their_calls() {
    let thinking = json!({ "type": "thinking", "thinking": "I write it.", "signature": "c2ln" });
    let redacted = json!({ "type": "redacted_thinking", "data": "b3BhcXVl" });
    let call = json!({ "type": "tool_use", "id": "t", "name": "write_file", "input": { "path": "a", "content": "a" } });
    let blocks = [thinking.clone(), redacted.clone(), call];
    let server = Server::start(move |seen: &Seen| match said(seen).first() {
        None => messages(&blocks),
        Some(message) if message["content"][0] == thinking && message["content"][1] == redacted => {
            Act::Say("Done.".to_owned())
        }
        Some(_) => Act::Status(400, Vec::new(), json!({ "error": { "message": "a block is missing" } }).to_string()),
    });
    let host = new_host("", &server, "anthropic", &[]);
    let answer = host.chat("a", "write the file");
    assert_eq!((&answer["reply"], &answer["reasoning"]), (&json!("Done."), &json!(["I write it."])));
    assert_eq!(host.say("a", "thanks"), "Done.");
}

#[test]
fn thoughts_in_tags_are_shown_on_demand_and_are_no_answer() {
    let server = Server::start(|_| Act::Say("<think>They want\na greeting.</think>\n\nHello there.".to_owned()));
    let host = new_host("", &server, "openai", &[]);
    host.say("a", "greet me");
    let answer = host.chat("a", "greet me again");
    assert_eq!((&answer["reply"], &answer["reasoning"]), (&json!("Hello there."), &json!(["They want\na greeting."])));
    let prompt = server.seen().pop().expect("a request").body.to_string();
    assert!(prompt.contains("Hello there.") && !prompt.contains("a greeting"), "{prompt}");
    let message = answer["message_id"].as_str().expect("an id");
    let (status, reasoning) = Raw::of(&host).get(&format!("/v1/messages/{message}/reasoning"));
    assert_eq!((status, &reasoning["thoughts"]), (200, &json!(["They want\na greeting."])));
    let other = Raw::add_person(&host, "bob", &[]);
    assert_eq!(other.get(&format!("/v1/messages/{message}/reasoning")).0, 404, "the thoughts are the sender's alone");
}

#[test]
fn an_empty_answer_says_what_the_model_did_instead() {
    let call = json!({ "name": "write_file", "arguments": { "path": "a.txt", "content": "a" } }).to_string();
    let server = Server::start(move |seen: &Seen| {
        Act::Say(match seen.asked() {
            asked if asked.contains("call") => {
                format!("<think>I write it.\n<tool_call>\n{call}\n</tool_call>\n</think>\n\n")
            }
            asked if asked.contains("think") => "<think>They want a greeting.</think>\n".to_owned(),
            _ => "\n \n".to_owned(),
        })
    });
    let host = new_host("", &server, "openai", &[]);
    for (asked, said) in [("call it", "--jinja"), ("think of it", "`/reasoning`"), ("say it", "an empty answer.")] {
        let reply = host.say("a", asked);
        assert!(reply.contains(said), "{asked}: {reply}");
    }
    assert!(!host.session_directory().join("workspace/a.txt").exists());
}

#[test]
fn a_call_as_text_runs_nothing_and_is_no_example() {
    let call = json!({ "name": "write_file", "arguments": { "path": "a.txt", "content": "a" } }).to_string();
    let written = format!("<tool_call>\n{call}\n</tool_call>");
    let explained = format!("Such a call is:\n```json\n{call}\n```\nIts name is that of the tool.");
    let second = explained.clone();
    let server = Server::start(move |seen: &Seen| {
        Act::Say(if seen.asked().contains("explain") { second.clone() } else { written.clone() })
    });
    let host = new_host("", &server, "openai", &[]);
    let reply = host.say("a", "write the file");
    assert!(reply.contains("write_file") && reply.contains("--jinja"), "{reply}");
    assert!(!host.session_directory().join("workspace/a.txt").exists());
    let why = host.ctl(&["--json", "why"]).ok().json();
    assert_eq!(why["has_written_call"], true, "{why}");
    assert_eq!(host.say("a", "explain calls"), explained);
    let prompt = server.seen().pop().expect("a request");
    assert_eq!(said(&prompt), Vec::<Value>::new(), "the text is no example");
    assert!(prompt.conversation().iter().any(|(role, text)| role == "user" && text.contains("left out here")));
    assert_eq!(host.ctl(&["--json", "why"]).ok().json()["has_written_call"], Value::Null);
    host.say("a", "explain again");
    let prompt = server.seen().pop().expect("a request");
    assert!(said(&prompt).iter().any(|message| message["content"] == *explained), "an explanation stays");
}
