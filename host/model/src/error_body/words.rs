//! The places of the words in an error: objects, lists, JSON within a text, pages of HTML, and plain text.
//!
//! Takes the first text for people, and every type, code and message to recognise the fault. Reads a bounded part of the error. See
//! [`super`].

use super::wait;
use serde_json::{Map, Value};

/// Objects, lists and texts within each other that are read.
const DEPTH_MAX: usize = 8;
/// Bytes of the words that are recognised.
const RECOGNISED_BYTES_MAX: usize = 16 << 10;
/// Bytes of the words for people; fewer of them are shown.
const WORDS_BYTES_MAX: usize = 4096;

/// Fields that hold the error itself, in the order of their worth.
const INNER: [&str; 5] = ["error", "errors", "Error", "exception", "base_resp"];
/// Fields with words for people, in the order of their worth.
const TEXTS: [&str; 15] = [
    "message",
    "Message",
    "msg",
    "error_description",
    "detail",
    "details",
    "error_message",
    "errorMessage",
    "error_msg",
    "status_msg",
    "description",
    "reason",
    "title",
    "body",
    "innererror",
];
/// Fields that repeat what was sent, or what the model wrote: their words name no fault.
const ECHOES: [&str; 7] = ["input", "failed_generation", "ctx", "request", "user_id", "url", "partial_output"];

/// The least number of a provider that is a code of a failure; smaller ones are a status, or a success.
const PROVIDER_CODE_MIN: u64 = 1000;

/// The words of an error.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The words for people.
    pub(super) words: String,
    /// Every type, code and message, in lower case.
    pub(super) recognised: String,
    /// The status in the body.
    pub(super) status: Option<u16>,
}

/// Returns the part of an answer with status 200 that is an error.
pub(super) fn error_in(body: &Value) -> Option<&Value> {
    match body {
        // A list with one object, as Gemini has it.
        Value::Array(list) => list.iter().take(DEPTH_MAX).find_map(error_in),
        Value::Object(object) => {
            let is_error = |error: &Value| match error {
                Value::Object(error) => !error.is_empty(),
                Value::Array(list) => !list.is_empty(),
                other => is_said(other),
            };
            if object.get("error").is_some_and(is_error) {
                return Some(body);
            }
            let in_choice = body["choices"].get(0).filter(|choice| choice["error"].is_object());
            in_choice.or_else(|| is_bare_error(object).then_some(body))
        }
        _ => None,
    }
}

/// Returns whether an object without a field `error` is one: it has words of an error, and no part of an answer.
fn is_bare_error(object: &Map<String, Value>) -> bool {
    let answers = ["choices", "content", "delta", "content_block", "usage", "index"];
    if answers.iter().any(|part| object.get(*part).is_some_and(|part| !part.is_null())) {
        return false;
    }
    if object.iter().any(|(field, value)| is_exception(field, value)) || is_base_response(object) {
        return true;
    }
    let is_named = object.get("object").or_else(|| object.get("type")).and_then(Value::as_str).is_some_and(|kind| {
        let kind = kind.to_ascii_lowercase();
        kind.ends_with("error") || kind.ends_with("exception")
    });
    let said = |field: &str| object.get(field).is_some_and(is_said);
    let has_list = |field: &str| object.get(field).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let is_failure = object.get("error") == Some(&Value::Bool(true))
        || object.get("success") == Some(&Value::Bool(false))
        || own_status(object).is_some()
        || object.get("code").and_then(Value::as_u64).is_some_and(|code| code >= PROVIDER_CODE_MIN);
    let has_words = said("message") || said("Message") || said("msg") || said("detail");
    is_named || said("error_description") || has_list("detail") || has_list("errors") || (has_words && is_failure)
}

/// Returns whether a field is an exception in an event of AWS.
fn is_exception(field: &str, value: &Value) -> bool {
    value.is_object() && field.to_ascii_lowercase().ends_with("exception")
}

/// Returns whether an object has a code of a failure at the place of MiniMax; 0 is none.
fn is_base_response(object: &Map<String, Value>) -> bool {
    object.get("base_resp").and_then(|response| response["status_code"].as_i64()).is_some_and(|code| code != 0)
}

fn is_said(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

/// Returns the words of an error in JSON.
pub(super) fn in_json(body: &Value) -> Found {
    let mut found = Found { words: words(body, 0).unwrap_or_default(), ..Found::default() };
    found.status = status(body, 0);
    gather(body, 0, &mut found.recognised);
    found.words.truncate(found.words.floor_char_boundary(WORDS_BYTES_MAX));
    found
}

/// Returns the words of an error in a text: those of the JSON in it, of a page, or its own.
pub(super) fn in_text(text: &str) -> Found {
    if let Some(inner) = json_in(text) {
        let found = in_json(&inner);
        if !found.words.is_empty() {
            let recognised = format!("{} {}", before_json(text).to_lowercase(), found.recognised);
            return Found { words: with_outer(before_json(text), &found.words), recognised, ..found };
        }
    }
    let words = page_words(text).unwrap_or_else(|| text.trim().to_owned());
    let start = &text[..text.floor_char_boundary(RECOGNISED_BYTES_MAX)];
    let words = words[..words.floor_char_boundary(WORDS_BYTES_MAX)].to_owned();
    Found { recognised: start.to_lowercase(), words, status: None }
}

/// Returns the first words for people.
fn words(value: &Value, depth: usize) -> Option<String> {
    if depth > DEPTH_MAX {
        return None;
    }
    match value {
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => match json_in(text).and_then(|inner| words(&inner, depth + 1)) {
            Some(inner) => Some(with_outer(before_json(text), &inner)),
            None => Some(page_words(text).unwrap_or_else(|| text.trim().to_owned())),
        },
        Value::Array(list) => list.iter().take(DEPTH_MAX).find_map(|item| words(item, depth + 1)),
        Value::Object(object) => in_object(object, depth),
        _ => None,
    }
}

fn in_object(object: &Map<String, Value>, depth: usize) -> Option<String> {
    let one = |field: &&str| object.get(*field).and_then(|value| words(value, depth + 1));
    // An error that is only a word, such as `invalid_request`, has its sentence beside it.
    let inner = INNER.iter().filter(|field| object.get(**field).is_some_and(|value| !is_word(value))).find_map(one);
    let nested = || {
        object.iter().find(|(field, value)| is_exception(field, value)).and_then(|(_, value)| words(value, depth + 1))
    };
    let text = inner.or_else(|| TEXTS.iter().find_map(one)).or_else(|| INNER.iter().find_map(one)).or_else(nested);
    // The provider behind a gateway says more than the gateway.
    let raw = object.get("metadata").and_then(|metadata| metadata.get("raw")).and_then(|raw| words(raw, depth + 1));
    let text = match (text, raw) {
        (Some(text), Some(raw)) => Some(with_outer(&text, &raw)),
        (text, raw) => text.or(raw),
    };
    let code = || object.get("code").or_else(|| object.get("type")).and_then(Value::as_str).map(str::to_owned);
    let text = text.or_else(|| code().filter(|code| !code.is_empty()))?;
    // The place of a fault in the request, as FastAPI has it.
    let place = object.get("loc").and_then(Value::as_array).map(|place| {
        let part = |part: &Value| part.as_str().map_or_else(|| part.to_string(), str::to_owned);
        place.iter().take(DEPTH_MAX).map(part).collect::<Vec<_>>().join(".")
    });
    Some(match place.filter(|place| !place.is_empty()) {
        Some(place) => format!("{place}: {text}"),
        None => text,
    })
}

fn is_word(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() < 40 && !text.trim().contains(' '))
}

/// Joins words of a gateway and of the server behind it.
fn with_outer(outer: &str, inner: &str) -> String {
    let outer = outer.trim().trim_end_matches([':', '-', ' ', '.']);
    if outer.is_empty() || inner.contains(outer) { inner.to_owned() } else { format!("{outer}: {inner}") }
}

/// Returns the JSON in a text: the text itself, or its end behind other words.
fn json_in(text: &str) -> Option<Value> {
    let start = text.find(['{', '['])?;
    let is_object = |value: &Value| value.is_object() || value.is_array();
    let rest = &text[start..];
    let first = serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok();
    first.filter(is_object)
}

fn before_json(text: &str) -> &str {
    text.find(['{', '[']).map_or("", |start| &text[..start])
}

/// Returns the title of a page of HTML, or the text of one without a title; `None` for a text that is no page.
fn page_words(text: &str) -> Option<String> {
    let start = text.trim_start().get(..256).unwrap_or_else(|| text.trim_start()).to_ascii_lowercase();
    if !(start.starts_with("<!doctype")
        || start.starts_with("<html")
        || start.contains("<head")
        || start.contains("<title"))
    {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let within = |tag: &str| {
        let from = lower.find(&format!("<{tag}"))?;
        let from = from + lower[from..].find('>')? + 1;
        let to = from + lower[from..].find("</")?;
        Some(squeezed(&text[from..to])).filter(|words| !words.is_empty())
    };
    within("title").or_else(|| within("h1")).or_else(|| Some(squeezed(&without_tags(text))))
}

fn without_tags(text: &str) -> String {
    let mut is_tag = false;
    let mut kept = String::new();
    for letter in text.chars().take(RECOGNISED_BYTES_MAX) {
        match letter {
            '<' => is_tag = true,
            '>' if is_tag => {
                is_tag = false;
                kept.push(' ');
            }
            letter if !is_tag => kept.push(letter),
            _ => {}
        }
    }
    kept
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first status in the body, as a number or as its digits.
fn status(value: &Value, depth: usize) -> Option<u16> {
    if depth > DEPTH_MAX {
        return None;
    }
    match value {
        Value::Array(list) => list.iter().take(DEPTH_MAX).find_map(|item| status(item, depth + 1)),
        Value::Object(object) => {
            let inner = INNER.iter().chain(&["detail"]).find_map(|field| status(object.get(*field)?, depth + 1));
            inner.or_else(|| own_status(object))
        }
        _ => None,
    }
}

/// Returns the status in the fields of an object itself.
fn own_status(object: &Map<String, Value>) -> Option<u16> {
    let number = |value: &Value| {
        let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())?;
        u16::try_from(number).ok().filter(|status| (400..600).contains(status))
    };
    let fields = ["code", "status", "status_code", "statusCode", "http_status", "error_code"];
    fields.iter().find_map(|field| object.get(*field).and_then(number))
}

/// Gathers every text except what the error repeats of the request.
fn gather(value: &Value, depth: usize, all: &mut String) {
    if depth > DEPTH_MAX || all.len() > RECOGNISED_BYTES_MAX {
        return;
    }
    match value {
        Value::String(text) => {
            let text = &text[..text.floor_char_boundary(RECOGNISED_BYTES_MAX)];
            all.push_str(&text.to_lowercase());
            all.push(' ');
        }
        Value::Array(list) => list.iter().for_each(|item| gather(item, depth + 1, all)),
        Value::Object(object) => {
            for (field, value) in object {
                if field == "failed_generation" || is_exception(field, value) {
                    all.push_str(&field.to_lowercase());
                    all.push(' ');
                }
                if let Some(sentence) = wait::sentence(field, value) {
                    all.push_str(&sentence);
                }
                if !ECHOES.contains(&field.as_str()) {
                    gather(value, depth + 1, all);
                }
            }
        }
        _ => {}
    }
}
