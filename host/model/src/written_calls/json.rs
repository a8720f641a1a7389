//! Calls that a model wrote as JSON, one or several.

use super::Names;
use regex::Regex;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// Fields with the name of a tool.
const NAMES: [&str; 6] = ["name", "tool", "tool_name", "recipient_name", "function", "action"];
/// Fields with arguments.
const ARGUMENTS: [&str; 8] =
    ["arguments", "parameters", "args", "input", "tool_input", "action_input", "params", "kwargs"];
/// Fields around a call.
const WRAPPERS: [&str; 5] = ["tool_calls", "tool_uses", "tool_call", "function_call", "function"];
/// Fields of a call that say nothing about it.
const OTHERS: [&str; 10] =
    ["id", "type", "index", "tool_call_id", "role", "content", "thought", "thoughts", "reasoning", "refusal"];
/// Nested wrappers of a call: a list in an object, with an object in an object.
const DEPTH_MAX: u8 = 6;
/// Endings that a model may leave out of its last call.
const ENDINGS: [&str; 6] = ["}", "}}", "]", "}]", "\"}", "\"}}"];

/// The beginning of an object of Python or JavaScript with the name of a tool.
static LOOSE: LazyLock<Regex> = LazyLock::new(|| {
    let loose = r#"\A\{\s*['"]?(?:name|tool|tool_name|function|action)['"]?\s*:\s*['"]([\w.-]+)['"]\s*,\s*['"]?(?:arguments|parameters|args|input)['"]?\s*:\s*\{"#;
    Regex::new(loose).expect("a fixed pattern")
});

impl Names<'_> {
    /// Returns whether the text is JSON of calls, one or several.
    pub(super) fn is_json(&self, text: &str) -> bool {
        if !text.starts_with(['{', '[']) {
            return false;
        }
        let loose = LOOSE.captures(text).and_then(|found| found.get(1));
        if loose.is_some_and(|name| self.has(name.as_str())) && text.ends_with('}') {
            return true;
        }
        let mut rest = text;
        while !rest.is_empty() {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            let (value, end) = match values.next() {
                Some(Ok(value)) => (value, values.byte_offset()),
                Some(Err(error)) if error.is_eof() => match completed(rest) {
                    Some(value) => (value, rest.len()),
                    None => return false,
                },
                Some(Err(_)) | None => return false,
            };
            if !self.is_call(&value, DEPTH_MAX) {
                return false;
            }
            rest = rest[end..].trim_start_matches(|letter: char| letter.is_whitespace() || matches!(letter, ';' | ','));
        }
        true
    }

    fn is_call(&self, value: &Value, depth: u8) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let fields = match value {
            Value::Array(calls) => return !calls.is_empty() && calls.iter().all(|call| self.is_call(call, depth)),
            Value::Object(fields) => fields,
            _ => return false,
        };
        let rest = || fields.iter().filter(|(name, _)| !OTHERS.contains(&name.as_str()));
        if let (Some((name, inner)), true) = (rest().next(), rest().count() == 1) {
            let is_wrapped = WRAPPERS.contains(&name.as_str()) && self.is_call(inner, depth);
            return is_wrapped || (self.has(name) && inner.is_object()) || self.is_name_alone(name, inner);
        }
        let named = NAMES.iter().find_map(|field| Some((*field, fields.get(*field)?.as_str()?)));
        let given = ARGUMENTS.iter().find_map(|field| Some((*field, fields.get(*field)?)));
        let (Some((name_field, name)), Some((arguments_field, arguments))) = (named, given) else { return false };
        let is_object = match arguments {
            Value::Object(_) => true,
            Value::String(text) => serde_json::from_str::<Map<String, Value>>(text).is_ok(),
            _ => false,
        };
        let has_others = rest().any(|(name, _)| name != name_field && name != arguments_field);
        self.has(name) && is_object && !has_others
    }

    /// Returns whether this is the name of a tool that needs no argument.
    fn is_name_alone(&self, field: &str, name: &Value) -> bool {
        let tool = name.as_str().filter(|_| NAMES.contains(&field)).and_then(|name| self.find(name));
        tool.is_some_and(|tool| {
            let has_properties = tool.parameters["properties"].is_object();
            has_properties && tool.parameters["required"].as_array().is_none_or(Vec::is_empty)
        })
    }
}

/// Returns the value of a text that ends too early by a few brackets.
fn completed(text: &str) -> Option<Value> {
    ENDINGS.iter().find_map(|ending| serde_json::from_str(&format!("{text}{ending}")).ok())
}
