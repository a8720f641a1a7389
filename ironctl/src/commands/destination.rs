//! `ironctl destination`: gives an agent addresses to which it may send messages, takes them back, and lists them.
//!
//! Never sets one itself: the change goes through the gateway. See [`crate::commands::propose`].

use super::propose::{self, Wanted};
use super::{At, change};
use crate::failure::Error;
use clap::Subcommand;
use ironclaw_contract::operator::{ChangeKind, Destination};
use serde_json::{Value, json};

/// The verbs of `ironctl destination`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Let an agent send messages to an address by itself
    Add(Add),
    /// Take a destination back from an agent
    #[command(after_help = "Example:\n  ironctl destination remove assistant ana")]
    Remove {
        /// Name or id of the agent
        agent: String,
        /// The agent's name for the destination
        name: String,
        /// Approve the change without a question
        #[arg(long)]
        yes: bool,
    },
    /// List the destinations of all agents, or of one
    #[command(after_help = "Example:\n  ironctl destination list\n  ironctl destination list assistant")]
    List {
        /// Name or id of the agent
        agent: Option<String>,
    },
}

/// Options of `ironctl destination add`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl destination add assistant ana --channel desk --to ana@home.example")]
pub struct Add {
    /// Name or id of the agent
    agent: String,
    /// The agent's name for the destination, without blanks
    name: String,
    /// Name of the channel
    #[arg(long)]
    channel: String,
    /// Address on the channel, which is linked to a person
    #[arg(long, value_name = "ADDRESS")]
    to: String,
    /// Thread at the address
    #[arg(long)]
    thread: Option<String>,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::Add(Add { agent, name, channel, to, thread, yes }) => {
            let mut payload = json!({ "name": name, "channel": channel, "address": to });
            if let Some(thread) = thread {
                payload["thread"] = thread.into();
            }
            set(at, &agent, payload, yes).await
        }
        Action::Remove { agent, name, yes } => set(at, &agent, json!({ "name": name, "remove": true }), yes).await,
        Action::List { agent } => list(at, agent).await,
    }
}

async fn set(at: &At, agent: &str, payload: Value, yes: bool) -> Result<(), Error> {
    let client = at.client()?;
    let (kind, patience) = (ChangeKind::Destinations, change::APPLY_TIMEOUT);
    let decided = propose::decide(at, &client, Wanted { kind, agent: Some(agent), payload, yes, patience }).await?;
    at.out.json(&decided)
}

async fn list(at: &At, agent: Option<String>) -> Result<(), Error> {
    let client = at.client()?;
    let held = match agent {
        Some(agent) => client.destinations_of(&agent).await?,
        None => client.destinations().await?,
    };
    at.out.json(&held)?;
    if held.is_empty() {
        return at.out.line("no destinations");
    }
    let row = |held: Destination| {
        let thread = held.thread.unwrap_or_default();
        [held.agent, held.name, held.channel, held.address, thread, held.person, held.state]
    };
    at.out.table(["AGENT", "NAME", "CHANNEL", "ADDRESS", "THREAD", "PERSON", "STATE"], held.into_iter().map(row))
}
