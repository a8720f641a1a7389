//! The tools of a listing: those that can be offered, with the strictest manifest, and those that cannot, with the reason.
//!
//! The fault of one tool concerns this tool alone. Never trusts a hint of the server: from its schema come the names of the arguments, and
//! nothing else. See [`super::arguments`].

use super::super::floors::Floors;
use super::super::{Argument, InputType, Manifest, Reach, Rule, results};
use super::arguments;
use super::names::{full_name, name_for_model};
use crate::class::Class;
use ironclaw_operator::{MCP_EFFECT, McpUnfit, McpUnfitReason};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of the name of a tool on its server. A grant takes no longer one.
const NAME_BYTES_MAX: usize = 256;

/// Bytes of the description of a tool. A person reads the whole of it.
const DESCRIPTION_BYTES_MAX: usize = 8 * 1024;

/// The field of an entry that the host could not read, with the reason. Such an entry has a name at most.
pub const UNREAD: &str = "ironclaw/unread";

/// The tools of a listing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tools {
    /// The manifests of the tools that can be offered, by their names on the server.
    pub manifests: BTreeMap<String, Manifest>,
    /// The others, in the order of the listing; a name that is listed twice is once in it.
    pub unfit: Vec<Unfit>,
}

/// A tool that cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// Its name on the server; empty if it has none.
    pub name: String,
    /// The reason.
    pub why: McpUnfit,
}

impl Tools {
    /// Reads the entries of a listing, each with the strictest manifest: class `send`, and every argument names the object of the call.
    pub fn strictest(server: &str, entries: &[Value]) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for name in entries.iter().filter_map(|entry| entry["name"].as_str()) {
            *counts.entry(name).or_default() += 1;
        }
        let mut tools = Self::default();
        for entry in entries {
            let name = entry["name"].as_str().unwrap_or_default();
            let read = match counts.get(name) {
                Some(2..) if tools.unfit.iter().any(|unfit| unfit.name == name) => continue,
                Some(2..) => Err(unfit(McpUnfitReason::Twice, "the server lists its name twice")),
                _ => strictest(server, entry),
            };
            match read {
                Ok(manifest) => drop(tools.manifests.insert(name.to_owned(), manifest)),
                Err(why) => tools.unfit.push(Unfit { name: name.to_owned(), why }),
            }
        }
        tools.refuse_equal_names(server);
        tools
    }

    /// Returns the tools for a server with or without a network: without one, no value leaves it, and it reaches no person.
    #[must_use]
    pub fn for_network(mut self, has_network: bool) -> Self {
        if !has_network {
            self.manifests.values_mut().for_each(Manifest::keep_inside);
        }
        self
    }

    /// Returns the arguments of all tools, as `TOOL.ARGUMENT`.
    pub fn arguments(&self) -> impl Iterator<Item = String> {
        self.manifests.iter().flat_map(|(tool, manifest)| {
            manifest.arguments.keys().map(move |argument| results::argument_name(tool, argument))
        })
    }

    /// Returns the arguments by which only tools are called that read, as `TOOL.ARGUMENT`.
    pub fn reading_arguments(&self) -> BTreeSet<String> {
        let names = |is_reading: bool| {
            let tools = self.manifests.iter().filter(move |entry| entry.1.only_reads() == is_reading);
            let arguments = |tool: &str, manifest: &Manifest| -> Vec<String> {
                manifest.arguments.keys().map(|argument| results::argument_name(tool, argument)).collect()
            };
            tools.flat_map(move |entry| arguments(entry.0, entry.1)).collect::<BTreeSet<String>>()
        };
        &names(true) - &names(false)
    }

    /// Returns the names of the tools with hard floors, and of those whose schema cannot be enforced.
    pub fn floored_names(&self) -> impl Iterator<Item = &str> {
        let hard = self.manifests.iter().filter(|(_, manifest)| !manifest.floors.is_empty());
        let unfit = self.unfit.iter().filter(|unfit| unfit.why.reason == McpUnfitReason::Schema);
        hard.map(|(name, _)| name.as_str()).chain(unfit.map(|unfit| unfit.name.as_str()))
    }

    /// Returns the reason why the tool of this name cannot be offered.
    pub fn unfit(&self, name: &str) -> Option<&McpUnfit> {
        self.unfit.iter().find(|unfit| unfit.name == name).map(|unfit| &unfit.why)
    }

    /// Refuses tools with the same name for a model, but for the one whose full name it is.
    fn refuse_equal_names(&mut self, server: &str) {
        let mut by_model: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (tool, manifest) in &self.manifests {
            by_model.entry(&manifest.name).or_default().push(tool);
        }
        let mut refused = Vec::new();
        for (name, tools) in by_model.into_iter().filter(|(_, tools)| tools.len() > 1) {
            for tool in tools.iter().filter(|tool| full_name(server, tool) != name) {
                let others: Vec<String> =
                    tools.iter().filter(|other| *other != tool).map(|other| format!("{other:?}")).collect();
                let words = format!("a model would know it by the same name as {}: {name}", others.join(", "));
                refused.push(Unfit { name: (*tool).to_owned(), why: unfit(McpUnfitReason::NameTaken, words) });
            }
        }
        for one in &refused {
            self.manifests.remove(&one.name);
        }
        self.unfit.extend(refused);
    }
}

/// Checks the name of a tool on its server.
///
/// # Errors
/// The reason why a tool cannot have it.
pub fn check_name(tool: &str) -> Result<(), String> {
    match tool.len() {
        0 => Err("its name is empty".to_owned()),
        bytes if bytes > NAME_BYTES_MAX => Err(format!("its name has {bytes} bytes; at most {NAME_BYTES_MAX}")),
        _ if tool.contains(char::is_control) => Err("its name has control characters".to_owned()),
        _ => Ok(()),
    }
}

fn unfit(reason: McpUnfitReason, words: impl Into<String>) -> McpUnfit {
    McpUnfit { reason, words: words.into() }
}

/// Returns the strictest manifest of an entry of a listing.
fn strictest(server: &str, entry: &Value) -> Result<Manifest, McpUnfit> {
    if !entry.is_object() {
        return Err(unfit(McpUnfitReason::Entry, "the entry of the listing is not an object"));
    }
    let wrong_name = |words: String| unfit(McpUnfitReason::Name, words);
    let tool = match &entry["name"] {
        Value::String(name) => name,
        Value::Null => return Err(wrong_name("the entry of the listing has no name".to_owned())),
        _ => return Err(wrong_name("its name is not a text".to_owned())),
    };
    if let Err(words) = check_name(tool) {
        return Err(wrong_name(words));
    }
    if let Some(why) = entry.get(UNREAD) {
        let words = why.as_str().unwrap_or("the host cannot read it");
        return Err(unfit(McpUnfitReason::Unreadable, words));
    }
    let bytes = entry["description"].as_str().map_or(0, str::len);
    if bytes > DESCRIPTION_BYTES_MAX {
        let words = format!("its description has {bytes} bytes; at most {DESCRIPTION_BYTES_MAX}");
        return Err(unfit(McpUnfitReason::Description, words));
    }
    let floor = Argument { kind: Some(InputType::Any), ..Argument::new(Rule::Floor, true) };
    let of_schema = |words| unfit(McpUnfitReason::Schema, words);
    let names = arguments::names(&entry["inputSchema"]).map_err(of_schema)?;
    let floors = Floors::compile(&entry["inputSchema"]).map_err(of_schema)?;
    Ok(Manifest {
        name: name_for_model(server, tool),
        class: Class::Send,
        reach: Reach::Outside,
        also: Vec::new(),
        reversible: false,
        always_ask: false,
        effect: MCP_EFFECT.to_owned(),
        arguments: names.into_iter().map(|argument| (argument, floor)).collect(),
        creates: false,
        results: BTreeMap::new(),
        mine: Vec::new(),
        floors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fault_of_one_tool_is_named_and_leaves_the_others() {
        use McpUnfitReason::{Description, Entry, Name, NameTaken, Schema, Twice, Unreadable};
        let good = json!({ "name": "good", "inputSchema": { "type": "object" } });
        let twin = json!({ "name": "twin", "inputSchema": {} });
        let plain = |name: &str| json!({ "name": name });
        for (entries, expected) in [
            (vec![json!(3)], &[("", Entry)][..]),
            (vec![json!(null), json!("text"), json!(["name", "x"])], &[("", Entry), ("", Entry), ("", Entry)]),
            (vec![json!({})], &[("", Name)]),
            (vec![json!({ "name": 3 })], &[("", Name)]),
            (vec![plain("")], &[("", Name)]),
            (vec![plain("send\u{1b}[2K"), plain("a\nb")], &[("send\u{1b}[2K", Name), ("a\nb", Name)]),
            (vec![twin.clone(), twin.clone(), twin], &[("twin", Twice)]),
            (vec![plain("a.b"), plain("a_b")], &[("a.b", NameTaken)]),
            (vec![plain("a.b_c"), plain("a_b.c")], &[("a.b_c", NameTaken), ("a_b.c", NameTaken)]),
            (vec![json!({ "name": "x", "inputSchema": { "type": "array" } })], &[("x", Schema)]),
            (vec![json!({ "name": "x", "inputSchema": "none" })], &[("x", Schema)]),
            (vec![json!({ "name": "x", "description": "d".repeat(DESCRIPTION_BYTES_MAX + 1) })], &[("x", Description)]),
            (vec![json!({ "name": "x", UNREAD: "nested too deeply" })], &[("x", Unreadable)]),
        ] {
            let mut all = entries.clone();
            all.insert(entries.len() / 2, good.clone());
            let tools = Tools::strictest("mail", &all);
            assert!(tools.manifests.contains_key("good"), "{entries:?}");
            let unfit: Vec<_> = tools.unfit.iter().map(|unfit| (unfit.name.as_str(), unfit.why.reason)).collect();
            assert_eq!(unfit, expected, "{entries:?}");
        }
        let long = "n".repeat(NAME_BYTES_MAX + 1);
        assert_eq!(Tools::strictest("mail", &[plain(&long)]).unfit[0].why.reason, Name);
    }

    #[test]
    fn odd_tool_that_can_be_used_is_offered() {
        for entry in [
            json!({ "name": "absent" }),
            json!({ "name": "null", "inputSchema": null }),
            json!({ "name": "a b", "inputSchema": {} }),
            json!({ "name": "späte.post", "description": 3, "annotations": "read only", "title": {}, "outputSchema": 3 }),
            json!({ "name": "n".repeat(NAME_BYTES_MAX), "description": "d".repeat(DESCRIPTION_BYTES_MAX) }),
        ] {
            let tools = Tools::strictest("mail", std::slice::from_ref(&entry));
            assert_eq!((tools.manifests.len(), tools.unfit.as_slice()), (1, &[][..]), "{entry}");
        }
    }
}
