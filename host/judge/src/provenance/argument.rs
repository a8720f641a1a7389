//! The origin of the value of one argument.

use super::typed::is_typed_value;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The origin of the value of an argument that leaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentOrigin {
    /// The name of the argument.
    pub argument: String,
    /// True if the person of the turn typed the whole value in this task.
    pub typed: bool,
}

impl ArgumentOrigin {
    /// Returns the origins of the arguments that leave.
    pub fn list(
        arguments: &Map<String, Value>,
        leaves: impl Fn(&str) -> bool,
        is_typed: &dyn Fn(&str) -> bool,
    ) -> Vec<Self> {
        let leaving = arguments.iter().filter(|(name, _)| leaves(name));
        leaving.map(|(name, value)| Self { argument: name.clone(), typed: is_typed_value(value, is_typed) }).collect()
    }
}
