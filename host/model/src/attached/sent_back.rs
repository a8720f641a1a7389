//! The states of earlier outputs in one request: the fields, blocks and ids that their endpoint gets back.
//!
//! Never sends an id that another call of the request has, and never plain thoughts of an earlier turn unless the endpoint needs them.
//! See [`super::Attached`].

use super::super::quirks::{StateSent, ThoughtsSent};
use super::super::render::{AttachedAt, Message, Rendered};
use super::{Block, CallState, REASONING_FIELDS, State};
use ironclaw_contract::canonical::Digest;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// Types of blocks with thoughts.
const THOUGHT_BLOCKS: [&str; 3] = ["thinking", "reasoning", "redacted_thinking"];
/// Fields of thoughts that no other text replaces: their provider checks them.
const SEALED_FIELDS: [&str; 4] = ["signature", "data", "encrypted_content", "thought_signature"];
/// Fields of blocks whose names are in refusals of any kind.
const COMMON_FIELDS: [&str; 8] = ["type", "id", "name", "input", "content", "text", "data", "index"];
/// The list of thoughts whose elements name calls by id.
const DETAILS: &str = "reasoning_details";

/// The rules of an endpoint for the state that it gets back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rules {
    pub thoughts: Option<ThoughtsSent>,
    pub state: Option<StateSent>,
    /// Flag: ids of calls have nine characters.
    pub short_ids: bool,
}

/// The names of the fields that a request has, for a refusal that names one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Fields and blocks with thoughts.
    pub thoughts: HashSet<String>,
    /// Other fields and blocks.
    pub state: HashSet<String>,
}

/// The states in one request.
#[derive(Debug, Default)]
pub struct SentBack {
    /// The state of a message, by its position.
    states: HashMap<usize, State>,
    /// The ids of the provider, by those of the host.
    ids: HashMap<String, String>,
}

impl SentBack {
    /// Reads the states that this endpoint attached.
    pub fn read(rendered: &Rendered<'_>, endpoint: Option<Digest>, rules: Rules) -> Self {
        let (mut states, mut ids) = (HashMap::new(), Vec::new());
        for (at, message) in rendered.messages.iter().enumerate() {
            let Message::Assistant { calls, attached, .. } = message else { continue };
            let mut state = joined(attached, endpoint, calls.len());
            for (call, state) in calls.iter().zip(&mut state.calls) {
                ids.extend(state.id.take().map(|id| (call.call_id.clone(), id)));
            }
            rules.apply(&mut state, at > rendered.turn_begins);
            states.insert(at, state);
        }
        let mut sent = Self { states, ids: unique(ids.clone(), &rendered.messages, rules.short_ids) };
        sent.rename(&ids, rendered);
        sent
    }

    /// Takes the state of a message.
    pub fn take(&mut self, message: usize, calls: usize) -> State {
        let mut state = self.states.remove(&message).unwrap_or_default();
        state.calls.resize_with(calls, CallState::default);
        state
    }

    /// Returns the id of the provider for a call; `None` if the request has the id of the host.
    pub fn id(&self, call_id: &str) -> Option<&str> {
        self.ids.get(call_id).map(String::as_str)
    }

    /// Returns the names of the fields and blocks in it.
    pub fn names(&self) -> Names {
        let mut names = Names::default();
        for state in self.states.values() {
            for name in state.message.keys() {
                let list =
                    if REASONING_FIELDS.contains(&name.as_str()) { &mut names.thoughts } else { &mut names.state };
                list.insert(name.clone());
            }
            let of_calls = state.calls.iter().flat_map(|call| call.beside.keys().chain(call.inside.keys()));
            names.state.extend(of_calls.cloned());
            for Block { block, .. } in &state.blocks {
                let kind = block["type"].as_str().unwrap_or_default();
                let list = if THOUGHT_BLOCKS.contains(&kind) { &mut names.thoughts } else { &mut names.state };
                let fields = block.as_object().into_iter().flat_map(Map::keys);
                let telling = fields.filter(|name| !COMMON_FIELDS.contains(&name.as_str()));
                list.extend(telling.cloned().chain([kind.to_owned()]));
            }
        }
        names
    }

    /// Writes the ids of the host into the details of thoughts, where the request has them in place of the provider's.
    fn rename(&mut self, ids: &[(String, String)], rendered: &Rendered<'_>) {
        for (at, state) in &mut self.states {
            let Some(Value::Array(details)) = state.message.get_mut(DETAILS) else { continue };
            let Message::Assistant { calls, .. } = &rendered.messages[*at] else { continue };
            let of_message = ids.iter().filter(|(call_id, _)| calls.iter().any(|call| call.call_id == *call_id));
            for (call_id, id) in of_message.filter(|(call_id, _)| !self.ids.contains_key(call_id)) {
                for detail in details.iter_mut().filter(|detail| detail["id"] == id.as_str()) {
                    detail["id"] = call_id.as_str().into();
                }
            }
        }
    }
}

impl Rules {
    /// Leaves out what the endpoint does not get back.
    fn apply(self, state: &mut State, is_of_turn: bool) {
        let has_thoughts = match self.thoughts.unwrap_or(ThoughtsSent::Turn) {
            ThoughtsSent::All => true,
            ThoughtsSent::Turn => is_of_turn,
            ThoughtsSent::Omit => false,
        };
        let is_without = self.thoughts == Some(ThoughtsSent::Omit);
        let has_state = self.state != Some(StateSent::Omit);
        state.message.retain(|name, value| match REASONING_FIELDS.contains(&name.as_str()) {
            true => has_thoughts,
            false => has_state && (name != DETAILS || has_thoughts || (!is_without && is_sealed(value))),
        });
        state.blocks.retain(|Block { block, .. }| match block["type"].as_str() {
            Some(kind) if THOUGHT_BLOCKS.contains(&kind) => has_thoughts || (!is_without && is_sealed(block)),
            Some(_) | None => has_state,
        });
        if !has_state {
            for call in &mut state.calls {
                *call = CallState { id: call.id.take(), ..CallState::default() };
            }
        }
    }
}

/// Returns whether thoughts have a field that their provider checks.
fn is_sealed(thoughts: &Value) -> bool {
    match thoughts {
        Value::Array(list) => list.iter().any(is_sealed),
        Value::Object(fields) => SEALED_FIELDS.iter().any(|name| match fields.get(*name) {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(_) => true,
        }),
        _ => false,
    }
}

/// Joins the states of the outputs in one message.
fn joined(attached: &[AttachedAt<'_>], endpoint: Option<Digest>, calls: usize) -> State {
    let mut joined = State { calls: vec![CallState::default(); calls], ..State::default() };
    for AttachedAt { attached, words, calls } in attached {
        let Some(state) = attached.state_for(endpoint) else { continue };
        joined.message.extend(state.message);
        for (place, call) in joined.calls.iter_mut().skip(*calls).zip(state.calls) {
            *place = call;
        }
        let moved = |block: Block| Block { words: block.words + words, calls: block.calls + calls, ..block };
        joined.blocks.extend(state.blocks.into_iter().map(moved));
    }
    joined
}

/// Returns the ids of a provider that no other call of the request has.
fn unique(ids: Vec<(String, String)>, messages: &[Message<'_>], short_ids: bool) -> HashMap<String, String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for message in messages {
        if let Message::Assistant { calls, .. } = message {
            calls.iter().for_each(|call| *counts.entry(call.call_id.clone()).or_default() += 1);
        }
    }
    ids.iter().for_each(|(_, id)| *counts.entry(id.clone()).or_default() += 1);
    let is_fit = |id: &str| !short_ids || (id.len() == 9 && id.bytes().all(|letter| letter.is_ascii_alphanumeric()));
    let is_unique = |(_, id): &(String, String)| counts.get(id) == Some(&1) && is_fit(id);
    ids.into_iter().filter(is_unique).collect()
}
