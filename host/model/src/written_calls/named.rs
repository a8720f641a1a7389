//! Calls that begin with the name of an offered tool: its arguments follow as an object or as elements, up to the end of the text.

use super::{CLOSINGS, Names, is_preface};
use crate::ToolSchema;
use regex::Regex;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// What models write in front of the name, at the beginning of a line.
static LABEL: LazyLock<Regex> = LazyLock::new(|| {
    let words = r"(?:assistant ?)?(?:commentary |analysis )?to=|(?:tool )?call:|action:|tool(?:[ _]name)?:|function:|name:|[@/]";
    let label = format!(
        r"(?i)\A[ \t]*(?:[\[*_]*(?:{words})[*_]*[ \t]*|<(?:tool|tool_name|name)>\s*)?(?:functions\.|default_api\.)?\z"
    );
    Regex::new(&label).expect("a fixed pattern")
});

/// What models write between the name and the object.
static BETWEEN: LazyLock<Regex> = LazyLock::new(|| {
    let parts = [
        r":\d+",
        r"\]",
        r"\s",
        r":",
        r"[*_]*(?:action |tool )?(?:input|arguments|args|parameters):[*_]*",
        r"\(",
        r"\[CALL_ID\]\w+",
        r"\[ARGS\]",
        r"<\|tool_call_argument_begin\|>",
        r"<\|constrain\|>",
        r"json|code",
        r"<\|message\|>",
        r"</(?:tool|tool_name|name)>",
        r"<(?:args|arguments|parameters|input)>",
        r"```(?:json)?",
    ];
    Regex::new(&format!(r"(?i)\A(?:{}){{0,12}}", parts.join("|"))).expect("a fixed pattern")
});

/// The elements of arguments behind a name on a line of its own.
static ELEMENTS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\A[ \t]*\n\s*(?:<arg_key>|<parameter|```python\s+tool_call\()").expect("a fixed pattern")
});

impl Names<'_> {
    /// Returns whether the text ends with a call that begins with the name of a tool.
    pub(super) fn has_named(&self, text: &str) -> bool {
        self.0.iter().any(|tool| {
            let is_call = |at: usize| is_call_at(tool, text, at);
            let mut places = text.match_indices(&tool.name).map(|(at, _)| at);
            places.any(|at| is_call(at) || is_attribute(text, at)) || has_element(&tool.name, text)
        })
    }
}

/// Returns whether the name of a tool at this place begins a call.
fn is_call_at(tool: &ToolSchema, text: &str, at: usize) -> bool {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let preface = &text[..line];
    if !LABEL.is_match(&text[line..at]) || !preface.matches("```").count().is_multiple_of(2) || !is_preface(preface) {
        return false;
    }
    let rest = &text[at + tool.name.len()..];
    let behind = &rest[BETWEEN.find(rest).map_or(0, |between| between.len())..];
    ELEMENTS.is_match(rest) || is_arguments(tool, behind)
}

/// The beginning of an element whose attribute is the name of a tool.
static ATTRIBUTE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\A[ \t]*<[\w:-]{1,40}\s+(?:name|tool)\s*=\s*["']?\z"#).expect("a fixed pattern"));

/// Returns whether the name of a tool at this place is an attribute of an element that is the rest of the text.
fn is_attribute(text: &str, at: usize) -> bool {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let preface = &text[..line];
    let is_plain = preface.matches("```").count().is_multiple_of(2) && is_preface(preface);
    is_plain && text.ends_with('>') && ATTRIBUTE.is_match(&text[line..at])
}

/// Returns whether a text is an object with arguments of a tool, and nothing but marks behind it.
fn is_arguments(tool: &ToolSchema, text: &str) -> bool {
    let known = tool.parameters["properties"].as_object();
    if !text.starts_with('{') {
        // YAML: each line has the name of an argument.
        let name = |line: &str| line.split_once(": ").map(|(name, _)| name.trim().to_owned());
        let is_known = |name: String| known.is_some_and(|known| known.contains_key(&name));
        return text.contains(": ") && text.lines().all(|line| name(line).is_some_and(is_known));
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Map<String, Value>>();
    let Some(Ok(given)) = values.next() else { return false };
    let rest = text[values.byte_offset()..].trim().trim_start_matches(")").trim_start_matches("```");
    let is_closed = rest.is_empty() || CLOSINGS.find(rest).is_some_and(|closings| closings.start() == 0);
    is_closed && known.is_none_or(|known| given.keys().all(|name| known.contains_key(name)))
}

/// Returns whether the text ends with an element that has the name of a tool, and elements or nothing within it.
fn has_element(name: &str, text: &str) -> bool {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let Some(at) = text.find(&open).filter(|_| text.ends_with(&close)) else { return false };
    let inner = text[at + open.len()..text.len() - close.len()].trim_start();
    let begins_line = text[..at].is_empty() || text[..at].ends_with('\n');
    begins_line && is_preface(&text[..at]) && (inner.is_empty() || inner.starts_with('<'))
}
