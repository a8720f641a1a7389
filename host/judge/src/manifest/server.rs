//! The manifests of the tools of an MCP server: the strictest one for each listed tool, and the ones that an operator loosens.
//!
//! Never lets a manifest name an argument that the tool does not have. See [`super::parse`], and [`listed`] for the tools of a listing.

mod arguments;
mod listed;
mod loosening;
mod names;

pub use arguments::for_model as schema_for_model;
pub use listed::{Tools, UNREAD, Unfit, check_name};
pub use loosening::{Loosening, loosenings};
pub use names::{full_name, is_name_for_model, is_of, meant, name_for_model};

use super::{InputType, Manifest, Reach, Rule};
use serde_json::Value;
use std::collections::BTreeSet;

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
    /// A result path names an argument that no tool has.
    #[error(
        "the manifest of {tool:?} says that {argument:?} sets {path:?}: name an argument as TOOL.ARGUMENT, such as {example:?}"
    )]
    NoSetter { tool: String, path: String, argument: String, example: String },
    /// A manifest says that the tool runs elsewhere.
    #[error("the manifest of {0:?} must have reach = \"outside\": an MCP server is outside of the session")]
    Elsewhere(String),
    /// A manifest names a tool that cannot be offered.
    #[error("there is a manifest for the tool {tool:?}, which no agent can get, because {why}: remove it")]
    Unfit {
        tool: String,
        /// The reason.
        why: String,
    },
}

/// Returns the tools of a listing with their manifests. `loosened` is TOML text with manifests under the names of tools; a tool without one
/// there has the strictest.
///
/// # Errors
/// The first manifest that is wrong, with its remedy.
pub fn tool_manifests(server: &str, entries: &[Value], loosened: Option<&str>) -> Result<Tools, Error> {
    let mut tools = Tools::strictest(server, entries);
    for (tool, given) in loosened.map(super::parse).transpose()?.unwrap_or_default() {
        let manifest = loosen(&tools, &tool, given)?;
        tools.manifests.insert(tool, manifest);
    }
    check_setters(&tools)?;
    Ok(tools)
}

/// Checks that the arguments which set a result path exist.
fn check_setters(tools: &Tools) -> Result<(), Error> {
    let known: BTreeSet<String> = tools.arguments().collect();
    for (tool, manifest) in &tools.manifests {
        for (path, result) in &manifest.results {
            let mut named = result.set_by.iter().flatten();
            if let Some(argument) = named.find(|argument| !known.contains(*argument)) {
                let (tool, path, argument) = (tool.clone(), path.clone(), argument.clone());
                let example = known.first().cloned().unwrap_or_default();
                return Err(Error::NoSetter { tool, path, argument, example });
            }
        }
    }
    Ok(())
}

/// Returns the tools of a listing with those manifests that fit it. A tool whose manifest does not fit has the strictest.
pub fn fitting_manifests(server: &str, entries: &[Value], loosened: Option<&str>) -> Tools {
    let mut tools = Tools::strictest(server, entries);
    let given = loosened.and_then(|text| super::parse(text).ok()).unwrap_or_default();
    for (tool, given) in given {
        if let Ok(manifest) = loosen(&tools, &tool, given) {
            tools.manifests.insert(tool, manifest);
        }
    }
    tools
}

/// Returns a given manifest under the name of its tool for a model.
fn loosen(tools: &Tools, tool: &str, given: Manifest) -> Result<Manifest, Error> {
    let named = || tool.to_owned();
    let Some(strict) = tools.manifests.get(tool) else {
        return Err(match tools.unfit(tool) {
            Some(why) => Error::Unfit { tool: named(), why: why.words.clone() },
            None => {
                let listed: Vec<&str> = tools.manifests.keys().map(String::as_str).collect();
                Error::Unlisted { tool: named(), listed: listed.join(", ") }
            }
        });
    };
    if given.reach != Reach::Outside {
        return Err(Error::Elsewhere(named()));
    }
    if let Some(argument) = given.arguments.keys().find(|argument| !strict.arguments.contains_key(*argument)) {
        return Err(Error::NoArgument { tool: named(), argument: argument.clone() });
    }
    if let Some(argument) = strict.arguments.keys().find(|argument| !given.arguments.contains_key(*argument)) {
        return Err(Error::NoRule { tool: named(), argument: argument.clone() });
    }
    let mut given = Manifest { name: strict.name.clone(), floors: strict.floors.clone(), ..given };
    for argument in given.arguments.values_mut().filter(|argument| argument.rule == Rule::Floor) {
        argument.kind = argument.kind.or(Some(InputType::Any));
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;
    use serde_json::json;

    fn listed() -> Vec<Value> {
        let send = json!({"type": "object", "properties": {"to": {"type": "string"}, "text": {"type": "string"}}});
        vec![
            json!({"name": "send", "inputSchema": send}),
            json!({"name": "list.all", "inputSchema": {"type": "object"}}),
            json!({"name": "odd", "inputSchema": {"type": "array"}}),
        ]
    }

    fn manifest(name: &str, reach: &str, rules: &str) -> String {
        format!("[[tool]]\nname = \"{name}\"\nclass = \"read\"\nreach = \"{reach}\"\neffect = \"reads\"\n{rules}")
    }

    const RULES: &str = "arguments.to = { rule = \"floor\" }\narguments.text = { rule = \"free\" }\n";

    #[test]
    fn wrong_manifest_is_refused_by_name() {
        let refused = |text: &str| tool_manifests("mail", &listed(), Some(text)).expect_err("refused");
        assert!(matches!(refused(&manifest("post", "outside", RULES)), Error::Unlisted { tool, .. } if tool == "post"));
        assert!(matches!(refused(&manifest("odd", "outside", "")), Error::Unfit { tool, .. } if tool == "odd"));
        let more = format!("{RULES}arguments.cc = {{ rule = \"free\" }}\n");
        assert!(
            matches!(refused(&manifest("send", "outside", &more)), Error::NoArgument { argument, .. } if argument == "cc")
        );
        let set = format!("{RULES}results.\"/id\" = {{ type = \"name\", set_by = [\"send.body\"] }}\n");
        assert!(
            matches!(refused(&manifest("send", "outside", &set)), Error::NoSetter { argument, .. } if argument == "send.body")
        );
        let set = set.replace("send.body", "send.text");
        assert!(tool_manifests("mail", &listed(), Some(&manifest("send", "outside", &set))).is_ok());
        let less = "arguments.to = { rule = \"floor\" }\n";
        assert!(
            matches!(refused(&manifest("send", "outside", less)), Error::NoRule { argument, .. } if argument == "text")
        );
        assert!(matches!(refused(&manifest("send", "contained", RULES)), Error::Elsewhere(_)));
        assert!(matches!(refused("[[tool]]\nname = \"send\"\n"), Error::Manifest(_)));
    }

    #[test]
    fn tool_without_a_manifest_has_the_strictest() {
        let all = tool_manifests("mail", &listed(), None).expect("valid").manifests;
        let send = &all["send"];
        assert_eq!((send.name.as_str(), send.class, send.reach), ("mail__send", Class::Send, Reach::Outside));
        assert!(send.arguments.values().all(|argument| argument.rule == Rule::Floor) && send.arguments.len() == 2);
        assert_eq!(loosenings(send), []);
        assert_eq!(all["list.all"].name, "mail__list_all");
        let loose = tool_manifests("mail", &listed(), Some(&manifest("send", "outside", RULES))).expect("valid");
        let parts: Vec<String> = loosenings(&loose.manifests["send"]).iter().map(Loosening::to_string).collect();
        assert_eq!(parts, ["class read", "text free"]);
        assert_eq!(loose.manifests["send"].name, "mail__send");
        assert_eq!(loose.manifests["list.all"], all["list.all"]);
    }

    #[test]
    fn manifest_that_no_longer_fits_leaves_the_others() {
        let both = manifest("send", "outside", RULES) + &manifest("list.all", "outside", "");
        let fitting = |entries: &[Value]| fitting_manifests("mail", entries, Some(&both)).manifests;
        assert!(fitting(&listed()).values().all(|manifest| manifest.class == Class::Read));
        let mut changed = listed();
        changed[0]["inputSchema"] = json!({"type": "object", "properties": {"cc": {}}});
        let fitting = fitting(&changed);
        assert_eq!((fitting["send"].class, fitting["list.all"].class), (Class::Send, Class::Read));
    }
}
