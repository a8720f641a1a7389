//! The opaque state that a provider attached to an output, such as signatures: it is sent back unchanged, at its place.
//!
//! Never reads the state, and never gives it to another endpoint than the one that attached it. See [`collected`] for its bounds.

pub mod collected;

use super::render::AttachedAt;
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

/// Returns the fields of a message and of its calls in a request to this endpoint.
pub fn fields(
    attached: &[AttachedAt<'_>],
    endpoint: Option<Digest>,
    calls: usize,
) -> (Map<String, Value>, Vec<CallState>) {
    let (mut message, mut of_calls) = (Map::new(), vec![CallState::default(); calls]);
    for AttachedAt { attached, calls, .. } in attached {
        let Some(state) = attached.state_for(endpoint) else { continue };
        message.extend(state.message);
        for (place, call) in of_calls.iter_mut().skip(*calls).zip(state.calls) {
            *place = call;
        }
    }
    (message, of_calls)
}

/// Returns the blocks of a message in a request to this endpoint, with their places in the message.
pub fn blocks(attached: &[AttachedAt<'_>], endpoint: Option<Digest>) -> Vec<Block> {
    let moved = |AttachedAt { attached, words, calls }: &AttachedAt<'_>| {
        let blocks = attached.state_for(endpoint).map(|state| state.blocks).unwrap_or_default();
        let (words, calls) = (*words, *calls);
        blocks.into_iter().map(move |block| Block { words: block.words + words, calls: block.calls + calls, ..block })
    };
    attached.iter().flat_map(moved).collect()
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
