//! What the schema of a tool says about one argument: whether it takes a number, and which keys it declares.
//!
//! Never decides about a floor. See [`super::bind`] and [`crate::manifest::floors`].

use serde_json::Value;

/// Returns whether a schema takes a number and no text.
pub(super) fn takes_number(schema: &Value) -> bool {
    let is_number = |kind: &Value| matches!(kind.as_str(), Some("number" | "integer"));
    let of_type = |kind: &Value| match kind {
        Value::Array(kinds) => kinds.iter().any(is_number) && !kinds.iter().any(|kind| kind == "string"),
        kind => is_number(kind),
    };
    let choices = ["anyOf", "oneOf"].into_iter().filter_map(|word| schema[word].as_array()).flatten();
    let takes_text = |schema: &Value| schema["type"] == "string";
    of_type(&schema["type"]) || choices.clone().any(takes_number) && !choices.into_iter().any(takes_text)
}

/// Returns whether a schema declares a key, at any place below it.
pub(super) fn is_declared(schema: &Value, key: &str) -> bool {
    match schema {
        Value::Object(fields) => {
            let is_own = fields.get("properties").and_then(Value::as_object).is_some_and(|own| own.contains_key(key));
            is_own || fields.values().any(|part| is_declared(part, key))
        }
        Value::Array(parts) => parts.iter().any(|part| is_declared(part, key)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
