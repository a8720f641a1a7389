//! The answer format of the Chat Completions API: a whole message, or the pieces of one.
//!
//! Never takes words of another choice than the first, and never loses a call in silence. See [`crate::assembly`].

use super::super::assembly::{Assembly, TokenCounts};
use super::super::attached::REASONING_FIELDS;
use super::super::attached::collected::Place;
use super::super::call_pieces::sent::SentCall;
use super::super::end::End;
use super::super::fault::Fault;
use super::super::{json, token_counts};
use serde_json::Value;
use std::slice;

/// Types of parts of a content that are calls.
const CALL_PARTS: [&str; 3] = ["tool_use", "tool_call", "function_call"];

/// Fields with the calls of a message.
const CALL_FIELDS: [&str; 3] = ["tool_calls", "toolCalls", "tool_call"];
/// Fields with the one call of a message, from the time before there was a list.
const ONE_CALL_FIELDS: [&str; 2] = ["function_call", "functionCall"];
/// Fields with the reason of the provider behind a gateway.
const NATIVE_REASONS: [&str; 2] = ["native_finish_reason", "finishReason"];

/// Reads an answer that is not a stream.
///
/// # Errors
/// [`Fault::Malformed`] for any other body, [`Fault::TooLarge`].
pub fn whole(body: &Value, assembly: &mut Assembly<'_>) -> Result<(), Fault> {
    count(body, assembly);
    let choices = choices(body);
    let first = choices.iter().find(|(choice, _)| *choice == 0).map(|(_, value)| value);
    first.filter(|choice| choice["message"].is_object()).ok_or(Fault::Malformed)?;
    for (choice, value) in choices {
        take_choice(choice, value, assembly)?;
    }
    // Some servers omit the reason; the end of the body replaces it.
    assembly.ends(End::Whole);
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
    for (choice, value) in choices(chunk) {
        take_choice(choice, value, assembly)?;
    }
    Ok(Step::More)
}

/// Reads a whole answer behind the pieces of its stream: its end, and calls that came in no piece.
///
/// # Errors
/// As [`whole`].
pub fn repeated(body: &Value, assembly: &mut Assembly<'_>) -> Result<Step, Fault> {
    count(body, assembly);
    let has_calls = assembly.has_calls();
    for (choice, value) in choices(body) {
        assembly.turn_to_choice(choice);
        if !has_calls {
            take_calls(&value["message"], assembly, true)?;
        }
        take_end(choice, value, assembly);
    }
    assembly.turn_to_choice(0);
    Ok(Step::More)
}

/// Returns the choices of an answer with their numbers. The first one without a number is choice 0.
fn choices(body: &Value) -> Vec<(u64, &Value)> {
    let all = body["choices"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().zip(0..).map(|(choice, at)| (json::number(&choice["index"]).unwrap_or(at), choice)).collect()
}

fn take_choice(choice: u64, value: &Value, assembly: &mut Assembly<'_>) -> Result<(), Fault> {
    assembly.turn_to_choice(choice);
    // A server that does not stream may put the whole message into one event.
    let (message, is_whole) = match value.get("delta").filter(|delta| delta.is_object()) {
        Some(delta) => (delta, false),
        None => (&value["message"], true),
    };
    if choice == 0 {
        let form = Form { is_whole, is_last: End::read(&value["finish_reason"]).is_some() };
        take(message, assembly, form)?;
        // The words of the API before this one.
        if !message["content"].is_string() {
            assembly.piece_of_words(value["text"].as_str().unwrap_or_default(), form.is_last)?;
        }
    } else {
        take_calls(message, assembly, is_whole)?;
    }
    take_end(choice, value, assembly);
    assembly.turn_to_choice(0);
    Ok(())
}

/// Takes the reason for the end of a choice. A good one of another choice than the first says nothing about the first.
fn take_end(choice: u64, value: &Value, assembly: &mut Assembly<'_>) {
    let end = End::read(&value["finish_reason"]).filter(|end| choice == 0 || end.cuts_short());
    let natives = NATIVE_REASONS.iter().map(|name| End::read_native(&value[*name]));
    natives.chain([end]).flatten().for_each(|end| assembly.ends(end));
}

/// The form of a message.
#[derive(Clone, Copy)]
struct Form {
    /// Flag: it is no piece of a message.
    is_whole: bool,
    /// Flag: a reason for the end is beside it.
    is_last: bool,
}

/// Takes a message, or a piece of one.
fn take(message: &Value, assembly: &mut Assembly<'_>, form: Form) -> Result<(), Fault> {
    let Form { is_whole, is_last } = form;
    // Servers that rename the field send both names with the same text.
    let thought = REASONING_FIELDS.iter().find_map(|name| message[*name].as_str().filter(|text| !text.is_empty()));
    assembly.piece_of_thought(thought.unwrap_or_default());
    match &message["content"] {
        Value::String(text) => assembly.piece_of_words(text, is_last)?,
        Value::Array(parts) => parts.iter().try_for_each(|part| take_part(part, assembly, is_whole))?,
        // Some servers send one part in place of a list.
        part @ Value::Object(_) => take_part(part, assembly, is_whole)?,
        // `null` in messages with calls and in most pieces.
        _ => {}
    }
    assembly.words(message["refusal"].as_str().unwrap_or_default())?;
    if let Some(fields) = message.as_object() {
        assembly.attach_to_message(fields);
    }
    take_calls(message, assembly, is_whole)
}

/// Takes the calls of a message, or of a piece of one, in any field.
fn take_calls(message: &Value, assembly: &mut Assembly<'_>, is_whole: bool) -> Result<(), Fault> {
    let fields = CALL_FIELDS.iter().map(|name| &message[*name]);
    let calls = fields.map(listed).find(|calls| !calls.is_empty()).unwrap_or_default();
    // Servers that fill both repeat the call.
    let one = ONE_CALL_FIELDS.iter().map(|name| &message[*name]).find(|call| call.is_object());
    if let Some(function) = one.filter(|_| calls.is_empty()) {
        let call = SentCall::read(&Value::Null, function);
        let _ = assembly.call(call.piece(Some(0), is_whole))?;
    }
    for call in calls {
        let function = if call["function"].is_object() { &call["function"] } else { call };
        let index = json::number(&call["index"]);
        let at = assembly.call(SentCall::read(call, function).piece(index, is_whole))?;
        assembly.attach_to_call(at, Place::Beside, call);
        assembly.attach_to_call(at, Place::Function, &call["function"]);
    }
    let parts = message["content"].as_array().into_iter().flatten();
    for part in parts.filter(|part| part["type"].as_str().is_some_and(|kind| CALL_PARTS.contains(&kind))) {
        let function = if part["function"].is_object() { &part["function"] } else { part };
        let _ = assembly.call(SentCall::read(part, function).piece(None, true))?;
    }
    Ok(())
}

/// Returns the calls in a field. Some servers send one call in place of a list.
fn listed(calls: &Value) -> &[Value] {
    match calls {
        Value::Array(calls) => calls,
        Value::Object(fields) if !fields.is_empty() => slice::from_ref(calls),
        _ => &[],
    }
}

/// Takes a part of a content: words, or thoughts as a text or as a list of parts.
fn take_part(part: &Value, assembly: &mut Assembly<'_>, is_whole: bool) -> Result<(), Fault> {
    let Some(kind @ ("thinking" | "reasoning")) = part["type"].as_str() else {
        let text = part["text"].as_str().or(part.as_str());
        return assembly.part(part, text.unwrap_or_default(), is_whole);
    };
    let thoughts = part.get(kind).or(part.get("text")).unwrap_or(&Value::Null);
    assembly.thought(thoughts.as_str().unwrap_or_default());
    for thought in thoughts.as_array().into_iter().flatten() {
        assembly.thought(thought["text"].as_str().unwrap_or_default());
    }
    assembly.part(part, "", is_whole)
}

fn count(body: &Value, assembly: &mut Assembly<'_>) {
    let (counted, before) = (token_counts::in_chat(body), assembly.counted);
    assembly.counted = TokenCounts { input: counted.input.or(before.input), output: counted.output.or(before.output) };
}

#[cfg(test)]
mod tests;
