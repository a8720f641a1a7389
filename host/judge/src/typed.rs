//! The text that a person typed in a task, as a set of values: whole URLs and whole words.
//!
//! Pure. A value counts only as a whole: a part of a typed URL or word is not typed. See [`crate::egress`].

use crate::egress::{CanonicalUrl, Loopback};
use serde_json::Value;
use std::collections::BTreeSet;

/// The bytes of the shortest word that counts. Nearly every text has a shorter one.
const WORD_BYTES_MIN: usize = 2;

/// Characters that end a URL in a sentence.
const CLOSING: [char; 12] = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '>'];

/// The values that a person typed.
#[derive(Debug, Clone, Default)]
pub struct Typed {
    texts: Vec<String>,
    urls: BTreeSet<String>,
}

impl Typed {
    /// Collects the values of typed texts.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>, loopback: Loopback) -> Self {
        let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        let urls = texts.iter().flat_map(|text| text.split_whitespace()).flat_map(addresses);
        let urls = urls.filter_map(|url| CanonicalUrl::parse(url, loopback).ok()).map(|url| url.to_string());
        let urls = urls.collect();
        Self { texts, urls }
    }

    /// Returns whether a person typed this value as a whole: a URL in canonical form, or words.
    pub fn has(&self, value: &str) -> bool {
        if value.contains("://") {
            return self.urls.contains(value);
        }
        value.len() >= WORD_BYTES_MIN && self.texts.iter().any(|text| has_word(text, value))
    }
}

/// Returns the URL in a word of a text, as typed and without closing punctuation.
fn addresses(word: &str) -> impl Iterator<Item = &str> {
    let from = word.find("https://").or_else(|| word.find("http://"));
    let typed = from.map(|from| &word[from..]);
    let closed = typed.map(|typed| typed.trim_end_matches(CLOSING));
    closed.into_iter()
}

/// Returns whether a text has this value with no letter, digit or joining mark beside it.
fn has_word(text: &str, value: &str) -> bool {
    let is_joined = |c: char| c.is_alphanumeric() || c == '_' || c == '-' || c == '%';
    text.match_indices(value).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + value.len()..].chars().next());
        !before.is_some_and(is_joined) && !after.is_some_and(is_joined)
    })
}

/// Returns whether a person typed each text and number of a value, by `typed`.
pub fn is_typed_value(value: &Value, typed: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::Number(number) => typed(&number.to_string()),
        Value::String(text) => typed(text),
        Value::Array(values) => values.iter().all(|value| is_typed_value(value, typed)),
        Value::Object(fields) => fields.iter().all(|(name, value)| typed(name) && is_typed_value(value, typed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Typed {
        Typed::new([text], Loopback::Refused)
    }

    #[test]
    fn part_of_a_typed_url_or_word_is_not_typed() {
        let of = typed("Look at https://docs.example/guide/start?x=1, please, for octocat");
        assert!(of.has("https://docs.example/guide/start?x=1"));
        for part in [
            "https://docs.example/guide",
            "https://docs.example/",
            "https://docs.example/guide/start",
            "octo",
            "cat",
            "o",
            "",
        ] {
            assert!(!of.has(part), "{part}");
        }
        assert!(of.has("octocat") && of.has("guide"));
    }

    #[test]
    fn typed_url_counts_in_its_canonical_form() {
        let of = typed("(HTTPS://Docs.Example:443/a/../b) and http://plain.example/");
        assert!(!of.has("HTTPS://Docs.Example:443/a/../b"));
        let of = typed("see https://Docs.Example:443/b.");
        assert!(of.has("https://docs.example/b"));
        assert!(
            !typed("http://plain.example/x").has("http://plain.example/x"),
            "plain http leaves the host for no host"
        );
    }
}
