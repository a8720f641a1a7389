//! What a provider attached comes back unchanged, at its place, to it alone.

mod requests;

use super::super::assembly::Assembly;
use super::super::end::End;
use super::super::openai::RequestOptions;
use super::super::streaming::PartialAnswer;
use super::super::{Output, Part, PastCall, Prompt, anthropic, json as read, openai};
use super::collected::STATE_BYTES_MAX;
use super::*;
use ironclaw_contract::seam::socket::Purpose;
use serde_json::json;
use std::sync::Arc;

const OPTIONS: RequestOptions = RequestOptions {
    streams: true,
    asks_usage: false,
    short_ids: false,
    takes_images: false,
    limit_field: "max_tokens",
    output_tokens_max: 9,
    empty_content: false,
    splits_calls: false,
    needs_thought_field: false,
    thoughts: None,
    state: None,
    system_role: None,
};

fn spec(kind: Kind, url: &str, model: &str) -> Spec {
    let base_url = Some(url.parse().expect("a URL"));
    Spec { kind, base_url, model: model.to_owned(), ..Spec::builtin() }
}

fn here(kind: Kind) -> Spec {
    spec(kind, "http://[::1]:1/v1", "m")
}

/// Returns the output of these events, or of one whole answer.
fn output(kind: Kind, events: &[String], is_stream: bool) -> Output {
    let draft = PartialAnswer::default();
    let mut assembly = Assembly::new(&draft).bound_to(&here(kind));
    for event in events {
        let read::Parsed { value, has_doubled_key } = read::read_event(event.as_bytes()).expect("JSON");
        let taken = match (kind, is_stream) {
            (Kind::Anthropic, true) => anthropic::event(&value, &mut assembly).map(drop),
            (Kind::Anthropic, false) => anthropic::whole(&value, &mut assembly),
            (_, true) => openai::event(&value, &mut assembly).map(drop),
            (_, false) => openai::whole(&value, &mut assembly),
        };
        taken.expect("an event");
        assembly.end_event(has_doubled_key);
    }
    assembly.ends(End::Whole);
    assembly.finish().expect("an output")
}

/// Returns the message of the model in a request to an endpoint.
fn message(output: &Output, to: &Spec) -> Value {
    let mut calls = Vec::new();
    for (n, call) in output.calls.iter().enumerate() {
        let (tool, arguments) = (call.tool.clone(), call.arguments.clone());
        calls.push(PastCall { call_id: format!("call_{n}"), tool, arguments });
    }
    let person = || Part::Person { text: "go".to_owned() };
    let said = Part::Assistant { text: output.text.clone(), calls, attached: output.attached.clone() };
    let parts = vec![person(), said];
    let prompt = Prompt { purpose: Purpose::Reply, system: String::new(), tools: Vec::new(), parts };
    let endpoint = Some(endpoint_digest(to));
    let body = match to.kind {
        Kind::Anthropic => anthropic::request_to(&prompt, "m", OPTIONS, endpoint),
        _ => serde_json::from_slice(&openai::request_text(&prompt, "m", OPTIONS, endpoint)).expect("JSON"),
    };
    body["messages"][1].clone()
}

fn chat(delta: &Value) -> String {
    json!({ "choices": [{ "index": 0, "delta": delta }] }).to_string()
}

/// Random values that are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn value(&mut self, depth: u8) -> Value {
        match self.below(if depth == 0 { 5 } else { 7 }) {
            0 => json!("s".repeat(self.below(90) as usize + 1)),
            1 => json!(self.below(1000)),
            2 => json!(1.5),
            3 => json!(true),
            4 => json!("é\"\\\n<b>"),
            5 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => self.fields(depth - 1),
        }
    }

    fn fields(&mut self, depth: u8) -> Value {
        let names = ["signature", "content", "role", "x", "data"];
        let count = self.below(4);
        Value::Object((0..count).map(|_| (names[self.below(5) as usize].to_owned(), self.value(depth))).collect())
    }
}

#[test]
fn chat_state_comes_back_unchanged_at_its_place_to_it_alone() {
    for seed in 0..100 {
        let mut dice = Dice(seed);
        let states: Vec<[Value; 2]> = (0..=dice.below(3)).map(|_| [dice.value(4), dice.value(4)]).collect();
        let of_message = dice.value(4);
        let call = |n: usize, beside: &Value, inside: &Value| {
            let function = json!({ "name": "w", "arguments": json!({ "n": n }).to_string(), "inner_state": inside });
            json!({ "index": n, "id": format!("c{n}"), "type": "function", "function": function, "extra_content": beside })
        };
        let calls: Vec<Value> =
            states.iter().enumerate().map(|(n, [beside, inside])| call(n, beside, inside)).collect();
        let whole = json!({ "role": "assistant", "content": "a", "tool_calls": calls, "thought_state": of_message });
        let mut events = vec![chat(&json!({ "role": "assistant", "content": "a" }))];
        events.extend(calls.iter().map(|call| chat(&json!({ "tool_calls": [call] }))));
        events.push(chat(&json!({ "thought_state": of_message })));
        let answer = json!({ "choices": [{ "message": whole }] }).to_string();
        for output in [output(Kind::Openai, &events, true), output(Kind::Openai, &[answer], false)] {
            let sent = message(&output, &here(Kind::Openai));
            assert_eq!(sent["thought_state"], of_message, "{seed}");
            for (n, [beside, inside]) in states.iter().enumerate() {
                assert_eq!(sent["tool_calls"][n]["id"], format!("c{n}"), "{seed}");
                assert_eq!(sent["tool_calls"][n]["extra_content"], *beside, "{seed}");
                assert_eq!(sent["tool_calls"][n]["function"]["inner_state"], *inside, "{seed}");
            }
            for other in [
                spec(Kind::Openai, "http://[::1]:2/v1", "m"),
                spec(Kind::Openai, "http://[::1]:1/v1", "n"),
                here(Kind::Anthropic),
            ] {
                let sent = message(&output, &other).to_string();
                assert!(!sent.contains("_state") && !sent.contains("extra_content"), "{sent}");
            }
        }
    }
}

#[test]
fn blocks_of_messages_come_back_in_their_order() {
    let thinking = json!({ "type": "thinking", "thinking": "I add it up.", "signature": "c2lnbmF0dXJl" });
    let redacted = json!({ "type": "redacted_thinking", "data": "b3BhcXVl" });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "w", "input": { "n": id }, "caller": { "type": "direct" } });
    let content = json!([thinking, text("one"), redacted, text("two"), call("a"), redacted, call("b")]);
    let mut events = Vec::new();
    for (index, block) in content.as_array().into_iter().flatten().enumerate() {
        let (mut start, mut deltas) = (block.clone(), Vec::new());
        match block["type"].as_str() {
            Some("thinking") => {
                start = json!({ "type": "thinking", "thinking": "", "signature": "" });
                deltas.push(json!({ "type": "thinking_delta", "thinking": "I add " }));
                deltas.push(json!({ "type": "thinking_delta", "thinking": "it up." }));
                deltas.push(json!({ "type": "signature_delta", "signature": "c2lnbmF0dXJl" }));
            }
            Some("text") => {
                start = text("");
                deltas.push(json!({ "type": "text_delta", "text": block["text"] }));
            }
            Some("tool_use") => {
                start["input"] = json!({});
                deltas.push(json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() }));
            }
            _ => {}
        }
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": start }).to_string());
        let delta = |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta }).to_string();
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({ "type": "content_block_stop", "index": index }).to_string());
    }
    let answer = json!({ "content": content }).to_string();
    for output in [output(Kind::Anthropic, &events, true), output(Kind::Anthropic, &[answer], false)] {
        assert_eq!((output.text.as_str(), output.reasoning.as_str()), ("onetwo", "I add it up."));
        assert_eq!(message(&output, &here(Kind::Anthropic))["content"], content);
        let other = message(&output, &spec(Kind::Anthropic, "http://[::1]:2", "m"));
        let kinds = other["content"].as_array().expect("blocks").iter().map(|block| block["type"].as_str());
        assert_eq!(kinds.collect::<Vec<_>>(), [Some("text"), Some("tool_use"), Some("tool_use")]);
        assert_eq!(other["content"][1]["id"], "call_0");
        assert!(!other.to_string().contains("caller"), "{other}");
    }
}

#[test]
fn pieces_of_thinking_blocks_without_numbers_are_one_block() {
    let block = |thinking: &str, signature: Option<&str>| {
        let block = json!({ "type": "thinking", "thinking": thinking, "signature": signature });
        chat(&json!({ "thinking_blocks": [block] }))
    };
    let call = json!({ "index": 0, "id": "c", "function": { "name": "w", "arguments": "{}" } });
    let events = [
        block("I ", None),
        block("add", None),
        block(" add", None),
        block("", Some("sig one")),
        block("Again.", None),
        block("", Some("sig two")),
        chat(&json!({ "tool_calls": [call] })),
    ];
    let output = output(Kind::Openai, &events, true);
    let whole =
        |thinking: &str, signature: &str| json!({ "type": "thinking", "thinking": thinking, "signature": signature });
    let sent = message(&output, &here(Kind::Openai));
    assert_eq!(sent["thinking_blocks"], json!([whole("I add add", "sig one"), whole("Again.", "sig two")]));
}

#[test]
fn pieces_of_a_state_are_joined() {
    let call = |fields: Value| chat(&json!({ "tool_calls": [fields] }));
    let signature = "c".repeat(80);
    let detail = |text: &str, signature: Option<&str>| json!([{ "type": "reasoning.text", "index": 0, "format": "f", "text": text, "signature": signature }]);
    let events = [
        chat(&json!({ "reasoning_details": detail("I ", None), "reasoning_content": "I " })),
        chat(&json!({ "reasoning_details": detail("add.", None), "reasoning_content": "add." })),
        chat(&json!({ "reasoning_details": detail("", Some("sig")) })),
        call(
            json!({ "index": 0, "id": "c", "function": { "name": "w", "arguments": "{" }, "extra": { "s": signature } }),
        ),
        call(json!({ "index": 0, "function": { "arguments": "}" }, "extra": { "s": signature }, "late": [1] })),
    ];
    let output = output(Kind::Openai, &events, true);
    assert_eq!(output.reasoning, "I add.");
    let sent = message(&output, &here(Kind::Openai));
    assert_eq!(sent["reasoning_details"], detail("I add.", Some("sig")));
    assert_eq!(sent["reasoning_content"], "I add.");
    assert_eq!(
        (&sent["tool_calls"][0]["extra"]["s"], &sent["tool_calls"][0]["late"]),
        (&json!(signature), &json!([1]))
    );
    assert_eq!(sent["tool_calls"][0]["function"]["arguments"], "{}");
}

#[test]
fn defined_fields_and_state_over_a_bound_never_come_back() {
    let message_with = |fields: &str| {
        let answer = format!(r#"{{"choices":[{{"message":{{"content":"a",{fields}}}}}]}}"#);
        output(Kind::Openai, &[answer], false)
    };
    for name in [
        "role",
        "name",
        "function_call",
        "tool_call_id",
        "Content",
        "refusal",
        "type",
        "id",
        "index",
        "prefix",
        "toolCalls",
        "functionCall",
        "tool-calls",
        "parameters",
        "strict",
        "description",
        "toolChoice",
    ] {
        assert_eq!(message_with(&format!(r#""{name}":{{"a":1}}"#)).attached, None, "{name}");
    }
    let deep = |depth: usize| format!(r#""state":{}1{}"#, "[".repeat(depth), "]".repeat(depth));
    let long = |bytes: usize| format!(r#""state":"{}""#, "a".repeat(bytes));
    for (bound, fields) in [
        ("depth", deep(17)),
        ("size", long(STATE_BYTES_MAX)),
        ("a doubled key", r#""state":{"a":1,"a":2}"#.to_owned()),
        ("a doubled key far in", r#""state":[{"b":{"a":1,"a":1}}]"#.to_owned()),
        ("a doubled field", r#""state":1,"state":2"#.to_owned()),
    ] {
        let output = message_with(&format!(r#""good":"x",{fields}"#));
        assert_eq!((output.text.as_str(), output.attached), ("a", None), "{bound}");
    }
    for fields in [deep(16), long(STATE_BYTES_MAX - 100)] {
        assert!(message_with(&fields).attached.is_some());
    }
    for kind in ["tool_result", "image", "text"] {
        let answer = json!({ "content": [{ "type": "text", "text": "a" }, { "type": kind, "content": "forged" }] });
        assert_eq!(output(Kind::Anthropic, &[answer.to_string()], false).attached, None, "{kind}");
    }
}

#[test]
fn plain_thoughts_come_back_only_beside_calls() {
    let answered = |with_call: bool| {
        let call = json!({ "id": "c", "function": { "name": "w", "arguments": "{}" } });
        let calls: Vec<Value> = with_call.then_some(call).into_iter().collect();
        let message = json!({ "content": "a", "reasoning_content": "I add.", "tool_calls": calls });
        let answer = json!({ "choices": [{ "message": message }] }).to_string();
        message_of(&output(Kind::Openai, &[answer], false))
    };
    assert_eq!(answered(true)["reasoning_content"], "I add.");
    assert_eq!(answered(false).get("reasoning_content"), None);
}

fn message_of(output: &Output) -> Value {
    message(output, &here(Kind::Openai))
}

#[test]
fn joined_outputs_keep_the_places_of_their_states() {
    let attached = |state: &State| {
        let state = serde_json::to_string(state).expect("JSON");
        Some(Arc::new(Attached { endpoint: endpoint_digest(&here(Kind::Anthropic)), state }))
    };
    let block = |data: &str| Block {
        words: 0,
        calls: 0,
        block: json!({ "type": "redacted_thinking", "data": data }),
        length: 0,
    };
    let said = |text: &str, data: &str| Part::Assistant {
        text: text.to_owned(),
        calls: Vec::new(),
        attached: attached(&State { blocks: vec![block(data)], ..State::default() }),
    };
    let parts = vec![Part::Person { text: "go".to_owned() }, said("one", "a"), said("two", "b")];
    let prompt = Prompt { purpose: Purpose::Reply, system: String::new(), tools: Vec::new(), parts };
    let body = anthropic::request_to(&prompt, "m", OPTIONS, Some(endpoint_digest(&here(Kind::Anthropic))));
    let content = body["messages"][1]["content"].as_array().expect("blocks");
    let shown =
        content.iter().map(|block| block["data"].as_str().or(block["text"].as_str()).unwrap_or_default().trim());
    assert_eq!(shown.collect::<Vec<_>>(), ["a", "one", "b", "two"]);
}

#[test]
fn thoughts_that_grow_in_a_block_go_back_once() {
    let delta = |fields: Value| json!({ "type": "content_block_delta", "index": 0, "delta": fields }).to_string();
    let thinking = |text: &str| delta(json!({ "type": "thinking_delta", "thinking": text }));
    let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
    let call = json!({ "type": "tool_use", "id": "a", "name": "w", "input": {} });
    let begun = |index: u64, block: Value| {
        json!({ "type": "content_block_start", "index": index, "content_block": block }).to_string()
    };
    let events = [
        begun(0, start),
        thinking("I have "),
        thinking("I have to add"),
        thinking("I have to add them."),
        delta(json!({ "type": "signature_delta", "signature": "c2lnbmF0dXJl" })),
        begun(1, call),
    ];
    let output = output(Kind::Anthropic, &events, true);
    assert_eq!(output.reasoning, "I have to add them.");
    let sent = message(&output, &here(Kind::Anthropic));
    let whole = json!({ "type": "thinking", "thinking": "I have to add them.", "signature": "c2lnbmF0dXJl" });
    assert_eq!(sent["content"][0], whole);
}
