//! The manifests of the tools of an MCP server: the strictest one for each listed tool, and the ones that an operator loosens.
//!
//! Never trusts a hint of the server: from its schema come the names of the arguments, and nothing else. See [`super::parse`].

use super::{Argument, Manifest, Reach, Rule};
use crate::class::Class;
use ironclaw_contract::operator::MCP_EFFECT;
use serde_json::Value;
use std::collections::BTreeMap;

/// Longest name of a tool for a model, in bytes. Providers take no longer one.
pub const NAME_BYTES_MAX: usize = 64;

/// The text between the server and the tool in the name for a model.
const BETWEEN: &str = "__";

/// Arguments of one tool.
const ARGUMENTS_MAX: usize = 64;

/// Bytes of the schema of one tool.
const SCHEMA_BYTES_MAX: usize = 16 * 1024;

/// The reason that the tools of a server cannot have manifests.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The manifests of the operator are wrong by themselves.
    #[error(transparent)]
    Manifest(#[from] super::Error),
    /// A manifest names no listed tool.
    #[error(
        "there is a manifest for the tool {tool:?}, which the server does not list: remove it, or name one of {listed}"
    )]
    Unlisted {
        /// The tool of the manifest.
        tool: String,
        /// The names of the listed tools.
        listed: String,
    },
    /// A manifest names an argument that the tool does not have.
    #[error("the manifest of {tool:?} has a rule for {argument:?}, which is no argument of the tool: remove it")]
    NoArgument { tool: String, argument: String },
    /// An argument has no rule.
    #[error("the manifest of {tool:?} has no rule for {argument:?}: add [tool.arguments.{argument}] with a rule")]
    NoRule { tool: String, argument: String },
    /// A manifest says that the tool runs elsewhere.
    #[error("the manifest of {0:?} must have reach = \"outside\": an MCP server is outside of the session")]
    Elsewhere(String),
    /// The name cannot be that of a tool for a model.
    #[error(
        "the tool {0:?} cannot be offered: with the name of its server, its name has over 64 characters or other characters than a-z A-Z 0-9 _ - ."
    )]
    Name(String),
    /// Two tools have the same name for a model.
    #[error("the tools {0:?} and {1:?} of the server have the same name for a model: list only one of them in `tools`")]
    SameName(String, String),
    /// The schema of the arguments is not an object with properties.
    #[error("the schema of the tool {tool:?} cannot be used: {why}")]
    Schema {
        tool: String,
        /// The part that is wrong.
        why: String,
    },
}

/// Returns the name of a server's tool for a model: the server, two underscores, the tool.
pub fn name_for_model(server: &str, tool: &str) -> Option<String> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let name = format!("{server}{BETWEEN}{}", tool.replace('.', "_"));
    let fits = !tool.is_empty() && tool.bytes().all(is_plain) && name.len() <= NAME_BYTES_MAX;
    fits.then_some(name)
}

/// Returns whether a name can be that of a server's tool for a model.
pub fn is_name_for_model(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let parts = name.split_once(BETWEEN).is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty());
    parts && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_plain)
}

/// Returns whether a name for a model is that of a tool of this server.
pub fn is_of(server: &str, name: &str) -> bool {
    name.strip_prefix(server).is_some_and(|rest| rest.starts_with(BETWEEN))
}

/// Returns the strictest manifest of a listed tool: class `send`, and every argument names the object of the call.
///
/// # Errors
/// A name or a schema that cannot be used.
pub fn strictest(server: &str, tool: &str, schema: &Value) -> Result<Manifest, Error> {
    let name = name_for_model(server, tool).ok_or_else(|| Error::Name(tool.to_owned()))?;
    let floor = Argument { rule: Rule::Floor, outward: false };
    let arguments = arguments(tool, schema)?.into_iter().map(|argument| (argument, floor)).collect();
    Ok(Manifest {
        name,
        class: Class::Send,
        reach: Reach::Outside,
        also: Vec::new(),
        reversible: false,
        always_ask: false,
        effect: MCP_EFFECT.to_owned(),
        arguments,
    })
}

/// Returns the manifest of each listed tool, by its name on the server. `loosened` is TOML text with manifests under these names; a tool
/// without one there has the strictest.
///
/// # Errors
/// The first manifest or tool that is wrong, with its remedy.
pub fn tool_manifests(
    server: &str,
    listed: &BTreeMap<String, Value>,
    loosened: Option<&str>,
) -> Result<BTreeMap<String, Manifest>, Error> {
    let mut all = BTreeMap::new();
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    for (tool, schema) in listed {
        let manifest = strictest(server, tool, schema)?;
        if let Some(other) = names.insert(manifest.name.clone(), tool) {
            return Err(Error::SameName(other.to_owned(), tool.clone()));
        }
        all.insert(tool.clone(), manifest);
    }
    for (tool, given) in loosened.map(super::parse).transpose()?.unwrap_or_default() {
        let Some(strict) = all.get_mut(&tool) else {
            let listed: Vec<&str> = listed.keys().map(String::as_str).collect();
            return Err(Error::Unlisted { tool, listed: listed.join(", ") });
        };
        *strict = loosen(strict, tool, given)?;
    }
    Ok(all)
}

fn loosen(strict: &Manifest, tool: String, given: Manifest) -> Result<Manifest, Error> {
    if given.reach != Reach::Outside {
        return Err(Error::Elsewhere(tool));
    }
    if let Some(argument) = given.arguments.keys().find(|argument| !strict.arguments.contains_key(*argument)) {
        return Err(Error::NoArgument { tool, argument: argument.clone() });
    }
    if let Some(argument) = strict.arguments.keys().find(|argument| !given.arguments.contains_key(*argument)) {
        return Err(Error::NoRule { tool, argument: argument.clone() });
    }
    Ok(Manifest { name: strict.name.clone(), ..given })
}

/// Returns the parts of a manifest that are less strict than the strictest one, in words.
pub fn loosenings(manifest: &Manifest) -> Vec<String> {
    let mut all = Vec::new();
    if !matches!(manifest.class, Class::Send | Class::Trade) {
        all.push(format!("class {}", manifest.class.name()));
    }
    let freed = manifest.arguments.iter().filter(|(_, argument)| argument.rule != Rule::Floor);
    all.extend(freed.map(|(name, argument)| format!("{name} {}", argument.rule.name())));
    if manifest.reversible {
        all.push("reversible".to_owned());
    }
    all
}

/// Returns the names of the arguments in a schema.
fn arguments(tool: &str, schema: &Value) -> Result<Vec<String>, Error> {
    let wrong = |why: &str| Error::Schema { tool: tool.to_owned(), why: why.to_owned() };
    if schema.to_string().len() > SCHEMA_BYTES_MAX {
        return Err(wrong("it has over 16 KiB, and a model reads it at each request"));
    }
    let schema = schema.as_object().ok_or_else(|| wrong("it is not an object"))?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(wrong("its type is not \"object\""));
    }
    if ["$ref", "allOf", "anyOf", "oneOf", "patternProperties", "if"].iter().any(|word| schema.contains_key(*word)) {
        return Err(wrong("its arguments are not all named in `properties`"));
    }
    let Some(properties) = schema.get("properties") else { return Ok(Vec::new()) };
    let properties = properties.as_object().ok_or_else(|| wrong("`properties` is not an object"))?;
    if properties.len() > ARGUMENTS_MAX {
        return Err(wrong("it has over 64 arguments"));
    }
    if properties.values().any(|property| !property.is_object() && !property.is_boolean()) {
        return Err(wrong("the schema of an argument is neither an object nor a boolean"));
    }
    Ok(properties.keys().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listed() -> BTreeMap<String, Value> {
        let send = json!({"type": "object", "properties": {"to": {"type": "string"}, "text": {"type": "string"}}});
        BTreeMap::from([("send".to_owned(), send), ("list.all".to_owned(), json!({"type": "object"}))])
    }

    fn manifest(name: &str, reach: &str, rules: &str) -> String {
        format!("[[tool]]\nname = \"{name}\"\nclass = \"read\"\nreach = \"{reach}\"\neffect = \"reads\"\n{rules}")
    }

    const RULES: &str = "arguments.to = { rule = \"floor\" }\narguments.text = { rule = \"free\" }\n";

    #[test]
    fn wrong_manifest_is_refused_by_name() {
        let refused = |text: &str| tool_manifests("mail", &listed(), Some(text)).expect_err("refused");
        assert!(matches!(refused(&manifest("post", "outside", RULES)), Error::Unlisted { tool, .. } if tool == "post"));
        let more = format!("{RULES}arguments.cc = {{ rule = \"free\" }}\n");
        assert!(
            matches!(refused(&manifest("send", "outside", &more)), Error::NoArgument { argument, .. } if argument == "cc")
        );
        let less = "arguments.to = { rule = \"floor\" }\n";
        assert!(
            matches!(refused(&manifest("send", "outside", less)), Error::NoRule { argument, .. } if argument == "text")
        );
        assert!(matches!(refused(&manifest("send", "contained", RULES)), Error::Elsewhere(_)));
        assert!(matches!(refused("[[tool]]\nname = \"send\"\n"), Error::Manifest(_)));
    }

    #[test]
    fn unusable_schema_or_name_is_refused_by_name() {
        for (schema, word) in [
            (json!("object"), "not an object"),
            (json!({"type": "array"}), "type"),
            (json!({"type": "object", "properties": ["to"]}), "properties"),
            (json!({"type": "object", "properties": {"to": 3}}), "boolean"),
            (json!({"type": "object", "anyOf": [{"properties": {"to": {}}}]}), "properties"),
        ] {
            let error = strictest("mail", "send", &schema).expect_err("refused");
            assert!(matches!(error, Error::Schema { .. }) && error.to_string().contains(word), "{schema}: {error}");
        }
        for name in ["", "a b", "send\u{1b}[2K", &"x".repeat(NAME_BYTES_MAX)] {
            assert!(matches!(strictest("mail", name, &json!({"type": "object"})), Err(Error::Name(_))), "{name:?}");
        }
        let two = BTreeMap::from([
            ("a.b".to_owned(), json!({"type": "object"})),
            ("a_b".to_owned(), json!({"type": "object"})),
        ]);
        assert!(matches!(tool_manifests("mail", &two, None), Err(Error::SameName(..))));
    }

    #[test]
    fn tool_without_a_manifest_has_the_strictest() {
        let all = tool_manifests("mail", &listed(), None).expect("valid");
        let send = &all["send"];
        assert_eq!((send.name.as_str(), send.class, send.reach), ("mail__send", Class::Send, Reach::Outside));
        assert!(send.arguments.values().all(|argument| argument.rule == Rule::Floor) && send.arguments.len() == 2);
        assert_eq!(loosenings(send), Vec::<String>::new());
        assert_eq!(all["list.all"].name, "mail__list_all");
        let loose = tool_manifests("mail", &listed(), Some(&manifest("send", "outside", RULES))).expect("valid");
        assert_eq!(loosenings(&loose["send"]), ["class read", "text free"]);
        assert_eq!(loose["send"].name, "mail__send");
        assert_eq!(loose["list.all"], all["list.all"]);
    }
}
