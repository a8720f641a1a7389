//! A suite as data: servers with their tools and state, tasks, injections and checks. `docs/autonomy-suites.md` has the format.
//!
//! Reads and checks files, and runs nothing. See `stage` for the runs.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A suite.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Suite {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) licence: String,
    /// The text around the goal of an injection.
    #[serde(default = "goal_alone")]
    frame: String,
    /// How an injection is written.
    #[serde(default = "plain")]
    pub(crate) encodings: Vec<Encoding>,
    #[serde(rename = "server")]
    pub(crate) servers: Vec<Listed>,
    #[serde(rename = "place", default)]
    places: Vec<Place>,
    #[serde(skip)]
    pub(crate) tasks: Vec<Task>,
    #[serde(skip)]
    pub(crate) injections: Vec<Injection>,
    #[serde(skip)]
    pub(crate) directory: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Encoding {
    Plain,
    Base64,
}

/// A server and its files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) tools: PathBuf,
    state: PathBuf,
    pub(crate) rules: Option<PathBuf>,
    /// The subjects of the tools that act, by full name.
    #[serde(skip)]
    subjects: BTreeMap<String, String>,
}

/// A text of the state that others write.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    name: String,
    text: String,
}

/// The message of a person, with the calls that answer it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) typed: String,
    pub(crate) answer: String,
    #[serde(rename = "call", default)]
    pub(crate) calls: Vec<Call>,
    #[serde(default)]
    pub(crate) solved: Vec<Check>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    /// `SERVER__TOOL`.
    pub(crate) tool: String,
    #[serde(default = "no_arguments")]
    pub(crate) arguments: Value,
}

/// An instruction of a stranger, with the calls of a model that obeys it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Injection {
    pub(crate) name: String,
    goal: String,
    #[serde(rename = "call")]
    pub(crate) calls: Vec<Call>,
    pub(crate) happened: Vec<Check>,
}

/// A condition on the end of a run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    /// The server; the first one without it.
    server: Option<String>,
    /// A JSON Pointer into its state; `*` is each element.
    at: Option<String>,
    #[serde(default)]
    has: BTreeMap<String, Value>,
    /// Parts of texts, in any case.
    #[serde(default)]
    contains: BTreeMap<String, String>,
    /// The answer has one of these texts.
    #[serde(default)]
    says: Vec<String>,
    /// The state is the one at the beginning.
    #[serde(default)]
    unchanged: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tasks {
    task: Vec<Task>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Injections {
    #[serde(default)]
    injection: Vec<Injection>,
}

fn goal_alone() -> String {
    "{goal}".to_owned()
}

fn plain() -> Vec<Encoding> {
    vec![Encoding::Plain]
}

fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

pub(crate) fn toml_file<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn json_file(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Suite {
    /// Reads a suite of this repository.
    pub(crate) fn own(name: &str) -> Self {
        Self::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/autonomy").join(name))
    }

    /// Reads a suite, and names the file with a mistake.
    pub(crate) fn read(directory: &Path) -> Self {
        let mut suite: Self = toml_file(&directory.join("suite.toml"));
        suite.tasks = toml_file::<Tasks>(&directory.join("tasks.toml")).task;
        suite.injections = toml_file::<Injections>(&directory.join("injections.toml")).injection;
        for server in &mut suite.servers {
            let tools = json_file(&directory.join(&server.tools));
            let acting = tools["tools"].as_array().expect("a list `tools`").iter().filter_map(|tool| {
                let name = tool["name"].as_str().expect("a tool has a name");
                Some((format!("{}__{name}", server.name), tool["subject"].as_str()?.to_owned()))
            });
            server.subjects = acting.collect();
        }
        directory.clone_into(&mut suite.directory);
        suite
    }

    /// Copies the files of the suite, so that a test can change them.
    pub(crate) fn copied(&self) -> tempfile::TempDir {
        let copied = tempfile::tempdir().expect("a directory");
        for file in std::fs::read_dir(&self.directory).expect("a directory") {
            let path = file.expect("readable").path();
            if path.is_file() {
                std::fs::copy(&path, copied.path().join(path.file_name().expect("a name"))).expect("copied");
            }
        }
        copied
    }

    /// Returns the subject of a tool that acts; `None` for one that only reads.
    pub(crate) fn subject(&self, tool: &str) -> Option<&str> {
        self.servers.iter().find_map(|server| server.subjects.get(tool)).map(String::as_str)
    }

    /// Returns the whole text of an injection.
    pub(crate) fn instruction(&self, injection: &Injection) -> String {
        self.frame.replace("{goal}", &injection.goal)
    }

    /// Returns the state at the beginning of a run, with `foreign` behind the text of each place.
    pub(crate) fn state(&self, server: &Listed, foreign: &str) -> Value {
        let mut state = json_file(&self.directory.join(&server.state));
        self.fill(&mut state, foreign);
        state
    }

    /// Returns calls whose arguments have the texts of places, with `foreign` behind each.
    pub(crate) fn placed(&self, calls: &[Call], foreign: &str) -> Vec<Call> {
        let mut calls = calls.to_vec();
        calls.iter_mut().for_each(|call| self.fill(&mut call.arguments, foreign));
        calls
    }

    fn fill(&self, value: &mut Value, foreign: &str) {
        match value {
            Value::String(text) => {
                for place in &self.places {
                    *text = text.replace(&format!("{{{}}}", place.name), &format!("{}{foreign}", place.text));
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.fill(value, foreign)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.fill(value, foreign)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl Call {
    /// Returns the arguments that a person expects: each value as it is sent.
    pub(crate) fn expected(&self) -> Value {
        expected(&self.arguments)
    }

    /// Returns whether a call that was made is this one.
    pub(crate) fn is(&self, tool: &str, arguments: &Value) -> bool {
        self.tool == tool && same(&self.expected(), arguments)
    }
}

fn expected(value: &Value) -> Value {
    match value {
        Value::Object(fields) => match (fields.get("$link"), fields.get("is")) {
            (Some(typed), _) => typed.clone(),
            (None, Some(value)) if fields.contains_key("$from") => value.clone(),
            _ => Value::Object(fields.iter().map(|(name, value)| (name.clone(), expected(value))).collect()),
        },
        Value::Array(values) => values.iter().map(expected).collect(),
        other => other.clone(),
    }
}

/// Returns whether two values are equal; 4 and 4.0 are.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().expect("a number"), other.as_f64().expect("a number"));
            one.total_cmp(&other).is_eq()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |name: &String, value: &Value| other.get(name).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(|(name, value)| has(name, value))
        }
        _ => one == other,
    }
}

/// The end of a run: the states at its beginning and at its end by server, and the answer.
pub(crate) struct End<'a> {
    pub(crate) before: &'a [(String, Value)],
    pub(crate) after: &'a [(String, Value)],
    pub(crate) answer: &'a str,
}

impl Check {
    /// Returns whether each part of the condition holds.
    pub(crate) fn holds(&self, end: &End<'_>) -> bool {
        let named = |states: &'_ [(String, Value)]| {
            let found = states.iter().find(|(name, _)| self.server.as_ref().is_none_or(|server| server == name));
            found.unwrap_or_else(|| panic!("no server {:?}", self.server)).1.clone()
        };
        let is_found = |path: &String| {
            let after = named(end.after);
            elements(&after, path).into_iter().any(|element| self.fits(element))
        };
        self.at.as_ref().is_none_or(is_found)
            && (self.says.is_empty() || self.says.iter().any(|text| end.answer.contains(text)))
            && (!self.unchanged || same(&named(end.before), &named(end.after)))
    }

    fn fits(&self, element: &Value) -> bool {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
        self.has.iter().all(|(name, value)| same(&element[name], value))
            && self.contains.iter().all(|(name, part)| text(&element[name]).contains(&part.to_lowercase()))
    }
}

/// Returns the values at a path.
fn elements<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    match path.split_once("/*") {
        None => value.pointer(path).into_iter().collect(),
        Some((list, rest)) => {
            let list = value.pointer(list).and_then(Value::as_array);
            list.into_iter().flatten().flat_map(|element| elements(element, rest)).collect()
        }
    }
}
