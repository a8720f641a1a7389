//! The leaves of arguments: texts, numbers and references, each with its place.
//!
//! Never judges a value. See [`super::bind`].

use super::handles::HandleId;
use crate::manifest::floors::pointer;
use serde_json::{Map, Value};

/// The key of a reference.
pub(super) const LINK: &str = "@link";

/// The key in JSON text.
const QUOTED_LINK: &str = "\"@link\"";

/// A part of an argument without further parts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leaf {
    /// Its place, as a JSON Pointer into the arguments.
    pub(super) at: String,
    pub(super) content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Literal(Value),
    /// The id of a value alone, as small models write it. Where no reference is taken, it is a text.
    Id(HandleId),
    Link(HandleId),
    /// A reference that names no handle, or is not written as one; has the reason.
    Bad(String),
}

/// Returns the leaves of a value. An empty list or object has none.
pub(super) fn leaves(at: &str, value: &Value, found: &mut Vec<Leaf>) {
    let content = match value {
        Value::Object(fields) if fields.contains_key(LINK) => link(fields),
        Value::Object(fields) => {
            return fields.iter().for_each(|(name, value)| leaves(&pointer(at, name), value, found));
        }
        Value::Array(values) => {
            let each = values.iter().enumerate();
            return each.for_each(|(n, value)| leaves(&pointer(at, &n.to_string()), value, found));
        }
        Value::String(text) => text_content(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => Content::Literal(value.clone()),
    };
    found.push(Leaf { at: at.to_owned(), content });
}

/// Returns the places in a value for which a floor counts: each leaf of a list. An object is no value of a handle, so it counts itself.
pub(super) fn floored(at: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(n, value)| floored(&pointer(at, &n.to_string()), value, found));
        }
        _ => found.push(at.to_owned()),
    }
}

fn link(fields: &Map<String, Value>) -> Content {
    match (fields.len(), fields.get(LINK)) {
        (1, Some(Value::String(id))) => id.parse().map_or_else(Content::Bad, Content::Link),
        (1, _) => Content::Bad("the id of a reference is a text".to_owned()),
        _ => Content::Bad("a reference has no other key".to_owned()),
    }
}

/// Returns the content of a text: a reference written as JSON text, or its id alone, is one.
fn text_content(text: &str) -> Content {
    let trimmed = text.trim();
    if let Ok(id) = trimmed.parse() {
        return Content::Id(id);
    }
    if !text.contains(QUOTED_LINK) {
        return Content::Literal(Value::String(text.to_owned()));
    }
    match serde_json::from_str(trimmed) {
        Ok(Value::Object(fields)) if fields.contains_key(LINK) => link(&fields),
        _ => Content::Bad("a reference is a part of a longer text".to_owned()),
    }
}

/// Gives each key of the objects in a value that are no reference.
pub(super) fn keys(value: &Value, found: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(fields) if !fields.contains_key(LINK) => {
            for (name, value) in fields {
                found(name);
                keys(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
