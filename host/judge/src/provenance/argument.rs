//! The origin of the value of one argument.

use super::Labels;
use super::typed::is_typed_value;
use crate::inputs::{Handles, Inputs};
use ironclaw_contract::ids::ItemId;
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
    /// The labels of the value: those of its handle, or of the output.
    #[serde(default, skip_serializing_if = "Labels::is_empty_ref")]
    pub labels: Labels,
    /// The item that has the value: the message of its handle, or the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// The handle of the value, such as `m12.email.1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
}

/// The output with a call, and the values that its person typed.
#[derive(Clone, Copy)]
pub struct OfOutput<'a> {
    pub output: ItemId,
    pub labels: Labels,
    pub inputs: &'a Inputs,
    pub handles: &'a Handles,
    pub is_typed: &'a dyn Fn(&str) -> bool,
}

impl ArgumentOrigin {
    /// Returns the origins of the arguments that leave.
    pub fn list(arguments: &Map<String, Value>, leaves: impl Fn(&str) -> bool, of: OfOutput<'_>) -> Vec<Self> {
        let leaving = arguments.iter().filter(|(name, _)| leaves(name));
        leaving.map(|(name, value)| Self::of_value(name, value, of)).collect()
    }

    fn of_value(name: &str, value: &Value, of: OfOutput<'_>) -> Self {
        let argument = name.to_owned();
        let handle = of.inputs.handle(name).and_then(|id| of.handles.find(id));
        match handle {
            Some(handle) => Self {
                argument,
                typed: true,
                labels: handle.labels,
                item: Some(handle.item),
                handle: Some(handle.id.to_string()),
            },
            None => Self {
                argument,
                typed: is_typed_value(value, of.is_typed),
                labels: of.labels,
                item: Some(of.output),
                handle: None,
            },
        }
    }
}
