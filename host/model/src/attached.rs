//! The opaque state that a provider attached to an output, such as signatures: it is sent back unchanged, at its place.
//!
//! Never reads the state, and never gives it to another endpoint than the one that attached it. See [`collected`] for its bounds.

pub mod collected;
pub mod sent_back;

use super::spec::{Kind, Spec};
use ironclaw_contract::canonical::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Fields with the thoughts of a model as plain text. Servers want them back beside calls, and some refuse them beside an answer.
pub const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

/// The state of one output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attached {
    /// The digest of the endpoint that attached it: its URL, its model and its kind.
    pub endpoint: Digest,
    /// The state: JSON text.
    pub state: String,
}

/// The state, by place.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct State {
    /// Fields of the message.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub message: Map<String, Value>,
    /// Fields of its calls, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallState>,
    /// Blocks of the Messages API, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
}

/// The state of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallState {
    /// The id of the call at its provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Fields of the call.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub beside: Map<String, Value>,
    /// Fields of its function.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub inside: Map<String, Value>,
}

/// A block that is neither words nor a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Bytes of the words in front of it.
    pub words: usize,
    /// Calls in front of it.
    pub calls: usize,
    pub block: Value,
    /// Bytes of the words that the block marks, which are words of the output.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub length: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(length: &usize) -> bool {
    *length == 0
}

impl State {
    fn is_empty(&self) -> bool {
        let is_empty = |call: &CallState| *call == CallState::default();
        self.message.is_empty() && self.blocks.is_empty() && self.calls.iter().all(is_empty)
    }
}

impl Attached {
    /// Returns the state for a request to this endpoint; none if another one attached it.
    pub fn state_for(&self, endpoint: Option<Digest>) -> Option<State> {
        if endpoint != Some(self.endpoint) {
            return None;
        }
        serde_json::from_str(&self.state).ok()
    }
}

/// Adds fields to an object; a field that it has stays.
pub fn add_fields(object: &mut Value, fields: Map<String, Value>) {
    if let Some(object) = object.as_object_mut() {
        for (name, value) in fields {
            object.entry(name).or_insert(value);
        }
    }
}

/// Returns the digest of an endpoint, to which its state is bound.
pub fn endpoint_digest(spec: &Spec) -> Digest {
    let url = spec.base_url.as_ref().map_or("", |url| url.as_str());
    let kind = match spec.kind {
        Kind::Openai => "openai",
        Kind::Anthropic => "anthropic",
        Kind::Scripted => "scripted",
    };
    Digest::of(serde_json::json!([kind, url, spec.model]).to_string().as_bytes())
}

#[cfg(test)]
mod tests;
