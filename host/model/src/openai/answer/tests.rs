//! Whole answers and streams of servers, and what is read from them.

use super::super::super::streaming::PartialAnswer;
use super::super::super::{Output, WantedCall, json as read};
use super::*;
use serde_json::json;

fn streamed(events: &[&str]) -> Result<Output, Fault> {
    let draft = PartialAnswer::default();
    let mut assembly = Assembly::new(&draft);
    for data in events {
        if is_last(data, &mut assembly) {
            break;
        }
        let read = read::read(data.as_bytes(), 100).map_err(|(fault, _)| fault)?;
        assert_eq!(event(&read, &mut assembly)?, Step::More);
    }
    assembly.finish()
}

#[test]
fn a_call_cut_by_length_is_not_taken_when_stop_follows() {
    let call =
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"a","arguments":"{}"}}]}}]}"#;
    let ended = |reason: &str| format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
    for (reason, fault) in [("length", Fault::Truncated), ("content_filter", Fault::Withheld)] {
        let events = [call, &ended(reason), &ended("stop"), &ended("tool_calls"), "[DONE]"];
        assert_eq!(streamed(&events), Err(fault), "{reason}");
    }
}

#[test]
fn stream_of_a_loose_local_server_is_read() {
    let output = streamed(&[
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}"#,
        r#"{"choices":[{"delta":{"reasoning_content":"hmm"}}]}"#,
        r#"{"choices":[{"delta":{"content":"Hel"}}]}"#,
        r#"{"choices":[{"delta":{"content":"lo"},"finish_reason":""}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"a","arguments":{"x":1}}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"","index":0,"function":{"name":"b"}}]},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
    ]);
    let call = |tool: &str, arguments: &str| WantedCall { tool: tool.into(), arguments: arguments.into() };
    let output = output.expect("an output");
    let calls = vec![call("a", "{\"x\":1}"), call("b", "{}")];
    assert_eq!((output.text.as_str(), output.reasoning.as_str()), ("Hello", "hmm"));
    assert_eq!(output.calls, calls);
    // `[DONE]` alone is an end, and so is a reason alone. Without both, the stream was cut.
    let words = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
    assert_eq!(streamed(&[words, "[DONE]"]).expect("an output").text, "a");
    assert_eq!(streamed(&[words]), Err(Fault::Cut));
    for odd in ["", "{", "[]", "1"] {
        assert_eq!(streamed(&[odd]), Err(Fault::Malformed), "{odd}");
    }
}

#[test]
fn whole_answer_is_read_and_anything_else_is_malformed() {
    let read = |body: Value| {
        let draft = PartialAnswer::default();
        let mut assembly = Assembly::new(&draft);
        whole(&body, &mut assembly)?;
        let counted = assembly.counted;
        Ok::<_, Fault>((assembly.finish()?, counted))
    };
    let message = json!({ "content": [{ "type": "text", "text": "hi" }], "tool_calls": [{ "function": { "name": "a", "arguments": "" } }] });
    let body = json!({ "choices": [{ "message": message }], "usage": { "prompt_tokens": 7 } });
    let (output, counted) = read(body).expect("an output");
    assert_eq!((output.text.as_str(), output.calls[0].arguments.as_str()), ("hi", "{}"));
    assert_eq!((counted.input, counted.output), (Some(7), None));
    let filtered = json!({ "choices": [{ "message": { "content": "" }, "finish_reason": "content_filter" }] });
    assert_eq!(read(filtered).map(|_| ()), Err(Fault::Withheld));
    for odd in [json!({}), json!([]), json!({ "choices": [] }), json!({ "choices": [{ "message": "hi" }] })] {
        assert_eq!(read(odd).map(|_| ()), Err(Fault::Malformed));
    }
}

const A: &str = r#"{"content":"AAA","path":"a.txt"}"#;

fn call(index: Value) -> Value {
    json!({ "index": index, "id": "c1", "type": "function", "function": { "name": "write_file", "arguments": A } })
}

/// Returns the output of choices, each in a chunk of its own and all in one, and of the same choices as a whole answer.
fn ways(choices: &[Value]) -> [Result<Output, Fault>; 3] {
    let each: Vec<String> = choices.iter().map(|choice| json!({ "choices": [choice] }).to_string()).collect();
    let each: Vec<&str> = each.iter().map(String::as_str).chain(["[DONE]"]).collect();
    let one = json!({ "choices": choices }).to_string();
    let mut answer = json!({ "choices": choices });
    for choice in answer["choices"].as_array_mut().into_iter().flatten() {
        choice["message"] = choice["delta"].take();
    }
    let draft = PartialAnswer::default();
    let mut assembly = Assembly::new(&draft);
    let read = whole(&answer, &mut assembly).and_then(|()| assembly.finish());
    [streamed(&each), streamed(&[&one, "[DONE]"]), read]
}

#[test]
fn a_call_runs_only_behind_a_good_end() {
    for (reason, native, outcome) in [
        ("tool_calls", "", Ok(1)),
        ("stop", "tool_use", Ok(1)),
        ("STOP", "a new reason", Ok(1)),
        ("model_length", "", Err(Fault::Truncated)),
        ("MAX_TOKENS", "", Err(Fault::Truncated)),
        ("stop", "MAX_TOKENS", Err(Fault::Truncated)),
        ("content_filtered", "", Err(Fault::Withheld)),
        ("SAFETY", "", Err(Fault::Withheld)),
        ("stop", "sensitive", Err(Fault::Withheld)),
        ("insufficient_system_resource", "", Err(Fault::Cut)),
        ("network_error", "", Err(Fault::Cut)),
        ("tool_calls", "error", Err(Fault::Cut)),
        ("other", "", Err(Fault::UnknownEnd)),
        ("a new reason", "stop", Err(Fault::UnknownEnd)),
    ] {
        let choice = json!({ "index": 0, "delta": { "tool_calls": [call(json!(0))] }, "finish_reason": reason, "native_finish_reason": native });
        for output in ways(&[choice]) {
            assert_eq!(output.map(|output| output.calls.len()), outcome, "{reason} {native}");
        }
    }
    let words = json!({ "index": 0, "delta": { "content": "hi" }, "finish_reason": "a new reason" });
    for output in ways(&[words]) {
        assert_eq!(output.expect("an answer").text, "hi");
    }
}

#[test]
fn a_call_is_read_wherever_a_server_puts_it() {
    let words = || json!({ "index": 0, "delta": { "content": "I write." }, "finish_reason": "tool_calls" });
    let other = |index: Value, calls: Value| json!({ "index": index, "delta": { "content": "not mine", "tool_calls": calls }, "finish_reason": "tool_calls" });
    let one = |delta: Value| json!({ "index": 0, "delta": delta, "finish_reason": "tool_calls" });
    let flat = json!({ "id": "c1", "name": "write_file", "arguments": { "content": "AAA", "path": "a.txt" } });
    let part =
        json!({ "type": "tool_use", "id": "c1", "name": "write_file", "input": { "content": "AAA", "path": "a.txt" } });
    let parameters =
        json!({ "name": "write_file", "arguments": "", "parameters": { "content": "AAA", "path": "a.txt" } });
    for (form, choices) in [
        ("the second choice", vec![words(), other(json!(1), json!([call(json!(0))]))]),
        (
            "both choices",
            vec![
                one(json!({ "content": "I write.", "tool_calls": [call(json!(0))] })),
                other(json!(1), json!([call(json!(0))])),
            ],
        ),
        ("an object", vec![one(json!({ "content": "I write.", "tool_calls": call(json!(0)) }))]),
        ("no function", vec![one(json!({ "content": "I write.", "tool_calls": [flat] }))]),
        ("a part", vec![one(json!({ "content": [{ "type": "text", "text": "I write." }, part] }))]),
        ("other letters", vec![one(json!({ "content": "I write.", "toolCalls": [call(json!(0))] }))]),
        ("an index as a text", vec![one(json!({ "content": "I write.", "tool_calls": [call(json!("0"))] }))]),
        ("an index with a fraction", vec![one(json!({ "content": "I write.", "tool_calls": [call(json!(0.0))] }))]),
        (
            "parameters",
            vec![one(
                json!({ "content": "I write.", "tool_calls": [{ "index": 0, "id": "c1", "function": parameters }] }),
            )],
        ),
    ] {
        for output in ways(&choices) {
            let output = output.unwrap_or_else(|fault| panic!("{form}: {fault:?}"));
            let wanted = WantedCall { tool: "write_file".into(), arguments: A.into() };
            assert_eq!((output.text.as_str(), output.calls), ("I write.", vec![wanted]), "{form}");
        }
    }
    let mut differs = call(json!(0));
    differs["function"]["arguments"] = json!("{}");
    for (form, choices, fault) in [
        ("no call", vec![words()], Fault::BadCall),
        ("no words either", vec![one(json!({}))], Fault::BadCall),
        (
            "other calls in each choice",
            vec![one(json!({ "tool_calls": [call(json!(0))] })), other(json!(1), json!([differs]))],
            Fault::UnclearCalls,
        ),
        (
            "another choice that is cut",
            vec![
                one(json!({ "tool_calls": [call(json!(0))] })),
                json!({ "index": 1, "delta": {}, "finish_reason": "length" }),
            ],
            Fault::Truncated,
        ),
    ] {
        for output in ways(&choices) {
            assert_eq!(output, Err(fault), "{form}");
        }
    }
    let [stream, ..] = ways(&[json!({ "index": 1, "delta": { "content": "not mine" } })]);
    assert_eq!(stream.expect("no words").text, "");
}

#[test]
fn a_call_in_the_whole_answer_behind_a_stream_is_taken_once() {
    let whole = |calls: Value| json!({ "choices": [{ "message": { "content": "hi", "tool_calls": calls }, "finish_reason": "tool_calls" }] });
    let words = json!({ "choices": [{ "delta": { "content": "hi" } }] });
    let piece = json!({ "choices": [{ "delta": { "tool_calls": [call(json!(0))] } }] });
    for events in [vec![words.clone()], vec![words, piece]] {
        let draft = PartialAnswer::default();
        let mut assembly = Assembly::new(&draft);
        for chunk in &events {
            event(chunk, &mut assembly).expect("an event");
        }
        repeated(&whole(json!([call(json!(0))])), &mut assembly).expect("an answer");
        let output = assembly.finish().expect("an output");
        assert_eq!((output.text.as_str(), output.calls.len()), ("hi", 1));
    }
}
