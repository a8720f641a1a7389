//! Tests of the built program on its standard input and output.
//!
//! See the modules of the program for the rules.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running server.
struct Demo {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Demo {
    fn start(files: &Path, state: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ironclaw-mcp-demo"));
        let mut process = command
            .args([files, state])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let input = process.stdin.take().expect("piped");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        Self { process, input, output }
    }

    /// Sends a request and returns its result.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        writeln!(self.input, "{}", json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))
            .expect("it reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        let mut answer: Value = serde_json::from_str(&line).expect("one message on a line");
        assert_eq!(answer["id"], method, "{answer}");
        answer["result"].take()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(result["isError"], false, "{result}");
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    /// Closes the input; returns the exit code.
    fn end(self) -> Option<i32> {
        let Self { mut process, input, .. } = self;
        drop(input);
        process.wait().expect("it ends").code()
    }
}

#[test]
fn dialogue_from_initialize_to_the_end_of_the_input() {
    let (files, state) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    std::fs::write(files.path().join("plan.txt"), "lunch at noon").expect("written");
    for count in ["1", "2"] {
        let mut demo = Demo::start(files.path(), state.path());
        assert_eq!(demo.ask("initialize", json!({"protocolVersion": "2025-06-18"}))["protocolVersion"], "2025-06-18");
        writeln!(demo.input, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).expect("it reads");
        let listed = demo.ask("tools/list", json!({}));
        let names: Vec<&str> =
            listed["tools"].as_array().expect("a list").iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names, ["list_files", "read_file", "count", "send_mail", "read_mailbox"]);
        assert_eq!(demo.call("list_files", json!({})), "plan.txt (13 bytes)");
        assert_eq!(demo.call("read_file", json!({"name": "plan.txt"})), "lunch at noon");
        assert_eq!(demo.call("count", json!({})), count);
        demo.call("send_mail", json!({"to": "bob@example", "subject": "plan", "text": "lunch"}));
        assert_eq!(demo.call("read_mailbox", json!({})).lines().count().to_string(), count);
        assert_eq!(demo.end(), Some(0));
    }
}

#[test]
fn wrong_command_line_is_named() {
    for words in [&[][..], &["/nonexistent"], &["/", "/", "/"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ironclaw-mcp-demo"));
        let output = command.args(words).stdin(Stdio::null()).output().expect("it runs");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{words:?}");
        assert!(!output.stderr.is_empty(), "{words:?}");
    }
}
