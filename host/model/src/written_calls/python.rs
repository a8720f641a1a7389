//! Calls that a model wrote in the form of Python.

use super::{Names, is_of_name, is_preface};

impl Names<'_> {
    /// Returns whether the text is one call `name(argument=value)`, also within `print(…)` or code marks, or a list of them that begins
    /// with one.
    pub(super) fn is_python(&self, text: &str) -> bool {
        let within = |text: &'_ str, begin: &str, end: char| -> Option<String> {
            Some(text.strip_prefix(begin)?.strip_suffix(end)?.trim().to_owned())
        };
        let inner = within(text, "`", '`').filter(|inner| !inner.contains('`')).or_else(|| within(text, "print(", ')'));
        if let Some(inner) = inner {
            return self.is_python(&inner);
        }
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

    /// Returns whether the text ends with a call behind a colon or on a line of its own.
    pub(super) fn ends_with_python(&self, text: &str) -> bool {
        if !text.ends_with([')', '`']) {
            return false;
        }
        let starts = text.match_indices(": ").map(|(at, colon)| at + colon.len());
        let starts = starts.chain(text.match_indices('\n').map(|(at, end)| at + end.len()));
        starts.into_iter().any(|start| is_preface(&text[..start]) && self.is_python(text[start..].trim()))
    }
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
