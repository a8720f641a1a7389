//! The manifest of a tool: its class, the rule of each argument, and what a person is told about a call.
//!
//! Manifests are data. An argument without a rule makes a manifest invalid, and a tool without a manifest is denied.

pub mod answer_path;
pub mod floors;
pub mod proposal;
pub mod results;
mod schema;
pub mod server;
pub mod template;
pub mod text;

pub use ironclaw_operator::{ArgumentRule as Rule, InputType, ToolReach as Reach};
pub use schema::schema;

use crate::class::{Class, Classes};
use crate::place::Mistake;
use crate::provenance::{Labels, Provenance};
use floors::Floors;
use results::ResultPath;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An argument of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Argument {
    pub rule: Rule,
    /// True if a third party receives its value.
    #[serde(default)]
    pub outward: bool,
    /// For an argument whose value a person gives: the type that it takes. Each type, if a file of manifests names none for a floor.
    #[serde(rename = "type", default, skip_serializing_if = "is_any")]
    pub kind: Option<InputType>,
    /// The labels that the value needs; without any, those of a text that a person typed.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub needs: Labels,
}

impl Argument {
    /// Makes an argument whose value no person has to give.
    pub const fn new(rule: Rule, outward: bool) -> Self {
        Self { rule, outward, kind: None, needs: Labels::NONE }
    }
}

/// Returns whether a type says nothing: each value fits.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_any(kind: &Option<InputType>) -> bool {
    matches!(kind, None | Some(InputType::Any))
}

/// The labels of a floor without any: a person typed the value.
const TYPED: Labels = Labels::from_provenance(Provenance::Person);

/// The manifest of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The name of the tool.
    pub name: String,
    /// The kind of its effect.
    pub class: Class,
    /// Where its effect is.
    pub reach: Reach,
    /// Further kinds of its effect: a request must ask for all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Class>,
    /// True if the host can undo its effect.
    #[serde(default)]
    pub reversible: bool,
    /// True if every call needs a person.
    #[serde(default)]
    pub always_ask: bool,
    /// The effect in words, with `{argument}` for values.
    pub effect: String,
    /// The rule of each argument.
    #[serde(default)]
    pub arguments: BTreeMap<String, Argument>,
    /// True if each call makes something new at its server, whose names are at the result paths.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub creates: bool,
    /// The places in an answer whose values later calls take by reference, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<String, ResultPath>,
    /// The places in an answer whose text a person calls theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mine: Vec<String>,
    /// The labels that the schema of a tool of a server needs.
    #[serde(skip)]
    pub floors: Floors,
}

/// The reason that a text is no list of manifests.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A field is missing, unknown or of the wrong type; a class or a rule is unknown.
    #[error("the manifest cannot be read: {0}")]
    Malformed(#[from] Mistake),
    /// Two manifests have the same name.
    #[error("the tool {0:?} has two manifests: remove one")]
    Twice(String),
    /// The text of the effect names an argument without a rule.
    #[error(
        "the effect of the tool {tool:?} names {argument:?}, which has no rule: write [tool.arguments.{argument}] with a rule"
    )]
    Unruled { tool: String, argument: String },
    /// A contained tool has an outward argument.
    #[error(
        "the tool {tool:?} is contained, so its argument {argument:?} cannot be outward: remove `outward`, or name another reach"
    )]
    ContainedOutward { tool: String, argument: String },
    /// An argument that is no floor has a type or labels.
    #[error(
        "the tool {tool:?} has a type or labels for {argument:?}, which only an argument with rule = \"floor\" can have"
    )]
    Unfloored { tool: String, argument: String },
    /// A floor needs a label that is no warrant for a value.
    #[error(
        "the tool {tool:?} needs External or LlmDerived for {argument:?}: name AgentKernel, UserSurfaceInput, PromptSlotBound, SessionResult or StructuredResult"
    )]
    NoWarrant { tool: String, argument: String },
    /// A path of results is wrong.
    #[error("the result path {path:?} of the tool {tool:?} is wrong: {why}")]
    ResultPath { tool: String, path: String, why: String },
    /// A path of text that a person calls theirs is wrong.
    #[error("the path {path:?} in `mine` of the tool {tool:?} is wrong: {why}")]
    Own { tool: String, path: String, why: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    tool: Vec<Manifest>,
}

/// Reads manifests from TOML text: an array `[[tool]]`.
///
/// # Errors
/// Names the tool and the argument that is wrong, with what to write.
pub fn parse(text: &str) -> Result<BTreeMap<String, Manifest>, Error> {
    let File { tool } = toml::from_str(text).map_err(|error| Mistake::new(text, &error))?;
    let mut manifests = BTreeMap::new();
    for manifest in tool {
        manifest.check()?;
        let name = manifest.name.clone();
        if manifests.insert(name.clone(), manifest).is_some() {
            return Err(Error::Twice(name));
        }
    }
    Ok(manifests)
}

/// What a control field takes by reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken<'a> {
    pub kind: InputType,
    /// The labels that a value needs.
    pub needs: Labels,
    /// The server of its tool.
    pub server: &'a str,
}

impl Manifest {
    /// Checks that the text of the effect names arguments with a rule, and that no contained tool has an outward argument.
    ///
    /// # Errors
    /// Names the argument.
    pub fn check(&self) -> Result<(), Error> {
        for argument in slots(&self.effect) {
            if !self.arguments.contains_key(argument) {
                return Err(Error::Unruled { tool: self.name.clone(), argument: argument.to_owned() });
            }
        }
        for (name, argument) in &self.arguments {
            let (tool, named) = (self.name.clone(), name.clone());
            let has_input = argument.kind.is_some() || !argument.needs.is_empty();
            if has_input && argument.rule != Rule::Floor {
                return Err(Error::Unfloored { tool, argument: named });
            }
            if !floors::can_be_needed(argument.needs) {
                return Err(Error::NoWarrant { tool, argument: named });
            }
        }
        results::check(self)?;
        results::check_mine(self)?;
        let outward = self.arguments.iter().find(|(_, argument)| argument.outward);
        match outward {
            Some((argument, _)) if self.reach == Reach::Contained => {
                Err(Error::ContainedOutward { tool: self.name.clone(), argument: argument.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Adapts the manifest to a server without a network. It has no outward value, whatever its operator marked, and reaches no person, so
    /// a control field without a type takes each value.
    pub fn keep_inside(&mut self) {
        for argument in self.arguments.values_mut() {
            argument.outward = false;
            argument.kind = argument.kind.filter(|kind| *kind != InputType::Any || !argument.needs.is_empty());
        }
    }

    /// Returns the type of value that an argument takes from a person; `None` for an argument without a floor on its value.
    pub fn input(&self, argument: &str) -> Option<InputType> {
        let argument = self.arguments.get(argument)?;
        argument.kind.filter(|_| argument.rule == Rule::Floor)
    }

    /// Returns the labels that the value of an argument needs; `None` for an argument without a floor on its value.
    pub fn needs(&self, argument: &str) -> Option<Labels> {
        self.input(argument)?;
        let needs = self.arguments.get(argument)?.needs;
        Some(if needs.is_empty() { TYPED } else { needs })
    }

    /// Returns whether a call can have a floor on a value.
    pub fn has_inputs(&self) -> bool {
        !self.floors.is_empty() || self.arguments.keys().any(|name| self.input(name).is_some())
    }

    /// Returns what a call takes by reference, for a server: of each argument with a type, and of each one with a hard floor.
    pub fn taken<'a>(&'a self, server: &'a str) -> Vec<Taken<'a>> {
        self.arguments.keys().flat_map(|name| self.taken_by(name, server)).collect()
    }

    /// Returns what an argument takes by reference: nothing if it has no floor, or no type by which a model knows what to pass.
    pub fn taken_by<'a>(&'a self, argument: &str, server: &'a str) -> Vec<Taken<'a>> {
        let (kind, hard) = (self.input(argument), self.floors.each_need_of(argument));
        let soft = self.needs(argument).filter(|_| hard.is_empty() && kind != Some(InputType::Any));
        let kind = kind.unwrap_or(InputType::Any);
        hard.into_iter().chain(soft).map(|needs| Taken { kind, needs, server }).collect()
    }

    /// Returns whether a call takes references: a floor is hard, or names a type.
    pub fn takes_references(&self) -> bool {
        !self.taken("").is_empty()
    }

    /// Returns the classes that its calls can have. A grant can make a request over the network one that only reads.
    pub fn classes(&self) -> Classes {
        match self.reach {
            Reach::Http => Classes::new(&[Class::Read, self.class]),
            Reach::Contained | Reach::Action | Reach::Outside => {
                self.also.iter().fold(Classes::new(&[self.class]), |all, class| all.or(Classes::new(&[*class])))
            }
        }
    }

    /// Returns whether each call only reads.
    pub fn only_reads(&self) -> bool {
        self.class == Class::Read && self.also.is_empty()
    }

    /// Returns whether a call acts only in the jail of its session and on the notes of its agent.
    pub fn is_contained(&self) -> bool {
        self.reach == Reach::Contained
    }
}

/// Returns the names in braces of a text.
fn slots(effect: &str) -> impl Iterator<Item = &str> {
    effect.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_word_or_argument_without_rule_is_refused() {
        let text = |class: &str, rule: &str, effect: &str| {
            format!(
                "[[tool]]\nname = \"t\"\nclass = \"{class}\"\nreach = \"outside\"\neffect = \"{effect}\"\n\
                 [tool.arguments.to]\nrule = \"{rule}\"\n"
            )
        };
        assert!(parse(&text("send", "floor", "sends to {to}")).is_ok());
        assert!(parse(&text("delete", "floor", "sends to {to}")).unwrap_err().to_string().contains("delete"));
        assert!(parse(&text("send", "any", "sends to {to}")).unwrap_err().to_string().contains("any"));
        assert!(matches!(
            parse(&text("send", "floor", "sends {body}")),
            Err(Error::Unruled { argument, .. }) if argument == "body"
        ));
        let twice = text("send", "floor", "sends") + &text("send", "floor", "sends");
        assert!(matches!(parse(&twice), Err(Error::Twice(name)) if name == "t"));
    }

    #[test]
    fn contained_tool_with_an_outward_argument_is_refused() {
        let text = "[[tool]]\nname = \"t\"\nclass = \"read\"\nreach = \"contained\"\neffect = \"reads\"\n\
                    [tool.arguments.to]\nrule = \"free\"\noutward = true\n";
        assert!(matches!(parse(text), Err(Error::ContainedOutward { .. })));
    }
}
