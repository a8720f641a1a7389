//! The JSON Schema of a file of manifests.
//!
//! Never checks a manifest: [`super::parse`] does, and also compares `effect` with the arguments.

use super::{InputType, Reach, Rule};
use crate::class::Class;
use ironclaw_contract::seam::seal::Label;
use serde_json::{Value, json};

/// The labels that a floor can need.
const WARRANTS: [Label; 5] = [
    Label::AgentKernel,
    Label::UserSurfaceInput,
    Label::PromptSlotBound,
    Label::SessionResult,
    Label::StructuredResult,
];

/// Returns the JSON Schema of a file of manifests.
pub fn schema() -> Value {
    let contained = json!({
        "if": { "properties": { "reach": { "const": Reach::Contained.name() } } },
        "then": { "properties": { "arguments": { "additionalProperties": { "properties": { "outward": { "const": false } } } } } },
    });
    let mut manifest = object(
        "The manifest of a tool.",
        &["name", "class", "reach", "effect"],
        json!({
            "name": { "type": "string", "minLength": 1, "description": "The name of the tool; no other manifest has it." },
            "class": word(Class::ALL.map(Class::name), "The kind of its effect."),
            "also": {
                "type": "array",
                "items": word(Class::ALL.map(Class::name), "A further kind of its effect."),
                "default": [],
                "description": "Further kinds of its effect: a request must ask for all of them.",
            },
            "reach": word(Reach::ALL.map(Reach::name), "Where its effect is."),
            "reversible": flag("True if the host can undo its effect."),
            "always_ask": flag("True if every call needs a person."),
            "effect": {
                "type": "string",
                "description": "The effect in words, with {argument} for values; each such argument has a rule.",
            },
            "arguments": {
                "type": "object",
                "additionalProperties": { "$ref": "#/$defs/argument" },
                "default": {},
                "description": "The rule of each argument, by name. A call with another argument is denied.",
            },
            "creates": flag("True if each call makes something new at its server, whose names are at the result paths."),
            "results": {
                "type": "object",
                "additionalProperties": { "$ref": "#/$defs/result" },
                "default": {},
                "description": "The places in an answer whose values later calls take by reference, by path: JSON Pointer, with * for \
                                each element of a list.",
            },
            "mine": {
                "type": "array",
                "items": { "type": "string" },
                "default": [],
                "description": "The places in an answer whose text is the own text of the person who confirms this: paths as in results.",
            },
        }),
    );
    manifest["allOf"] = json!([contained]);
    let mut file = object(
        "Manifests of tools, as TOML or JSON.",
        &[],
        json!({ "tool": { "type": "array", "items": { "$ref": "#/$defs/manifest" }, "default": [] } }),
    );
    file["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    file["$defs"] = json!({ "manifest": manifest, "argument": argument(), "result": result_path() });
    file
}

/// Returns the schema of an argument of a manifest.
fn argument() -> Value {
    object(
        "An argument of a tool.",
        &["rule"],
        json!({
            "rule": word(
                Rule::ALL.map(Rule::name),
                "floor: who or what the call acts on. content: what it transports. free: no effect beyond the session.",
            ),
            "type": word(
                InputType::ALL.map(InputType::name),
                "The type of value that a floor takes from a person; each type, if it is left out.",
            ),
            "needs": {
                "type": "array",
                "items": word(WARRANTS.map(Label::name), "A label that the value of a floor needs."),
                "description": "Labels that the value of a floor needs; UserSurfaceInput, if they are left out.",
            },
            "outward": flag("True if a third party receives its value. A contained tool has no such argument."),
        }),
    )
}

/// Returns the schema of a result path.
fn result_path() -> Value {
    let types = InputType::ALL.iter().filter(|kind| **kind != InputType::Any).map(|kind| kind.name());
    object(
        "A place in the answers of a tool of an MCP server.",
        &["type"],
        json!({
            "type": { "enum": types.collect::<Vec<_>>(), "description": "The type of its values." },
            "set_by": {
                "type": "array",
                "items": { "type": "string" },
                "description": "The arguments that can set its value, as TOOL.ARGUMENT; each argument of each tool, if they are left out.",
            },
        }),
    )
}

fn object(description: &str, required: &[&str], properties: Value) -> Value {
    json!({
        "type": "object",
        "description": description,
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}

fn word<const N: usize>(words: [&str; N], description: &str) -> Value {
    json!({ "enum": words.as_slice(), "description": description })
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "default": false, "description": description })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest;
    use std::collections::BTreeSet;

    /// Returns the first difference between a value and a schema with the keywords of this file.
    fn difference(value: &Value, schema: &Value, root: &Value) -> Option<String> {
        if let Some(name) = schema["$ref"].as_str() {
            let target = root.pointer(name.trim_start_matches('#')).expect("a definition");
            return difference(value, target, root);
        }
        let has_type = match schema["type"].as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some(other) => panic!("the type {other} is not read"),
            None => true,
        };
        let is_listed = schema["enum"].as_array().is_none_or(|words| words.contains(value));
        let is_const = schema.get("const").is_none_or(|wanted| wanted == value);
        let is_short =
            value.as_str().is_some_and(|text| (text.len() as u64) < schema["minLength"].as_u64().unwrap_or(0));
        if !has_type || !is_listed || !is_const || is_short {
            return Some(format!("{value} does not fit {schema}"));
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            if difference(value, &part["if"], root).is_none()
                && let Some(found) = difference(value, &part["then"], root)
            {
                return Some(found);
            }
        }
        let items = value.as_array().filter(|_| schema.get("items").is_some()).into_iter().flatten();
        if let Some(found) = items.into_iter().find_map(|item| difference(item, &schema["items"], root)) {
            return Some(found);
        }
        of_fields(value, schema, root)
    }

    fn of_fields(value: &Value, schema: &Value, root: &Value) -> Option<String> {
        let fields = value.as_object()?;
        let missing = schema["required"].as_array().into_iter().flatten();
        if let Some(name) = missing.filter_map(Value::as_str).find(|name| !fields.contains_key(*name)) {
            return Some(format!("{name} is missing"));
        }
        fields.iter().find_map(|(name, value)| {
            match (schema["properties"].get(name), &schema["additionalProperties"]) {
                (Some(known), _) => difference(value, known, root),
                (None, Value::Bool(false)) => Some(format!("{name} is unknown")),
                (None, other) => difference(value, other, root),
            }
        })
    }

    fn fits(text: &str) -> Result<(), String> {
        let value: Value = toml::from_str(text).expect("TOML");
        let root = schema();
        difference(&value, &root, &root).map_or(Ok(()), Err)
    }

    #[test]
    fn schema_has_exactly_the_fields_of_a_manifest() {
        let text = "[[tool]]\nname = 't'\nclass = 'exec'\nalso = ['send']\nreach = 'outside'\neffect = 'runs {command}'\n\
                    creates = true\nresults.'/id' = { type = 'name', set_by = [] }\n\
                    [tool.arguments.command]\nrule = 'floor'\noutward = true\ntype = 'name'\nneeds = ['AgentKernel']\n";
        assert_eq!(fits(text), Ok(()));
        assert_eq!(
            fits("[[tool]]\nname = 't'\nclass = 'read'\nreach = 'outside'\neffect = 'reads'\nmine = ['/a']\n"),
            Ok(())
        );
        let mut manifest = manifest::parse(text).expect("a manifest").remove("t").expect("the tool");
        // Only a tool that reads can have it, and such a tool has no other class.
        manifest.mine.push("/id".to_owned());
        let manifest = serde_json::to_value(&manifest).expect("JSON");
        let root = schema();
        let names = |value: &Value| value.as_object().expect("fields").keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(names(&manifest), names(&root["$defs"]["manifest"]["properties"]));
        assert_eq!(names(&manifest["arguments"]["command"]), names(&root["$defs"]["argument"]["properties"]));
        assert_eq!(names(&manifest["results"]["/id"]), names(&root["$defs"]["result"]["properties"]));
    }

    /// The schema and the reader of manifests agree about each mistake, and the reader names it with what to write instead.
    #[test]
    fn wrong_manifest_is_named_with_what_to_write_instead() {
        let good = "[[tool]]\nname = 't'\nclass = 'send'\nreach = 'outside'\neffect = 'sends to {to}'\n\
                    [tool.arguments.to]\nrule = 'floor'\noutward = true\n";
        assert_eq!(fits(good), Ok(()));
        assert!(manifest::parse(good).is_ok());
        for (from, to, line, field, words) in [
            ("'send'", "'delete'", 3, "class", &["delete", "read", "write", "send", "exec", "trade", "ask"][..]),
            ("'outside'", "'anywhere'", 4, "reach", &["anywhere", "contained", "action", "http", "outside"]),
            ("'floor'", "'any'", 7, "rule", &["any", "floor", "content", "free"]),
            ("outward", "outwards", 8, "outwards", &["outwards", "rule", "outward"]),
            ("effect", "efect", 5, "efect", &["efect", "effect", "name", "always_ask"]),
            ("class = 'send'\n", "", 1, "class", &["class"]),
            ("outward = true", "outward = 'yes'", 8, "outward", &["boolean"]),
        ] {
            let text = good.replace(from, to);
            assert!(fits(&text).is_err(), "{text}");
            let Err(manifest::Error::Malformed(mistake)) = manifest::parse(&text) else { panic!("{text}") };
            assert_eq!((mistake.line, mistake.field.as_deref()), (line, Some(field)), "{mistake}");
            for word in words {
                assert!(mistake.reason.contains(word), "{word}: {mistake}");
            }
        }
        let contained = good.replace("'outside'", "'contained'");
        assert!(fits(&contained).is_err());
        assert!(matches!(manifest::parse(&contained), Err(manifest::Error::ContainedOutward { .. })));
    }
}
