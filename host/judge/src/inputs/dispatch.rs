//! The name of a tool in the arguments of another one, which may be a dispatcher.
//!
//! Finds names as texts, as keys and in JSON texts. Cannot find one in a program or in a command. See [`super::bind`].

use serde_json::Value;

/// JSON texts inside of each other in which names of tools are found.
const DEPTH_OF_TEXTS: usize = 2;

/// Returns the tool that a value names, among these.
pub(super) fn dispatched<'a>(value: &Value, names: &[&'a str]) -> Option<&'a str> {
    let mut found = None;
    words(value, DEPTH_OF_TEXTS, &mut |word| {
        found = found.or_else(|| names.iter().copied().find(|name| names_tool(word, name)));
    });
    found
}

/// Returns whether a text is the name of a tool, also behind the name of its server.
fn names_tool(text: &str, name: &str) -> bool {
    let text = text.trim();
    let is_name = |text: &str| text.eq_ignore_ascii_case(name);
    let end = text.len().checked_sub(name.len()).filter(|at| text.is_char_boundary(*at));
    let is_behind = end.is_some_and(|at| is_name(&text[at..]) && text[..at].ends_with(['.', '/', ':', '_', '-', '#']));
    is_name(text) || is_behind
}

/// Gives each text and key of a value, and those of JSON in a text.
fn words(value: &Value, depth: usize, found: &mut dyn FnMut(&str)) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            found(text);
            let is_json = depth > 0 && text.trim_start().starts_with(['{', '[', '"']);
            if let Some(read) = is_json.then(|| serde_json::from_str::<Value>(text).ok()).flatten() {
                words(&read, depth - 1, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| words(value, depth, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                found(name);
                words(value, depth, found);
            }
        }
    }
}
