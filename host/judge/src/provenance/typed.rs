//! The values that a person typed in a task: whole addresses, URLs, numbers, paths, words and sentences.
//!
//! Pure. A value counts only as a whole: it begins and ends where a token of the text does. See [`tokens`] and [`crate::provenance::spans`].

pub(super) mod tokens;
pub mod values;

use crate::egress::{CanonicalUrl, Loopback};
use crate::provenance::spans::{Mark, Marked, TypedSpan};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;
use tokens::{Token, is_name};

/// The bytes of the shortest word that counts. Nearly every text has a shorter one.
const WORD_BYTES_MIN: usize = 2;

/// The values that a person typed.
#[derive(Debug, Clone, Default)]
pub struct Typed {
    texts: Vec<Text>,
    urls: BTreeSet<String>,
    /// Accounts without their spaces.
    accounts: BTreeSet<String>,
}

/// A typed text with its tokens.
#[derive(Debug, Clone)]
struct Text {
    text: String,
    tokens: Vec<Token>,
    marked: Vec<Marked>,
}

impl Typed {
    /// Collects the values of typed spans.
    pub fn new<'a>(spans: impl IntoIterator<Item = TypedSpan<'a>>, loopback: Loopback) -> Self {
        let texts = spans.into_iter().map(|span| Text {
            text: span.text.to_owned(),
            tokens: tokens::tokens(span.text),
            marked: span.marked,
        });
        let mut typed = Self { texts: texts.collect(), ..Self::default() };
        for text in &typed.texts {
            for token in text.tokens.iter().filter(|token| Marked::touched(&text.marked, &token.core).is_empty()) {
                let url = token.url(&text.text).and_then(|url| CanonicalUrl::parse_typed(url, loopback).ok());
                typed.urls.extend(url.map(|url| url.to_string()));
                typed.accounts.extend(token.account(&text.text));
            }
        }
        typed
    }

    /// Returns whether a person typed this value as a whole: a URL in canonical form, an account with or without spaces, or words.
    pub fn has(&self, value: &str) -> bool {
        if value.contains("://") {
            return self.urls.contains(value);
        }
        let is_word = value.len() >= WORD_BYTES_MIN && value.contains(char::is_alphanumeric);
        is_word && (self.accounts.contains(value) || self.texts.iter().any(|text| text.has(value)))
    }
}

impl Text {
    fn has(&self, value: &str) -> bool {
        self.text.match_indices(value).any(|(at, _)| self.is_whole(at, at + value.len()))
    }

    /// Returns whether a range begins and ends with tokens, has nothing of a quoted part, and has only names in its titles.
    fn is_whole(&self, begin: usize, end: usize) -> bool {
        let first = self.tokens.partition_point(|token| token.all.end <= begin);
        let last = self.tokens.partition_point(|token| token.all.start < end);
        let begins = |token: &Token| token.all.start <= begin && begin <= token.core.start;
        let ends = |token: &Token| token.core.end <= end && end <= token.all.end;
        let touched = Marked::touched(&self.marked, &(begin..end));
        // All words of a title are a whole, also beside other marks: {"title":"Dune"}.
        let title = match touched {
            [title] if title.bytes.start < begin && end < title.bytes.end => Some(&title.bytes),
            _ => None,
        };
        let has_word = |range: Range<usize>| self.text[range].contains(char::is_alphanumeric);
        let begins_title = title.is_some_and(|title| !has_word(title.start..begin));
        let ends_title = title.is_some_and(|title| !has_word(end..title.end));
        let is_own = (begins_title || self.tokens.get(first).is_some_and(begins))
            && (ends_title || last.checked_sub(1).and_then(|last| self.tokens.get(last)).is_some_and(ends));
        is_own
            && touched.iter().all(|part| {
                let words = &self.text[part.bytes.start.max(begin)..part.bytes.end.min(end)];
                part.mark == Mark::Title && is_name(words)
            })
    }
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
mod tests;
