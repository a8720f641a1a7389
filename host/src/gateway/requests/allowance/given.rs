//! The values of control fields that a person gives as text, in the types of the tool.
//!
//! Pure. A text stays a text wherever the tool takes one, or says no type. See [`super::page`] for the values that are fixed.

use serde_json::{Map, Value};

/// Schemas in each other that are read.
const DEPTH_MAX: usize = 8;

/// Reads each text as JSON whose field takes no text by the schema of the tool, such as the `5` of a number.
pub fn read_texts(fields: &mut Map<String, Value>, schema: &Value) {
    for (name, value) in fields {
        let of_field = &schema["properties"][name.as_str()];
        match value {
            Value::Object(inner) => read_texts(inner, of_field),
            Value::String(text) => {
                let read = serde_json::from_str(text).ok();
                if let Some(read) = read.filter(|read| takes_only_others(of_field, read)) {
                    *value = read;
                }
            }
            _ => {}
        }
    }
}

/// Returns whether a field takes a value, and no text.
fn takes_only_others(schema: &Value, value: &Value) -> bool {
    let Some(types) = types(schema, DEPTH_MAX) else { return false };
    let own: &[&str] = match value {
        Value::Null => &["null"],
        Value::Bool(_) => &["boolean"],
        Value::Number(number) if number.is_f64() => &["number"],
        Value::Number(_) => &["number", "integer"],
        Value::String(_) => &["string"],
        Value::Array(_) => &["array"],
        Value::Object(_) => &["object"],
    };
    !types.contains(&"string") && types.iter().any(|name| own.contains(name))
}

/// Returns the types that a schema names; `None` if it may take others too.
fn types(schema: &Value, depth: usize) -> Option<Vec<&str>> {
    let depth = depth.checked_sub(1)?;
    match &schema["type"] {
        Value::String(one) => return Some(vec![one]),
        Value::Array(all) => return all.iter().map(Value::as_str).collect(),
        _ => {}
    }
    let branches = ["anyOf", "oneOf"].into_iter().find_map(|name| schema[name].as_array())?;
    let all: Option<Vec<_>> = branches.iter().map(|branch| types(branch, depth)).collect();
    Some(all?.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_is_read_only_where_the_tool_takes_no_text() {
        let schema = json!({ "type": "object", "properties": {
            "amount": { "type": "number" },
            "count": { "type": "integer" },
            "urgent": { "type": ["boolean", "null"] },
            "either": { "type": ["string", "number"] },
            "branch": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
            "any_branch": { "anyOf": [{ "type": "integer" }, { "description": "or anything" }] },
            "iban": { "type": "string" },
            "free": {},
            "list": { "type": "array" },
            "inner": { "type": "object", "properties": { "depth": { "type": "integer" }, "name": { "type": "string" } } },
        } });
        for (name, text, read) in [
            ("amount", "5", json!(5)),
            ("amount", "1.50", json!(1.5)),
            ("amount", "-3", json!(-3)),
            ("amount", "\"5\"", json!("\"5\"")),
            ("amount", "five", json!("five")),
            ("amount", "true", json!("true")),
            ("count", "5", json!(5)),
            ("count", "5.5", json!("5.5")),
            ("urgent", "true", json!(true)),
            ("urgent", "null", json!(null)),
            ("either", "5", json!("5")),
            ("branch", "5", json!(5)),
            ("any_branch", "5", json!("5")),
            ("iban", "123", json!("123")),
            ("free", "5", json!("5")),
            ("unknown", "5", json!("5")),
            ("list", "[1,2]", json!([1, 2])),
        ] {
            let mut fields = Map::from_iter([(name.to_owned(), json!(text))]);
            read_texts(&mut fields, &schema);
            assert_eq!(fields[name], read, "{name}={text}");
        }
        let mut fields = Map::from_iter([("inner".to_owned(), json!({ "depth": "3", "name": "3" }))]);
        read_texts(&mut fields, &schema);
        assert_eq!(fields["inner"], json!({ "depth": 3, "name": "3" }));
    }
}
