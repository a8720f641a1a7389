//! `ironctl mcp`: lists the catalogue of MCP servers.
//!
//! Never adds a server: that is a change, which people decide. See [`crate::commands::agent`] for the grants of an agent.

use super::At;
use crate::failure::Error;
use clap::Subcommand;
use ironclaw_contract::operator::{McpHolder, McpServer, McpServerHeader};

/// The verbs of `ironctl mcp`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List MCP servers with their headers, their tools and the agents that have them
    #[command(after_help = "Example:\n  ironctl mcp list")]
    List,
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::List => {
            let servers = client.mcp_servers().await?;
            at.out.json(&servers)?;
            if servers.is_empty() {
                return at.out.line("no MCP servers");
            }
            at.out.table(["SERVER", "URL", "TOOLS", "HEADERS", "AGENTS"], servers.into_iter().map(row))
        }
    }
}

fn row(server: McpServer) -> [String; 5] {
    let header = |McpServerHeader { name, secret, scheme }| match scheme {
        Some(scheme) => format!("{name}: {scheme} secret:{secret}"),
        None => format!("{name}: secret:{secret}"),
    };
    let tools: Vec<String> = server.tools.into_iter().map(|tool| tool.name).collect();
    let headers: Vec<String> = server.headers.into_iter().map(header).collect();
    let holder = |McpHolder { agent, tools }| format!("{agent} ({})", tools.join(" "));
    let agents: Vec<String> = server.agents.into_iter().map(holder).collect();
    [server.name, server.url, tools.join(" "), headers.join(", "), agents.join(", ")]
}
