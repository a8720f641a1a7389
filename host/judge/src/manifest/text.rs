//! Manifests as TOML that a person edits, and that [`super::parse`] reads back.
//!
//! The text of a server is only in quoted strings and keys, where each character that a terminal may not show is an escape.

use super::Manifest;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The fields of a tool that come first, in this order.
const FIRST: [&str; 4] = ["name", "class", "reach", "effect"];

/// The fields of a tool that have a line for each entry.
const TABLES: [&str; 2] = ["arguments", "results"];

/// Returns TOML text with these manifests, under the names of their tools on the server.
pub fn to_toml(manifests: &BTreeMap<String, Manifest>) -> String {
    let mut text = String::new();
    for (tool, manifest) in manifests {
        let named = Manifest { name: tool.clone(), ..manifest.clone() };
        let fields = serde_json::to_value(named).expect("a manifest is JSON");
        put_tool(&mut text, &fields);
    }
    text
}

fn put_tool(text: &mut String, fields: &Value) {
    text.push_str(if text.is_empty() { "[[tool]]\n" } else { "\n[[tool]]\n" });
    let others = fields.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let others = others.filter(|name| !FIRST.contains(name) && !TABLES.contains(name));
    for name in FIRST.into_iter().chain(others).filter(|name| is_said(&fields[*name])) {
        let _ = writeln!(text, "{name} = {}", inline(&fields[name]));
    }
    for table in TABLES {
        for (entry, value) in fields[table].as_object().into_iter().flatten() {
            let _ = writeln!(text, "{table}.{} = {}", key(entry), inline(value));
        }
    }
}

/// Returns whether a field differs from its default.
fn is_said(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

/// Returns a value on one line.
fn inline(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(entries) => format!("[{}]", entries.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            // The rule comes first; a person reads it first.
            let (rule, others): (Vec<_>, Vec<_>) = fields.iter().partition(|(name, _)| *name == "rule");
            let said = rule.into_iter().chain(others).filter(|(_, value)| is_said(value));
            let fields: Vec<String> = said.map(|(name, value)| format!("{} = {}", key(name), inline(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
    }
}

/// Writes a basic string.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            ' '..='~' => out.push(character),
            letter if letter.is_alphanumeric() => out.push(letter),
            other => {
                let _ = write!(out, "\\U{:08X}", u32::from(other));
            }
        }
    }
    out.push('"');
    out
}

/// Writes a key: bare if it has plain characters only.
fn key(text: &str) -> String {
    let is_bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if is_bare { text.to_owned() } else { quoted(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;
    use crate::manifest::server::{Tools, tool_manifests};
    use crate::manifest::{parse, proposal};
    use serde_json::json;

    #[test]
    fn manifests_with_any_names_are_read_back() {
        let odd =
            ["to", "a.b", "a \"b\" \\c", "é", "x\u{1b}[2J\u{202e}\u{e0041}\r\n\t", "] # [[tool]]", "a = {", "\u{7f}\0"];
        let arguments: serde_json::Map<String, Value> =
            odd.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
        let entries = ["write_file", "späte.post", "list"]
            .map(|tool| json!({ "name": tool, "inputSchema": { "type": "object", "properties": arguments } }));
        let mut manifests = Tools::strictest("s", &entries).manifests;
        for entry in &entries {
            let tool = entry["name"].as_str().expect("a name");
            manifests.insert(
                tool.to_owned(),
                proposal::propose(&manifests[tool], entry, proposal::Surroundings::Public, None).manifest,
            );
        }
        let text = to_toml(&manifests);
        assert!(text.chars().all(|c| c == '\n' || c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric()), "{text:?}");
        assert_eq!(tool_manifests("s", &entries, Some(&text)).expect("valid").manifests, manifests);
    }

    #[test]
    fn each_field_that_loosens_is_kept() {
        let given = "[[tool]]\nname = \"t\"\nclass = \"write\"\nreach = \"outside\"\neffect = 'writes \"{to}\"'\n\
                     also = [\"send\"]\nreversible = true\nalways_ask = true\ncreates = true\n\
                     arguments.to = { rule = \"floor\", type = \"email\", needs = [\"StructuredResult\"], outward = true }\n\
                     results.\"/id\" = { type = \"name\", set_by = [] }\n";
        let manifests = parse(given).expect("valid");
        assert_eq!(parse(&to_toml(&manifests)).expect("valid"), manifests);
        let own = manifests["t"].clone();
        let own = BTreeMap::from([(
            "t".to_owned(),
            Manifest { class: Class::Read, also: Vec::new(), mine: vec!["/a/*".to_owned()], ..own },
        )]);
        assert_eq!(parse(&to_toml(&own)).expect("valid"), own);
        assert_eq!((manifests["t"].class, manifests["t"].results.len()), (Class::Write, 1));
        assert_eq!(to_toml(&BTreeMap::new()), "");
    }
}
