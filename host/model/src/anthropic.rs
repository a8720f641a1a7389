//! The request and answer formats of the Messages API.
//!
//! Never sends a request: [`crate::remote`] does. See [`crate::openai`] for Chat Completions.

use super::assembly::Assembly;
use super::attached::collected::Place;
use super::attached::sent_back::SentBack;
use super::attached::{self, Block, State};
use super::call_pieces::Piece;
use super::call_pieces::sent::SentCall;
use super::end::End;
use super::fault::Fault;
use super::image::Image;
use super::openai::{RequestOptions, Step};
use super::render::{self, Message, Said};
use super::{PastCall, Prompt, token_counts};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::seam::socket::Purpose;
use serde_json::{Value, json};

/// The version of the API.
pub const VERSION: &str = "2023-06-01";

/// Default bound on the tokens of an output. Every model of the last years accepts it.
pub const OUTPUT_TOKENS_MAX: u32 = 8192;

/// Returns the body of a request.
pub fn request(prompt: &Prompt, model: &str, options: RequestOptions) -> Value {
    request_to(prompt, model, options, None)
}

/// Returns the body of a request with the state that this endpoint attached to earlier outputs.
pub fn request_to(prompt: &Prompt, model: &str, options: RequestOptions, endpoint: Option<Digest>) -> Value {
    let RequestOptions { streams, takes_images, output_tokens_max, .. } = options;
    let rendered = render::messages(prompt, takes_images);
    let mut back = SentBack::read(&rendered, endpoint, options.rules());
    // The prompt of a summary is sent once, and a place in the cache has its price.
    let is_repeated = prompt.purpose != Purpose::Compact;
    let mut messages: Vec<Value> = Vec::new();
    for (at, message) in rendered.messages.into_iter().enumerate() {
        let (role, mut content) = blocks(message, at, &mut back);
        for end in rendered.ends.iter().filter(|end| is_repeated && end.message == at) {
            match role {
                // A block of the provider takes no mark, and the end of a message of the model is always behind all of it.
                "assistant" => mark_end(content.iter_mut().rfind(|block| is_markable(block))),
                _ => mark_end(content.get_mut(end.parts - 1)),
            }
        }
        // In this API, results have the role `user`, and so do the words of a person after them.
        match messages.last_mut() {
            Some(last) if last["role"] == role => {
                if let Some(blocks) = last["content"].as_array_mut() {
                    blocks.extend(content);
                }
            }
            Some(_) | None => messages.push(json!({ "role": role, "content": content })),
        }
    }
    let mut body = json!({ "model": model, "max_tokens": output_tokens_max, "messages": messages, "stream": streams });
    if !prompt.system.is_empty() {
        let mut text = json!({ "type": "text", "text": prompt.system });
        if is_repeated {
            // A beginning that is cached up to here also contains the tools.
            mark_end(Some(&mut text));
        }
        body["system"] = json!([text]);
    }
    if !prompt.tools.is_empty() {
        let tool = |tool: &super::ToolSchema| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.parameters });
        body["tools"] = prompt.tools.iter().map(tool).collect();
    }
    body
}

/// Returns the role and the content of a message.
fn blocks(message: Message<'_>, at: usize, back: &mut SentBack) -> (&'static str, Vec<Value>) {
    match message {
        Message::User(said) => {
            let block = |said: &Said<'_>| match said {
                Said::Text(text) => json!({ "type": "text", "text": text }),
                Said::Image(Image { kind, base64 }) => {
                    let source = json!({ "type": "base64", "media_type": kind.media_type(), "data": **base64 });
                    json!({ "type": "image", "source": source })
                }
            };
            ("user", said.iter().map(block).collect())
        }
        Message::Assistant { text, calls, .. } => {
            let state = back.take(at, calls.len());
            ("assistant", answer(&text, &calls, state, back))
        }
        Message::Results(results) => {
            let id = |call_id: &str| back.id(call_id).unwrap_or(call_id).to_owned();
            let result = |result: &render::CallResult<'_>| json!({ "type": "tool_result", "tool_use_id": id(result.call_id), "content": result.text, "is_error": !result.ok });
            ("user", results.iter().map(result).collect())
        }
    }
}

/// Returns the blocks of a message of the model: words, calls, and the blocks that its provider attached, each at its place.
fn answer(text: &str, calls: &[&PastCall], state: State, back: &SentBack) -> Vec<Value> {
    let State { calls: mut states, blocks, .. } = state;
    let mut call = |at: usize| {
        let PastCall { call_id, tool, .. } = calls[at];
        let id = back.id(call_id).unwrap_or(call_id);
        let mut block = json!({ "type": "tool_use", "id": id, "name": render::tool_name(tool), "input": render::arguments(calls[at]) });
        attached::add_fields(&mut block, std::mem::take(&mut states[at].beside));
        block
    };
    let (mut content, mut said, mut called) = (Vec::new(), 0, 0);
    // No block has words that are only blank.
    let mut say = |content: &mut Vec<Value>, upto: usize| {
        let upto = text.floor_char_boundary(upto).max(said);
        if !text[said..upto].trim().is_empty() {
            content.push(json!({ "type": "text", "text": &text[said..upto] }));
            said = upto;
        }
    };
    for Block { words, calls: before, block, .. } in blocks {
        say(&mut content, words);
        let before = before.clamp(called, calls.len());
        content.extend((called..before).map(&mut call));
        called = before;
        content.push(block);
    }
    say(&mut content, text.len());
    content.extend((called..calls.len()).map(call));
    content
}

/// Returns whether a block can be the end of a cached beginning.
fn is_markable(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("text" | "tool_use"))
}

/// Marks a block as the end of a beginning that the provider keeps in its cache. The API permits four marks; a request has at most
/// three.
fn mark_end(block: Option<&mut Value>) {
    if let Some(block) = block {
        block["cache_control"] = json!({ "type": "ephemeral" });
    }
}

/// Reads an answer that is not a stream.
///
/// # Errors
/// [`Fault::Malformed`] for any other body, [`Fault::TooLarge`].
pub fn whole(body: &Value, assembly: &mut Assembly<'_>) -> Result<(), Fault> {
    count(&body["usage"], assembly);
    match &body["content"] {
        Value::Array(blocks) => blocks.iter().try_for_each(|block| take(None, block, assembly))?,
        // A server behind a gateway of its own answers with plain words.
        Value::String(words) => assembly.words(words)?,
        _ => return Err(Fault::Malformed),
    }
    assembly.ends(End::read(&body["stop_reason"]).unwrap_or(End::Whole));
    Ok(())
}

/// Reads one event of a stream.
///
/// # Errors
/// As [`whole`].
pub fn event(event: &Value, assembly: &mut Assembly<'_>) -> Result<Step, Fault> {
    let index = super::json::number(&event["index"]);
    match event["type"].as_str().ok_or(Fault::Malformed)? {
        "message_start" => count(&event["message"]["usage"], assembly),
        "content_block_start" => take(index, &event["content_block"], assembly)?,
        "content_block_delta" => take_delta(index, &event["delta"], assembly)?,
        "content_block_stop" => assembly.close(index),
        "message_delta" => {
            count(&event["usage"], assembly);
            if let Some(end) = End::read(&event["delta"]["stop_reason"]) {
                assembly.ends(end);
            }
        }
        "message_stop" => {
            assembly.ends(End::Whole);
            return Ok(Step::Done);
        }
        // `ping`, and future events.
        _ => {}
    }
    Ok(Step::More)
}

/// Takes a block, or its start.
fn take(index: Option<u64>, block: &Value, assembly: &mut Assembly<'_>) -> Result<(), Fault> {
    match block["type"].as_str() {
        Some("text") => {
            assembly.begin_words(index);
            assembly.piece_of_block(index, block["text"].as_str().unwrap_or_default())?;
        }
        Some("tool_use") => {
            assembly.begin_call(index);
            let at = assembly.call(SentCall::read(block, block).piece(index, true))?;
            assembly.attach_to_call(at, Place::Block, block);
        }
        Some(_) => {
            assembly.begin_thought();
            assembly.piece_of_thought(block["thinking"].as_str().unwrap_or_default());
            assembly.attach_block(index, block);
        }
        None => {}
    }
    Ok(())
}

/// Takes a piece of a block.
fn take_delta(index: Option<u64>, delta: &Value, assembly: &mut Assembly<'_>) -> Result<(), Fault> {
    match delta["type"].as_str() {
        Some("text_delta") => assembly.piece_of_block(index, delta["text"].as_str().unwrap_or_default()),
        Some("input_json_delta") => {
            let arguments = delta["partial_json"].as_str().unwrap_or_default();
            // A call that the server itself makes is a block.
            if assembly.attach_input(index, arguments) {
                return Ok(());
            }
            assembly.call(Piece { index, arguments, ..Piece::default() }).map(drop)
        }
        Some("citations_delta") | None => Ok(()),
        Some(kind) => {
            if matches!(kind, "thinking_delta" | "signature_delta") && !assembly.has_block(index) {
                assembly.attach_block(index, &json!({ "type": "thinking", "thinking": "" }));
            }
            assembly.piece_of_thought(delta["thinking"].as_str().unwrap_or_default());
            if let Some(fields) = delta.as_object() {
                assembly.attach_to_block(index, fields);
            }
            Ok(())
        }
    }
}

/// Counts the tokens. Tokens that a cache reads or stores are tokens of the prompt too.
fn count(usage: &Value, assembly: &mut Assembly<'_>) {
    let tokens = |name: &str| token_counts::tokens(&usage[name]);
    if let Some(plain) = tokens("input_tokens") {
        let cached = [tokens("cache_creation_input_tokens"), tokens("cache_read_input_tokens")];
        let input = cached.into_iter().flatten().fold(plain, u64::saturating_add);
        assembly.counted.input = Some(input.max(assembly.counted.input.unwrap_or_default()));
    }
    if let Some(output) = tokens("output_tokens") {
        assembly.counted.output = Some(output);
    }
}

#[cfg(test)]
mod tests {
    use super::super::image::{ImageContent, ImageType};
    use super::super::streaming::PartialAnswer;
    use super::super::{Cut, Part, PastCall, WantedCall};
    use super::*;
    use ironclaw_contract::seam::socket::Purpose;

    const PLAIN: RequestOptions = RequestOptions {
        streams: true,
        asks_usage: false,
        short_ids: false,
        takes_images: true,
        limit_field: "max_tokens",
        empty_content: false,
        splits_calls: false,
        needs_thought_field: false,
        thoughts: None,
        state: None,
        system_role: None,
        output_tokens_max: OUTPUT_TOKENS_MAX,
    };

    #[test]
    fn image_is_a_block_behind_its_line() {
        let image = Image { kind: ImageType::Webp, base64: "UklGRg==".into() };
        let parts = vec![
            Part::Person { text: "what is it?".into() },
            Part::Image { path: "a.webp".into(), content: ImageContent::Read(image) },
        ];
        let prompt = Prompt { purpose: Purpose::Reply, system: String::new(), tools: Vec::new(), parts };
        let content = &request(&prompt, "m", PLAIN)["messages"][0]["content"];
        let source = json!({ "type": "base64", "media_type": "image/webp", "data": "UklGRg==" });
        let cached = json!({ "type": "ephemeral" });
        assert_eq!(content[2], json!({ "type": "image", "source": source, "cache_control": cached }));
        let without = request(&prompt, "m", RequestOptions { takes_images: false, ..PLAIN });
        let texts = without["messages"][0]["content"].as_array().expect("blocks");
        assert!(texts.len() == 2 && texts.iter().all(|block| block["type"] == "text"), "{without}");
    }

    #[test]
    fn roles_alternate_and_each_call_has_its_result_next() {
        let call =
            |id: &str, tool: &str| PastCall { call_id: id.into(), tool: tool.into(), arguments: "no json".into() };
        let parts = vec![
            Part::Context { author: "another person".into(), text: "psst".into() },
            Part::Person { text: "go".into() },
            Part::Assistant {
                text: "I look".into(),
                calls: vec![call("cal_1", "read file"), call("cal_2", "b")],
                attached: None,
            },
            Part::Result { call_id: "cal_2".into(), tool: "b".into(), ok: false, text: String::new() },
            Part::Notice { text: "cut short".into() },
            Part::Person { text: "and?".into() },
        ];
        let prompt = Prompt { purpose: Purpose::Reply, system: "be".into(), tools: Vec::new(), parts };
        let body = request(&prompt, "m", PLAIN);
        assert_eq!(body["system"], json!([{ "type": "text", "text": "be", "cache_control": { "type": "ephemeral" } }]));
        assert_eq!(body["max_tokens"], OUTPUT_TOKENS_MAX);
        let messages = body["messages"].as_array().expect("messages");
        let roles: Vec<&str> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
        assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
        let kinds = |message: &Value| -> Vec<String> {
            message["content"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|block| block["type"].as_str().map(str::to_owned))
                .collect()
        };
        assert_eq!(kinds(&messages[0]), ["text", "text"]);
        assert_eq!(kinds(&messages[1]), ["text", "tool_use", "tool_use"]);
        assert_eq!(kinds(&messages[2]), ["tool_result", "tool_result"]);
        assert_eq!(
            [kinds(&messages[3]).len(), kinds(&messages[4]).len()],
            [1, 2],
            "words in place of the missing answer"
        );
        assert_eq!(messages[1]["content"][1]["name"], "read_file");
        assert_eq!(messages[1]["content"][1]["input"], json!({ "unreadable": "no json" }));
        assert_eq!(messages[2]["content"][1]["is_error"], true);
        assert_eq!(messages[2]["content"][1]["content"], "(nothing)");
        assert!(body.get("tools").is_none());
    }

    /// Returns the texts of the blocks that end a cached beginning.
    fn cached(body: &Value) -> Vec<String> {
        let messages = body["messages"].as_array().into_iter().flatten();
        let contents = std::iter::once(&body["system"]).chain(messages.map(|message| &message["content"]));
        let blocks = contents.filter_map(Value::as_array).flatten();
        let marked = blocks.filter(|block| block["cache_control"] == json!({ "type": "ephemeral" }));
        marked
            .map(|block| block["text"].as_str().unwrap_or(block["type"].as_str().unwrap_or_default()).to_owned())
            .collect()
    }

    #[test]
    fn cache_ends_behind_the_system_text_and_the_stable_parts() {
        let person = |text: &str| Part::Person { text: text.into() };
        let call = PastCall { call_id: "c".into(), tool: "t".into(), arguments: "{}".into() };
        let mut parts =
            vec![person("a"), Part::Assistant { text: "b".into(), calls: Vec::new(), attached: None }, person("c")];
        let ends = |purpose, parts: &[Part]| {
            let prompt = Prompt { purpose, system: "be".into(), tools: Vec::new(), parts: parts.to_vec() };
            cached(&request(&prompt, "m", PLAIN))
        };
        assert_eq!(ends(Purpose::Reply, &parts), ["be", "c"]);
        assert_eq!(ends(Purpose::Compact, &parts), Vec::<String>::new());
        parts.extend([Part::Failure { text: "no model answered this.".into() }, person("d")]);
        assert_eq!(ends(Purpose::Reply, &parts), ["be", "c", "d"]);
        let result = Part::Result { call_id: "c".into(), tool: "t".into(), ok: true, text: "r".into() };
        parts.extend([Part::Assistant { text: String::new(), calls: vec![call], attached: None }, result]);
        assert_eq!(ends(Purpose::Reply, &parts), ["be", "c", "tool_result"]);
        parts.push(Part::Assistant { text: "e".into(), calls: Vec::new(), attached: None });
        assert_eq!(ends(Purpose::Reply, &parts), ["be", "c", "e"], "the last message of the host is not repeated");
    }

    #[test]
    fn stream_is_assembled_and_cached_tokens_are_counted() {
        let draft = PartialAnswer::default();
        let mut assembly = Assembly::new(&draft);
        let events = [
            r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1}}}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hmm"}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hi"}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"a","input":{}}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"x\":"}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"1}"}}"#,
            r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t2","name":"b","input":{}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
        ];
        let event = |data: &str, assembly: &mut Assembly<'_>| {
            event(&super::super::json::read(data.as_bytes(), 100).map_err(|(fault, _)| fault)?, assembly)
        };
        for data in events {
            assert_eq!(event(data, &mut assembly), Ok(Step::More), "{data}");
        }
        assert_eq!(event(r#"{"type":"message_stop"}"#, &mut assembly), Ok(Step::Done));
        assert_eq!((assembly.counted.input, assembly.counted.output), (Some(105), Some(9)));
        let call = |tool: &str, arguments: &str| WantedCall { tool: tool.into(), arguments: arguments.into() };
        let output = assembly.finish().expect("an output");
        let calls = vec![call("a", "{\"x\":1}"), call("b", "{}")];
        assert_eq!((output.text.as_str(), output.reasoning.as_str()), ("hi", "hmm"));
        assert_eq!(output.calls, calls);
        for odd in ["", "{", "[]", r#"{"type":1}"#] {
            assert_eq!(event(odd, &mut Assembly::new(&draft)), Err(Fault::Malformed), "{odd}");
        }
    }

    #[test]
    fn a_call_cut_by_length_is_not_taken_when_end_turn_follows() {
        let call = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"a","input":{"x":1}}}"#;
        let ended = |reason: &str| format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}}}}"#);
        for (reason, fault) in [
            ("max_tokens", Fault::Truncated),
            ("refusal", Fault::Withheld),
            ("length", Fault::Truncated),
            ("sensitive", Fault::Withheld),
            ("content_filter", Fault::Withheld),
            ("error", Fault::Cut),
            ("abort", Fault::Cut),
            ("network_error", Fault::Cut),
            ("a new reason", Fault::UnknownEnd),
        ] {
            let draft = PartialAnswer::default();
            let mut assembly = Assembly::new(&draft);
            for data in [call, &ended(reason), &ended("tool_use"), r#"{"type":"message_stop"}"#] {
                let read = super::super::json::read(data.as_bytes(), 100).expect("JSON");
                event(&read, &mut assembly).expect("an event");
            }
            assert_eq!(assembly.finish(), Err(fault), "{reason}");
        }
    }

    #[test]
    fn whole_answer_is_read_and_a_refusal_is_recognised() {
        let draft = PartialAnswer::default();
        let read = |body: Value| {
            let mut assembly = Assembly::new(&draft);
            whole(&body, &mut assembly)?;
            assembly.finish()
        };
        let use_ = json!({ "type": "tool_use", "id": "t", "name": "a", "input": { "x": 1 } });
        let content = json!([{ "type": "text", "text": "hi" }, use_]);
        let output = read(json!({ "content": content, "stop_reason": "tool_use" })).expect("an output");
        assert_eq!((output.text.as_str(), output.calls[0].arguments.as_str()), ("hi", "{\"x\":1}"));
        assert_eq!(read(json!({ "content": [], "stop_reason": "refusal" })), Err(Fault::Withheld));
        assert_eq!(read(json!({ "content": content, "stop_reason": "max_tokens" })), Err(Fault::Truncated));
        assert_eq!(read(json!({ "content": "hi" })).expect("words").text, "hi");
        assert_eq!(read(json!({ "content": 1 })), Err(Fault::Malformed));
        let full = |content: &str| read(json!({ "content": content, "stop_reason": "model_context_window_exceeded" }));
        assert_eq!(full(""), Err(Fault::ContextTooLong));
        assert_eq!(full("hi").expect("words").cut, Some(Cut::Length));
    }
}
