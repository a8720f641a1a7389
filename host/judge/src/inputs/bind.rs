//! The binding of a call's values to handles: references resolved, floors checked, and values pinned, in one step.
//!
//! The host calls it when it records a call, and again when the call runs. See [`crate::call::stages`] for what a finding means.

use super::dispatch::dispatched;
use super::handles::{Equal, Handle, HandleId, Handles, Task, fits};
use super::leaves::{Content, LINK, Leaf, floored, keys, leaves};
use super::schemas::{is_declared, takes_number};
use crate::manifest::floors::{self, pointer};
use crate::manifest::{Manifest, Taken};
use crate::provenance::typed::is_typed_value;
use crate::provenance::{Labels, Provenance};
use ironclaw_contract::seam::seal::Label;
use ironclaw_operator::{DenialCode, InputType};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A value of a call that is bound to a handle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its place, as a JSON Pointer into the arguments.
    pub at: String,
    pub handle: HandleId,
    /// True if the model wrote the value itself, and the host found that exactly this handle has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_host: bool,
}

impl Input {
    /// Returns the argument that has the value.
    pub fn argument(&self) -> String {
        argument(&self.at)
    }
}

/// What a finding does to the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// There is no value that could be sent.
    Unresolved,
    /// No person can lift it for this call.
    Denied,
    /// A person may permit the call.
    Asks,
}

/// A value of a control field that does not meet its floor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    pub code: DenialCode,
    pub argument: String,
    /// The reason with the next step, for the model alone: it may quote the model.
    pub detail: String,
}

/// The bound values of a call, and what is wrong with them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inputs {
    pub values: Vec<Input>,
    /// In the order of their severity.
    pub findings: Vec<Finding>,
    /// True if a control field has a value.
    pub has_floored: bool,
}

impl Inputs {
    /// Returns whether the call has values of control fields, and each meets its floor.
    pub fn are_met(&self) -> bool {
        self.has_floored && self.findings.is_empty()
    }

    /// Returns the first finding of a severity.
    pub fn first(&self, severity: Severity) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.severity == severity)
    }

    /// Returns whether a handle has the whole value of an argument.
    pub fn has_whole(&self, argument: &str) -> bool {
        self.values.iter().any(|input| input.at == pointer("", argument))
    }

    /// Returns the handle of an argument's value, if one handle has it.
    pub fn handle(&self, argument: &str) -> Option<HandleId> {
        self.values.iter().find(|input| input.argument() == argument).map(|input| input.handle)
    }
}

/// A tool whose call is bound.
#[derive(Clone, Copy)]
pub struct Tool<'a> {
    pub server: &'a str,
    /// Its name on its server.
    pub name: &'a str,
    pub manifest: &'a Manifest,
    /// The schema of its arguments.
    pub parameters: &'a Value,
    /// The names of the tools of its server with hard floors, which its arguments must not name.
    pub floored: &'a [String],
}

/// The reason why no reference meets the floor of an object.
const CONTAINER: &str = "its value is an object, and a reference names one value";

/// Binds the values of a call. `recorded` are the bound values of a recorded call, whose arguments have the values in place of references.
pub fn bind(
    arguments: &mut Map<String, Value>,
    tool: Option<Tool<'_>>,
    recorded: &[Input],
    handles: &Handles,
    is_typed: &dyn Fn(&str) -> bool,
) -> Inputs {
    let floors = tool.map_or_else(Floored::default, |tool| Floored::new(tool, arguments));
    let (inputs, pins, containers) = (Inputs::default(), Vec::new(), floors.containers.as_slice());
    let mut binder = Binder { tool, handles, recorded, is_typed, containers, inputs, pins };
    for place in containers {
        binder.find(Severity::Denied, DenialCode::CallInput, place, CONTAINER.to_owned());
    }
    for (at, key) in &floors.keys {
        if !is_typed(key) {
            binder.find(Severity::Asks, DenialCode::CallInput, at, "the person typed no such key".to_owned());
        }
    }
    let mut all = Vec::new();
    for (name, value) in arguments.iter() {
        leaves(&pointer("", name), value, &mut all);
    }
    for leaf in &all {
        binder.leaf(leaf, floors.at.get(&leaf.at));
    }
    binder.refuse_dispatch(arguments);
    for (at, value) in std::mem::take(&mut binder.pins) {
        if let Some(place) = place_mut(arguments, &at) {
            *place = value;
        }
    }
    binder.inputs.findings.sort_by_key(|finding| finding.severity);
    binder.inputs
}

/// Writes references in place of the values that a model took by reference.
pub fn write_references(arguments: &mut Map<String, Value>, bound: &[Input]) {
    for Input { at, handle, .. } in bound.iter().filter(|bound| !bound.by_host) {
        if let Some(place) = place_mut(arguments, at) {
            *place = json!({ LINK: handle });
        }
    }
}

/// Returns the value at a place of arguments.
fn place<'a>(arguments: &'a Map<String, Value>, at: &str) -> Option<&'a Value> {
    let rest = at.get(1..)?.find('/').map_or("", |end| &at[end + 1..]);
    arguments.get(&argument(at))?.pointer(rest)
}

/// Returns the value at a place of arguments, to write.
fn place_mut<'a>(arguments: &'a mut Map<String, Value>, at: &str) -> Option<&'a mut Value> {
    let name = argument(at);
    let rest = at.get(1..)?.find('/').map_or("", |end| &at[end + 1..]);
    arguments.get_mut(&name)?.pointer_mut(rest)
}

/// Returns the argument of a place.
fn argument(at: &str) -> String {
    let name = at.strip_prefix('/').unwrap_or(at);
    name.split('/').next().unwrap_or_default().replace("~1", "/").replace("~0", "~")
}

/// Returns whether another value of the same type could be meant. Where no type is named, only values that name a receiver or an amount
/// are mistaken for each other.
const fn can_be_mistaken(floor: Floor<'_>, kind: InputType) -> bool {
    match kind {
        InputType::Email | InputType::Url | InputType::Phone | InputType::Account | InputType::Amount => true,
        InputType::Any | InputType::Date | InputType::Path | InputType::Number | InputType::Title | InputType::Name => {
            !matches!(floor.taken.kind, InputType::Any)
        }
    }
}

/// What the value at a place needs.
#[derive(Clone, Copy)]
struct Floor<'a> {
    taken: Taken<'a>,
    is_hard: bool,
}

/// The places of a call with a floor.
#[derive(Default)]
struct Floored<'a> {
    at: BTreeMap<String, Floor<'a>>,
    /// Objects at a place with a hard floor, of which no handle has the whole.
    containers: Vec<String>,
    /// The arguments with a key that no schema declares, with the key: it may name the receiver.
    keys: Vec<(String, String)>,
}

impl<'a> Floored<'a> {
    fn new(tool: Tool<'a>, arguments: &Map<String, Value>) -> Self {
        let mut floored = Self::default();
        for (name, value) in arguments {
            let Some((kind, needs)) = tool.manifest.input(name).zip(tool.manifest.needs(name)) else { continue };
            let mut all = Vec::new();
            leaves(&pointer("", name), value, &mut all);
            let taken = Taken { kind, needs, server: tool.server };
            floored.at.extend(all.into_iter().map(|leaf| (leaf.at, Floor { taken, is_hard: false })));
            keys(value, &mut |key| {
                if !is_declared(&tool.parameters["properties"][name], key) {
                    floored.keys.push((pointer("", name), key.to_owned()));
                }
            });
        }
        for hard in tool.manifest.floors.at(arguments) {
            floored.add_hard(&hard, arguments, tool);
        }
        floored
    }

    fn add_hard(&mut self, hard: &floors::Floor, arguments: &Map<String, Value>, tool: Tool<'a>) {
        let Some(value) = place(arguments, &hard.at) else { return };
        let mut places = Vec::new();
        floored(&hard.at, value, &mut places);
        for at in places {
            let fields = place(arguments, &at).and_then(Value::as_object);
            let is_object = fields.is_some_and(|fields| !fields.contains_key(LINK));
            if is_object {
                self.containers.push(at);
                continue;
            }
            let kind = tool.manifest.input(&argument(&at)).unwrap_or(InputType::Any);
            let known = self.at.get(&at).filter(|known| known.is_hard).map_or(Labels::NONE, |known| known.taken.needs);
            let taken = Taken { kind, needs: hard.needs.join(known), server: tool.server };
            self.at.insert(at, Floor { taken, is_hard: true });
        }
    }
}

struct Binder<'a> {
    tool: Option<Tool<'a>>,
    handles: &'a Handles,
    recorded: &'a [Input],
    is_typed: &'a dyn Fn(&str) -> bool,
    /// The objects at places with a hard floor.
    containers: &'a [String],
    inputs: Inputs,
    /// The values to write, by place.
    pins: Vec<(String, Value)>,
}

impl Binder<'_> {
    fn find(&mut self, severity: Severity, code: DenialCode, at: &str, detail: String) {
        let argument = argument(at);
        self.inputs.findings.push(Finding { severity, code, detail: format!("{argument}: {detail}"), argument });
    }

    fn leaf(&mut self, leaf: &Leaf, floor: Option<&Floor<'_>>) {
        let at = leaf.at.as_str();
        let recorded = self.recorded.iter().find(|bound| bound.at == at).cloned();
        match (&leaf.content, floor, recorded) {
            (Content::Literal(value), Some(floor), Some(bound)) => self.again(value, *floor, &bound),
            (_, _, Some(_)) => {
                let detail = "the recorded value is another one".to_owned();
                self.find(Severity::Denied, DenialCode::CallInput, at, detail);
            }
            (Content::Literal(value), Some(floor), None) => self.literal(at, value, *floor),
            (Content::Literal(_) | Content::Id(_), None, None) => {}
            (Content::Link(_), None, None) if self.is_in_container(at) => {
                self.find(Severity::Unresolved, DenialCode::CallInput, at, CONTAINER.to_owned());
            }
            (Content::Link(_), None, None) => {
                let detail = "this field takes no reference; write the value itself".to_owned();
                self.find(Severity::Unresolved, DenialCode::CallLinkType, at, detail);
            }
            // The text of a tool without control fields may well be about references.
            (Content::Bad(_), None, None) if !self.has_inputs() => {}
            (Content::Bad(why), _, None) => {
                let detail = format!("{why}; {}", self.offer(None));
                self.find(Severity::Unresolved, DenialCode::CallLinkUnknown, at, detail);
            }
            (Content::Id(id) | Content::Link(id), Some(floor), None) => match self.handles.find(*id) {
                None => {
                    let detail = format!("{id} is no value of this task; {}", self.offer(Some(floor.taken)));
                    self.find(Severity::Unresolved, DenialCode::CallLinkUnknown, at, detail);
                }
                Some(handle) => self.pin(at, handle, *floor, false),
            },
        }
    }

    fn is_in_container(&self, at: &str) -> bool {
        self.containers.iter().any(|place| at.strip_prefix(place.as_str()).is_some_and(|rest| rest.starts_with('/')))
    }

    fn has_inputs(&self) -> bool {
        self.tool.is_some_and(|tool| tool.manifest.has_inputs())
    }

    /// Pins the value of a handle.
    fn pin(&mut self, at: &str, handle: &Handle, floor: Floor<'_>, by_host: bool) {
        let Some(value) = handle.value(self.takes_number(at)) else {
            let detail = format!("{:?} is no number with one reading; ask the person to write it plainly", handle.text);
            return self.find(Severity::Unresolved, DenialCode::CallLinkType, at, detail);
        };
        self.pins.push((at.to_owned(), value));
        self.bound(at, handle, floor, by_host);
    }

    /// Checks a recorded value again.
    fn again(&mut self, value: &Value, floor: Floor<'_>, bound: &Input) {
        let at = bound.at.as_str();
        let Some(handle) = self.handles.again(bound.handle, value) else {
            return match self.handles.find(bound.handle) {
                None => {
                    let detail = format!("{} is a value of this task no longer", bound.handle);
                    self.find(Severity::Unresolved, DenialCode::CallLinkUnknown, at, detail);
                }
                Some(_) => {
                    let detail = format!("the value of {} is another one now", bound.handle);
                    self.find(Severity::Denied, DenialCode::CallInput, at, detail);
                }
            };
        };
        self.bound(at, handle, floor, bound.by_host);
    }

    /// Checks the handle of a value.
    fn bound(&mut self, at: &str, handle: &Handle, floor: Floor<'_>, by_host: bool) {
        let id = handle.id;
        let field = argument(at);
        self.inputs.has_floored = true;
        let is_elsewhere = self.inputs.values.iter().filter(|other| other.handle == id).count() >= handle.count();
        self.inputs.values.push(Input { at: at.to_owned(), handle: id, by_host });
        let taken = floor.taken;
        if !fits(taken.kind, id.kind) {
            let detail = format!(
                "{id} is of type {}, and this field takes {}; {}",
                id.kind,
                taken.kind,
                self.offer(Some(taken))
            );
            return self.find(Severity::Denied, DenialCode::CallLinkType, at, detail);
        }
        if !handle.labels_for(taken.server).has_all(taken.needs) {
            let needed: Vec<&str> = taken.needs.list().into_iter().map(Label::name).collect();
            let detail = format!("{id} lacks labels that this field of {} needs: {}", taken.server, needed.join(" "));
            return self.find(Severity::Denied, DenialCode::CallLinkLabel, at, detail);
        }
        if handle.is_used() || is_elsewhere {
            self.find(Severity::Asks, DenialCode::CallLinkUsed, at, format!("{id} was used already"));
        }
        let doubt = match (handle.task, handle.is_mixed) {
            (Task::Earlier, _) => Some("it is of an earlier task"),
            (Task::This, true) => Some("its letters are of several scripts and can look alike"),
            (Task::This, false) if can_be_mistaken(floor, id.kind) && !self.handles.is_clear(handle, taken, &field) => {
                Some("the task has several values of this type")
            }
            (Task::This, false) => None,
        };
        if let Some(doubt) = doubt {
            self.find(Severity::Asks, DenialCode::CallInput, at, format!("{id}: {doubt}"));
        }
    }

    /// Finds the handle that has a literal. A hard floor takes references alone.
    fn literal(&mut self, at: &str, value: &Value, floor: Floor<'_>) {
        let equal = self.handles.equal(floor.taken, value);
        if floor.is_hard {
            let detail = match equal {
                Equal::One(handle) => format!("pass {{\"@link\": \"{}\"}} in place of the value", handle.id),
                Equal::None | Equal::Several => {
                    format!("this field takes values by reference alone; {}", self.offer(Some(floor.taken)))
                }
            };
            return self.find(Severity::Denied, DenialCode::CallInput, at, detail);
        }
        if matches!(value, Value::Null) || floor.taken.kind == InputType::Any && value.is_boolean() {
            return;
        }
        let is_any = floor.taken.kind == InputType::Any;
        match equal {
            Equal::One(handle) => self.pin_equal(at, value, handle, floor),
            // No type says which value is meant, so other words that the person typed are theirs. An address with more around it is not.
            Equal::None
                if is_any
                    && TYPED.has_all(floor.taken.needs)
                    && is_typed_value(value, self.is_typed)
                    && !value.as_str().is_some_and(|text| self.handles.is_in(text)) =>
            {
                self.inputs.has_floored = true;
            }
            Equal::None | Equal::Several => {
                let detail = "this task has no such value, or several".to_owned();
                self.find(Severity::Asks, DenialCode::CallInput, at, detail);
            }
        }
    }

    /// Pins the value of the handle that has a literal, in the form of the literal.
    fn pin_equal(&mut self, at: &str, literal: &Value, handle: &Handle, floor: Floor<'_>) {
        match handle.value(literal.is_number()) {
            // A number in digits stays as the model wrote it: its currency may be another argument.
            _ if handle.is_number_text(literal) => self.bound(at, handle, floor, true),
            Some(value) if value.is_string() || *literal == value => {
                self.pins.push((at.to_owned(), value));
                self.bound(at, handle, floor, true);
            }
            _ => self.bound_as_written(at, handle, floor),
        }
    }

    /// Checks the handle of a number that is written otherwise, such as 20.0 for 20: the number is the same.
    fn bound_as_written(&mut self, at: &str, handle: &Handle, floor: Floor<'_>) {
        if let Some(value) = handle.value(true) {
            self.pins.push((at.to_owned(), value));
        }
        self.bound(at, handle, floor, true);
    }

    /// Refuses the name of a floored tool of the same server in a call of another one: a dispatcher would pass around its floor.
    fn refuse_dispatch(&mut self, arguments: &Map<String, Value>) {
        let Some(tool) = self.tool.filter(|tool| !tool.floored.is_empty()) else { return };
        let others: Vec<&str> = tool.floored.iter().map(String::as_str).filter(|name| *name != tool.name).collect();
        for (name, value) in arguments {
            if let Some(other) = dispatched(value, &others) {
                let detail = format!("{other} takes values by reference; call it directly");
                self.find(Severity::Denied, DenialCode::CallInput, &pointer("", name), detail);
            }
        }
    }

    /// Returns whether the field at a place takes a number.
    fn takes_number(&self, at: &str) -> bool {
        let mut schema = self.tool.map_or(&Value::Null, |tool| tool.parameters);
        for part in at.split('/').skip(1) {
            let part = part.replace("~1", "/").replace("~0", "~");
            let inner = schema["properties"].get(&part);
            schema = inner.unwrap_or(&schema["items"]);
        }
        takes_number(schema)
    }

    /// Returns the sentence about the values that can be passed.
    fn offer(&self, taken: Option<Taken<'_>>) -> String {
        let is_taken = |handle: &&Handle| taken.is_none_or(|taken| handle.is_taken(taken));
        let ids = self.handles.iter().filter(is_taken).take(OFFERED_MAX).map(|handle| format!("{}", handle.id));
        let ids: Vec<String> = ids.collect();
        match ids.is_empty() {
            true => "there is no such value in this task: ask the person".to_owned(),
            false => format!("pass {{\"@link\": ID}} with one of {}", ids.join(", ")),
        }
    }
}

/// The labels of words that a person typed, also if no handle has them.
const TYPED: Labels = Labels::from_provenance(Provenance::Person);

/// Ids in one refusal.
const OFFERED_MAX: usize = 8;
