//! The text of a call without what servers and templates leave around it: fences, marks, quotes around JSON, names of spaces.
//!
//! Never changes a text with more than one reading: what it takes away says nothing. See [`super::CallPieces`].

use serde::de::IgnoredAny;
use serde_json::Deserializer;

/// Names of spaces in front of the name of a tool. No name of an offered tool has a dot or a colon.
const SPACES: [&str; 7] = ["functions.", "functions:", "function:", "tools.", "tool.", "default_api.", "default_api:"];
/// Texts of JSON in texts of JSON.
const DEPTH_MAX: u8 = 2;

pub fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Returns the name of a tool without marks of a template, a space in front, and a number behind.
pub fn name(name: &str) -> &str {
    let name = name.split("<|").next().unwrap_or_default();
    let name = name.trim().trim_matches(['"', '\'', '`']).trim();
    let name = SPACES.iter().find_map(|space| name.strip_prefix(space)).unwrap_or(name);
    match name.rsplit_once(':') {
        Some((name, number)) if !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()) => name,
        Some(_) | None => name,
    }
}

/// Returns the object in a text of arguments, if it is the only value there.
pub fn object(text: &str) -> Option<String> {
    object_within(text, DEPTH_MAX)
}

fn object_within(text: &str, depth: u8) -> Option<String> {
    let text = without_fence(text.trim());
    if text.starts_with('"') && depth > 0 {
        let (inner, rest) = first::<String>(text)?;
        return says_nothing(rest).then(|| object_within(&inner, depth - 1)).flatten();
    }
    if !text.starts_with('{') {
        return None;
    }
    let (_, rest) = first::<IgnoredAny>(text)?;
    let end = text.len() - rest.len();
    says_nothing(rest).then(|| text[..end].to_owned())
}

/// Returns the first value of a text, and what is behind it.
fn first<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Option<(T, &'a str)> {
    let mut values = Deserializer::from_str(text).into_iter::<T>();
    let value = values.next()?.ok()?;
    Some((value, &text[values.byte_offset()..]))
}

fn without_fence(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```") else { return text };
    inner.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric()).trim_start()
}

/// Returns whether a text behind whole arguments has no value: further ends, a fence, or marks of a template.
pub fn says_nothing(text: &str) -> bool {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() || matches!(letter, '}' | ']' | '`'));
        if rest.is_empty() {
            return true;
        }
        let mark = [("<|", "|>"), ("<｜", "｜>"), ("</", ">")].into_iter().find_map(|(begin, end)| {
            let inner = rest.strip_prefix(begin)?;
            inner.split_once(end).filter(|(name, _)| name.chars().count() <= 40 && !name.contains(['{', '"', '<']))
        });
        match mark {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = r#"{"path":"a.txt"}"#;

    #[test]
    fn arguments_with_one_reading_are_read_and_no_others() {
        let quoted = serde_json::Value::from(A).to_string();
        for text in [
            A.to_owned(),
            quoted.clone(),
            serde_json::Value::from(quoted.as_str()).to_string(),
            format!("```json\n{A}\n```"),
            format!("```\n{A}```"),
            format!("{A}}}"),
            format!("{A}<|eot_id|>"),
            format!("{A}}}\n<｜tool▁call▁end｜>"),
            format!("{A}</tool_call>"),
        ] {
            assert_eq!(object(&text).as_deref(), Some(A), "{text}");
        }
        for text in [
            "",
            "{",
            "[1]",
            "null",
            "\"a\"",
            "{}{}",
            "a {}",
            "```\n{}\n```\n{}",
            "{} and more",
            "{}<|a|>{}",
            "{'a':1}",
            "{},{}",
        ] {
            assert_eq!(object(text), None, "{text}");
        }
    }

    #[test]
    fn name_is_read_without_marks_and_spaces() {
        for sent in [
            "write_file",
            " write_file\n",
            "functions.write_file",
            "functions.write_file:0",
            "write_file<|channel|>commentary",
            "default_api.write_file",
            "\"write_file\"",
        ] {
            assert_eq!(name(sent), "write_file", "{sent}");
        }
        for other in ["a.write_file", "write_file:", "write file", ""] {
            assert_eq!(name(other), other);
        }
    }
}
