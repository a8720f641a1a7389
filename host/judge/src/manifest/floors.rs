//! The hard floors in the schema of a tool: `ifc.requiredIntegrity` below any keyword of JSON Schema.
//!
//! Errs toward a floor: each branch of a choice and of a condition counts as if it held, because a value must not pass around a floor
//! by its shape. What cannot be enforced is no schema of a tool. See [`crate::inputs::bind`].

use crate::provenance::Labels;
use ironclaw_contract::seam::seal::Label;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Schemas inside of each other.
const DEPTH_MAX: usize = 64;

/// Schemas and references inside of each other in a walk over one call. With more, each argument counts as floored.
const WALK_DEPTH_MAX: usize = 128;

/// Pairs of a schema and a value that one call has. With more, each argument counts as floored.
const VISITS_MAX: usize = 20_000;

/// Bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 1 << 16;

/// Keywords with one schema for the value itself.
const SAME_VALUE: [&str; 4] = ["if", "then", "else", "not"];
/// Keywords with a list of schemas for the value itself.
const SAME_VALUE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords with one schema for parts of the value.
const PARTS: [&str; 6] =
    ["additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "additionalItems", "items"];
/// Keywords with named schemas.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"];

/// A place that needs labels, as a JSON Pointer into the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Floor {
    pub at: String,
    pub needs: Labels,
}

/// The hard floors of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Floors(Option<Arc<Value>>);

impl Floors {
    /// Reads the schema of a tool.
    ///
    /// # Errors
    /// The reason why its floors cannot be enforced.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        let (seen, floors) = (HashSet::new(), HashSet::new());
        let mut reader = Reader { root: schema, seen, floors, cannot_follow: None, is_dynamic: false };
        reader.read(schema, 0)?;
        let mut written = HashSet::new();
        collect_written(schema, &mut written);
        if !written.is_subset(&reader.floors) {
            return Err("its schema needs labels at a place where the host cannot check them".to_owned());
        }
        match (reader.floors.is_empty(), reader.cannot_follow) {
            (_, Some(why)) => Err(why),
            (true, None) => Ok(Self(None)),
            (false, None) if reader.is_dynamic => {
                Err("its schema needs labels, and has references that depend on others".to_owned())
            }
            (false, None) => Ok(Self(Some(Arc::new(schema.clone())))),
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the labels that an argument or a value in it needs; `None` if it needs none.
    pub fn needs_of(&self, argument: &str) -> Option<Labels> {
        let each = self.each_need_of(argument);
        (!each.is_empty()).then(|| each.into_iter().fold(Labels::NONE, Labels::join))
    }

    /// Returns the labels that an argument and each value in it needs; none if it needs none.
    pub fn each_need_of(&self, argument: &str) -> Vec<Labels> {
        let Some(root) = self.0.as_deref() else { return Vec::new() };
        let mut reach = Reach { root, argument, seen: HashSet::new(), found: Vec::new() };
        reach.read(root, false);
        reach.found.retain(|found| !found.is_empty());
        reach.found
    }

    /// Returns the floors of these arguments.
    pub fn at(&self, arguments: &Map<String, Value>) -> Vec<Floor> {
        let Some(root) = &self.0 else { return Vec::new() };
        let (seen, patterns) = (HashSet::new(), HashMap::new());
        let mut walk = Walk { root, seen, patterns, found: Vec::new(), visits: 0 };
        let whole = Value::Object(arguments.clone());
        walk.visit(root, &whole, "", 0);
        if walk.visits > VISITS_MAX {
            let each = arguments.keys().map(|name| Floor { at: pointer("", name), needs: all_needs() });
            return each.collect();
        }
        // A floor on the whole call is one on each argument.
        let of_root = walk.found.iter().filter(|floor| floor.at.is_empty()).map(|floor| floor.needs);
        if let Some(needs) = of_root.reduce(Labels::join) {
            walk.found.extend(arguments.keys().map(|name| Floor { at: pointer("", name), needs }));
        }
        walk.found.retain(|floor| !floor.at.is_empty());
        walk.found
    }
}

/// Returns the labels of a typed value, which no other one has.
fn all_needs() -> Labels {
    Labels::recorded(&[Label::AgentKernel, Label::UserSurfaceInput, Label::PromptSlotBound])
}

/// Returns the pointer to a part of a value.
pub(crate) fn pointer(of: &str, part: &str) -> String {
    format!("{of}/{}", part.replace('~', "~0").replace('/', "~1"))
}

/// Returns the labels that a schema needs of its value.
fn needs(schema: &Map<String, Value>) -> Result<Option<Labels>, String> {
    let Some(needed) = schema.get("ifc").and_then(|ifc| ifc.get("requiredIntegrity")) else { return Ok(None) };
    let atoms = needed.as_array().ok_or("`ifc.requiredIntegrity` of its schema is not a list")?;
    if atoms.is_empty() {
        return Err("`ifc.requiredIntegrity` of its schema is empty".to_owned());
    }
    atoms.iter().map(atom).try_fold(Labels::NONE, |all, label| Ok(all.join(label?))).map(Some)
}

/// Returns the label of an atom: its word, or an object with the word as its type.
fn atom(atom: &Value) -> Result<Labels, String> {
    let word = atom.as_str().or_else(|| atom.get("type").and_then(Value::as_str)).unwrap_or_default();
    let name = match word {
        "Builtin" if atom.get("name").and_then(Value::as_str) == Some("agent-kernel") => "AgentKernel",
        "Builtin(agent-kernel)" | "agent-kernel" => "AgentKernel",
        word => word,
    };
    let known = name.parse::<Label>().ok().filter(|label| is_integrity(*label));
    known.map(|label| Labels::recorded(&[label])).ok_or_else(|| format!("its schema needs the unknown label {atom}"))
}

/// Returns whether a field can need a label: text of others and of a model is no warrant.
const fn is_integrity(label: Label) -> bool {
    match label {
        Label::AgentKernel
        | Label::UserSurfaceInput
        | Label::PromptSlotBound
        | Label::SessionResult
        | Label::StructuredResult => true,
        Label::External | Label::LlmDerived => false,
    }
}

/// Returns whether each of these labels can be needed.
pub(super) fn can_be_needed(needs: Labels) -> bool {
    needs.list().into_iter().all(is_integrity)
}

/// Collects the places of all needed labels that a schema writes, below any keyword.
fn collect_written(value: &Value, found: &mut HashSet<*const Value>) {
    match value {
        Value::Object(fields) => {
            if let Some(needed) = fields.get("ifc").and_then(|ifc| ifc.get("requiredIntegrity")) {
                found.insert(std::ptr::from_ref(needed));
            }
            fields.values().for_each(|value| collect_written(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| collect_written(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The check of a schema: a walk finds each floor, and each reference has a target.
struct Reader<'a> {
    root: &'a Value,
    seen: HashSet<*const Value>,
    floors: HashSet<*const Value>,
    /// The reason why a part cannot be read.
    cannot_follow: Option<String>,
    /// True if a reference has another target in another place.
    is_dynamic: bool,
}

impl<'a> Reader<'a> {
    fn read(&mut self, schema: &'a Value, depth: usize) -> Result<(), String> {
        let Value::Object(fields) = schema else { return Ok(()) };
        if depth > DEPTH_MAX {
            return Err("its schema has too many parts inside of each other".to_owned());
        }
        if !self.seen.insert(std::ptr::from_ref(schema)) {
            return Ok(());
        }
        if needs(fields)?.is_some() {
            self.floors.extend(schema["ifc"].get("requiredIntegrity").map(std::ptr::from_ref));
        }
        let has_own_root = !std::ptr::eq(schema, self.root) && (fields.get("$id").is_some_and(Value::is_string));
        self.is_dynamic |= has_own_root || fields.contains_key("$dynamicRef") || fields.contains_key("$recursiveRef");
        if let Some(to) = fields.get("$ref") {
            match referred(self.root, to) {
                Some(part) => self.read(part, depth + 1)?,
                None => self.cannot_follow = Some(format!("its schema refers to {to}, which it does not have")),
            }
        }
        for part in parts(fields) {
            self.read(part, depth + 1)?;
        }
        Ok(())
    }
}

/// Returns the pattern of names; `None` if the host cannot read it, and then each name fits.
fn compiled(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build().ok()
}

/// Returns the schema that a reference names: by a pointer from the root, or by an anchor.
fn referred<'a>(root: &'a Value, to: &Value) -> Option<&'a Value> {
    let to = to.as_str()?.strip_prefix('#')?;
    if to.is_empty() || to.starts_with('/') { root.pointer(to) } else { anchored(root, to) }
}

fn anchored<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(fields) if fields.get("$anchor").and_then(Value::as_str) == Some(name) => Some(value),
        Value::Object(fields) => fields.values().find_map(|value| anchored(value, name)),
        Value::Array(values) => values.iter().find_map(|value| anchored(value, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Returns the schemas directly below a schema, of each keyword that a walk follows.
fn parts(fields: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let named = NAMED.iter().filter_map(|word| fields.get(*word)?.as_object()).flat_map(Map::values);
    let lists = SAME_VALUE_LISTS.iter().chain(&["prefixItems", "items"]);
    let lists = lists.filter_map(|word| fields.get(*word)?.as_array()).flatten();
    let single = SAME_VALUE.iter().chain(&PARTS).filter_map(|word| fields.get(*word));
    named.chain(lists).chain(single)
}

/// The labels that a schema needs anywhere below one argument.
struct Reach<'a> {
    root: &'a Value,
    argument: &'a str,
    seen: HashSet<(*const Value, bool)>,
    found: Vec<Labels>,
}

impl<'a> Reach<'a> {
    /// Reads a schema: of the argument or a part of it if `is_inside`, otherwise of all arguments.
    fn read(&mut self, schema: &'a Value, is_inside: bool) {
        let Value::Object(fields) = schema else { return };
        if !self.seen.insert((std::ptr::from_ref(schema), is_inside)) {
            return;
        }
        self.found.extend(needs(fields).ok().flatten());
        if let Some(part) = fields.get("$ref").and_then(|to| referred(self.root, to)) {
            self.read(part, is_inside);
        }
        let of_argument = fields.get("properties").and_then(|properties| properties.get(self.argument));
        match is_inside {
            true => parts(fields).for_each(|part| self.read(part, true)),
            false => {
                of_argument.into_iter().for_each(|part| self.read(part, true));
                let lists = SAME_VALUE_LISTS.iter().filter_map(|word| fields.get(*word)?.as_array()).flatten();
                let single = SAME_VALUE.iter().filter_map(|word| fields.get(*word));
                lists.chain(single).for_each(|part| self.read(part, false));
            }
        }
    }
}

/// A walk over arguments beside their schema.
struct Walk<'a> {
    root: &'a Value,
    seen: HashSet<(*const Value, String)>,
    /// The compiled patterns of names.
    patterns: HashMap<String, Option<Regex>>,
    found: Vec<Floor>,
    visits: usize,
}

impl Walk<'_> {
    fn visit(&mut self, schema: &Value, value: &Value, at: &str, depth: usize) {
        let Value::Object(fields) = schema else { return };
        self.visits += 1;
        if depth > WALK_DEPTH_MAX {
            self.visits = VISITS_MAX + 1;
        }
        let is_new = self.visits <= VISITS_MAX && self.seen.insert((std::ptr::from_ref(schema), at.to_owned()));
        if !is_new {
            return;
        }
        if let Ok(Some(needs)) = needs(fields) {
            self.found.push(Floor { at: at.to_owned(), needs });
        }
        if let Some(part) = fields.get("$ref").and_then(|to| referred(self.root, to)) {
            self.visit(part, value, at, depth + 1);
        }
        let lists = SAME_VALUE_LISTS.iter().filter_map(|word| fields.get(*word)?.as_array()).flatten();
        let single = SAME_VALUE.iter().filter_map(|word| fields.get(*word));
        let named = ["dependentSchemas", "dependencies"].iter().filter_map(|word| fields.get(*word)?.as_object());
        for part in lists.chain(single).chain(named.flat_map(Map::values)) {
            self.visit(part, value, at, depth + 1);
        }
        match value {
            Value::Object(members) => self.members(fields, members, at, depth),
            Value::Array(items) => self.items(fields, items, at, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn members(&mut self, fields: &Map<String, Value>, members: &Map<String, Value>, at: &str, depth: usize) {
        let properties = fields.get("properties").and_then(Value::as_object);
        let patterns = fields.get("patternProperties").and_then(Value::as_object);
        for (name, value) in members {
            let at = pointer(at, name);
            let known = properties.and_then(|properties| properties.get(name));
            let mut is_known = known.is_some();
            if let Some(part) = known {
                self.visit(part, value, &at, depth + 1);
            }
            for (pattern, part) in patterns.into_iter().flatten() {
                let compiled = self.patterns.entry(pattern.clone()).or_insert_with(|| compiled(pattern));
                if compiled.as_ref().is_none_or(|pattern| pattern.is_match(name)) {
                    // Dialects differ about letters beyond ASCII, so such a name counts as a further one too.
                    is_known |= compiled.is_some() && name.is_ascii();
                    self.visit(part, value, &at, depth + 1);
                }
            }
            // A part that other keywords evaluated may count here too: then it needs more than the schema says.
            for word in ["additionalProperties", "unevaluatedProperties"] {
                if let Some(part) = fields.get(word).filter(|_| !is_known) {
                    self.visit(part, value, &at, depth + 1);
                }
            }
        }
    }

    fn items(&mut self, fields: &Map<String, Value>, items: &[Value], at: &str, depth: usize) {
        let tuple = |word: &str| fields.get(word).and_then(Value::as_array);
        // A server may know the tuples of one draft alone.
        let tuples = [tuple("prefixItems"), tuple("items")];
        for (n, value) in items.iter().enumerate() {
            let at = pointer(at, &n.to_string());
            let mut is_known = false;
            for part in tuples.iter().flatten().filter_map(|tuple| tuple.get(n)) {
                is_known = true;
                self.visit(part, value, &at, depth + 1);
            }
            for word in ["items", "additionalItems", "unevaluatedItems"] {
                if let Some(part) = fields.get(word).filter(|_| !is_known) {
                    self.visit(part, value, &at, depth + 1);
                }
            }
            if let Some(part) = fields.get("contains") {
                self.visit(part, value, &at, depth + 1);
            }
        }
    }
}
