//! The handles of the values that a call takes by reference: those that a person typed in a task, and those at result paths of answers.
//!
//! Never has a value of a quoted part, of another person or of another session. See [`crate::provenance::typed::values`] and
//! [`super::returned`].

use super::returned::Returned;
use crate::egress::Loopback;
use crate::manifest::Taken;
use crate::provenance::spans::TypedSpan;
use crate::provenance::typed::values::{self, TypedValue};
use crate::provenance::{Labels, Provenance};
use ironclaw_contract::ids::ItemId;
use ironclaw_operator::InputType;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Values of one message that get handles: a person refers to no more of them, and each has a line in the prompt.
pub const VALUES_MAX: usize = 64;

/// Digits of a number that each reader of JSON keeps.
const DIGITS_MAX: usize = 15;

/// The item that has the value of a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// A message of a person.
    Message,
    /// The answer of a server to a call.
    Result,
}

impl Holder {
    const ALL: [Self; 2] = [Self::Message, Self::Result];

    /// Returns the letter before the number of the item in an id.
    const fn letter(self) -> char {
        match self {
            Self::Message => 'm',
            Self::Result => 'r',
        }
    }
}

/// The id of a handle, such as `m12.email.1`: the number of its item in the session, its type, and its number in the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HandleId {
    pub holder: Holder,
    /// The number of the item.
    pub seq: u64,
    pub kind: InputType,
    /// From 1, among the values of its type in the item.
    pub number: u32,
}

impl fmt::Display for HandleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}.{}.{}", self.holder.letter(), self.seq, self.kind, self.number)
    }
}

impl FromStr for HandleId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let holder = Holder::ALL.into_iter().find(|holder| text.starts_with(holder.letter()))?;
            let mut parts = text.strip_prefix(holder.letter())?.split('.');
            let (seq, kind, number) = (parts.next()?, parts.next()?, parts.next()?);
            let id = Self { holder, seq: seq.parse().ok()?, kind: kind.parse().ok()?, number: number.parse().ok()? };
            // One id has one text: no sign, and no zero in front.
            (parts.next().is_none() && format!("{id}") == text).then_some(id)
        };
        read().ok_or_else(|| format!("{text:?} is no id of a value, such as m12.email.1 or r13.name.1"))
    }
}

impl Serialize for HandleId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HandleId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The task of a handle, as seen from a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// The turn's own.
    This,
    /// That of the person's message before it. A call that uses such a handle asks.
    Earlier,
}

/// A message of the person of a turn.
pub struct Message<'a> {
    pub item: ItemId,
    /// The number of its item.
    pub seq: u64,
    pub spans: Vec<TypedSpan<'a>>,
    pub task: Task,
}

/// The answer of a server to a call of a session.
#[derive(Clone, Copy)]
pub struct Answer<'a> {
    pub item: ItemId,
    /// The number of its item.
    pub seq: u64,
    pub server: &'a str,
    pub task: Task,
}

/// A value with its id.
#[derive(Debug, Clone)]
pub struct Handle {
    pub id: HandleId,
    /// Its message, or its result.
    pub item: ItemId,
    pub task: Task,
    /// The bytes of the value; a phone and an account are without their blanks.
    pub text: String,
    /// Its labels, for a tool of any server. See [`Handle::labels_for`].
    pub labels: Labels,
    /// The server that returned it, or that alone knows the typed name; `None` for another typed value.
    pub server: Option<String>,
    /// True if an address mixes letters that can look alike.
    pub is_mixed: bool,
    /// The text that equal values of its type share.
    normal: String,
    number: Option<String>,
    /// The fields for which the person named it.
    fields: Vec<String>,
    count: usize,
    is_used: bool,
}

/// Returns a number that JSON carries exactly.
fn exact(number: &str) -> Option<Number> {
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    number.parse().ok().filter(|_| digits <= DIGITS_MAX)
}

impl Handle {
    /// Returns the value for a field: a number, if the field takes one.
    pub fn value(&self, is_number: bool) -> Option<Value> {
        match is_number {
            true => self.number.as_ref().and_then(|number| exact(number)).map(Value::Number),
            false => Some(Value::String(self.text.clone())),
        }
    }

    /// Returns whether a recorded value is that of the handle: the text, its number, or the digits of the number.
    pub fn has(&self, value: &Value) -> bool {
        self.value(value.is_number()).as_ref() == Some(value) || self.is_number_text(value)
    }

    /// Returns whether a literal is the digits of the number in the value.
    pub fn is_number_text(&self, literal: &Value) -> bool {
        literal.as_str().is_some_and(|text| self.number.as_deref() == Some(text) && self.text != text)
    }

    /// Returns its labels for a tool of a server. What a server made in a session, and a name that no other one knows, say nothing to others.
    pub fn labels_for(&self, server: &str) -> Labels {
        match (&self.server, self.id.holder) {
            (Some(own), Holder::Result) if own != server => self.labels.without_created(),
            (Some(own), Holder::Message) if own != server => Labels::NONE,
            (Some(_) | None, _) => self.labels,
        }
    }

    /// Returns whether a person typed it.
    pub fn is_typed(&self) -> bool {
        self.id.holder == Holder::Message
    }

    /// Returns whether a field takes its value.
    pub fn is_taken(&self, taken: Taken<'_>) -> bool {
        fits(taken.kind, self.id.kind) && self.labels_for(taken.server).has_all(taken.needs)
    }

    /// Returns how often its item has it.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Returns whether a call of this session used it already.
    pub const fn is_used(&self) -> bool {
        self.is_used
    }

    /// Returns whether the person named it for a field.
    pub fn is_named_for(&self, field: &str) -> bool {
        self.fields.iter().any(|named| named.eq_ignore_ascii_case(field))
    }

    /// Returns whether a literal has the same value; `normal` is its text in the form of the handle's type.
    fn is_equal(&self, literal: &Value, normal: &str) -> bool {
        match literal {
            Value::String(text) => self.is_number_text(literal) || self.text == *text || self.normal == normal,
            Value::Number(number) => self.number.as_ref().is_some_and(|own| {
                let same = |own: &Number| own == number || own.as_f64().is_some() && own.as_f64() == number.as_f64();
                own.parse::<Number>().is_ok_and(|own| same(&own))
            }),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
        }
    }
}

/// Numbers of a place of a name, one for each length of a name there.
const LENGTHS: usize = 1_024;

/// Returns the number of a name that a server knows: its place in the message. It does not depend on the other names that are known.
fn number_of_name(begin: usize, value: &TypedValue) -> Option<u32> {
    let place = begin + value.bytes.start + 1;
    u32::try_from(place * LENGTHS + value.bytes.len().min(LENGTHS - 1)).ok()
}

/// The handles to which a literal is equal.
pub enum Equal<'a> {
    None,
    One(&'a Handle),
    /// Values of several types.
    Several,
}

/// The handles that a turn can use, in the order of their messages.
#[derive(Debug, Clone, Default)]
pub struct Handles {
    all: Vec<Handle>,
    /// The names that a server knows, with the server.
    names: BTreeMap<String, String>,
    loopback: Loopback,
}

impl Handles {
    pub fn new(loopback: Loopback) -> Self {
        Self { all: Vec::new(), names: BTreeMap::new(), loopback }
    }

    pub const fn loopback(&self) -> Loopback {
        self.loopback
    }

    /// Makes a name known that a server returned. In a message it is a value for tools of this server.
    pub fn add_name(&mut self, server: &str, name: &str) {
        self.names.entry(name.to_owned()).or_insert_with(|| server.to_owned());
    }

    /// Adds the values of a message of the turn's person. `names` are those that the host knows.
    pub fn add(&mut self, message: &Message<'_>, names: &[String]) {
        let Message { item, seq, spans, task } = message;
        let of_servers: Vec<String> = self.names.keys().filter(|name| !names.contains(name)).cloned().collect();
        let of_host = spans.iter().flat_map(|span| values::values(span, names, self.loopback));
        let begins = spans.iter().scan(0, |at, span| {
            let begin = *at;
            *at += span.text.len();
            Some(begin)
        });
        let of_server = spans.iter().zip(begins).flat_map(|(span, begin)| {
            let found = values::places_of_names(span, &of_servers).into_iter();
            found.map(move |value| (number_of_name(begin, &value), value))
        });
        let found: Vec<_> = of_host.map(|value| (None, value)).chain(of_server).collect();
        let begin = self.all.len();
        let mut counts: BTreeMap<InputType, u32> = BTreeMap::new();
        for (placed, value) in found {
            let TypedValue { kind, text, number, field, is_mixed, .. } = value;
            let server = placed.and_then(|_| self.names.get(&text).cloned());
            let same = self.all[begin..].iter_mut().find(|known| known.id.kind == kind && known.text == text);
            if let Some(known) = same {
                known.fields.extend(field);
                known.count += 1;
                continue;
            }
            if self.all.len() - begin >= VALUES_MAX {
                break;
            }
            let count = counts.entry(kind).or_default();
            *count += u32::from(placed.is_none());
            let place = placed.unwrap_or(*count);
            let normal = values::normal(kind, &text, self.loopback);
            self.all.push(Handle {
                id: HandleId { holder: Holder::Message, seq: *seq, kind, number: place },
                item: *item,
                task: *task,
                text,
                labels: Labels::from_provenance(Provenance::Slot),
                server,
                is_mixed,
                normal,
                number,
                fields: field.into_iter().collect(),
                count: 1,
                is_used: false,
            });
        }
    }

    /// Adds the values at the result paths of an answer.
    pub fn add_returned(&mut self, answer: Answer<'_>, values: Vec<Returned>) {
        let Answer { item, seq, server, task } = answer;
        let mut counts: BTreeMap<InputType, u32> = BTreeMap::new();
        for Returned { kind, text, number, labels } in values {
            let count = counts.entry(kind).or_default();
            *count += 1;
            self.all.push(Handle {
                id: HandleId { holder: Holder::Result, seq, kind, number: *count },
                item,
                task,
                normal: values::normal(kind, &text, self.loopback),
                is_mixed: values::is_mixed(kind, &text),
                text,
                labels,
                server: Some(server.to_owned()),
                number,
                fields: Vec::new(),
                count: 1,
                is_used: false,
            });
        }
    }

    /// Marks a handle that a call of the session used. An equal value of another item is the same one, also by another type, unless
    /// the person typed it in a message after the output with the call, whose number is `at`.
    pub fn mark_used(&mut self, id: HandleId, at: u64) {
        let Some(normal) = self.find(id).map(|handle| handle.normal.clone()) else { return };
        let is_typed_later = |handle: &Handle| handle.id.holder == Holder::Message && handle.id.seq > at;
        let same = self.all.iter_mut().filter(|handle| handle.normal == normal && !is_typed_later(handle));
        same.for_each(|handle| handle.is_used = true);
    }

    pub fn find(&self, id: HandleId) -> Option<&Handle> {
        self.all.iter().find(|handle| handle.id == id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Handle> {
        self.all.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the handle of this task to which a literal is equal, among those that a field takes.
    pub fn equal(&self, taken: Taken<'_>, literal: &Value) -> Equal<'_> {
        let is_of_task = |handle: &&Handle| handle.task == Task::This && handle.is_taken(taken);
        // Each form of the literal is computed once, and not for each handle.
        let mut forms: BTreeMap<InputType, String> = BTreeMap::new();
        let text = literal.as_str().unwrap_or_default();
        let mut found = self.all.iter().filter(is_of_task).filter(|handle| {
            let kind = handle.id.kind;
            let normal = forms.entry(kind).or_insert_with(|| values::normal(kind, text, self.loopback));
            handle.is_equal(literal, normal)
        });
        let Some(first) = found.next() else { return Equal::None };
        // The same value in two messages of a task is one value.
        let is_one = found.all(|other| other.id.kind == first.id.kind && other.normal == first.normal);
        if is_one { Equal::One(first) } else { Equal::Several }
    }

    /// Returns the handle of this message whose value a recorded one is: names that the host learned meanwhile change the numbers.
    pub fn again(&self, id: HandleId, value: &Value) -> Option<&Handle> {
        let is_beside = |other: HandleId| (other.holder, other.seq, other.kind) == (id.holder, id.seq, id.kind);
        let same = |handle: &&Handle| is_beside(handle.id) && handle.has(value);
        self.find(id).filter(|handle| handle.has(value)).or_else(|| self.all.iter().find(same))
    }

    /// Returns whether a text contains a value that names a receiver or an amount.
    pub fn is_in(&self, text: &str) -> bool {
        let names_receiver = |kind| {
            matches!(
                kind,
                InputType::Email | InputType::Url | InputType::Phone | InputType::Account | InputType::Amount
            )
        };
        self.all.iter().any(|handle| names_receiver(handle.id.kind) && text.contains(&handle.text))
    }

    /// Returns whether a task has one value of the type of a handle that a field takes, or its person named this one alone for the field.
    pub fn is_clear(&self, handle: &Handle, taken: Taken<'_>, field: &str) -> bool {
        let is_like = |other: &&Handle| other.task == handle.task && other.id.kind == handle.id.kind;
        // A value of the same answer that lacks its label can be the one that is meant.
        let is_meant = |other: &&Handle| other.is_taken(taken) || !other.is_typed() && other.item == handle.item;
        let same_type = || self.all.iter().filter(is_like).filter(is_meant);
        let is_alone = same_type().all(|other| other.normal == handle.normal);
        let mut named = same_type().filter(|other| other.is_named_for(field));
        is_alone || handle.is_named_for(field) && named.all(|other| other.normal == handle.normal)
    }
}

/// Returns whether a field that takes one type takes a value of another.
pub fn fits(taken: InputType, kind: InputType) -> bool {
    taken == InputType::Any || taken == kind
}
