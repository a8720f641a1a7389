//! Turns with a small model, which seldom calls a tool and seldom stops by itself. Each turn ends in an answer or in a notice with a code.
//!
//! Without `IRONCLAW_SMALL_MODEL` a server on loopback answers as small models do. `.ci/long model` installs a real model and names its
//! directory. See `streaming`.
#![allow(clippy::print_stdout)] // the table of the turns

use super::{mcp, mcp_many, role_order};
use crate::ops::stops::text;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::listed_mcp::{Listed, ListedServers};
use crate::support::model_server::{Act, Seen, Server};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Instant;

/// Tokens that the model reads: the prompt of twenty short turns with the default tools.
const CONTEXT_TOKENS: &str = "8192";

/// Settings of the host. The limits are those of a person who waits for an answer of a model without a graphics card.
const SETTINGS: &str = "[turn]\nseconds_max = 240\nmodel_calls_max = 4\n[model]\noutput_tokens_max = 96\n";

/// Endings of a model request that used up its time.
const OUT_OF_TIME: [&str; 3] = ["late", "silent", "stalled"];

/// Requests of a person who tries an assistant for the first time.
const ASKS: [&str; 20] = [
    "Hello!",
    "Who are you?",
    "What can you do for me?",
    "Write the word hello into the file notes.txt.",
    "Read the file notes.txt.",
    "Which files are in your workspace?",
    "What is the capital of France?",
    "Name three colours.",
    "What is 2 plus 2?",
    "Remember that my favourite colour is green.",
    "What is my favourite colour?",
    "Which day is today?",
    "Write a short poem about rain.",
    "Translate \"good morning\" to German.",
    "Search your files for the word hello.",
    "Count from one to ten.",
    "Delete the file notes.txt.",
    "Install the program jq.",
    "Continue.",
    "Thank you, goodbye.",
];

/// Requests for a tool that is one of 300.
const LETTERS: [&str; 4] = [
    "Write a letter to mara about tulips.",
    "Find a tool for letters and use it to write to mara.",
    "Search your tools for letters.",
    "Send mara a letter with the text hello.",
];
enum Model {
    /// A server of this process, which answers as small models do.
    Acted(Server),
    /// A server of llama.cpp.
    Real { port: u16, _process: Running },
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Model {
    fn start() -> Self {
        match std::env::var_os("IRONCLAW_SMALL_MODEL") {
            Some(installed) => {
                let (port, _process) = serve(&PathBuf::from(installed), &[]);
                Self::Real { port, _process }
            }
            None => Self::Acted(Server::start(act_small)),
        }
    }

    fn base_url(&self) -> String {
        match self {
            Self::Acted(server) => format!("{}/v1", server.url()),
            Self::Real { port, .. } => format!("http://127.0.0.1:{port}/v1"),
        }
    }

    /// Returns the requests for one run. An acted model needs no more than its repertoire.
    fn asks(&self) -> &'static [&'static str] {
        match self {
            Self::Acted(_) => &ASKS[..10],
            Self::Real { .. } => &ASKS,
        }
    }
}

/// Answers in the ways of small models: code in place of a call, no end, no words, malformed and unknown calls, a loop of calls, and a
/// server that fails behind a result, and checks the order of roles as a template does.
fn act_small(seen: &Seen) -> Act {
    if let Some(refused) = role_order::refused(seen) {
        return refused;
    }
    let call = |tool: &str, arguments: Value| Act::Call(String::new(), vec![(tool.to_owned(), arguments)]);
    match ASKS.iter().position(|ask| *ask == seen.asked()) {
        Some(0) => Act::Say("Hello! How can I help?".to_owned()),
        Some(1) => Act::Say("```python\nwrite_file(\"notes.txt\")\n```".to_owned()),
        Some(2) => Act::Limit("I can I can I can".to_owned()),
        Some(3) if seen.results().is_empty() => call("write_file", json!("notes.txt")),
        Some(4) if seen.results().is_empty() => call("open_file", json!({ "path": "notes.txt" })),
        Some(5) => call("list_dir", json!({})),
        Some(6) => Act::Say(String::new()),
        // A turn with a tool that fails, and another one after it.
        Some(7 | 9) if seen.results().is_empty() => call("list_dir", json!({})),
        Some(7) => Act::Status(500, Vec::new(), "{}".to_owned()),
        Some(_) | None => Act::Say("Done.".to_owned()),
    }
}

/// Starts the server of an installed model and waits until it answers.
fn serve(installed: &Path, options: &[&str]) -> (u16, Running) {
    let port = {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        free.local_addr().expect("an address").port()
    };
    let log = installed.join("server.log");
    let output = File::create(&log).expect("a log");
    let mut command = Command::new(installed.join("bin/python"));
    command.args(["-m", "llama_cpp.server", "--host", "127.0.0.1", "--port", &port.to_string()]);
    command.arg("--model").arg(installed.join("model.gguf")).args([
        "--model_alias",
        "small",
        "--n_ctx",
        CONTEXT_TOKENS,
    ]);
    command.args(options);
    command.stdout(output.try_clone().expect("a second handle")).stderr(output);
    let mut running = Running(command.spawn().expect("`.ci/long model` installs the server"));
    wait_for("the server of the model", || {
        let ended = running.0.try_wait().expect("our child");
        assert!(ended.is_none(), "the server ended: {}", fs::read_to_string(&log).unwrap_or_default());
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    (port, running)
}

/// The end of one turn.
struct Row {
    seconds: f64,
    tools: Vec<String>,
    /// The answer, or the notice in its place.
    words: String,
    /// The code of the failure, if there is no answer.
    failure: Option<String>,
    input_tokens: u64,
    output_tokens: u64,
}

/// Sends a message and returns the end of its turn.
fn ask(host: &TestHost, agent: &str, words: &str) -> Row {
    let begun = Instant::now();
    let view = host.ctl(&["--json", "chat", agent, words, "--wait", "300s"]).ok().json();
    let seconds = begun.elapsed().as_secs_f64();
    let turn = text(&view, "turn_id");
    let entries: Vec<Value> = host.ledger().into_iter().filter(|entry| entry["data"]["turn"] == *turn).collect();
    let all = entries.iter().map(|entry| &entry["data"]);
    let of = |what: &'static str| all.clone().filter(move |data| data["what"] == what);
    let sum = |field: &str| -> u64 { of("output.sealed").filter_map(|output| output[field].as_u64()).sum() };
    let failure = (view["notice"] == true).then(|| match of("model.failed").next_back() {
        Some(failed) => text(failed, "code"),
        None => text(of("turn.closed").next_back().expect("a closed turn"), "reason"),
    });
    let tools = of("call.recorded").map(|call| text(call, "tool")).collect();
    Row {
        seconds,
        tools,
        words: text(&view, "reply"),
        failure,
        input_tokens: sum("input_tokens"),
        output_tokens: sum("output_tokens"),
    }
}

fn print_table(rows: &[Row]) {
    println!("turn | seconds | outcome | tokens in, out | tools | words");
    for (number, row) in (1..).zip(rows) {
        let outcome = row.failure.as_ref().map_or_else(|| "answer".to_owned(), |code| format!("notice ({code})"));
        let words: String = row.words.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(72).collect();
        let Row { seconds, tools, input_tokens, output_tokens, .. } = row;
        let tools = tools.join(" ");
        println!("{number} | {seconds:.1} | {outcome} | {input_tokens}, {output_tokens} | {tools} | {words}");
    }
}

#[test]
fn turns_with_a_small_model_end_in_answers_or_notices() {
    let model = Model::start();
    let host = TestHost::own(Build::Plain).configured(SETTINGS).started();
    let endpoint = ["--kind", "openai", "--base-url", &model.base_url(), "--model", "small", "--no-key"];
    host.ctl(&[&["model", "add", "m"][..], &endpoint].concat()).ok();
    host.ctl(&["agent", "add", "a", "--model", "m"]).ok();
    let rows: Vec<Row> = model.asks().iter().map(|words| ask(&host, "a", words)).collect();
    print_table(&rows);
    for (number, row) in (1..).zip(&rows) {
        assert!(!row.words.trim().is_empty(), "turn {number}: no words");
        let is_late = row.failure.as_ref().is_some_and(|code| OUT_OF_TIME.contains(&code.as_str()));
        assert!(!is_late, "turn {number}: {:?}", row.failure);
    }
    assert!(rows.iter().any(|row| row.failure.is_none()), "no turn has an answer");
    if let Model::Acted(_) = model {
        assert_eq!(rows[9].failure, None, "a turn with a tool after a failed one: {}", rows[9].words);
    }
    let session = text(&host.session(), "id");
    let (status, shown) = Raw::of(&host).get(&format!("/v1/sessions/{session}"));
    assert_eq!((status, &shown["failures"]), (200, &json!(0)), "the sandbox survived every answer: {shown}");
}

#[test]
#[ignore = "it needs a small model; `.ci/long model` runs it"]
fn turns_with_300_tools_end_and_their_searches_are_counted() {
    let installed = std::env::var_os("IRONCLAW_SMALL_MODEL").expect("`.ci/long model` installs a model");
    // The format gives the model the names of the tools, and lets it begin with a call or with words only.
    let (port, _process) = serve(&PathBuf::from(installed), &["--chat_format", "chatml-function-calling"]);
    let servers = mcp_many::start();
    let host = TestHost::own(Build::Plain).configured(SETTINGS).started();
    let base = format!("http://127.0.0.1:{port}/v1");
    let endpoint = ["--kind", "openai", "--base-url", &base, "--model", "small", "--no-key"];
    host.ctl(&[&["model", "add", "m"][..], &endpoint].concat()).ok();
    let agents: Vec<String> = (0..LETTERS.len()).map(|number| format!("a{number}")).collect();
    agents.iter().for_each(|agent| drop(host.ctl(&["agent", "add", agent, "--model", "m"]).ok()));
    mcp_many::give(&host, &agents.iter().map(String::as_str).collect::<Vec<_>>(), &servers);
    let turns = LETTERS.iter().zip(&agents);
    let rows: Vec<Row> = turns.map(|(words, agent)| ask(&host, agent, &format!("/allow send -- {words}"))).collect();
    print_table(&rows);
    let with = |tool: &str| rows.iter().filter(|row| row.tools.iter().any(|name| name == tool)).count();
    println!("searched in {} of {} turns, called in {}", with("find_tools"), rows.len(), with("s4__send_letter"));
    for (number, row) in (1..).zip(&rows) {
        assert!(!row.words.trim().is_empty(), "turn {number}: no words");
        assert_ne!(row.failure.as_deref(), Some("context_too_long"), "turn {number}: the prompt is too long");
    }
}

#[test]
#[ignore = "it needs a small model; `.ci/long model` runs it"]
fn ten_conversations_with_control_fields_end_without_a_fault() {
    let installed = std::env::var_os("IRONCLAW_SMALL_MODEL").expect("`.ci/long model` installs a model");
    let (port, _process) = serve(&PathBuf::from(installed), &["--chat_format", "chatml-function-calling"]);
    let host = TestHost::own(Build::Plain).configured(SETTINGS).started();
    let base = format!("http://127.0.0.1:{port}/v1");
    let endpoint = ["--kind", "openai", "--base-url", &base, "--model", "small", "--no-key"];
    host.ctl(&[&["model", "add", "m"][..], &endpoint].concat()).ok();
    let servers = ListedServers::start();
    let floor = json!({ "type": "string", "ifc": { "requiredIntegrity": ["UserSurfaceInput", "PromptSlotBound"] } });
    let schema = json!({ "type": "object", "properties": { "recipient": floor, "body": { "type": "string" } } });
    let tool = json!({ "name": "send_mail", "description": "Sends a mail.", "inputSchema": schema });
    let url = servers.list("mail", Listed::page(&[tool.to_string()]));
    let manifest = "[[tool]]\nname = 'send_mail'\nclass = 'send'\nreach = 'outside'\neffect = 'mails'\n\
                    arguments.recipient = { rule = 'floor' }\narguments.body = { rule = 'content' }\n";
    host.ctl(&["agent", "add", "a", "--model", "m"]).ok();
    mcp::ready(&host, "mail", &["--url", &url], Some(manifest));
    let conversation = |number: usize| {
        let agent = format!("a{number}");
        host.ctl(&["agent", "add", &agent, "--model", "m"]).ok();
        host.ctl(&["mcp", "grant", &agent, "mail", "--yes"]).ok();
        ask(&host, &agent, &format!("/allow send -- Mail hello to bob{number}@example.org with your tool."))
    };
    let rows: Vec<Row> = (0..10).map(conversation).collect();
    print_table(&rows);
    for (number, row) in (1..).zip(&rows) {
        assert!(!row.words.trim().is_empty(), "turn {number}: no words");
        let is_late = row.failure.as_ref().is_some_and(|code| OUT_OF_TIME.contains(&code.as_str()));
        assert!(row.failure.is_none() || is_late, "turn {number}: {:?}", row.failure);
    }
    let sent = host.entries("call.ran").len();
    let refused: Vec<Value> =
        host.entries("call.refused").iter().map(|entry| entry["data"]["reason"].clone()).collect();
    println!("{sent} mails sent; refused: {refused:?}");
    host.ctl(&["audit", "verify"]).ok();
}
