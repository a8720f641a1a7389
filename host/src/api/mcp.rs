//! The catalogue of MCP servers over the API.
//!
//! Read-only: a server enters the catalogue by an approved change. See `registry::mcp`.

use super::{Answer, Api, Reply};
use crate::registry::mcp::{self, Server};
use axum::Json;
use axum::extract::State;
use ironclaw_contract::operator::{McpHolder, McpServer, McpServerHeader, McpServerTool};
use ironclaw_contract::seam::change::{McpHeader, McpTool};
use ironclaw_state::ReadTx;

/// `GET /v1/mcp`
pub async fn list(State(api): State<Api>) -> Reply<Vec<McpServer>> {
    let look = |tx: &ReadTx<'_>| mcp::servers(tx)?.into_iter().map(|server| view(tx, server)).collect();
    Ok(Json(api.state().read(look).await.map_err(|error: ironclaw_state::Error| Answer::from(error))?))
}

fn view(tx: &ReadTx<'_>, server: Server) -> Result<McpServer, ironclaw_state::Error> {
    let holders = mcp::holders(tx, &server.name)?.into_iter();
    let tool = |McpTool { name, description }| McpServerTool { name, description };
    let header = |McpHeader { name, secret, scheme }| McpServerHeader { name, secret, scheme };
    Ok(McpServer {
        agents: holders.map(|grant| McpHolder { agent: grant.agent_name, tools: grant.tools }).collect(),
        name: server.name,
        url: server.url,
        tools: server.tools.into_iter().map(tool).collect(),
        headers: server.headers.into_iter().map(header).collect(),
        made_at: ironclaw_ledger::rfc3339(server.made_at),
    })
}
