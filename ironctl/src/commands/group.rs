//! `ironctl group`: sets and removes the trust groups of agents, and lists them.
//!
//! Never sets one itself: the change goes through the gateway. See [`crate::commands::propose`].

use super::propose;
use crate::at::At;
use crate::failure::Error;
use clap::Subcommand;
use ironclaw_operator::{AgentGroup, ChangeKind, routes};
use serde_json::json;

/// The verbs of `ironctl group`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Let agents send messages to each other
    Add(Add),
    /// Remove a group
    #[command(after_help = "Example:\n  ironctl group remove research")]
    Remove {
        /// Name of the group
        name: String,
        /// Approve the change without a question
        #[arg(long)]
        yes: bool,
    },
    /// List the groups
    #[command(after_help = "Example:\n  ironctl group list")]
    List,
}

/// Options of `ironctl group add`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl group add research assistant reader\n  ironctl group add research assistant reader --tools read_file,http_fetch"
)]
pub struct Add {
    /// Name of the group, without blanks; replaces the group of this name
    name: String,
    /// Names of its agents, at least two
    #[arg(required = true, num_args = 2.., value_name = "AGENT")]
    agents: Vec<String>,
    /// Tools that a member may use at the request of another member [default: none, so that it can only answer]
    #[arg(long, value_delimiter = ',', value_name = "TOOL")]
    tools: Vec<String>,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::Add(Add { name, agents, tools, yes }) => {
            let mut payload = json!({ "name": name, "agents": agents });
            if !tools.is_empty() {
                payload["tools"] = tools.into();
            }
            propose::decide_and_print(at, ChangeKind::Groups, None, payload, yes).await
        }
        Action::Remove { name, yes } => {
            propose::decide_and_print(at, ChangeKind::Groups, None, json!({ "name": name, "remove": true }), yes).await
        }
        Action::List => list(at).await,
    }
}

async fn list(at: &At) -> Result<(), Error> {
    let groups = at.client()?.call(routes::GROUPS, []).await?;
    let row = |group: AgentGroup| [group.name, group.agents.join(", "), group.tools.join(", ")];
    at.out.list(groups, "no groups", ["NAME", "AGENTS", "TOOLS"], row)
}
