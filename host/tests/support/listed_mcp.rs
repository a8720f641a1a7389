//! MCP servers on one port of loopback whose pages of tools are texts of a test, so that they can have any form.
//!
//! A call is answered with the name of its tool and its arguments, or with the structured content that a test set for the tool. See `mcp_server` for servers that behave.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

/// The listing of one server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listed {
    /// Without `initialize`.
    pub(crate) is_stateless: bool,
    /// The results for a request without a cursor, and for one with each cursor. Another cursor gets the first one.
    pub(crate) pages: Vec<(Option<&'static str>, String)>,
}

impl Listed {
    /// Returns a listing of one page with these entries.
    pub(crate) fn page(entries: &[String]) -> Self {
        Self { is_stateless: false, pages: vec![(None, format!("{{\"tools\":[{}]}}", entries.join(",")))] }
    }

    /// Returns a listing of one page with these tools, each with the names of its arguments, which are texts.
    pub(crate) fn tools(tools: &[(&str, &[&str])]) -> Self {
        let entry = |name: &str, arguments: &[&str]| {
            let text = |argument: &&str| ((*argument).to_owned(), json!({ "type": "string" }));
            let properties: Value = arguments.iter().map(text).collect();
            json!({ "name": name, "description": name, "inputSchema": { "type": "object", "properties": properties } })
        };
        Self::page(&tools.iter().map(|tool| entry(tool.0, tool.1).to_string()).collect::<Vec<_>>())
    }

    fn result(&self, cursor: Option<&str>) -> &str {
        let found = self.pages.iter().find(|(of, _)| *of == cursor).or_else(|| self.pages.first());
        found.map_or("{\"tools\":[]}", |(_, page)| page)
    }
}

#[derive(Clone, Default)]
struct Shared {
    listed: Arc<Mutex<HashMap<String, Listed>>>,
    /// The servers whose next call says that the tools changed.
    changed: Arc<Mutex<Vec<String>>>,
    /// The structured content for calls of a tool.
    answers: Arc<Mutex<HashMap<String, Value>>>,
    /// The tools whose text form is their structured content.
    alone: Arc<Mutex<BTreeSet<String>>>,
}

/// Running servers, which end with the value.
pub(crate) struct ListedServers {
    origin: String,
    shared: Shared,
    _runtime: tokio::runtime::Runtime,
}

impl ListedServers {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("an address"));
        let shared = Shared::default();
        let app = Router::new().route("/{server}", post(answer)).with_state(shared.clone());
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { origin, shared, _runtime: runtime }
    }

    /// Sets the listing of a server, and returns its URL.
    pub(crate) fn list(&self, server: &str, listed: Listed) -> String {
        self.shared.listed.lock().expect("a map").insert(server.to_owned(), listed);
        format!("{}/{server}", self.origin)
    }

    /// Sets the structured content for calls of a tool.
    pub(crate) fn answer(&self, tool: &str, content: Value) {
        self.shared.answers.lock().expect("a map").insert(tool.to_owned(), content);
        self.shared.alone.lock().expect("a set").remove(tool);
    }

    /// Sets the structured content for calls of a tool, whose text form adds nothing.
    pub(crate) fn answer_alone(&self, tool: &str, content: Value) {
        self.answer(tool, content);
        self.shared.alone.lock().expect("a set").insert(tool.to_owned());
    }

    /// Sets another listing of a running server. The answer to its next call says so.
    pub(crate) fn change(&self, server: &str, listed: Listed) {
        self.list(server, listed);
        self.shared.changed.lock().expect("a list").push(server.to_owned());
    }
}

async fn answer(State(shared): State<Shared>, Path(server): Path<String>, body: Bytes) -> Response {
    let asked: Value = serde_json::from_slice(&body).expect("a message");
    let Some(id) = asked.get("id") else { return StatusCode::ACCEPTED.into_response() };
    let listed = shared.listed.lock().expect("a map").get(&server).cloned().unwrap_or_default();
    let about = json!({"name": server, "version": "1"});
    let result = match (asked["method"].as_str().unwrap_or_default(), listed.is_stateless) {
        ("initialize", false) => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}).to_string()
        }
        ("server/discover", true) => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0,
            "cacheScope": "private", "_meta": {"io.modelcontextprotocol/serverInfo": about},
        })
        .to_string(),
        ("tools/list", _) => listed.result(asked["params"]["cursor"].as_str()).to_owned(),
        ("tools/call", _) => {
            let (name, arguments) = (&asked["params"]["name"], &asked["params"]["arguments"]);
            let content = [json!({"type": "text", "text": format!("{name} got {arguments}")})];
            let answers = shared.answers.lock().expect("a map");
            match name.as_str().and_then(|name| answers.get(name)) {
                Some(structured) if shared.alone.lock().expect("a set").contains(name.as_str().unwrap_or_default()) => {
                    let content = [json!({"type": "text", "text": structured.to_string()})];
                    json!({"content": content, "structuredContent": structured}).to_string()
                }
                Some(structured) => json!({"content": content, "structuredContent": structured}).to_string(),
                None => json!({"content": content}).to_string(),
            }
        }
        _ => {
            let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown method"}});
            return ([(header::CONTENT_TYPE, "application/json")], error.to_string()).into_response();
        }
    };
    // The text of the result goes out as the test wrote it.
    let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}");
    let mut changed = shared.changed.lock().expect("a list");
    if asked["method"] == "tools/call" && changed.contains(&server) {
        changed.retain(|other| *other != server);
        let note = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        return ([(header::CONTENT_TYPE, "text/event-stream")], format!("data: {note}\n\ndata: {answer}\n\n"))
            .into_response();
    }
    ([(header::CONTENT_TYPE, "application/json")], answer).into_response()
}
