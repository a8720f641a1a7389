//! The origin of the value of one argument.

use super::{HandleId, Handles, Inputs};
use crate::provenance::Labels;
use crate::provenance::typed::is_typed_value;
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
    /// The labels of the value: those of its handle, or those of the output.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The item that has the value: the message or the result of its handle, or the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// The handle of the value, such as `m12.email.1` or `r13.name.1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<HandleId>,
}

/// The output with a call, and the values that its person typed.
#[derive(Clone, Copy)]
pub struct OutputOf<'a> {
    pub output: ItemId,
    pub labels: Labels,
    pub inputs: &'a Inputs,
    pub handles: &'a Handles,
    pub is_typed: &'a dyn Fn(&str) -> bool,
}

impl ArgumentOrigin {
    /// Returns the origins of the arguments that leave.
    pub fn list(arguments: &Map<String, Value>, leaves: impl Fn(&str) -> bool, of: OutputOf<'_>) -> Vec<Self> {
        let leaving = arguments.iter().filter(|(name, _)| leaves(name));
        leaving.map(|(name, value)| Self::for_value(name, value, of)).collect()
    }

    fn for_value(name: &str, value: &Value, of: OutputOf<'_>) -> Self {
        let argument = name.to_owned();
        let handle = of.inputs.handle(name).and_then(|id| of.handles.find(id));
        match handle {
            Some(handle) => {
                let typed = handle.is_typed();
                Self { argument, typed, labels: handle.labels, item: Some(handle.item), handle: Some(handle.id) }
            }
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
