//! A built-in tool as a model sees it, as the host judges it, and where it runs.

use super::place::{OutsideTool, Place};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Manifest;
use ironclaw_store::tables::turns::Runs;
use serde_json::Value;

/// The keyword of an argument that the host alone writes: people see it on a page, and no model sees it.
pub(super) const HOST_WRITES: &str = "readOnly";

/// The way in which an agent gets a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// An agent has it by default.
    ByDefault,
    /// People enable it.
    Enabled,
    /// People enable it. No prompt proposes it to an agent that lacks it.
    EnabledUnnamed,
    /// The host offers it by itself to an agent that has this.
    Automatic(&'static str),
}

/// A built-in tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: &'static str,
    /// Its description, for a model.
    pub description: &'static str,
    /// The way in which an agent gets it.
    pub held: Held,
    /// The place where its calls run.
    pub place: Place,
    /// Its class and the rules of its arguments, for the judgement.
    pub manifest: Manifest,
    /// JSON Schema of its arguments: an object without additional properties at any depth, except in the payload of a change, which has a
    /// schema of its own.
    pub parameters: Value,
}

/// Keywords of a schema that a model does not need: the sandbox and the host check them, and they cost tokens in each request.
pub(super) const CHECKED_KEYWORDS: [&str; 4] = ["additionalProperties", "maxLength", "minLength", "minimum"];

impl Tool {
    /// Returns the word of its place in the record.
    pub const fn runs(&self) -> Runs {
        self.place.runs()
    }

    /// Returns the tool among those with an effect outside of the session.
    pub const fn outside(&self) -> Option<OutsideTool> {
        match self.place {
            Place::Outside(tool) => Some(tool),
            Place::Jail | Place::Record(_) | Place::Row => None,
        }
    }

    /// Returns whether its calls may overwrite or delete files of the workspace.
    pub const fn may_change_files(&self) -> bool {
        let is_in_workspace = matches!(self.place, Place::Jail | Place::Outside(_));
        is_in_workspace && matches!(self.manifest.class, Class::Write | Class::Exec)
    }

    /// Returns the names of the arguments that the host alone writes.
    pub fn host_arguments(&self) -> impl Iterator<Item = &str> {
        let properties = self.parameters["properties"].as_object().into_iter().flatten();
        properties.filter(|(_, schema)| is_of_host(schema)).map(|(name, _)| name.as_str())
    }

    /// Returns the schema of its arguments as a model gets it: names, types and descriptions of those that a model writes.
    pub fn parameters_for_model(&self) -> Value {
        without_checks(&self.parameters)
    }
}

fn is_of_host(schema: &Value) -> bool {
    schema.get(HOST_WRITES) == Some(&Value::Bool(true))
}

fn without_checks(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, value)| !CHECKED_KEYWORDS.contains(&name.as_str()) && !is_of_host(value))
            .map(|(name, value)| (name.clone(), without_checks(value)))
            .collect(),
        other => other.clone(),
    }
}
