//! A JSON value as lines: a field a line, an entry of a list a line, a text line by line behind a bar.
//!
//! Never leaves a leaf out, and never writes two values alike. Next: `ironclaw_text::diff`.

use super::names::Names;
use ironclaw_contract::canonical;
use ironclaw_text::visible;
use serde_json::{Map, Value};

/// One line: where it begins, and what stands there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Line {
    /// Of the host's: spaces, and the bar before a stranger's text.
    pub prefix: String,
    /// Safe text.
    pub body: String,
}

/// Fields that hold text in sentences even where it is one line.
const PROSE: [&str; 2] = ["instructions", "description"];

/// Levels that are shown as such; what lies deeper is written as JSON on one line.
const DEPTH_MAX: usize = 8;

/// The lines of a value that is called `label`.
pub fn lines(label: &str, value: &Value, names: &Names<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    put(&mut lines, 0, &format!("{label}:"), value, PROSE.contains(&label), names);
    lines
}

/// A text line by line, each behind a bar.
pub fn text(indent: usize, text: &str) -> Vec<Line> {
    let line = |line: &str| {
        let visible::Line { text, is_rightward } = visible::line(line);
        // A word from left to right before it: otherwise the whole line, with the bar, may be turned around.
        let bar = if is_rightward { "| ⟦right to left⟧ " } else { "| " };
        Line { prefix: " ".repeat(indent) + bar, body: text }
    };
    text.split('\n').map(line).collect()
}

fn put(lines: &mut Vec<Line>, depth: usize, label: &str, value: &Value, is_prose: bool, names: &Names<'_>) {
    let indent = 2 * depth;
    let mut line = |body: String| lines.push(Line { prefix: " ".repeat(indent), body });
    match value {
        Value::String(words) if is_prose || words.contains('\n') => {
            line(format!("{label} text"));
            lines.extend(text(indent + 2, words));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            line(format!("{label} {}", leaf(value, names)));
        }
        Value::Array(_) | Value::Object(_) if depth >= DEPTH_MAX => {
            line(format!("{label} JSON {}", visible::name(&canonical::to_string(value))));
        }
        Value::Array(entries) if entries.is_empty() => line(format!("{label} none")),
        Value::Array(entries) => {
            line(label.to_owned());
            for entry in entries {
                put(lines, depth + 1, "*", entry, false, names);
            }
        }
        Value::Object(fields) if fields.is_empty() => line(format!("{label} nothing")),
        Value::Object(fields) if label == "*" && fields.iter().all(|(key, value)| is_short(key, value)) => {
            line(format!("{label} {}", inline(fields, names)));
        }
        Value::Object(fields) => {
            line(label.to_owned());
            for (key, value) in fields {
                put(lines, depth + 1, &format!("{}:", field(key)), value, PROSE.contains(&key.as_str()), names);
            }
        }
    }
}

/// Whether a field fits on the line of the object that it is of.
fn is_short(key: &str, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(words) => !PROSE.contains(&key) && !words.contains('\n'),
        Value::Array(_) | Value::Object(_) => false,
    }
}

fn inline(fields: &Map<String, Value>, names: &Names<'_>) -> String {
    let fields = fields.iter().map(|(key, value)| format!("{}: {}", field(key), leaf(value, names)));
    fields.collect::<Vec<_>>().join(", ")
}

/// A plain word as it is, anything else in quotes.
fn field(key: &str) -> String {
    let is_word = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_word { key.to_owned() } else { visible::name(key) }
}

fn leaf(value: &Value, names: &Names<'_>) -> String {
    match value {
        Value::Null => "not set".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(words) => names.show(words),
        Value::Array(_) | Value::Object(_) => visible::name(&canonical::to_string(value)),
    }
}
