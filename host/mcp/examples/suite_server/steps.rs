//! The steps of a tool on the state of its server. They are data, so that a suite needs no code.
//!
//! A step reads a value, or changes one. A path is a JSON Pointer whose `{argument}` is the value of an argument.

use serde_json::{Map, Value, json};

/// Fields of a tool that are no part of its definition.
const OWN: [&str; 3] = ["steps", "answer", "subject"];

/// The tools of a server with its state.
#[derive(Debug)]
pub(crate) struct Program {
    tools: Vec<Map<String, Value>>,
    state: Value,
}

/// The values that a template of one call takes.
struct Values<'a> {
    arguments: &'a Value,
    state: &'a Value,
    it: &'a Value,
}

impl Program {
    pub(crate) fn new(file: &Value, state: Value) -> Result<Self, String> {
        let tools = file["tools"].as_array().ok_or("the file of tools needs a list `tools`")?;
        let entry = |tool: &Value| tool.as_object().cloned().ok_or_else(|| format!("a tool is no object: {tool}"));
        Ok(Self { tools: tools.iter().map(entry).collect::<Result<_, _>>()?, state })
    }

    /// Takes other tools, and keeps the state.
    pub(crate) fn replace(&mut self, file: &Value) -> Result<(), String> {
        let Self { tools, .. } = Self::new(file, Value::Null)?;
        self.tools = tools;
        Ok(())
    }

    pub(crate) fn state(&self) -> &Value {
        &self.state
    }

    /// Returns the definitions, as the server lists them.
    pub(crate) fn listed(&self) -> Vec<Value> {
        let is_listed = |name: &str| !OWN.contains(&name);
        let listed = self.tools.iter().map(|tool| {
            let fields = tool.iter().filter(|(name, _)| is_listed(name));
            Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
        });
        listed.collect()
    }

    /// Runs the steps of a tool, and returns its answer. Changes nothing if a step fails.
    pub(crate) fn call(&mut self, name: &str, arguments: &Value) -> Result<Value, String> {
        let found = self.tools.iter().find(|tool| tool.get("name").is_some_and(|named| named == name));
        let tool = found.ok_or_else(|| format!("there is no tool {name}"))?;
        let (mut state, mut it) = (self.state.clone(), Value::Null);
        for step in tool.get("steps").and_then(Value::as_array).into_iter().flatten() {
            run(step, &mut state, &mut it, arguments)?;
        }
        let values = Values { arguments, state: &state, it: &it };
        let answer = match tool.get("answer") {
            Some(template) => values.fill(template).unwrap_or(Value::Null),
            None => it.clone(),
        };
        self.state = state;
        Ok(answer)
    }
}

/// Runs one step: `read` sets the value `$it`, and the others change the state.
fn run(step: &Value, state: &mut Value, it: &mut Value, arguments: &Value) -> Result<(), String> {
    let values = Values { arguments, state: &*state, it: &*it };
    let path = |operation: &str| step[operation].as_str().map(|path| values.pointer(path));
    let value = values.fill(&step["value"]);
    let wanted = Wanted {
        equal: values.fill(&step["where"]).unwrap_or_default(),
        part: values.fill(&step["contains"]).unwrap_or_default(),
    };
    if let Some(path) = path("read") {
        let last = values.fill(&step["last"]).and_then(|last| last.as_f64());
        *it = read(step, state.pointer(&path), &wanted, last).unwrap_or_else(|| step["else"].clone());
        return Ok(());
    }
    let missing = || step["absent"].as_str().map_or("not found".to_owned(), |text| values.text(text));
    let (operation, path, missing) = match ["append", "set", "merge", "delete"].map(|name| (name, path(name))) {
        [(name, Some(path)), ..] | [_, (name, Some(path)), ..] => (name, path, missing()),
        [_, _, (name, Some(path)), _] | [_, _, _, (name, Some(path))] => (name, path, missing()),
        _ => return Err(format!("unknown step {step}")),
    };
    let (parent, field) = path.rsplit_once('/').unwrap_or_default();
    match (operation, state.pointer_mut(&path)) {
        ("append", Some(Value::Array(list))) => list.push(value.unwrap_or_default()),
        ("merge", Some(Value::Array(list))) => {
            let mut found = list.iter_mut().filter(|element| wanted.fits(element)).peekable();
            found.peek().ok_or_else(|| missing.clone())?;
            found.for_each(|element| merge(element, value.as_ref()));
        }
        ("merge", Some(object)) => merge(object, value.as_ref()),
        ("delete", Some(Value::Array(list))) if !step["where"].is_null() => {
            let before = list.len();
            list.retain(|element| !wanted.fits(element));
            if list.len() == before {
                return Err(missing);
            }
        }
        ("set" | "delete", _) => {
            let parent = state.pointer_mut(parent).and_then(Value::as_object_mut).ok_or(missing.clone())?;
            let field = field.replace("~1", "/").replace("~0", "~");
            match operation {
                "set" => drop(parent.insert(field, value.unwrap_or_default())),
                _ => drop(parent.remove(&field).ok_or(missing)?),
            }
        }
        _ => return Err(missing),
    }
    Ok(())
}

/// The elements of a list that a step means.
struct Wanted {
    /// Fields with these values.
    equal: Value,
    /// Fields with these parts of texts, in any case.
    part: Value,
}

impl Wanted {
    fn fits(&self, element: &Value) -> bool {
        let fields = |wanted: &Value| wanted.as_object().cloned().unwrap_or_default();
        let lower = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned).to_lowercase();
        fields(&self.equal).iter().all(|(name, value)| same(&element[name], value))
            && fields(&self.part).iter().all(|(name, value)| lower(&element[name]).contains(&lower(value)))
    }
}

/// Returns whether two values are equal; 4 and 4.0 are.
fn same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.total_cmp(&other).is_eq(),
        _ => one == other,
    }
}

fn read(step: &Value, found: Option<&Value>, wanted: &Wanted, last: Option<f64>) -> Option<Value> {
    let fields: Option<Vec<&str>> =
        step["fields"].as_array().map(|names| names.iter().filter_map(Value::as_str).collect());
    let shown = |value: &Value| match &fields {
        Some(names) => names.iter().map(|name| ((*name).to_owned(), value[name].clone())).collect(),
        None => value.clone(),
    };
    match found? {
        Value::Array(list) => {
            let mut found: Vec<Value> = list.iter().filter(|element| wanted.fits(element)).map(shown).collect();
            if let Some(last) = last {
                // A count of elements; a negative one is none.
                let from = found.len().saturating_sub(last.max(0.0) as usize);
                found.drain(..from);
            }
            Some(Value::Array(found))
        }
        other => Some(shown(other)),
    }
}

/// Sets the fields of an object.
fn merge(object: &mut Value, fields: Option<&Value>) {
    for (name, value) in fields.and_then(Value::as_object).into_iter().flatten() {
        object[name] = value.clone();
    }
}

impl Values<'_> {
    /// Returns a path with the values of arguments.
    fn pointer(&self, path: &str) -> String {
        self.replace(path, |text| text.replace('~', "~0").replace('/', "~1"))
    }

    /// Returns a text with the values of arguments.
    fn text(&self, text: &str) -> String {
        self.replace(text, str::to_owned)
    }

    fn replace(&self, text: &str, form: impl Fn(&str) -> String) -> String {
        let mut done = text.to_owned();
        for (name, value) in self.arguments.as_object().into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            done = done.replace(&format!("{{{name}}}"), &form(&value));
        }
        done
    }

    /// Returns the value of a template; `None` for an argument that the call does not have.
    fn fill(&self, template: &Value) -> Option<Value> {
        match template {
            Value::String(text) if text == "$it" => Some(self.it.clone()),
            Value::String(text) => match text.strip_prefix('$') {
                Some(name) => self.arguments.get(name).filter(|value| !value.is_null()).cloned(),
                None => Some(self.text(text).into()),
            },
            Value::Object(fields) => match (fields.get("$state"), fields.get("$next")) {
                (Some(path), _) => self.state.pointer(&self.pointer(path.as_str()?)).cloned(),
                (_, Some(lists)) => Some(self.next(lists)),
                _ => {
                    let filled = fields.iter().filter_map(|(name, value)| Some((name.clone(), self.fill(value)?)));
                    Some(Value::Object(filled.collect()))
                }
            },
            Value::Array(values) => Some(values.iter().filter_map(|value| self.fill(value)).collect()),
            Value::Null => None,
            other => Some(other.clone()),
        }
    }

    /// Returns the number after the largest `id` in these lists.
    fn next(&self, lists: &Value) -> Value {
        let lists = lists.as_array().into_iter().flatten().filter_map(Value::as_str);
        let elements = lists.filter_map(|path| self.state.pointer(path)?.as_array()).flatten();
        json!(elements.filter_map(|element| element["id"].as_i64()).max().unwrap_or_default() + 1)
    }
}
