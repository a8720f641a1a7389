//! The recognition of a call of a tool that a model wrote as text, which its server should have read.
//!
//! Never runs such a call, and never takes an explanation for one: code in a sentence, an example with words behind it, and JSON about
//! another name are an answer. See [`crate::Output::has_written_call`].

use super::ToolSchema;
use serde_json::Value;

/// Marks of chat templates in front of a call. No answer for a person has one at the beginning of a line.
const MARKS: [&str; 14] = [
    "<|channel|>commentary",
    "<|start|>assistant to=functions.",
    "<|start|>assistant<|channel|>commentary",
    "<|tool_call|>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|tool_call_start|>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<|python_tag|>",
    "<|START_ACTION|>",
    "<|action_start|>",
    "<minimax:tool_call>",
    "<seed:tool_call>",
];
/// Marks in front of a call in JSON.
const JSON_MARKS: [&str; 2] = ["[TOOL_CALLS]", "functools"];
/// Elements around a call.
const ELEMENTS: [&str; 7] =
    ["<tool_call>", "<tool_calls>", "<function_call>", "<function_calls>", "<function=", "<invoke name=", "<tool_use>"];
/// Fields with the name of a tool.
const NAMES: [&str; 5] = ["name", "tool", "tool_name", "function", "action"];
/// Fields with arguments.
const ARGUMENTS: [&str; 8] =
    ["arguments", "parameters", "args", "input", "tool_input", "action_input", "params", "kwargs"];
/// Fields around a call.
const WRAPPERS: [&str; 4] = ["tool_calls", "tool_call", "function_call", "function"];
/// Fields of a call that say nothing about it.
const OTHERS: [&str; 3] = ["id", "type", "index"];
/// Characters of the words in front of a call at the end of a text; an explanation is longer.
const PREFACE_CHARS_MAX: usize = 240;
/// Words of a preface that introduce an example.
const EXAMPLES: [&str; 6] = ["example", "e.g.", "for instance", "looks like", "would", "format"];
/// Nested wrappers of a call.
const DEPTH_MAX: u8 = 3;
/// Lines at which JSON may begin that are tried.
const BEGINNINGS_MAX: usize = 8;

/// Returns whether the text is, or ends with, a call of a tool.
pub fn is_in(text: &str, tools: &[ToolSchema]) -> bool {
    let tools = Names(tools);
    let text = text.trim();
    if text.is_empty() {
        return false;
    }
    tools.has_marked(text) || tools.is_call_text(text) || tools.ends_with_call(text)
}

/// The names of the offered tools.
struct Names<'a>(&'a [ToolSchema]);

impl Names<'_> {
    fn has(&self, name: &str) -> bool {
        // Some templates put the name of a space in front.
        let name = name.trim().trim_start_matches("functions.");
        self.0.iter().any(|tool| tool.name == name)
    }

    /// Returns whether a line outside of code begins with a mark of a template, or with an element around a call.
    fn has_marked(&self, text: &str) -> bool {
        let mut is_code = false;
        let mut at = 0;
        text.split_inclusive('\n').any(|line| {
            let rest = text[at..].trim_start();
            at += line.len();
            let line = line.trim();
            if line.starts_with("```") {
                is_code = !is_code;
                return false;
            }
            !is_code && self.begins_marked(rest)
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
        let inner = fenced(text).unwrap_or(text);
        self.is_json(inner) || self.is_python(inner) || (inner != text && self.begins_marked(inner))
    }

    /// Returns whether the text ends with a call behind a short preface that introduces no example.
    fn ends_with_call(&self, text: &str) -> bool {
        let is_preface = |preface: &str| {
            let preface = preface.trim().to_lowercase();
            let is_short = preface.chars().count() <= PREFACE_CHARS_MAX && !preface.contains("```");
            is_short && !EXAMPLES.iter().any(|word| preface.contains(word))
        };
        let begins = |line: &str| line.trim_start().starts_with(['{', '[', '`']);
        let mut at = 0;
        let starts = text.split_inclusive('\n').filter_map(|line| {
            let start = at;
            at += line.len();
            (start > 0 && begins(line)).then_some(start)
        });
        starts.take(BEGINNINGS_MAX).any(|start| {
            let (preface, rest) = text.split_at(start);
            is_preface(preface) && self.is_call_text(rest.trim())
        })
    }

    /// Returns whether the text is JSON of calls, one or several.
    fn is_json(&self, text: &str) -> bool {
        if !text.starts_with(['{', '[']) {
            return false;
        }
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>().peekable();
        values.peek().is_some() && values.all(|value| value.is_ok_and(|value| self.is_call(&value, DEPTH_MAX)))
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
            return is_wrapped || (self.has(name) && inner.is_object());
        }
        let named = NAMES.iter().find_map(|field| Some((*field, fields.get(*field)?.as_str()?)));
        let given = ARGUMENTS.iter().find_map(|field| Some((*field, fields.get(*field)?)));
        let (Some((name_field, name)), Some((arguments_field, arguments))) = (named, given) else { return false };
        let is_object = match arguments {
            Value::Object(_) => true,
            Value::String(text) => serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok(),
            _ => false,
        };
        let has_others = rest().any(|(name, _)| name != name_field && name != arguments_field);
        self.has(name) && is_object && !has_others
    }

    /// Returns whether the text is one call `name(argument=value)`, or a list of them that begins with one.
    fn is_python(&self, text: &str) -> bool {
        let list = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let is_list = list.is_some();
        let text = list.unwrap_or(text).trim();
        let Some((name, rest)) = text.split_once('(') else { return false };
        if !self.has(name) || !text.ends_with(')') {
            return false;
        }
        let first = rest.trim_start();
        let name = first.split(|letter: char| !is_of_name(letter)).next().unwrap_or_default();
        let is_named = !name.is_empty() && first[name.len()..].trim_start().starts_with('=');
        let has_arguments = is_named || first.starts_with([')', '{', '"', '\'']);
        has_arguments && (is_list || closes_at_end(rest))
    }
}

const fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.')
}

/// Returns the content of a text that is one fence.
fn fenced(text: &str) -> Option<&str> {
    let (_, inner) = text.strip_prefix("```")?.split_once('\n')?;
    let inner = inner.trim_end().strip_suffix("```")?;
    (!inner.contains("```")).then(|| inner.trim())
}

/// Returns whether the bracket that is open at the beginning of a text closes at its end.
fn closes_at_end(text: &str) -> bool {
    let (mut depth, mut quote, mut is_escaped) = (1_usize, None, false);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, _) => {}
        }
        if depth == 0 {
            return at + letter.len_utf8() == text.len();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(text: &str) -> bool {
        let tool = |name: &str| ToolSchema {
            name: name.to_owned(),
            description: String::new(),
            parameters: serde_json::json!({ "type": "object" }),
        };
        is_in(text, &[tool("read_file"), tool("write_file")])
    }

    #[test]
    fn call_written_as_text_is_recognised_in_its_usual_forms() {
        for text in [
            r#"{"name": "read_file", "arguments": {"path": "a"}}"#,
            r#"{"name": "read_file", "parameters": {}}"#,
            r#"{"type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"a\"}"}}"#,
            r#"{"tool": "read_file", "args": {"path": "a"}}"#,
            r#"{"action": "read_file", "action_input": {"path": "a"}}"#,
            r#"{"tool_calls": [{"name": "read_file", "arguments": {"path": "a"}}]}"#,
            r#"[{"name": "read_file", "arguments": {"path": "a"}}, {"name": "write_file", "arguments": {}}]"#,
            "{\"name\": \"read_file\", \"arguments\": {}}\n{\"name\": \"write_file\", \"arguments\": {}}",
            r#"{"read_file": {"path": "a"}}"#,
            "```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```",
            "I read it now:\n\n```\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```",
            "I read it now.\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}",
            "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {}}\n</tool_call>",
            "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\"",
            "Sure.\n<tool_call>\n{\"name\": \"unknown\", \"arguments\": {}}\n</tool_call>",
            "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
            "<tool_call>\n<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
            "<function=read_file>{\"path\": \"a\"}</function>",
            "<function_calls>\n<invoke name=\"read_file\"></invoke>\n</function_calls>",
            "```xml\n<tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call>\n```",
            "<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{\"path\":\"a\"}<|call|>",
            "<|start|>assistant to=functions.read_file<|channel|>commentary json<|message|>{}<|call|>",
            "[TOOL_CALLS][{\"name\": \"read_file\", \"arguments\": {}}]",
            "[TOOL_CALLS]read_file{\"path\": \"a\"}",
            "functools[{\"name\": \"read_file\", \"arguments\": {}}]",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file",
            "<|python_tag|>read_file.call(path=\"a\")",
            "[read_file(path=\"a\"), write_file(path=\"b\")]",
            "read_file(path=\"a (b)\")",
            "```tool_code\nread_file(path=\"a\")\n```",
        ] {
            assert!(is_found(text), "{text}");
        }
    }

    #[test]
    fn answer_that_explains_json_or_tags_is_no_call() {
        for text in [
            "",
            "It is done.",
            r#"{"name": "Ada", "arguments": {"born": 1815}}"#,
            r#"{"name": "read_file", "version": 2, "arguments": {}}"#,
            r#"{"name": "read_file"}"#,
            r#"["read_file", "write_file"]"#,
            "{\"name\": \"read_file\", \"arguments\": {}}\nis the form of a call.",
            "This is an example:\n```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```",
            "A call:\n```json\n{\"name\": \"read_file\", \"arguments\": {}}\n```\nThe name is that of the tool.",
            "Two forms:\n```json\n{\"name\": \"read_file\", \"arguments\": {}}\n```\nor\n```json\n{\"name\": \"read_file\", \"arguments\": {}}\n```",
            "Your file has this:\n```json\n{\"name\": \"config\", \"arguments\": {}}\n```",
            "Some models write `<tool_call>{\"name\": \"read_file\"}</tool_call>` as text.",
            "<tool_call> is the tag that some models write.",
            "```xml\n<tool_call>{\"name\": \"read_file\"}</tool_call>\n```\nis the form of Hermes.",
            "read_file(path) reads a file (up to its end)",
            "read_file and write_file are my tools.",
            "[read_file](https://example.com) has more.",
            "[1, 2, 3]",
        ] {
            assert!(!is_found(text), "{text}");
        }
    }
}
