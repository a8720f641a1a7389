//! The recognition of a call of a tool that a model wrote as text, which its server should have read.
//!
//! Never runs such a call, and never takes an explanation for one: code in a sentence, an example with words behind it, and JSON about
//! another name are an answer. See [`crate::Output::has_written_call`], and [`json`], [`named`] and [`python`] for the forms.

mod json;
mod named;
mod python;

use super::ToolSchema;
use regex::Regex;
use std::sync::LazyLock;

/// Marks of chat templates in front of a call. No answer for a person has one at the beginning of a line.
const MARKS: [&str; 26] = [
    "<|channel|>commentary",
    "<|start|>assistant to=functions.",
    "<|start|>assistant<|channel|>commentary",
    "<|tool_call|>",
    "<|tool_call>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|tool_call_start|>",
    "<|tools_prefix|>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool_calls_begin｜>",
    "<｜tool▁sep｜>",
    "function<｜tool▁sep｜>",
    "<｜DSML｜",
    "<| DSML |",
    "<|python_tag|>",
    "<|python_start|>",
    "<|START_ACTION|>",
    "<|action_start|>",
    "<start_function_call>",
    "<longcat_tool_call>",
    "<minimax:tool_call>",
    "<seed:tool_call>",
    "<TOOLCALL>",
    "✿FUNCTION✿",
];
/// Marks in front of a call in JSON.
const JSON_MARKS: [&str; 2] = ["[TOOL_CALLS]", "functools"];
/// Elements around a call.
const ELEMENTS: [&str; 7] =
    ["<tool_call>", "<tool_calls>", "<function_call>", "<function_calls>", "<function=", "<invoke name=", "<tool_use>"];
/// Bytes behind a mark within a line in which the name of a tool has to be.
const NAME_WITHIN_BYTES: usize = 300;
/// Characters of the words in front of a call at the end of a text; an explanation is longer. The same counts for words behind one.
const PREFACE_CHARS_MAX: usize = 240;
/// Words of a preface that introduce an example.
const EXAMPLES: [&str; 14] = [
    "example",
    "e.g.",
    "for instance",
    "looks like",
    "like this",
    "such as",
    "would",
    "could",
    "you can",
    "you may",
    "format",
    "syntax",
    "the form",
    "to call",
];
/// Lines at which a call may begin that are tried.
const BEGINNINGS_MAX: usize = 8;

/// The words of a model that believes that its call has run.
static CLAIM: LazyLock<Regex> = LazyLock::new(|| {
    let claim = r"\b(?:i have|i've|i did|has been|have been|was|were|done|now|successfully|created|written|saved|updated|deleted|added)\b";
    Regex::new(claim).expect("a fixed pattern")
});
/// Words about a call itself.
const ABOUT_CALLS: [&str; 6] = ["call", "form", "example", "json", "argument", "tool"];

/// Marks and tags behind a call.
static CLOSINGS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:\s|</?[\w:｜▁|-]{1,40}>|<\|[^|>\n]{1,40}\|>|✿RESULT✿:?)+\z").expect("a fixed pattern")
});

/// Returns whether the text is, or ends with, a call of a tool.
pub fn is_in(text: &str, tools: &[ToolSchema]) -> bool {
    let tools = Names(tools);
    let text = text.trim();
    if text.is_empty() {
        return false;
    }
    tools.has_marked(text)
        || tools.is_call_text(text)
        || tools.ends_with_call(text)
        || tools.begins_with_call(text)
        || tools.has_named(text)
}

/// The offered tools.
struct Names<'a>(&'a [ToolSchema]);

impl Names<'_> {
    fn find(&self, name: &str) -> Option<&ToolSchema> {
        // Some templates put the name of a space in front.
        let name = name.trim();
        let spaces = ["functions.", "default_api.", "tools."];
        let name = spaces.iter().find_map(|space| name.strip_prefix(space)).unwrap_or(name);
        self.0.iter().find(|tool| tool.name == name)
    }

    fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Returns whether a line outside of code has a mark of a template, or an element around a call: at its beginning, or within it in
    /// front of the name of a tool, if the text ends with the call.
    fn has_marked(&self, text: &str) -> bool {
        let mut is_code = false;
        let mut at = 0;
        text.split_inclusive('\n').any(|line| {
            let begin = at;
            at += line.len();
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
                return false;
            }
            !is_code && (self.begins_marked(text[begin..].trim_start()) || self.has_mark_within(&text[begin..], line))
        })
    }

    fn has_mark_within(&self, rest: &str, line: &str) -> bool {
        if !rest.ends_with(['}', '>', ']', ')', '|']) {
            return false;
        }
        let marks = MARKS.iter().chain(&JSON_MARKS).chain(&ELEMENTS);
        marks.filter_map(|mark| line.find(mark)).any(|at| {
            let is_plain = line[..at].matches('`').count().is_multiple_of(2);
            let behind = &rest[at..];
            let near = &behind[..behind.floor_char_boundary(NAME_WITHIN_BYTES)];
            is_plain && self.0.iter().any(|tool| near.contains(&tool.name)) && self.begins_marked(behind)
        })
    }

    fn begins_marked(&self, text: &str) -> bool {
        if MARKS.iter().any(|mark| text.starts_with(mark)) {
            return true;
        }
        let behind = |marks: &[&str]| marks.iter().find_map(|mark| text.strip_prefix(mark));
        if let Some(rest) = behind(&JSON_MARKS) {
            let rest = rest.trim_start();
            let name = rest.split(|letter: char| !is_of_name(letter)).next().unwrap_or_default();
            return rest.starts_with("[{") || rest.starts_with('{') || self.has(name);
        }
        let Some(rest) = behind(&ELEMENTS) else { return false };
        let rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '"');
        let name = rest.split(|letter: char| !is_of_name(letter)).next().unwrap_or_default();
        let is_inner = ELEMENTS.iter().any(|element| rest.starts_with(element));
        rest.starts_with(['{', '[']) || is_inner || self.has(name)
    }

    /// Returns whether the text is nothing but calls, as JSON, as a fence or in the form of Python.
    fn is_call_text(&self, text: &str) -> bool {
        let text = without_label(&text[..text.len() - CLOSINGS.find(text).map_or(0, |closings| closings.len())]);
        let inner = fenced(text).unwrap_or(text);
        self.is_json(inner) || self.is_python(inner) || (inner != text && self.begins_marked(inner))
    }

    /// Returns whether the text ends with a call behind a short preface that introduces no example.
    fn ends_with_call(&self, text: &str) -> bool {
        let begins = |line: &str| line.trim_start().starts_with(['{', '[', '`']) || without_label(line) != line;
        let mut at = 0;
        let starts = text.split_inclusive('\n').filter_map(|line| {
            let start = at;
            at += line.len();
            (start > 0 && begins(line)).then_some(start)
        });
        let is_call = |start: usize| is_preface(&text[..start]) && self.is_call_text(text[start..].trim());
        starts.take(BEGINNINGS_MAX).any(is_call) || self.ends_with_python(text)
    }

    /// Returns whether the text begins with a call, and then claims its result.
    fn begins_with_call(&self, text: &str) -> bool {
        let Some((call, words)) = text.rsplit_once("\n\n") else { return false };
        let words = words.trim().to_lowercase();
        let is_claim = words.chars().count() <= PREFACE_CHARS_MAX && CLAIM.is_match(&words);
        is_claim && !ABOUT_CALLS.iter().any(|word| words.contains(word)) && self.is_call_text(call.trim())
    }
}

/// Returns whether words in front of a call are so short that they explain nothing, and introduce no example.
fn is_preface(words: &str) -> bool {
    let words = words.trim().to_lowercase();
    let is_short = words.chars().count() <= PREFACE_CHARS_MAX && !words.contains("```");
    is_short && !EXAMPLES.iter().any(|word| words.contains(word))
}

const fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.')
}

/// Returns a text without the label of Command R in front of it.
fn without_label(text: &str) -> &str {
    text.strip_prefix("Action:").map_or(text, str::trim_start)
}

/// Returns the content of a text that is one fence.
fn fenced(text: &str) -> Option<&str> {
    let (_, inner) = text.strip_prefix("```")?.split_once('\n')?;
    let inner = inner.trim_end().strip_suffix("```")?;
    (!inner.contains("```")).then(|| inner.trim())
}

#[cfg(test)]
mod tests;
