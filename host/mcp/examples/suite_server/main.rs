//! A server for tests whose tools, answers and state are data: one server of an autonomy suite.
//!
//! `suite_server --tools FILE --state FILE --log FILE` serves on loopback and prints its address on a line. It appends a line to the log
//! for each call that reached it, and writes its state back after each. `docs/autonomy-suites.md` has the format. See `steps.rs`.

mod steps;

use axum::Router;
use axum::serve::ListenerExt;
use clap::Parser;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use steps::Program;
use tokio::net::TcpListener;

/// A server of an autonomy suite.
#[derive(Debug, Clone, Parser)]
struct Arguments {
    /// The tools, with their steps and answers.
    #[arg(long)]
    tools: PathBuf,
    /// The state, which the server changes.
    #[arg(long)]
    state: PathBuf,
    /// A file that gets a line for each call.
    #[arg(long)]
    log: PathBuf,
}

/// The server; all its connections share the state.
#[derive(Debug, Clone)]
struct Server {
    arguments: Arc<Arguments>,
    program: Arc<Mutex<Program>>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("suite_server", "1.0.0"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listing = ListToolsResult::default();
        // A changed file is another listing.
        let changed =
            std::fs::read_to_string(&self.arguments.tools).ok().and_then(|text| serde_json::from_str(&text).ok());
        let mut program = self.program.lock().expect("not poisoned");
        if let Some(changed) = changed {
            program.replace(&changed).map_err(|why| ErrorData::internal_error(why, None))?;
        }
        let listed = program.listed();
        drop(program);
        listing.tools = listed.into_iter().map(tool).collect::<Result<_, _>>()?;
        Ok(listing)
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(call.arguments.unwrap_or_default());
        let mut program = self.program.lock().expect("not poisoned");
        let done = program.call(&call.name, &arguments);
        let line = json!({ "tool": call.name, "arguments": arguments, "done": done.is_ok() });
        self.keep(&line, program.state()).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Ok(match done {
            Ok(answer) => CallToolResult::success(vec![ContentBlock::text(text(answer))]),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
        }
        .into())
    }
}

impl Server {
    /// Writes the call and the state, before the answer.
    fn keep(&self, line: &Value, state: &Value) -> std::io::Result<()> {
        std::fs::write(&self.arguments.state, state.to_string())?;
        let mut log = OpenOptions::new().create(true).append(true).open(&self.arguments.log)?;
        log.write_all(format!("{line}\n").as_bytes())
    }
}

fn tool(listed: Value) -> Result<Tool, ErrorData> {
    serde_json::from_value(listed).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let read = |path: &PathBuf| -> Result<Value, Box<dyn std::error::Error>> {
        Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
    };
    let program = Program::new(&read(&arguments.tools)?, read(&arguments.state)?)?;
    let server = Server { arguments: Arc::new(arguments), program: Arc::new(Mutex::new(program)) };
    let make = move || Ok(server.clone());
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(make, sessions, StreamableHttpServerConfig::default());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    writeln!(std::io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, Router::new().route_service("/mcp", service)).await?;
    Ok(())
}
