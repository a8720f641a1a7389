//! The arguments of a tool by its schema, and the schema in the form that a model gets.
//!
//! An argument that the schema does not name has no rule, and a call with one is refused; so a form that names too few arguments is safe.
//! The server checks the values itself. See [`super::listed`].

use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;

/// Arguments of one tool.
const ARGUMENTS_MAX: usize = 64;

/// Bytes of the schema of one tool.
const SCHEMA_BYTES_MAX: usize = 16 * 1024;

/// References and parts inside of each other, from the root of a schema.
const DEPTH_MAX: usize = 16;

/// Parts of one schema that are read.
const PARTS_MAX: usize = 512;

/// Keywords by which the arguments are not all below `properties` of the root. Providers refuse them there.
const COMPOSED: [&str; 9] =
    ["$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies"];

/// The object that takes no named argument.
fn no_arguments() -> Value {
    json!({ "type": "object", "properties": {} })
}

/// Returns the schema as an object whose arguments are below `properties`, for a model; a schema in this form is unchanged. An absent or
/// empty schema takes each object.
///
/// # Errors
/// The reason why the schema cannot be used.
pub fn for_model(schema: &Value) -> Result<Value, String> {
    let object = match schema {
        Value::Null | Value::Bool(true) => return Ok(no_arguments()),
        Value::Object(object) => object,
        Value::Bool(false) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err("its schema is not an object".to_owned());
        }
    };
    if bytes_of(schema) > SCHEMA_BYTES_MAX {
        return Err("its schema has over 16 KiB, and a model reads it at each request".to_owned());
    }
    let is_flat = !COMPOSED.iter().any(|word| object.contains_key(*word));
    let reader = Reader { root: schema, parts: Cell::new(0) };
    let read = reader.read(schema, 0)?.ok_or("its schema takes no object: its type is not \"object\"")?;
    if read.properties.len() > ARGUMENTS_MAX {
        return Err(format!("its schema has over {ARGUMENTS_MAX} arguments"));
    }
    if is_flat && object.get("type") == Some(&json!("object")) && object.contains_key("properties") {
        return Ok(schema.clone());
    }
    let mut flat = object.clone();
    flat.retain(|word, _| !COMPOSED.contains(&word.as_str()));
    flat.insert("type".to_owned(), json!("object"));
    flat.insert("properties".to_owned(), Value::Object(read.properties));
    flat.remove("required");
    if !read.required.is_empty() {
        flat.insert("required".to_owned(), json!(read.required));
    }
    let flat = Value::Object(flat);
    match bytes_of(&flat) > SCHEMA_BYTES_MAX {
        true => Err("its schema has over 16 KiB once its parts are together".to_owned()),
        false => Ok(flat),
    }
}

/// Returns the names of the arguments in a schema.
///
/// # Errors
/// Those of [`for_model`].
pub(super) fn names(schema: &Value) -> Result<Vec<String>, String> {
    let schema = for_model(schema)?;
    Ok(schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect())
}

fn bytes_of(schema: &Value) -> usize {
    schema.to_string().len()
}

/// The arguments that a part of a schema names.
#[derive(Default)]
struct Part {
    properties: Map<String, Value>,
    required: BTreeSet<String>,
}

impl Part {
    /// Adds the arguments of another part. An argument with two schemas takes what one of them takes.
    fn add(&mut self, other: Map<String, Value>) {
        for (name, schema) in other {
            match self.properties.get_mut(&name) {
                Some(known) if *known == schema => {}
                Some(known) => *known = json!({ "anyOf": [known.take(), schema] }),
                None => drop(self.properties.insert(name, schema)),
            }
        }
    }
}

/// The reader of one schema.
struct Reader<'a> {
    root: &'a Value,
    parts: Cell<usize>,
}

impl Reader<'_> {
    /// Reads a part; `None` if it takes no object.
    fn read(&self, part: &Value, depth: usize) -> Result<Option<Part>, String> {
        self.parts.set(self.parts.get() + 1);
        if depth > DEPTH_MAX || self.parts.get() > PARTS_MAX {
            return Err("its schema refers to itself, or has too many parts".to_owned());
        }
        let object = match part {
            Value::Bool(takes) => return Ok(takes.then(Part::default)),
            Value::Object(object) => object,
            _ => return Err("a part of its schema is neither an object nor a boolean".to_owned()),
        };
        if !takes_objects(object.get("type"))? {
            return Ok(None);
        }
        let mut read = Part { properties: properties(object)?, required: required(object) };
        let referred = object.get("$ref").map(|to| self.referred(to)).transpose()?;
        for part in referred.into_iter().chain(parts(object, "allOf")?) {
            let Some(part) = self.read(part, depth + 1)? else { return Ok(None) };
            read.required.extend(part.required);
            read.add(part.properties);
        }
        for word in ["anyOf", "oneOf"] {
            if object.contains_key(word) && !self.read_choices(parts(object, word)?, depth, &mut read)? {
                return Ok(None);
            }
        }
        for word in ["if", "then", "else"] {
            if let Some(part) = object.get(word).map(|part| self.read(part, depth + 1)).transpose()?.flatten() {
                read.add(part.properties);
            }
        }
        for word in ["dependentSchemas", "dependencies"] {
            let all = object.get(word).and_then(Value::as_object).into_iter().flatten();
            // A list names arguments that others need.
            for (_, part) in all.filter(|(_, part)| !part.is_array()) {
                read.add(self.read(part, depth + 1)?.unwrap_or_default().properties);
            }
        }
        Ok(Some(read))
    }

    /// Adds the arguments of all choices, and requires those that each choice requires. Returns whether a choice takes an object.
    fn read_choices(&self, choices: &[Value], depth: usize, read: &mut Part) -> Result<bool, String> {
        let mut required: Option<BTreeSet<String>> = None;
        for choice in choices {
            let Some(part) = self.read(choice, depth + 1)? else { continue };
            read.add(part.properties);
            required = Some(match required {
                Some(known) => known.intersection(&part.required).cloned().collect(),
                None => part.required,
            });
        }
        let takes = required.is_some();
        read.required.extend(required.unwrap_or_default());
        Ok(takes)
    }

    /// Returns the part that a reference names.
    fn referred(&self, to: &Value) -> Result<&Value, String> {
        let to = to.as_str().ok_or("a reference of its schema is not a text")?;
        let Some(pointer) = to.strip_prefix('#') else {
            return Err(format!("its schema refers to {to:?}, which is outside of it"));
        };
        self.root.pointer(pointer).ok_or_else(|| format!("its schema refers to {to:?}, which it does not have"))
    }
}

fn takes_objects(kind: Option<&Value>) -> Result<bool, String> {
    match kind {
        None => Ok(true),
        Some(Value::String(kind)) => Ok(kind == "object"),
        Some(Value::Array(kinds)) => Ok(kinds.iter().any(|kind| kind == "object")),
        Some(_) => Err("the type of its schema is neither a text nor a list".to_owned()),
    }
}

fn properties(object: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let Some(properties) = object.get("properties") else { return Ok(Map::new()) };
    let properties = properties.as_object().ok_or("`properties` of its schema is not an object")?;
    if properties.values().any(|property| !property.is_object() && !property.is_boolean()) {
        return Err("the schema of an argument is neither an object nor a boolean".to_owned());
    }
    Ok(properties.clone())
}

fn required(object: &Map<String, Value>) -> BTreeSet<String> {
    let names = object.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn parts<'a>(object: &'a Map<String, Value>, word: &str) -> Result<&'a [Value], String> {
    match object.get(word) {
        None => Ok(&[]),
        Some(Value::Array(parts)) => Ok(parts),
        Some(_) => Err(format!("`{word}` of its schema is not a list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_schema_is_refused_with_its_reason() {
        let long = json!({ "type": "object", "title": "x".repeat(SCHEMA_BYTES_MAX) });
        let many: Map<String, Value> = (0..=ARGUMENTS_MAX).map(|n| (n.to_string(), json!({}))).collect();
        let mut bomb = json!({ "$ref": "#/$defs/0", "$defs": {} });
        for n in 0..15 {
            let next = json!({ "$ref": format!("#/$defs/{}", n + 1) });
            bomb["$defs"][n.to_string()] = json!({ "anyOf": [next, next, next, next] });
        }
        bomb["$defs"]["15"] = json!({});
        for (schema, word) in [
            (json!("object"), "not an object"),
            (json!(false), "not an object"),
            (json!([]), "not an object"),
            (json!({ "type": "array" }), "takes no object"),
            (json!({ "type": ["string", "null"] }), "takes no object"),
            (json!({ "type": 3 }), "neither a text"),
            (json!({ "type": "object", "properties": ["to"] }), "properties"),
            (json!({ "type": "object", "properties": { "to": 3 } }), "boolean"),
            (json!({ "anyOf": [{ "type": "string" }, false] }), "takes no object"),
            (json!({ "anyOf": [] }), "takes no object"),
            (json!({ "allOf": [{ "type": "string" }, {}] }), "takes no object"),
            (json!({ "oneOf": { "type": "object" } }), "not a list"),
            (json!({ "anyOf": [3] }), "boolean"),
            (json!({ "$ref": "#" }), "itself"),
            (json!({ "$ref": "#/$defs/none" }), "does not have"),
            (json!({ "$ref": "https://example.com/schema" }), "outside"),
            (json!({ "$ref": 3 }), "not a text"),
            (long, "16 KiB"),
            (json!({ "properties": many }), "over 64 arguments"),
            (bomb, "too many parts"),
        ] {
            let error = for_model(&schema).expect_err("refused");
            assert!(error.contains(word), "{schema}: {error}");
        }
    }

    #[test]
    fn each_form_of_an_object_has_its_arguments() {
        let text = json!({ "type": "string" });
        for (schema, arguments, required) in [
            (Value::Null, &[][..], json!(null)),
            (json!(true), &[], json!(null)),
            (json!({}), &[], json!(null)),
            (json!({ "$schema": "https://json-schema.org/draft/2020-12/schema" }), &[], json!(null)),
            (json!({ "type": "object" }), &[], json!(null)),
            (json!({ "type": ["object"], "properties": { "a": text } }), &["a"], json!(null)),
            (
                json!({ "type": ["object", "null"], "properties": { "a": text }, "required": ["a"] }),
                &["a"],
                json!(["a"]),
            ),
            (json!({ "properties": { "a": text } }), &["a"], json!(null)),
            (
                json!({ "type": "object", "properties": { "a": text, "b": text }, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
                &["a", "b"],
                json!(null),
            ),
            (
                json!({ "oneOf": [
                    { "type": "object", "properties": { "a": text, "k": { "const": 1 } }, "required": ["a", "k"] },
                    { "type": "object", "properties": { "b": text, "k": { "const": 2 } }, "required": ["b", "k"] },
                    { "type": "null" }
                ] }),
                &["a", "b", "k"],
                json!(["k"]),
            ),
            (
                json!({ "allOf": [{ "properties": { "a": text }, "required": ["a"] }, { "$ref": "#/definitions/b" }],
                    "definitions": { "b": { "properties": { "b": text }, "required": ["b"] } } }),
                &["a", "b"],
                json!(["a", "b"]),
            ),
            (
                json!({ "$ref": "#/$defs/x~1y", "$defs": { "x/y": { "type": "object", "properties": { "a": text } } } }),
                &["a"],
                json!(null),
            ),
            (
                json!({ "type": "object", "properties": { "a": text }, "if": { "required": ["a"] },
                    "then": { "properties": { "b": text } }, "else": { "properties": { "c": text } },
                    "dependentSchemas": { "a": { "properties": { "d": text } } }, "dependencies": { "a": ["b"] } }),
                &["a", "b", "c", "d"],
                json!(null),
            ),
            (json!({ "type": "object", "patternProperties": { "^x": text } }), &[], json!(null)),
        ] {
            assert_eq!(names(&schema).expect("usable"), arguments, "{schema}");
            let given = for_model(&schema).expect("usable");
            assert_eq!((&given["type"], &given["required"]), (&json!("object"), &required), "{schema}");
            assert!(!COMPOSED.iter().any(|word| given.get(*word).is_some()), "{given}");
        }
    }

    #[test]
    fn usual_schema_is_unchanged_and_two_forms_of_an_argument_stay() {
        let usual = json!({ "type": "object", "properties": { "a": { "anyOf": [{ "$ref": "#/$defs/a" }] } }, "$defs": { "a": {} } });
        assert_eq!(for_model(&usual).expect("usable"), usual);
        let two =
            json!({ "anyOf": [{ "properties": { "a": { "type": "string" } } }, { "properties": { "a": true } }] });
        assert_eq!(
            for_model(&two).expect("usable")["properties"]["a"],
            json!({ "anyOf": [{ "type": "string" }, true] })
        );
    }
}
