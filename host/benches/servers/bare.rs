//! The controls: the same servers without IronClaw, with a client of `rmcp` over streams and a bare request over HTTP.
//!
//! See `calls` and `starts`.

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;
use tokio::process::{Child, Command};

/// A process of the bundled server, with a client of `rmcp`.
pub(crate) struct Program {
    running: RunningService<RoleClient, ()>,
    _process: Child,
    _directory: tempfile::TempDir,
}

impl Program {
    /// Starts the process, and lists its tools as the host does.
    pub(crate) async fn start(program: &Path) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = Command::new(program);
        command.args([directory.path(), directory.path()]).kill_on_drop(true);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server runs");
        let streams = (process.stdout.take().expect("piped"), process.stdin.take().expect("piped"));
        let running = ().serve(streams).await.expect("the protocol starts");
        assert!(!running.list_all_tools().await.expect("a list").is_empty());
        Self { running, _process: process, _directory: directory }
    }

    /// Calls the counter. Returns the seconds.
    pub(crate) async fn count(&self) -> f64 {
        let begun = Instant::now();
        let answer = self.running.call_tool(CallToolRequestParams::new("count")).await.expect("an answer");
        let took = begun.elapsed().as_secs_f64();
        assert_ne!(answer.is_error, Some(true));
        took
    }
}

/// A session at a server at a URL.
pub(crate) struct Url {
    http: reqwest::Client,
    url: String,
    session: String,
}

impl Url {
    pub(crate) async fn start(url: &str) -> Self {
        let http = ironclaw_net::client_for(&url.parse().expect("a URL")).expect("a client");
        let mut started = Self { http, url: url.to_owned(), session: String::new() };
        let parameters = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" },
        });
        let answer =
            started.post(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": parameters })).await;
        started.session = answer.headers()["mcp-session-id"].to_str().expect("text").to_owned();
        answer.bytes().await.expect("an answer");
        started.post(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        started
    }

    async fn post(&self, message: Value) -> reqwest::Response {
        let mut request = self.http.post(&self.url).header(CONTENT_TYPE, "application/json");
        request = request.header(ACCEPT, "application/json, text/event-stream").body(message.to_string());
        if !self.session.is_empty() {
            request = request.header("mcp-session-id", &self.session);
        }
        request.send().await.expect("an answer").error_for_status().expect("a good status")
    }

    /// Has a text repeated. Returns the seconds.
    pub(crate) async fn echo(&self, text: &str) -> f64 {
        let parameters = json!({ "name": "echo", "arguments": { "text": text } });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters });
        let begun = Instant::now();
        let answer = self.post(call).await.text().await.expect("a text");
        let took = begun.elapsed().as_secs_f64();
        assert!(answer.contains(text), "{answer}");
        took
    }
}
