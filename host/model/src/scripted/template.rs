//! Templates with placeholders, and their values.
//!
//! Never interprets a value: it is inserted unchanged and is not a template, JSON or a pattern, unless the rule declares it
//! as JSON. See [`crate::scripted::rules`].

use ironclaw_contract::canonical::{self, Limits};
use ironclaw_contract::seam::limits::ARGUMENTS_BYTES_MAX;
use regex::Captures;
use serde_json::Value;
use std::collections::BTreeMap;

/// A text with placeholders: `{name}` or `$name`. A literal brace or dollar sign is doubled.
#[derive(Debug, Clone)]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    Placeholder(String),
}

/// The reason that a template is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the unknown placeholder {0:?}")]
    Unknown(String),
    #[error("a single brace; double it for a literal one")]
    Brace,
}

impl Template {
    /// Parses a text with the placeholders of `known`.
    pub(super) fn parse(text: &str, known: &[&str]) -> Result<Self, Error> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}', '$']) {
            literal.push_str(&rest[..at]);
            let mark = &rest[at..=at];
            let after = &rest[at + 1..];
            if let Some(after) = after.strip_prefix(mark) {
                literal.push_str(mark);
                rest = after;
                continue;
            }
            let name = &after[..name_length(after)];
            rest = match mark {
                "$" if name.is_empty() => {
                    literal.push('$');
                    after
                }
                "$" => &after[name.len()..],
                "{" if !name.is_empty() => after[name.len()..].strip_prefix('}').ok_or(Error::Brace)?,
                _ => return Err(Error::Brace),
            };
            if !name.is_empty() {
                if !known.contains(&name) {
                    return Err(Error::Unknown(name.to_owned()));
                }
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
                pieces.push(Piece::Placeholder(name.to_owned()));
            }
        }
        literal.push_str(rest);
        pieces.push(Piece::Text(literal));
        pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        Ok(Self(pieces))
    }

    /// Renders the text; a placeholder without a value is empty.
    pub(super) fn render(&self, values: &Values) -> String {
        self.0
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.as_str(),
                Piece::Placeholder(name) => values.get(name),
            })
            .collect()
    }

    /// Returns whether the template is a single placeholder without a value.
    fn is_absent(&self, values: &Values) -> bool {
        matches!(self.0.as_slice(), [Piece::Placeholder(name)] if !values.0.contains_key(name.as_str()))
    }
}

fn name_length(text: &str) -> usize {
    let end = text.find(|character: char| character != '_' && !character.is_ascii_alphanumeric()).unwrap_or(text.len());
    if text.starts_with(|first: char| first.is_ascii_digit()) { 0 } else { end }
}

/// A JSON value whose strings are templates; keys are not.
#[derive(Debug, Clone)]
pub(super) enum Argument {
    Fixed(Value),
    Text(Template),
    /// A template whose text is parsed as JSON; an invalid text stays a string.
    Json(Template),
    List(Vec<Argument>),
    Object(Vec<(String, Argument)>),
}

impl Argument {
    /// Renders the value. `None` for a single placeholder without a value; the caller omits it.
    pub(super) fn render(&self, values: &Values) -> Option<Value> {
        Some(match self {
            Self::Fixed(value) => value.clone(),
            Self::Text(template) if template.is_absent(values) => return None,
            Self::Text(template) => Value::String(template.render(values)),
            Self::Json(template) if template.is_absent(values) => return None,
            Self::Json(template) => read(template.render(values)),
            Self::List(entries) => entries.iter().filter_map(|entry| entry.render(values)).collect(),
            Self::Object(entries) => {
                entries.iter().filter_map(|(key, entry)| Some((key.clone(), entry.render(values)?))).collect()
            }
        })
    }
}

/// Parses a text as strict JSON. An invalid text stays a string, and the check of the call reports the error.
fn read(text: String) -> Value {
    canonical::parse(text.as_bytes(), Limits::bytes(ARGUMENTS_BYTES_MAX)).unwrap_or(Value::String(text))
}

/// Values of the placeholders.
#[derive(Debug, Default)]
pub(super) struct Values<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Values<'a> {
    /// Adds every group of a match with one of these names that has a value.
    pub(super) fn add(&mut self, names: Vec<&'a str>, captures: &Captures<'a>) {
        for name in names {
            if let Some(found) = captures.name(name) {
                self.0.insert(name, found.as_str());
            }
        }
    }

    pub(super) fn set(&mut self, name: &'a str, value: &'a str) {
        self.0.insert(name, value);
    }

    /// Returns a value; empty if there is none.
    pub(super) fn get(&self, name: &str) -> &'a str {
        self.0.get(name).copied().unwrap_or_default()
    }
}
