//! The declaration of a built-in tool: one argument has its schema and its rule in one place, so that none is without a rule.

use super::place::Place;
use super::tool::{HOST_WRITES, Held, Tool};
use ironclaw_contract::seam::limits::REASON_BYTES_MAX;
use ironclaw_judge::Class;
use ironclaw_judge::manifest::{self, Manifest, Reach, Rule};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A tool as its file declares it.
pub(super) struct Declared {
    pub(super) name: &'static str,
    /// Its description, for a model.
    pub(super) description: &'static str,
    pub(super) held: Held,
    pub(super) place: Place,
    /// The kind of its effect.
    pub(super) class: Class,
    /// Further kinds of its effect.
    pub(super) also: &'static [Class],
    /// Where its effect is.
    pub(super) reach: Reach,
    /// True if the host can undo its effect.
    pub(super) reversible: bool,
    /// The effect in words, with `{argument}` for values.
    pub(super) effect: &'static str,
    /// The arguments, those that a call needs in the order in which a model reads them.
    pub(super) arguments: Vec<Argument>,
}

impl From<Declared> for Tool {
    fn from(declared: Declared) -> Self {
        let Declared { name, description, held, place, class, also, reach, reversible, effect, arguments } = declared;
        let rule = |argument: &Argument| {
            let Argument { name, rule, outward, .. } = *argument;
            (name.to_owned(), manifest::Argument::new(rule, outward))
        };
        let manifest = Manifest {
            name: name.to_owned(),
            class,
            reach,
            also: also.to_vec(),
            reversible,
            always_ask: false,
            effect: effect.to_owned(),
            arguments: arguments.iter().map(rule).collect(),
            creates: false,
            results: BTreeMap::new(),
            mine: Vec::new(),
            floors: manifest::floors::Floors::default(),
        };
        let properties = arguments.into_iter().map(|argument| (argument.name, argument.required, argument.schema));
        Self { name, description, held, place, manifest, parameters: object(properties) }
    }
}

/// An argument: its schema for a model, and its rule for the judgement.
pub(super) struct Argument {
    name: &'static str,
    schema: Value,
    required: bool,
    rule: Rule,
    outward: bool,
}

impl Argument {
    const fn new(name: &'static str, schema: Value, rule: Rule) -> Self {
        Self { name, schema, required: false, rule, outward: false }
    }

    /// Makes an argument that names the recipient or the object of the call.
    pub(super) const fn floor(name: &'static str, schema: Value) -> Self {
        Self::new(name, schema, Rule::Floor)
    }

    /// Makes an argument that the call transports.
    pub(super) const fn content(name: &'static str, schema: Value) -> Self {
        Self::new(name, schema, Rule::Content)
    }

    /// Makes an argument without an effect beyond the session.
    pub(super) const fn free(name: &'static str, schema: Value) -> Self {
        Self::new(name, schema, Rule::Free)
    }

    /// A third party receives its value.
    pub(super) fn outward(self) -> Self {
        Self { outward: true, ..self }
    }

    /// No call lacks it.
    pub(super) fn required(self) -> Self {
        Self { required: true, ..self }
    }
}

/// Returns the schema of an object of these properties, with whether it needs each, and of no others.
pub(super) fn object<'a>(properties: impl IntoIterator<Item = (&'a str, bool, Value)>) -> Value {
    let (mut all, mut required) = (Map::new(), Vec::new());
    for (name, is_required, schema) in properties {
        if is_required {
            required.push(name);
        }
        all.insert(name.to_owned(), schema);
    }
    json!({ "type": "object", "properties": all, "required": required, "additionalProperties": false })
}

/// Returns the schema of a text that may be empty.
pub(super) fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// Returns the schema of a text with a character at least.
pub(super) fn words(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": description })
}

/// Returns the schema of a path of the workspace.
pub(super) fn path() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

/// Returns the schema of one of these words.
pub(super) fn one_of(words: &[&str], description: &str) -> Value {
    json!({ "type": "string", "enum": words, "description": description })
}

/// Returns the schema of a number from 1.
pub(super) fn count(maximum: impl Into<Value>, description: &str) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": maximum.into(), "description": description })
}

/// Returns the schema of an argument that the host alone writes.
pub(super) fn by_host(kind: &str, description: &str) -> Value {
    json!({ "type": kind, "description": description, HOST_WRITES: true })
}

/// Returns the schema of the reason of a request to people.
pub(super) fn reason() -> Value {
    json!({ "type": "string", "maxLength": REASON_BYTES_MAX, "description": "For the person who decides." })
}
