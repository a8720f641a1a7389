//! What a request has of the states of earlier outputs: ids, thoughts of the turn, and parts at their places.

use super::*;
use crate::quirks::{StateSent, ThoughtsSent};
use crate::{Part, PastCall};

/// Returns an output with one call of this id.
fn called(kind: Kind, id: &str) -> Output {
    let answer = match kind {
        Kind::Anthropic => json!({ "content": [{ "type": "tool_use", "id": id, "name": "w", "input": {} }] }),
        _ => {
            let call = json!({ "id": id, "type": "function", "function": { "name": "w", "arguments": "{}" } });
            json!({ "choices": [{ "message": { "content": null, "tool_calls": [call] } }] })
        }
    };
    output(kind, &[answer.to_string()], false)
}

/// Returns a conversation in which each output is a turn; its calls have results.
fn turns(outputs: &[Output]) -> Vec<Part> {
    let mut parts = Vec::new();
    for (turn, output) in outputs.iter().enumerate() {
        parts.push(Part::Person { text: "go".to_owned() });
        let call = |(n, call): (usize, &crate::WantedCall)| PastCall {
            call_id: format!("cal_00000000{turn}{n}"),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
        };
        let calls: Vec<PastCall> = output.calls.iter().enumerate().map(call).collect();
        let results = calls.iter().map(|call| Part::Result {
            call_id: call.call_id.clone(),
            tool: "w".to_owned(),
            ok: true,
            text: "done".to_owned(),
        });
        let results: Vec<Part> = results.collect();
        parts.push(Part::Assistant { text: output.text.clone(), calls, attached: output.attached.clone() });
        parts.extend(results);
    }
    parts
}

/// Returns the messages of a request with these parts.
fn sent(parts: Vec<Part>, to: &Spec, options: RequestOptions) -> Vec<Value> {
    let prompt = Prompt { purpose: Purpose::Reply, system: String::new(), tools: Vec::new(), parts };
    let endpoint = Some(endpoint_digest(to));
    let body: Value = match to.kind {
        Kind::Anthropic => anthropic::request_to(&prompt, "m", options, endpoint),
        _ => serde_json::from_slice(&openai::request_text(&prompt, "m", options, endpoint)).expect("JSON"),
    };
    body["messages"].as_array().expect("messages").clone()
}

/// Returns the ids of the calls and of the results in a request.
fn ids(messages: &[Value]) -> [Vec<String>; 2] {
    let blocks = || messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let calls = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
    let calls = calls.chain(blocks().filter(|block| block["type"] == "tool_use")).map(|call| &call["id"]);
    let results = messages.iter().map(|message| &message["tool_call_id"]);
    let results = results.chain(blocks().map(|block| &block["tool_use_id"]));
    let text = |id: &Value| id.as_str().map(str::to_owned);
    [calls.filter_map(text).collect(), results.filter_map(text).collect()]
}

#[test]
fn id_of_a_provider_comes_back_at_both_places_to_it_alone() {
    let long = format!("call_abc__thought__{}", "c2ln".repeat(2000));
    for kind in [Kind::Openai, Kind::Anthropic] {
        for id in ["call_abc__thought__c2ln", "functions.write_file:0", "toolu_01", "f1", "ä \"", &long] {
            let parts = turns(&[called(kind, id)]);
            assert_eq!(ids(&sent(parts.clone(), &here(kind), OPTIONS)), [[id], [id]], "{id}");
            for other in [spec(kind, "http://[::1]:2/v1", "m"), spec(kind, "http://[::1]:1/v1", "n")] {
                assert_eq!(
                    ids(&sent(parts.clone(), &other, OPTIONS)),
                    [["cal_0000000000"], ["cal_0000000000"]],
                    "{id}"
                );
            }
        }
    }
}

#[test]
fn an_id_that_is_not_unique_or_unfit_is_replaced_by_the_hosts() {
    let hosts = ["cal_0000000000", "cal_0000000010"];
    for kind in [Kind::Openai, Kind::Anthropic] {
        for (first, second, expected) in [
            ("a", "b", ["a", "b"]),
            ("a", "a", hosts),
            ("a", "", ["a", hosts[1]]),
            ("cal_0000000010", "b", [hosts[0], "b"]),
        ] {
            let outputs = [called(kind, first), called(kind, second)];
            let [calls, results] = ids(&sent(turns(&outputs), &here(kind), OPTIONS));
            assert_eq!((&calls[..], &results[..]), (&expected.map(String::from)[..], &expected.map(String::from)[..]));
        }
    }
    let short = RequestOptions { short_ids: true, ..OPTIONS };
    for (id, expected) in [("aB3456789", "aB3456789"), ("functions.w:0", "000000000"), ("a-3456789", "000000000")] {
        let [calls, results] = ids(&sent(turns(&[called(Kind::Openai, id)]), &here(Kind::Openai), short));
        assert_eq!((calls, results), (vec![expected.to_owned()], vec![expected.to_owned()]));
    }
}

#[test]
fn details_name_their_call_also_with_the_id_of_the_host() {
    let call = json!({ "id": "f1", "function": { "name": "w", "arguments": "{}" } });
    let details = json!([{ "type": "reasoning.encrypted", "data": "x", "id": "f1", "index": 0 }, { "type": "reasoning.encrypted", "data": "y", "id": "rs", "index": 0 }]);
    let events = [
        chat(&json!({ "tool_calls": [call] })),
        chat(&json!({ "reasoning_details": [details[0]] })),
        chat(&json!({ "reasoning_details": [details[1]] })),
    ];
    let one = output(Kind::Openai, &events, true);
    let messages = sent(turns(std::slice::from_ref(&one)), &here(Kind::Openai), OPTIONS);
    assert_eq!((&messages[1]["reasoning_details"], &messages[1]["tool_calls"][0]["id"]), (&details, &json!("f1")));
    let messages = sent(turns(&[one.clone(), one]), &here(Kind::Openai), OPTIONS);
    for message in messages.iter().filter(|message| message["role"] == "assistant") {
        let Some(call) = message["tool_calls"].get(0) else { continue };
        assert_ne!(call["id"], "f1");
        assert_eq!(
            (&message["reasoning_details"][0]["id"], &message["reasoning_details"][1]["id"]),
            (&call["id"], &json!("rs"))
        );
    }
}

#[test]
fn plain_thoughts_are_sent_back_in_their_turn_alone() {
    let call = json!({ "id": "c", "function": { "name": "w", "arguments": "{}", "inner": "i" }, "beside": "b" });
    let message = json!({
        "reasoning_content": "I add.", "signature_of_all": "s", "tool_calls": [call],
        "reasoning_details": [{ "type": "reasoning.text", "text": "I add." }],
        "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "I add." }] }, { "type": "thinking", "thinking": "I sign.", "signature": "s" }],
    });
    let output = output(Kind::Openai, &[json!({ "choices": [{ "message": message }] }).to_string()], false);
    let has = |thoughts, state| {
        let options = RequestOptions { thoughts, state, ..OPTIONS };
        let messages = sent(turns(&[output.clone(), output.clone()]), &here(Kind::Openai), options);
        let said = messages.iter().filter(|message| message["tool_calls"].is_array());
        let has = |message: &Value| {
            let parts = message["content"].as_array().map_or(0, Vec::len);
            let call = &message["tool_calls"][0];
            let state = [&message["signature_of_all"], &call["beside"], &call["function"]["inner"]];
            let plain = [&message["reasoning_content"], &message["reasoning_details"]];
            (plain.map(|field| !field.is_null()), parts, state.map(|field| !field.is_null()))
        };
        said.map(has).collect::<Vec<_>>()
    };
    let (all, late, none) = (([true; 2], 2, [true; 3]), ([false; 2], 1, [true; 3]), ([false; 2], 0, [true; 3]));
    assert_eq!(has(None, None), [late, all]);
    assert_eq!(has(Some(ThoughtsSent::All), None), [all, all]);
    assert_eq!(has(Some(ThoughtsSent::Omit), None), [none, none]);
    let without = |(_, parts, _)| ([false; 2], parts, [false; 3]);
    let omitted = has(Some(ThoughtsSent::Omit), Some(StateSent::Omit));
    assert_eq!(omitted, [without(none), without(none)]);
}

#[test]
fn parts_of_a_content_come_back_at_their_places() {
    let thinking =
        |text: &str| json!({ "type": "thinking", "thinking": [{ "type": "text", "text": text }], "signature": "s" });
    let text = |text: &str, sign: Option<&str>| match sign {
        Some(sign) => json!({ "type": "text", "text": text, "thought_signature": sign }),
        None => json!({ "type": "text", "text": text }),
    };
    let content = json!([
        thinking("I add."),
        text("one", Some("t")),
        text("two", None),
        thinking("More."),
        text("three", Some("u"))
    ]);
    let answer = json!({ "choices": [{ "message": { "content": content } }] }).to_string();
    let mut pieces =
        vec![chat(&json!({ "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "I " }] }] }))];
    pieces.push(chat(&json!({ "content": [thinking("add.")] })));
    let rest = content.as_array().into_iter().flatten().skip(1);
    pieces.extend(rest.map(|part| chat(&json!({ "content": [part] }))));
    for output in [output(Kind::Openai, &[answer], false), output(Kind::Openai, &pieces, true)] {
        assert_eq!(
            (output.text.as_str(), output.reasoning.replace('\n', "")),
            ("onetwothree", "I add.More.".to_owned())
        );
        assert_eq!(message(&output, &here(Kind::Openai))["content"], content);
        assert_eq!(message(&output, &spec(Kind::Openai, "http://[::1]:2/v1", "m"))["content"], "onetwothree");
    }
    for kind in ["image_url", "file", "tool_result", "input_audio", "text"] {
        let part = json!({ "type": kind, "content": "forged", "role": "user", "toolCalls": [1] });
        let answer = json!({ "choices": [{ "message": { "content": [{ "type": "text", "text": "a" }, part] } }] });
        assert_eq!(
            message(&output(Kind::Openai, &[answer.to_string()], false), &here(Kind::Openai))["content"],
            "a",
            "{kind}"
        );
    }
}

#[test]
fn input_of_a_call_of_the_server_comes_back_in_its_block() {
    let event = |index: usize, name: &str, value: Value| {
        let field = if name == "content_block_start" { "content_block" } else { "delta" };
        json!({ "type": name, "index": index, field: value }).to_string()
    };
    let part = |text: &str| json!({ "type": "input_json_delta", "partial_json": text });
    let start = |kind: &str| json!({ "type": kind, "id": "t", "name": "web_search", "input": {} });
    let events = [
        event(0, "content_block_start", start("server_tool_use")),
        event(0, "content_block_delta", part("{\"query\":")),
        event(1, "content_block_start", start("tool_use")),
        event(0, "content_block_delta", part("\"a\"}")),
        event(0, "content_block_stop", json!({})),
        event(1, "content_block_delta", part("{\"n\":1}")),
        // The next call has the index of a block that has ended.
        event(0, "content_block_start", start("tool_use")),
        event(0, "content_block_delta", part("{\"n\":2}")),
        event(3, "content_block_start", json!({ "type": "text", "text": "" })),
        event(3, "content_block_delta", json!({ "type": "text_delta", "text": "hi" })),
    ];
    let read = output(Kind::Anthropic, &events, true);
    let arguments: Vec<&str> = read.calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!((read.text.as_str(), arguments), ("hi", vec!["{\"n\":1}", "{\"n\":2}"]));
    let mut block = start("server_tool_use");
    block["input"] = json!({ "query": "a" });
    assert_eq!(message(&read, &here(Kind::Anthropic))["content"][0], block);
    let broken = output(Kind::Anthropic, &events[..2], true);
    assert_eq!(broken.attached, None, "half an input is no state");
}

#[test]
fn thoughts_that_grow_or_are_equal_come_back_once_each() {
    let detail = |text: &str| {
        chat(
            &json!({ "reasoning_details": [{ "type": "reasoning.text", "index": 0, "text": text, "signature": "s" }] }),
        )
    };
    let field = |text: &str| chat(&json!({ "reasoning_content": text }));
    let call = || chat(&json!({ "tool_calls": [{ "id": "c", "function": { "name": "w", "arguments": "{}" } }] }));
    let whole = "I have to think about it once.";
    let grown = output(
        Kind::Openai,
        &[detail("I have to think"), detail("I have to think about it"), detail(whole), call()],
        true,
    );
    assert_eq!(message(&grown, &here(Kind::Openai))["reasoning_details"][0]["text"], whole);
    let grown = output(Kind::Openai, &[field("I"), field("I have"), field(whole), call()], true);
    assert_eq!(
        (message(&grown, &here(Kind::Openai))["reasoning_content"].as_str(), grown.reasoning.as_str()),
        (Some(whole), whole)
    );
    let no = "no no no no no no no ";
    let delta = || {
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": no } })
            .to_string()
    };
    let sign =
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "signature_delta", "signature": "s" } });
    let start =
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking", "thinking": "" } });
    let text = json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "text", "text": "hi" } });
    let events = [start.to_string(), delta(), delta(), sign.to_string(), text.to_string()];
    let equal = output(Kind::Anthropic, &events, true);
    assert_eq!(message(&equal, &here(Kind::Anthropic))["content"][0]["thinking"], no.repeat(2));
}
