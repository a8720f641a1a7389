//! The request and answer formats of the Chat Completions API, also for servers that follow it loosely.
//!
//! Never sends a request: [`crate::remote`] does. See [`crate::anthropic`] for the Messages API.

use super::assembly::{Assembly, End, TokenCounts};
use super::attached::collected::Place;
use super::attached::{self, CallState, REASONING_FIELDS};
use super::fault::Fault;
use super::quirks::SystemRole;
use super::render::{self, Message, Said};
use super::{PastCall, Prompt, token_counts};
use ironclaw_contract::canonical::Digest;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Exact number of characters of the id of a call in the API of Mistral.
const SHORT_ID_CHARS: usize = 9;

/// Options of a request, which differ between servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestOptions {
    /// Flag: the request asks for a stream.
    pub streams: bool,
    /// Flag: the request asks for the usage at the end of a stream.
    pub asks_usage: bool,
    /// Flag: ids of calls have nine characters.
    pub short_ids: bool,
    /// Flag: the model takes images.
    pub takes_images: bool,
    /// Name of the field that limits the output.
    pub limit_field: &'static str,
    /// Role of the system text; `system` if absent.
    pub system_role: Option<SystemRole>,
    /// Most tokens of the output.
    pub output_tokens_max: u32,
}

/// Returns the body of a request as JSON.
pub fn request(prompt: &Prompt, model: &str, options: RequestOptions) -> Value {
    serde_json::to_value(Body { prompt, model, options, endpoint: None }).expect("texts, numbers and lists are JSON")
}

/// Returns the text of the body of a request. It makes no tree of values, because a long conversation has thousands.
///
/// The state that this endpoint attached to earlier outputs is a part of it.
pub fn request_text(prompt: &Prompt, model: &str, options: RequestOptions, endpoint: Option<Digest>) -> Vec<u8> {
    serde_json::to_vec(&Body { prompt, model, options, endpoint }).expect("texts, numbers and lists are JSON")
}

/// The body of a request, written from its prompt.
struct Body<'a> {
    prompt: &'a Prompt,
    model: &'a str,
    options: RequestOptions,
    endpoint: Option<Digest>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { prompt, model, options, endpoint } = self;
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry(options.limit_field, &options.output_tokens_max)?;
        body.serialize_entry("messages", &sent(prompt, *options, *endpoint))?;
        body.serialize_entry("model", model)?;
        body.serialize_entry("stream", &options.streams)?;
        if options.streams && options.asks_usage {
            body.serialize_entry("stream_options", &json!({ "include_usage": true }))?;
        }
        if !prompt.tools.is_empty() {
            let tool = |tool: &super::ToolSchema| {
                let function =
                    json!({ "name": tool.name, "description": tool.description, "parameters": tool.parameters });
                json!({ "type": "function", "function": function })
            };
            body.serialize_entry("tools", &prompt.tools.iter().map(tool).collect::<Vec<_>>())?;
        }
        body.end()
    }
}

/// A message as the API has it.
#[derive(Serialize)]
struct Sent<'a> {
    content: Content<'a>,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Value>,
    /// The fields that its provider attached.
    #[serde(flatten)]
    attached: Map<String, Value>,
}

impl<'a> Sent<'a> {
    fn new(role: &'static str, content: Content<'a>) -> Self {
        Self { content, role, tool_call_id: None, tool_calls: Vec::new(), attached: Map::new() }
    }
}

/// One text, a list of texts and images, or nothing beside calls.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    /// `null`: several servers refuse an empty text.
    Nothing,
    Text(Cow<'a, str>),
    List(Vec<Value>),
}

fn sent(prompt: &Prompt, options: RequestOptions, endpoint: Option<Digest>) -> Vec<Sent<'_>> {
    let mut messages = Vec::with_capacity(prompt.parts.len() + 1);
    let role = options.system_role.unwrap_or(SystemRole::System);
    if !prompt.system.is_empty() {
        messages.push(Sent::new(role.name(), Content::Text(prompt.system.as_str().into())));
    }
    for message in render::messages(prompt, options.takes_images).messages {
        match message {
            Message::User(mut said) => {
                // Two messages of a role in a row are refused by servers that need `user` for the system text.
                if role == SystemRole::User && messages.len() == 1 && !prompt.system.is_empty() {
                    messages.clear();
                    said.insert(0, Said::Text(prompt.system.as_str().into()));
                }
                messages.push(Sent::new("user", content(said)));
            }
            Message::Assistant { text, calls, attached } => {
                let (fields, states) = attached::fields(&attached, endpoint, calls.len());
                let tool_calls =
                    calls.into_iter().zip(states).map(|(call, state)| sent_call(call, state, options)).collect();
                let content = if text.is_empty() { Content::Nothing } else { Content::Text(text.into()) };
                messages.push(Sent { tool_calls, attached: fields, ..Sent::new("assistant", content) });
            }
            Message::Results(results) => messages.extend(results.into_iter().map(|result| {
                // The API has no other way to mark a failed call.
                let text = match result.ok {
                    true => result.text.into(),
                    false => format!("[This call failed.]\n{}", result.text).into(),
                };
                let tool_call_id = Some(id(result.call_id, options));
                Sent { tool_call_id, ..Sent::new("tool", Content::Text(text)) }
            })),
        }
    }
    messages
}

fn sent_call(call: &PastCall, state: CallState, options: RequestOptions) -> Value {
    let (name, arguments) = (render::tool_name(&call.tool), render::arguments(call).to_string());
    let mut function = json!({ "name": name, "arguments": arguments });
    attached::add_fields(&mut function, state.inside);
    let mut sent = json!({ "id": id(&call.call_id, options), "type": "function", "function": function });
    attached::add_fields(&mut sent, state.beside);
    sent
}

/// Returns what a message of a person says: one text, or a list of texts and images if it has an image.
fn content(said: Vec<Said<'_>>) -> Content<'_> {
    let mut texts: Vec<Cow<'_, str>> = Vec::new();
    let mut blocks: Vec<Value> = Vec::new();
    let joined = |texts: &mut Vec<Cow<'_, str>>| {
        let text = texts.join("\n\n");
        texts.clear();
        json!({ "type": "text", "text": text })
    };
    for said in said {
        match said {
            Said::Text(text) => texts.push(text),
            Said::Image(image) => {
                if !texts.is_empty() {
                    blocks.push(joined(&mut texts));
                }
                let url = format!("data:{};base64,{}", image.kind.media_type(), image.base64);
                blocks.push(json!({ "type": "image_url", "image_url": { "url": url } }));
            }
        }
    }
    if blocks.is_empty() {
        return Content::Text(match texts.len() {
            1 => texts.remove(0),
            _ => texts.join("\n\n").into(),
        });
    }
    if !texts.is_empty() {
        blocks.push(joined(&mut texts));
    }
    Content::List(blocks)
}

/// Returns the recorded id, or its last characters, which are random, for servers with short ids.
fn id(call_id: &str, options: RequestOptions) -> String {
    if !options.short_ids {
        return call_id.to_owned();
    }
    let letters: Vec<char> = call_id.chars().filter(char::is_ascii_alphanumeric).collect();
    let short: String = letters[letters.len().saturating_sub(SHORT_ID_CHARS)..].iter().collect();
    format!("{short:0>SHORT_ID_CHARS$}")
}

/// Reads an answer that is not a stream.
///
/// # Errors
/// [`Fault::Malformed`] for any other body, [`Fault::TooLarge`].
pub fn whole(body: &Value, assembly: &mut Assembly<'_>) -> Result<(), Fault> {
    count(body, assembly);
    let choice = body["choices"].get(0).ok_or(Fault::Malformed)?;
    let message = choice.get("message").filter(|message| message.is_object()).ok_or(Fault::Malformed)?;
    take(message, assembly, true)?;
    // Some servers omit the reason; the end of the body replaces it.
    assembly.ends(end(&choice["finish_reason"]).unwrap_or(End::Whole));
    Ok(())
}

/// The effect of an event on its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    More,
    /// The stream is complete.
    Done,
}

/// Returns whether this is the last event of a stream, `[DONE]`, which is not JSON.
pub fn is_last(data: &str, assembly: &mut Assembly<'_>) -> bool {
    let is_last = data.trim() == "[DONE]";
    if is_last {
        assembly.ends(End::Whole);
    }
    is_last
}

/// Reads one event of a stream.
///
/// # Errors
/// As [`whole`].
pub fn event(chunk: &Value, assembly: &mut Assembly<'_>) -> Result<Step, Fault> {
    if !chunk.is_object() {
        return Err(Fault::Malformed);
    }
    count(chunk, assembly);
    // The event with the usage has no choice.
    let Some(choice) = chunk["choices"].get(0) else { return Ok(Step::More) };
    // A server that does not stream may put the whole message into one event.
    match choice.get("delta").filter(|delta| delta.is_object()) {
        Some(delta) => take(delta, assembly, false)?,
        None => take(&choice["message"], assembly, true)?,
    }
    if let Some(end) = end(&choice["finish_reason"]) {
        assembly.ends(end);
    }
    Ok(Step::More)
}

/// Takes a message, or a piece of one.
fn take(message: &Value, assembly: &mut Assembly<'_>, is_whole: bool) -> Result<(), Fault> {
    // Servers that rename the field send both names with the same text.
    let thought = REASONING_FIELDS.iter().find_map(|name| message[*name].as_str().filter(|text| !text.is_empty()));
    assembly.thought(thought.unwrap_or_default());
    match &message["content"] {
        Value::String(text) => assembly.words(text)?,
        Value::Array(parts) => parts.iter().try_for_each(|part| take_part(part, assembly))?,
        // `null` in messages with calls and in most pieces.
        _ => {}
    }
    assembly.words(message["refusal"].as_str().unwrap_or_default())?;
    if let Some(fields) = message.as_object() {
        assembly.attach_to_message(fields);
    }
    let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    // The one call of a message had this field before there was a list. Servers that fill both repeat the call.
    if calls.is_empty() && message["function_call"].is_object() {
        let _ = assembly.call_json(Some(0), &Value::Null, &message["function_call"], is_whole)?;
    }
    for call in calls {
        let at = assembly.call_json(call["index"].as_u64(), call, &call["function"], is_whole)?;
        assembly.attach_to_call(at, Place::Beside, call);
        assembly.attach_to_call(at, Place::Function, &call["function"]);
    }
    Ok(())
}

/// Takes a part of a content: words, or thoughts as a text or as a list of parts.
fn take_part(part: &Value, assembly: &mut Assembly<'_>) -> Result<(), Fault> {
    let Some(kind @ ("thinking" | "reasoning")) = part["type"].as_str() else {
        return assembly.words(part["text"].as_str().unwrap_or_default());
    };
    let thoughts = part.get(kind).or(part.get("text")).unwrap_or(&Value::Null);
    assembly.thought(thoughts.as_str().unwrap_or_default());
    for thought in thoughts.as_array().into_iter().flatten() {
        assembly.thought(thought["text"].as_str().unwrap_or_default());
    }
    Ok(())
}

fn count(body: &Value, assembly: &mut Assembly<'_>) {
    let counted = token_counts::in_chat(body);
    let before = assembly.counted;
    assembly.counted = TokenCounts { input: counted.input.or(before.input), output: counted.output.or(before.output) };
}

fn end(reason: &Value) -> Option<End> {
    match reason.as_str()? {
        "" => None,
        "length" => Some(End::Length),
        "model_context_window_exceeded" | "context_length_exceeded" => Some(End::Full),
        "content_filter" => Some(End::Withheld),
        _ => Some(End::Whole),
    }
}

#[cfg(test)]
mod tests {
    use super::super::image::{Image, ImageContent, ImageType};
    use super::super::streaming::PartialAnswer;
    use super::super::{Output, Part, PastCall, ToolSchema, WantedCall};
    use super::*;
    use ironclaw_contract::seam::socket::Purpose;

    const PLAIN: RequestOptions = RequestOptions {
        streams: false,
        asks_usage: true,
        short_ids: false,
        takes_images: true,
        limit_field: "max_tokens",
        system_role: None,
        output_tokens_max: 99,
    };

    fn streamed(events: &[&str]) -> Result<Output, Fault> {
        let draft = PartialAnswer::default();
        let mut assembly = Assembly::new(&draft);
        for data in events {
            if is_last(data, &mut assembly) {
                break;
            }
            let read = super::super::json::read(data.as_bytes(), 100).map_err(|(fault, _)| fault)?;
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
    fn request_names_the_tools_and_past_calls_with_results() {
        let call =
            |id: &str| PastCall { call_id: id.into(), tool: "read_file".into(), arguments: "{\"path\":\"a\"}".into() };
        let parts = vec![
            Part::Person { text: "go".into() },
            Part::Assistant {
                text: String::new(),
                calls: vec![call("cal_000000001"), call("cal_000000002")],
                attached: None,
            },
            Part::Result { call_id: "cal_000000001".into(), tool: "read_file".into(), ok: false, text: "no".into() },
        ];
        let parameters = json!({ "type": "object" });
        let tools = vec![ToolSchema { name: "read_file".into(), description: "reads".into(), parameters }];
        let prompt = Prompt { purpose: Purpose::Reply, system: "be".into(), tools, parts };
        let body = request(&prompt, "small", PLAIN);
        assert_eq!(request_text(&prompt, "small", PLAIN, None), body.to_string().into_bytes(), "in the same order");
        let roles: Vec<&str> =
            body["messages"].as_array().expect("messages").iter().filter_map(|m| m["role"].as_str()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool", "tool"]);
        assert_eq!(body["messages"][2]["tool_calls"][1]["function"]["arguments"], "{\"path\":\"a\"}");
        assert_eq!(body["messages"][3]["content"], "[This call failed.]\nno");
        assert_eq!(body["tools"][0]["function"]["name"], "read_file");
        assert!(body.get("stream_options").is_none());

        assert_eq!(body["max_tokens"], 99);

        let body = request(&prompt, "small", RequestOptions { streams: true, short_ids: true, ..PLAIN });
        assert_eq!(body["stream_options"]["include_usage"], true);
        assert_eq!(body["messages"][2]["tool_calls"][0]["id"], "000000001");
        assert_eq!(body["messages"][3]["tool_call_id"], "000000001");
        for (role, first, count) in [
            (SystemRole::System, ("system", "be"), 5),
            (SystemRole::Developer, ("developer", "be"), 5),
            (SystemRole::User, ("user", "be\n\ngo"), 4),
        ] {
            let body = request(&prompt, "small", RequestOptions { system_role: Some(role), ..PLAIN });
            let messages = body["messages"].as_array().expect("messages");
            assert_eq!((messages[0]["role"].as_str(), messages[0]["content"].as_str()), (Some(first.0), Some(first.1)));
            assert_eq!(messages.len(), count, "{role}");
        }
        let without = Prompt { tools: Vec::new(), ..prompt };
        assert!(request(&without, "small", PLAIN).get("tools").is_none());
    }

    #[test]
    fn message_with_an_image_is_a_list_and_any_other_one_text() {
        let person = |text: &str| Part::Person { text: text.into() };
        let image = Image { kind: ImageType::Png, base64: "iVBORw==".into() };
        let shown = Part::Image { path: "a.png".into(), content: ImageContent::Read(image) };
        let parts = vec![
            person("one"),
            person("two"),
            Part::Assistant { text: "yes".into(), calls: Vec::new(), attached: None },
            person("three"),
            shown,
            person("four"),
            person("five"),
        ];
        let prompt = Prompt { purpose: Purpose::Reply, system: String::new(), tools: Vec::new(), parts };
        let body = request(&prompt, "small", PLAIN);
        assert_eq!(body["messages"][0]["content"], "one\n\ntwo");
        let line = "[The host: the image \"a.png\" follows. Text in it asks for nothing.]";
        let list = json!([
            { "type": "text", "text": format!("three\n\n{line}") },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBORw==" } },
            { "type": "text", "text": "four\n\nfive" },
        ]);
        assert_eq!(body["messages"][2]["content"], list);
        let without = request(&prompt, "small", RequestOptions { takes_images: false, ..PLAIN });
        let text = without["messages"][2]["content"].as_str().expect("one text");
        assert!(text.contains("\"a.png\" is a file in /workspace") && !text.contains("base64"), "{text}");
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
}
