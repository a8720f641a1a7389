//! A JSON value as lines: one for each field and each entry of a list, and a bar before each line of a text.
//!
//! Never leaves a leaf out, and never writes two values alike. See [`ironclaw_text::diff`].

use super::names::Names;
use ironclaw_contract::canonical;
use ironclaw_text::visible;
use serde_json::{Map, Value};

/// A line of a page.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Line {
    /// Written by the host: spaces, and the bar before text of others.
    pub prefix: String,
    pub body: String,
}

/// Fields that hold prose, also if it is one line.
const PROSE: [&str; 2] = ["instructions", "description"];

/// Levels that get lines of their own; a deeper value is JSON on one line.
const DEPTH_MAX: usize = 8;

/// Returns the lines of a value with the name `label`.
pub fn lines(label: &str, value: &Value, names: &Names<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    let of = Of { names, repeats: Repeats::Show, is_prose: PROSE.contains(&label) };
    put(&mut lines, 0, &format!("{label}:"), value, of);
    lines
}

/// Returns the line of a value that the host describes with words of its own.
pub fn line(label: &str, words: &str) -> Line {
    Line { prefix: String::new(), body: format!("{label}: {words}") }
}

/// The treatment of a text that is on the page already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    Show,
    /// Replaced by a mark that refers to it.
    Refer,
}

/// Returns the lines of the fields of an object, without a line for the object itself.
pub fn fields(value: &Value, names: &Names<'_>, repeats: Repeats) -> Vec<Line> {
    let Some(fields) = value.as_object().filter(|fields| !fields.is_empty()) else {
        let body = if value.is_object() { "(none that needs an explanation)".to_owned() } else { leaf(value, names) };
        return vec![Line { prefix: String::new(), body }];
    };
    let mut lines = Vec::new();
    for (key, value) in fields {
        match existence_of(value).filter(|_| key == "secrets") {
            Some(secrets) => {
                let body = |(name, is_stored): (&str, bool)| {
                    let is = if is_stored { "is stored" } else { "is not stored" };
                    Line { prefix: "  ".to_owned(), body: format!("the secret {} {is}", names.show(name)) }
                };
                lines.push(Line { prefix: String::new(), body: "secrets:".to_owned() });
                lines.extend(secrets.into_iter().map(body));
            }
            None => {
                let of = Of { names, repeats, is_prose: PROSE.contains(&key.as_str()) };
                put(&mut lines, 0, &format!("{}:", field(key)), value, of);
            }
        }
    }
    lines
}

/// Returns the lines of one field. An object of short values is on the line of its name.
pub fn one_field(key: &str, value: &Value, names: &Names<'_>) -> Vec<Line> {
    let of = Of { names, repeats: Repeats::Show, is_prose: PROSE.contains(&key) };
    let (label, mut lines) = (format!("{}:", field(key)), Vec::new());
    match value {
        Value::Object(fields) if !fields.is_empty() && fields.iter().all(|(key, value)| is_short(key, value)) => {
            lines.push(Line { prefix: String::new(), body: format!("{label} {}", inline(fields, of)) });
        }
        value => put(&mut lines, 0, &label, value, of),
    }
    lines
}

/// Returns for each named secret whether it is stored; none for another value.
fn existence_of(value: &Value) -> Option<Vec<(&str, bool)>> {
    let secrets = value.as_object().filter(|secrets| !secrets.is_empty())?;
    secrets.iter().map(|(name, is_stored)| Some((name.as_str(), is_stored.as_bool()?))).collect()
}

/// Returns the lines of a text, each behind a bar.
pub fn text(indent: usize, text: &str) -> Vec<Line> {
    let line = |line: &str| {
        let visible::Line { text, is_right_to_left } = visible::line(line);
        // A left-to-right word comes first; otherwise a terminal may reverse the whole line with the bar.
        let bar = if is_right_to_left { "| ⟦right to left⟧ " } else { "| " };
        Line { prefix: " ".repeat(indent) + bar, body: text }
    };
    text.split('\n').map(line).collect()
}

/// The surroundings of a value.
#[derive(Clone, Copy)]
struct Of<'n> {
    names: &'n Names<'n>,
    repeats: Repeats,
    is_prose: bool,
}

fn put(lines: &mut Vec<Line>, depth: usize, label: &str, value: &Value, of: Of<'_>) {
    let Of { names, repeats, is_prose } = of;
    let indent = 2 * depth;
    let mut line = |body: String| lines.push(Line { prefix: " ".repeat(indent), body });
    match value {
        Value::String(words) if repeats == Repeats::Refer && names.is_noted(words) => {
            line(format!("{label} ⟦above⟧"));
        }
        Value::String(words) if is_prose && words.is_empty() => line(format!("{label} (empty)")),
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
                put(lines, depth + 1, "*", entry, Of { is_prose: false, ..of });
            }
        }
        Value::Object(fields) if fields.is_empty() => line(format!("{label} (none)")),
        Value::Object(fields) if label == "*" && fields.iter().all(|(key, value)| is_short(key, value)) => {
            line(format!("{label} {}", inline(fields, of)));
        }
        Value::Object(fields) => {
            line(label.to_owned());
            for (key, value) in fields {
                let of = Of { is_prose: PROSE.contains(&key.as_str()), ..of };
                put(lines, depth + 1, &format!("{}:", field(key)), value, of);
            }
        }
    }
}

/// Returns whether a field fits on the line of its object.
fn is_short(key: &str, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(words) => !PROSE.contains(&key) && !words.contains('\n'),
        Value::Array(_) | Value::Object(_) => false,
    }
}

fn inline(fields: &Map<String, Value>, Of { names, repeats, .. }: Of<'_>) -> String {
    let shown = |value: &Value| match value {
        Value::String(words) if repeats == Repeats::Refer && names.is_noted(words) => "⟦above⟧".to_owned(),
        value => leaf(value, names),
    };
    let fields = fields.iter().map(|(key, value)| format!("{}: {}", field(key), shown(value)));
    fields.collect::<Vec<_>>().join(", ")
}

/// Returns a plain word unchanged, and any other key in quotes.
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
