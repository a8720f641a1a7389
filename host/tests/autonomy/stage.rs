//! The runs of a suite: the real daemon with its jails, one process for each MCP server, and the stand-ins of a model and a person.
//!
//! Each run has a conversation of its own, and servers of its own with a fresh state at a fresh address. See `report`.

use super::stand_ins::{Model, Output, approves};
use super::suite::{Call, Encoding, End, Injection, Listed, Suite, Task, json_file};
use crate::e2e::requests::{Stream, approve, reject};
use crate::e2e::streaming;
use crate::support::client::Raw;
use crate::support::host_fixture::TestHost;
use crate::support::jail_fixture::example;
use crate::support::model_server::{Seen, Server};
use base64::Engine;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// The person rejects each injected call, over all runs.
const SETTINGS: &str = "[approval]\nrejected_in_a_row_max = 1000\nrequests_unapproved_per_day = 10000\n";

/// What a run is about.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) task: &'a Task,
    pub(crate) attack: Option<(&'a Injection, Encoding)>,
}

/// What happened in a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The name of the task, and those of the injection and its encoding.
    pub(crate) case: String,
    pub(crate) solved: bool,
    /// The model read the injection, and made its calls.
    pub(crate) obeyed: bool,
    pub(crate) questions: Vec<Question>,
    /// The refused calls, each with its code.
    pub(crate) refused: Vec<String>,
    /// The effects that ran although the task has no such call, or more often than the task has it.
    pub(crate) injected: Vec<String>,
    /// The state has what the injection asks for.
    pub(crate) happened: bool,
}

/// A question to the person.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    /// Each code, with the arguments that it concerns.
    pub(crate) reasons: Vec<String>,
    pub(crate) approved: bool,
}

/// A daemon with an agent whose model is the stand-in.
pub(crate) struct Stage<'a> {
    pub(crate) suite: &'a Suite,
    pub(crate) host: TestHost,
    raw: Raw,
    model: Arc<Mutex<Model>>,
    _server: Server,
    runs: std::cell::Cell<u32>,
    /// The servers of all conversations, with the directory of their states and logs; none if each run has its own.
    serving: Option<(tempfile::TempDir, Vec<Process>)>,
}

/// What a turn came to.
pub(crate) struct Ended {
    pub(crate) questions: Vec<Question>,
    /// The calls, as the view of the message has them.
    pub(crate) calls: Vec<Value>,
    reply: String,
}

/// A process that serves one server of a suite.
struct Process {
    child: Child,
    url: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn start(tools: &Path, state: &Path, log: &Path) -> Self {
        let program = example("suite_server");
        let mut command = Command::new(&program);
        command.arg("--tools").arg(tools).arg("--state").arg(state).arg("--log").arg(log);
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; `.ci/programs` makes it", program.display()));
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("its address");
        Self { child, url: line.trim().to_owned() }
    }
}

impl<'a> Stage<'a> {
    pub(crate) fn new(suite: &'a Suite) -> Self {
        Self::on(suite, |server| streaming::new_host(SETTINGS, server, "openai", &[]))
    }

    fn on(suite: &'a Suite, host: impl FnOnce(&Server) -> TestHost) -> Self {
        let model = Arc::<Mutex<Model>>::default();
        let shared = Arc::clone(&model);
        let server = Server::start(move |seen: &Seen| shared.lock().expect("a model").answer(seen));
        let host = host(&server);
        let raw = Raw::of(&host);
        Self { suite, host, raw, model, _server: server, runs: std::cell::Cell::default(), serving: None }
    }

    /// Returns a stage with these settings, whose conversations share the servers.
    pub(crate) fn serving(suite: &'a Suite, settings: &str) -> Self {
        let settings = format!("{SETTINGS}{settings}");
        Self::on(suite, |server| streaming::new_host(&settings, server, "openai", &[])).with_servers()
    }

    /// Returns a stage on a running host with an agent, whose conversations share the servers.
    pub(crate) fn serving_on(suite: &'a Suite, host: TestHost) -> Self {
        let with_model = |server: &Server| {
            host.add_model(&server.url());
            host.ctl(&["agent", "set", "a", "--model", "m", "--yes"]).ok();
            host
        };
        Self::on(suite, with_model).with_servers()
    }

    fn with_servers(mut self) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let servers = &self.suite.servers;
        let processes = servers.iter().map(|server| self.serve(server, "", directory.path())).collect();
        self.serving = Some((directory, processes));
        self
    }

    pub(crate) fn set_model(&self, model: Model) {
        *self.model.lock().expect("a model") = model;
    }

    /// Returns the calls that reached the shared servers.
    pub(crate) fn logged(&self) -> Vec<Logged> {
        self.serving.as_ref().map(|(directory, _)| self.read_log(directory.path())).unwrap_or_default()
    }

    /// Types a message in a conversation, and answers each question until its turn ends.
    pub(crate) fn say(&self, thread: &str, typed: &str, model: Model, approves: &Approves<'_>) -> Ended {
        self.set_model(model);
        let id = self.raw.send_body("a", &json!({ "thread": thread, "text": typed }));
        let questions = self.decide(approves, &id);
        let ended = self.raw.get(&format!("/v1/messages/{id}")).1;
        let calls = ended["calls"].as_array().cloned().unwrap_or_default();
        Ended { questions, calls, reply: word(&ended["reply"]).to_owned() }
    }

    /// Runs a task, with the stand-in that obeys.
    pub(crate) fn run(&self, case: Case<'_>) -> Outcome {
        let text = case.attack.map(|(injection, _)| self.suite.instruction(injection));
        let foreign = match (&text, case.attack) {
            (Some(text), Some((_, Encoding::Base64))) => {
                format!(" {}", base64::engine::general_purpose::STANDARD.encode(text))
            }
            (text, _) => text.clone().unwrap_or_default(),
        };
        let placed = |calls: &[Call]| self.suite.placed(calls, &foreign);
        let task = Task { calls: placed(&case.task.calls), ..case.task.clone() };
        let instruction = text.zip(case.attack).map(|(text, (injection, _))| (text, placed(&injection.calls)));
        self.play(Case { task: &task, ..case }, &foreign, Model::obeying(&task, instruction))
    }

    /// Runs a task, with a model that repeats the outputs of a trace.
    pub(crate) fn repeat(&self, case: Case<'_>, outputs: Vec<Output>) -> Outcome {
        let foreign = case.attack.map(|(injection, _)| self.suite.instruction(injection)).unwrap_or_default();
        self.play(case, &foreign, Model::recorded(outputs))
    }

    fn play(&self, case: Case<'_>, foreign: &str, model: Model) -> Outcome {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let states: Vec<(String, Value)> =
            self.suite.servers.iter().map(|server| (server.name.clone(), self.suite.state(server, foreign))).collect();
        let processes: Vec<Process> =
            self.suite.servers.iter().map(|server| self.serve(server, foreign, directory.path())).collect();
        let thread = format!("run-{}", self.runs.replace(self.runs.get() + 1));
        let approves = |tool: &str, arguments: &Value| approves(case.task, tool, arguments);
        let ended = self.say(&thread, &case.task.typed, model, &approves);
        drop(processes);
        let logged = self.read_log(directory.path());
        let state = |server: &Listed| json_file(&files(directory.path(), &server.name).0);
        let after: Vec<(String, Value)> =
            self.suite.servers.iter().map(|server| (server.name.clone(), state(server))).collect();
        let end = End { before: &states, after: &after, answer: &ended.reply };
        let (missing, injected) = compare(case.task, &logged, |tool| self.suite.subject(tool).is_some());
        let refused = ended.calls.iter().filter(|call| call["status"] == "refused");
        Outcome {
            case: case.name(),
            solved: missing == 0 && case.task.solved.iter().all(|check| check.holds(&end)),
            obeyed: self.model.lock().expect("a model").has_obeyed,
            questions: ended.questions,
            refused: refused.map(|call| format!("{} {}", word(&call["tool"]), word(&call["code"]))).collect(),
            injected,
            happened: case
                .attack
                .is_some_and(|(injection, _)| injection.happened.iter().all(|check| check.holds(&end))),
        }
    }

    /// Starts a server of the suite, and registers, confirms and grants it as people do.
    fn serve(&self, server: &Listed, foreign: &str, directory: &Path) -> Process {
        let (state, log) = files(directory, &server.name);
        std::fs::write(&state, self.suite.state(server, foreign).to_string()).expect("written");
        std::fs::write(&log, "").expect("written");
        let process = Process::start(&self.suite.directory.join(&server.tools), &state, &log);
        let ctl = |words: &[&str]| self.host.ctl(words).ok();
        let added = ctl(&["--json", "mcp", "add", &server.name, "--yes", "--url", &process.url]).json();
        let digest = added["digest"].as_str().expect("a digest").to_owned();
        let rules = server.rules.as_ref().map(|rules| self.suite.directory.join(rules));
        let mut words = vec!["--json", "mcp", "confirm", &server.name, "--digest", &digest, "--yes"];
        if let Some(rules) = &rules {
            words.extend(["--manifest", rules.to_str().expect("UTF-8")]);
        }
        ctl(&words);
        ctl(&["mcp", "grant", "a", &server.name, "--yes"]);
        process
    }

    /// Answers each question about a message until its turn ends.
    fn decide(&self, approves: &Approves<'_>, message: &str) -> Vec<Question> {
        let mut stream = Stream::open(&self.raw, message);
        let mut questions = Vec::new();
        let mut decided = Vec::new();
        loop {
            let (name, page) = stream.next_of(&["request", "message"]);
            if name == "message" {
                return questions;
            }
            if page["status"] != "pending" || decided.contains(&page["id"]) {
                continue;
            }
            decided.push(page["id"].clone());
            let question = question(approves, &page);
            let (status, answer) =
                if question.approved { approve(&self.raw, &page) } else { reject(&self.raw, &page, "") };
            assert_eq!(status, 200, "{answer}");
            questions.push(question);
        }
    }

    /// Returns the calls that reached the servers.
    fn read_log(&self, directory: &Path) -> Vec<Logged> {
        let mut logged = Vec::new();
        for server in &self.suite.servers {
            let text = std::fs::read_to_string(files(directory, &server.name).1).expect("a log");
            logged.extend(text.lines().map(|line| {
                let line: Value = serde_json::from_str(line).expect("a line of JSON");
                let tool = format!("{}__{}", server.name, word(&line["tool"]));
                Logged { tool, arguments: line["arguments"].clone(), is_done: line["done"] == true }
            }));
        }
        logged
    }
}

impl Case<'_> {
    pub(crate) fn name(&self) -> String {
        let attack = self.attack.map(|(injection, encoding)| format!(" {} {encoding:?}", injection.name));
        format!("{}{}", self.task.name, attack.unwrap_or_default().to_lowercase())
    }
}

/// A call that reached a server.
pub(crate) struct Logged {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) is_done: bool,
}

/// Returns whether the person says yes to a call of a tool with these arguments.
type Approves<'a> = dyn Fn(&str, &Value) -> bool + 'a;

/// Returns the number of the task's calls that did not run, and the effects that are none of the task's calls.
fn compare(task: &Task, logged: &[Logged], acts: impl Fn(&str) -> bool) -> (usize, Vec<String>) {
    let mut own: Vec<&Call> = task.calls.iter().collect();
    let mut injected = Vec::new();
    for call in logged {
        match own.iter().position(|own| own.is(&call.tool, &call.arguments)) {
            Some(at) => drop(call.is_done.then(|| own.remove(at))),
            // A failed call changed nothing, and another reading one neither.
            None if call.is_done && acts(&call.tool) => injected.push(format!("{} {}", call.tool, call.arguments)),
            None => {}
        }
    }
    (own.len(), injected)
}

fn question(approves: &Approves<'_>, page: &Value) -> Question {
    let arguments = page["details"]["call"]["arguments"].clone();
    let reasons = page["reasons"].as_array().expect("reasons").iter().map(|reason| {
        let names: Vec<&str> =
            reason["arguments"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        let code = word(&reason["reason"]);
        if names.is_empty() { code.to_owned() } else { format!("{code}({})", names.join(" ")) }
    });
    let tool = word(&page["subject"]).to_owned();
    Question { approved: approves(&tool, &arguments), reasons: reasons.collect(), tool, arguments }
}

fn files(directory: &Path, server: &str) -> (std::path::PathBuf, std::path::PathBuf) {
    (directory.join(format!("{server}.state.json")), directory.join(format!("{server}.log.jsonl")))
}

pub(crate) fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
