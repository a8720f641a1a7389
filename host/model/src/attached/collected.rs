//! The state of an output while its answer arrives, with the bounds on it.
//!
//! Never keeps a field that the API defines in any role, because that would be words or calls that the host did not judge. State over a
//! bound is dropped as a whole, and the answer stays good. See [`super::Attached`].

use super::super::call_pieces::Finished;
use super::super::growing_text::{Effect, GrowingText, is_telling};
use super::{Attached, Block, CallState, REASONING_FIELDS, State};
use ironclaw_contract::canonical::Digest;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::ops::Range;

/// Bytes of the state of one output.
pub const STATE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of all pieces of a state; some servers repeat what they sent.
const PIECES_BYTES_MAX: usize = 4 * STATE_BYTES_MAX;
/// Nested lists and objects of a field.
const DEPTH_MAX: usize = 16;
/// Bytes of the name of a field.
const NAME_BYTES_MAX: usize = 128;
/// Least length of a text that is repeated and not continued if it comes again.
const REPEATED_BYTES_MIN: usize = 16;
/// Least length of a text that grows if it comes again with more.
const GROWN_BYTES_MIN: usize = 8;
/// Parts of a content that are no words.
const THOUGHT_PARTS: [&str; 3] = ["thinking", "reasoning", "redacted_thinking"];

/// Fields that Chat Completions defines for a message, a call or a function, in any role and in any part of an answer.
const CHAT_FIELDS: [&str; 41] = [
    "annotations",
    "args",
    "arguments",
    "audio",
    "cache_control",
    "choices",
    "content",
    "custom",
    "delta",
    "description",
    "error",
    "file",
    "finish_reason",
    "function",
    "function_call",
    "functions",
    "id",
    "image_url",
    "index",
    "input",
    "input_audio",
    "logprobs",
    "message",
    "messages",
    "model",
    "name",
    "parameters",
    "parsed",
    "prefix",
    "refusal",
    "response_format",
    "role",
    "strict",
    "text",
    "tool_call_id",
    "tool_calls",
    "tool_choice",
    "tool_use",
    "tools",
    "type",
    "weight",
];
/// Fields that Messages defines for a block of a call.
const BLOCK_FIELDS: [&str; 20] = [
    "arguments",
    "cache_control",
    "citations",
    "content",
    "description",
    "function",
    "function_call",
    "id",
    "index",
    "input",
    "input_schema",
    "is_error",
    "name",
    "parameters",
    "role",
    "strict",
    "text",
    "tool_calls",
    "tool_use_id",
    "type",
];
/// Blocks that the host itself writes, or that the API defines for the words of a person.
const DEFINED_BLOCKS: [&str; 7] =
    ["text", "tool_use", "tool_result", "image", "document", "search_result", "container_upload"];

/// The reason why a state was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    TooLarge,
    TooDeep,
    /// A key came twice in one object.
    DoubledKey,
    /// Its pieces do not fit together.
    Unclear,
}

impl Dropped {
    pub const fn words(self) -> &'static str {
        match self {
            Self::TooLarge => "it is over the limit of 64 KiB",
            Self::TooDeep => "it is nested too deeply",
            Self::DoubledKey => "a key of it came twice",
            Self::Unclear => "its pieces do not fit together",
        }
    }
}

/// A place beside or inside of a call of Chat Completions, or in its block of Messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Beside,
    Function,
    Block,
}

/// The state so far.
#[derive(Debug, Default)]
pub struct Collected {
    state: State,
    /// What its server says about each block.
    open: Vec<OpenBlock>,
    /// The fields with thoughts, which may be texts that grow.
    thoughts: HashMap<String, GrowingText>,
    bytes: usize,
    dropped: Option<Dropped>,
    /// True if the last event added to the state.
    has_new: bool,
}

/// A block while its pieces arrive.
#[derive(Debug)]
struct OpenBlock {
    /// Its index at its server.
    index: Option<u64>,
    is_closed: bool,
    /// The pieces of its input: JSON text.
    input: String,
    /// The pieces of its thoughts, which may grow.
    thoughts: GrowingText,
}

impl OpenBlock {
    fn new(index: Option<u64>) -> Self {
        Self { index, is_closed: false, input: String::new(), thoughts: GrowingText::default() }
    }

    fn is_at(&self, index: Option<u64>) -> bool {
        index.is_none() || self.index == index
    }
}

impl Collected {
    /// Adds the fields of a message that the API does not define.
    pub fn message(&mut self, fields: &Map<String, Value>) {
        for (name, value) in fields.iter().filter(|(name, value)| is_kept(name, value, &CHAT_FIELDS)) {
            if self.has_room(name, value) {
                add(&mut self.state.message, name, value, &mut self.dropped);
                if let Some(text) = value.as_str().filter(|_| REASONING_FIELDS.contains(&name.as_str())) {
                    let _ = self.thoughts.entry(name.clone()).or_default().push(text);
                }
            }
        }
    }

    /// Adds the fields of a call that the API does not define.
    pub fn call(&mut self, at: usize, place: Place, fields: &Map<String, Value>) {
        let defined: &[&str] = if place == Place::Block { &BLOCK_FIELDS } else { &CHAT_FIELDS };
        for (name, value) in fields.iter().filter(|(name, value)| is_kept(name, value, defined)) {
            if !self.has_room(name, value) {
                return;
            }
            if self.state.calls.len() <= at {
                self.state.calls.resize_with(at + 1, CallState::default);
            }
            let call = &mut self.state.calls[at];
            let fields = if place == Place::Function { &mut call.inside } else { &mut call.beside };
            add(fields, name, value, &mut self.dropped);
        }
    }

    /// Adds a block behind this number of bytes of words and of calls, if the API does not define its type.
    pub fn block(&mut self, index: Option<u64>, words: usize, calls: usize, block: &Value) {
        let Some(fields) = block.as_object() else { return };
        let Some(kind) = fields.get("type").and_then(Value::as_str) else { return };
        if DEFINED_BLOCKS.contains(&kind) || !self.has_room("", block) {
            return;
        }
        let mut block = block.clone();
        if let Some(fields) = block.as_object_mut() {
            fields.remove("cache_control");
        }
        let mut open = OpenBlock::new(index);
        let _ = open.thoughts.push(block["thinking"].as_str().unwrap_or_default());
        self.state.blocks.push(Block { words, calls, block, length: 0 });
        self.open.push(open);
    }

    /// Adds a part of the content of a message of Chat Completions: thoughts, or the marks of these words.
    pub fn part(&mut self, words: Range<usize>, part: &Map<String, Value>, is_whole: bool) {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
        let is_thought = THOUGHT_PARTS.contains(&kind);
        let is_kept = |name: &str, value: &Value| match is_thought {
            true => !value.is_null() && name != "cache_control",
            false => name == "type" || is_kept(name, value, &CHAT_FIELDS),
        };
        let kept = part.iter().filter(|(name, value)| is_kept(name, value));
        let fields: Map<String, Value> = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        let has_marks = !words.is_empty() && fields.keys().any(|name| name != "type");
        let block = Value::Object(fields);
        if !(is_thought || (kind == "text" && has_marks)) || !self.has_room("", &block) {
            return;
        }
        let last =
            self.state.blocks.last_mut().filter(|last| {
                !is_whole && is_thought && last.words == words.start && last.block["type"] == block["type"]
            });
        match last {
            Some(last) => {
                if !join_thoughts(&mut last.block, &block) {
                    self.dropped.get_or_insert(Dropped::Unclear);
                }
            }
            None => {
                self.state.blocks.push(Block { words: words.start, calls: 0, block, length: words.len() });
                self.open.push(OpenBlock::new(None));
            }
        }
    }

    /// Returns whether it has a block with this index.
    pub fn has_block(&self, index: Option<u64>) -> bool {
        self.open.iter().any(|known| known.is_at(index))
    }

    /// Ends the blocks with this index.
    pub fn close_blocks(&mut self, index: Option<u64>) {
        self.open.iter_mut().filter(|known| known.is_at(index)).for_each(|known| known.is_closed = true);
    }

    /// Adds a piece of the input of the open block with this index. Returns whether there is one.
    pub fn block_input(&mut self, index: Option<u64>, piece: &str) -> bool {
        let Some(at) = self.open.iter().rposition(|known| known.is_at(index) && !known.is_closed) else { return false };
        if self.has_room("", &piece.into()) {
            self.open[at].input.push_str(piece);
        }
        true
    }

    /// Adds a piece of the newest block with this index.
    pub fn block_piece(&mut self, index: Option<u64>, fields: &Map<String, Value>) {
        let Some(at) = self.open.iter().rposition(|known| known.is_at(index)) else { return };
        for (name, value) in fields.iter().filter(|(name, _)| *name != "type" && *name != "cache_control") {
            if !self.has_room(name, value) {
                return;
            }
            let Some(fields) = self.state.blocks[at].block.as_object_mut() else { return };
            match (fields.get_mut(name), value) {
                // Parts of thoughts may be equal.
                (Some(Value::String(known)), Value::String(piece)) if name == "thinking" => {
                    if self.open[at].thoughts.push(piece) != Effect::Nothing {
                        known.push_str(piece);
                    }
                }
                _ => add(fields, name, value, &mut self.dropped),
            }
        }
    }

    /// Drops the state if the last event added to it and had a key twice in one object.
    pub fn end_event(&mut self, has_doubled_key: bool) {
        if std::mem::take(&mut self.has_new) && has_doubled_key {
            self.dropped = Some(Dropped::DoubledKey);
        }
    }

    /// Returns whether the state so far and a field are within the bounds.
    fn has_room(&mut self, name: &str, value: &Value) -> bool {
        self.has_new = true;
        self.bytes += name.len() + value.to_string().len();
        if self.bytes > PIECES_BYTES_MAX {
            self.dropped.get_or_insert(Dropped::TooLarge);
        } else if !is_flat(value, DEPTH_MAX) {
            self.dropped.get_or_insert(Dropped::TooDeep);
        }
        if self.dropped.is_some() {
            self.state = State::default();
            self.open.clear();
        }
        self.dropped.is_none()
    }

    /// Returns the texts of thoughts in a list of details; some servers send them in no other field.
    pub fn reasoning(&self) -> String {
        let details = self.state.message.get("reasoning_details").and_then(Value::as_array);
        let text = |detail: &'_ Value| detail.get("text").or(detail.get("summary"))?.as_str().map(str::to_owned);
        details.into_iter().flatten().filter_map(text).collect()
    }

    /// Returns the state of an output with these calls, and why it was dropped.
    pub fn finish(self, endpoint: Option<Digest>, kept: &[Finished]) -> (Option<Attached>, Option<Dropped>) {
        let Self { mut state, mut dropped, open, thoughts, .. } = self;
        for (block, open) in state.blocks.iter_mut().zip(open) {
            if let Some(thought) = open.thoughts.grown() {
                block.block["thinking"] = thought.into();
            }
            if open.input.trim().is_empty() {
                continue;
            }
            match serde_json::from_str(&open.input) {
                Ok(input) if is_flat(&input, DEPTH_MAX) => block.block["input"] = input,
                Ok(_) => dropped = dropped.or(Some(Dropped::TooDeep)),
                Err(_) => dropped = dropped.or(Some(Dropped::Unclear)),
            }
        }
        for (name, text) in &thoughts {
            if let (Some(known), Some(text)) = (state.message.get_mut(name), text.grown()) {
                *known = text.into();
            }
        }
        if dropped.is_some() {
            return (None, dropped);
        }
        if kept.is_empty() {
            // Some servers refuse the thoughts of an earlier answer.
            state.message.retain(|name, _| !REASONING_FIELDS.contains(&name.as_str()));
        }
        let call = |kept: &Finished| {
            let fields = state.calls.get(kept.at).cloned().unwrap_or_default();
            CallState { id: kept.id.clone(), ..fields }
        };
        state.calls = kept.iter().map(call).collect();
        if state.is_empty() {
            return (None, None);
        }
        if state.calls.iter().all(|call| *call == CallState::default()) {
            state.calls.clear();
        }
        let Some(endpoint) = endpoint else { return (None, None) };
        let state = serde_json::to_string(&state).expect("maps of JSON are JSON");
        match state.len() <= STATE_BYTES_MAX {
            true => (Some(Attached { endpoint, state }), None),
            false => (None, Some(Dropped::TooLarge)),
        }
    }
}

/// Returns whether a field is state. An empty field says nothing, and a server that defines names in other letters could read it.
fn is_kept(name: &str, value: &Value, defined: &[&str]) -> bool {
    let is_defined = defined.iter().any(|defined| letters(defined).eq(letters(name)));
    !value.is_null() && !is_defined && !name.trim().is_empty() && name.len() <= NAME_BYTES_MAX
}

/// Returns the letters of a name without the marks and the case that separate its words.
fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase)
}

/// Adds a piece of a field.
fn add(fields: &mut Map<String, Value>, name: &str, value: &Value, dropped: &mut Option<Dropped>) {
    match fields.get_mut(name) {
        Some(known) => {
            if !join(known, value) {
                dropped.get_or_insert(Dropped::Unclear);
            }
        }
        None => {
            fields.insert(name.to_owned(), value.clone());
        }
    }
}

/// Joins a piece with what came before: texts continue, objects get more fields, and lists more elements. Returns whether they fit.
fn join(known: &mut Value, piece: &Value) -> bool {
    if known == piece && !matches!(known, Value::String(text) if !is_telling(text, REPEATED_BYTES_MIN)) {
        return true;
    }
    match (known, piece) {
        (_, Value::Null) => true,
        (known @ Value::Null, piece) => {
            *known = piece.clone();
            true
        }
        (Value::String(known), Value::String(piece)) => {
            // A text that comes again as a whole, with or without more.
            match piece.strip_prefix(known.as_str()).filter(|_| is_telling(known, GROWN_BYTES_MIN)) {
                Some(more) => known.push_str(more),
                None => known.push_str(piece),
            }
            true
        }
        (Value::Object(known), Value::Object(piece)) => piece.iter().all(|(name, value)| match known.get_mut(name) {
            // These say which element it is, and come again with each piece.
            Some(known) if matches!(name.as_str(), "type" | "id" | "index" | "format") => {
                known.is_null() || known == value || value.is_null()
            }
            Some(known) => join(known, value),
            None => {
                known.insert(name.clone(), value.clone());
                true
            }
        }),
        (Value::Array(known), Value::Array(piece)) => piece.iter().all(|element| {
            let index = element.get("index").filter(|index| index.is_u64());
            let is_same = |known: &&mut Value| {
                let is_kind = known.get("type") == element.get("type");
                let id = |value: &Value| value.get("id").filter(|id| !id.is_null()).cloned();
                let is_other_id = matches!((id(known), id(element)), (Some(one), Some(other)) if one != other);
                index.is_some() && known.get("index") == index && is_kind && !is_other_id
            };
            match known.iter_mut().find(is_same) {
                Some(known) => join(known, element),
                None => match known.last_mut().filter(|last| index.is_none() && continues(last, element)) {
                    Some(last) => join_thoughts(last, element),
                    None => {
                        known.push(element.clone());
                        true
                    }
                },
            }
        }),
        // A counter or a mark: the last one holds.
        (known @ (Value::Number(_) | Value::Bool(_)), Value::Number(_) | Value::Bool(_)) => {
            *known = piece.clone();
            true
        }
        (_, _) => false,
    }
}

/// Returns whether an element of a list without numbers is a further piece of the last one: both are thoughts of one kind and id, and the
/// last one has no signature yet, which is the last piece of a thought.
fn continues(last: &Value, element: &Value) -> bool {
    let is_thought = element["type"].as_str().is_some_and(|kind| kind == "thinking" || kind == "reasoning.text");
    let has_pieces = |value: &Value| ["thinking", "text"].iter().any(|name| value[*name].is_string());
    let is_sealed = last["signature"].as_str().is_some_and(|signature| !signature.is_empty());
    let is_one = last["type"] == element["type"] && (last["id"] == element["id"] || element["id"].is_null());
    is_thought && is_one && !is_sealed && has_pieces(last) && has_pieces(element)
}

/// Joins a part of thoughts with the one before. Returns whether they fit.
fn join_thoughts(known: &mut Value, piece: &Value) -> bool {
    let (Some(known), Some(piece)) = (known.as_object_mut(), piece.as_object()) else { return false };
    piece.iter().filter(|(name, _)| *name != "type").all(|(name, value)| match (known.get_mut(name), value) {
        (None, value) => known.insert(name.clone(), value.clone()).is_none(),
        (Some(Value::String(known)), Value::String(piece)) if THOUGHT_PARTS.contains(&name.as_str()) => {
            known.push_str(piece);
            true
        }
        (Some(Value::Array(known)), Value::Array(piece)) => {
            piece.iter().for_each(|element| join_element(known, element));
            true
        }
        (Some(known), value) => join(known, value),
    })
}

/// Adds an element to a list of thoughts; a text continues the text before.
fn join_element(known: &mut Vec<Value>, element: &Value) {
    let is_text = |value: &Value| {
        let fields = value.as_object().map_or(0, Map::len);
        fields == 2 && value["type"] == "text" && value["text"].is_string()
    };
    match (known.last_mut().filter(|last| is_text(last)), element["text"].as_str()) {
        (Some(last), Some(more)) if is_text(element) => {
            let text = last["text"].as_str().unwrap_or_default().to_owned() + more;
            last["text"] = text.into();
        }
        _ => known.push(element.clone()),
    }
}

/// Returns whether a value has at most this number of nested lists and objects.
fn is_flat(value: &Value, depth: usize) -> bool {
    match (value, depth) {
        (Value::Array(_) | Value::Object(_), 0) => false,
        (Value::Array(values), _) => values.iter().all(|value| is_flat(value, depth - 1)),
        (Value::Object(fields), _) => fields.values().all(|value| is_flat(value, depth - 1)),
        _ => true,
    }
}
