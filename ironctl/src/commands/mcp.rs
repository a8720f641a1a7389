//! `ironctl mcp`: adds, imports, lists, shows, tests, confirms, grants, revokes and removes MCP servers, and logs in at them.
//!
//! Never sets a server or an access itself: each change goes through the gateway. See [`crate::commands::propose`].

mod add;
mod confirm;
mod import;
mod login;
mod manifest;
mod set;
mod show;
mod table;
mod wording;

use super::propose;
use crate::at::At;
use crate::failure::Error;
use clap::Subcommand;
use ironclaw_operator::{ChangeKind, McpListed, McpServer, routes};
use serde_json::json;

pub use show::show_tool;
pub use wording::{attention, attention_with_repair, quotation, repair};

/// The verbs of `ironctl mcp`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Add a server at a URL or as a command, and show its tools with their rules
    Add(Box<add::Args>),
    /// Take the servers of a configuration file of another program over, such as .mcp.json
    Import(import::Args),
    /// List servers with their states and the agents that have them
    #[command(after_help = "Example:\n  ironctl mcp list")]
    List,
    /// Show a server: its address, its state, its tools with their rules, and its own words
    #[command(
        after_help = "Example:\n  ironctl mcp show calendar\n  ironctl mcp show calendar --manifest > calendar.toml"
    )]
    Show {
        /// Name of the server
        server: String,
        /// Print the manifests of its tools as TOML, to edit them for `confirm --manifest`
        #[arg(long)]
        manifest: bool,
    },
    /// Ask a server for its tools now, and compare them with the confirmed ones
    Test(confirm::Test),
    /// Confirm the tools of a server with their rules
    Confirm(confirm::Args),
    /// Set the class and the rules of one tool of a server
    Set(set::Args),
    /// Let an agent call tools of a server
    #[command(
        after_help = "Example:\n  ironctl mcp grant assistant calendar\n  ironctl mcp grant assistant calendar --tools list_events,add_event"
    )]
    Grant {
        /// Name or id of the agent
        agent: String,
        /// Name of the server
        server: String,
        /// Names of the tools, with commas [default: all confirmed ones]
        #[arg(long, value_delimiter = ',', value_name = "TOOLS")]
        tools: Option<Vec<String>>,
        /// Approve the change without a question
        #[arg(long)]
        yes: bool,
    },
    /// Log in at a server with OAuth: prints the page of its issuer for a browser, and waits for the answer
    Login(login::Args),
    /// Remove the tokens of the login at a server
    #[command(after_help = "Example:\n  ironctl mcp logout calendar")]
    Logout {
        /// Name of the server
        server: String,
    },
    /// Take a server back from an agent
    #[command(after_help = "Example:\n  ironctl mcp revoke assistant calendar")]
    Revoke {
        /// Name or id of the agent
        agent: String,
        /// Name of the server
        server: String,
        /// Approve the change without a question
        #[arg(long)]
        yes: bool,
    },
    /// Remove a server from the catalogue, and from every agent
    #[command(after_help = "Example:\n  ironctl mcp remove calendar")]
    Remove {
        /// Name of the server
        server: String,
        /// Approve the change without a question
        #[arg(long)]
        yes: bool,
    },
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::Add(args) => add::run(at, *args).await,
        Action::Import(args) => import::run(at, args).await,
        Action::List => list(at).await,
        Action::Show { server, manifest } => show::run(at, &server, manifest).await,
        Action::Test(args) => confirm::test(at, args).await,
        Action::Confirm(args) => confirm::run(at, args).await,
        Action::Set(args) => set::run(at, args).await,
        Action::Grant { agent, server, tools, yes } => {
            let mut payload = json!({ "server": server });
            if let Some(tools) = tools {
                if tools.iter().any(String::is_empty) {
                    let hint = format!("name tools as a,b, or take all back: ironctl mcp revoke {agent} {server}");
                    return Err(Error::usage("--tools has an empty name", hint));
                }
                payload["tools"] = json!(tools);
            }
            propose::decide_and_print(at, ChangeKind::McpAccess, Some(&agent), payload, yes).await
        }
        Action::Login(args) => login::run(at, args).await,
        Action::Logout { server } => login::out(at, &server).await,
        Action::Revoke { agent, server, yes } => {
            propose::decide_and_print(
                at,
                ChangeKind::McpAccess,
                Some(&agent),
                json!({ "server": server, "tools": [] }),
                yes,
            )
            .await
        }
        Action::Remove { server, yes } => {
            let payload = json!({ "name": server, "remove": true });
            propose::decide_and_print(at, ChangeKind::McpRegister, None, payload, yes).await
        }
    }
}

async fn list(at: &At) -> Result<(), Error> {
    let servers = at.client()?.call(routes::MCP_SERVERS, []).await?;
    at.out.json(&servers)?;
    if servers.is_empty() {
        return at.out.line("no MCP servers; add one with `ironctl mcp add`");
    }
    let attention: Vec<String> = servers.iter().filter_map(attention_with_repair).collect();
    let row = |server: McpServer| {
        let place = wording::place(&server);
        let state = if wording::needs_login(&server) { "login needed".to_owned() } else { server.state.to_string() };
        let agents: Vec<String> = server.agents.into_iter().map(|holder| holder.agent).collect();
        let tools = server.tools.iter().filter(|tool| tool.listed != McpListed::Gone && tool.unfit.is_none()).count();
        [server.name, server.transport.to_string(), state, place, tools.to_string(), agents.join(" ")]
    };
    at.out.table(["SERVER", "TRANSPORT", "STATE", "AT", "TOOLS", "AGENTS"], servers.into_iter().map(row))?;
    attention.into_iter().try_for_each(|line| at.out.remark(line))
}
