//! `ironctl destination`: gives an agent addresses and other agents to which it may send messages, takes them back, and lists them.
//!
//! Never sets one itself: the change goes through the gateway. See [`crate::commands::propose`].

use super::named_agent::NamedAgent;
use super::propose;
use crate::at::At;
use crate::failure::Error;
use clap::Subcommand;
use ironclaw_operator::{ChangeKind, Destination, routes};
use serde_json::json;

/// The verbs of `ironctl destination`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Let an agent send messages to an address or another agent by itself
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
    List(NamedAgent),
}

/// Options of `ironctl destination add`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl destination add assistant ana --channel desk --to ana@home.example\n  ironctl destination add assistant reader --agent reader"
)]
pub struct Add {
    /// Name or id of the agent
    agent: String,
    /// The agent's name for the destination, without blanks
    name: String,
    /// Name or id of another agent that receives the messages
    #[arg(long = "agent", value_name = "AGENT", conflicts_with_all = ["channel", "to", "thread"], required_unless_present = "channel")]
    receiver: Option<String>,
    /// Name of the channel
    #[arg(long, requires = "to")]
    channel: Option<String>,
    /// Address on the channel, which is linked to a person
    #[arg(long, value_name = "ADDRESS", requires = "channel")]
    to: Option<String>,
    /// Thread at the address
    #[arg(long, requires = "channel")]
    thread: Option<String>,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::Add(Add { agent, name, receiver, channel, to, thread, yes }) => {
            let mut payload = json!({ "name": name });
            let fields = [("agent", receiver), ("channel", channel), ("address", to), ("thread", thread)];
            for (field, value) in fields {
                if let Some(value) = value {
                    payload[field] = value.into();
                }
            }
            propose::decide_and_print(at, ChangeKind::Destinations, Some(&agent), payload, yes).await
        }
        Action::Remove { agent, name, yes } => {
            propose::decide_and_print(
                at,
                ChangeKind::Destinations,
                Some(&agent),
                json!({ "name": name, "remove": true }),
                yes,
            )
            .await
        }
        Action::List(of) => list(at, of.name()).await,
    }
}

async fn list(at: &At, agent: Option<String>) -> Result<(), Error> {
    let client = at.client()?;
    let held = match agent {
        Some(agent) => client.call(routes::DESTINATIONS_OF_AGENT, [&agent]).await?,
        None => client.call(routes::DESTINATIONS, []).await?,
    };
    let row = |held: Destination| {
        let thread = held.thread.unwrap_or_default();
        let receiver = held.to_agent.unwrap_or(held.person);
        [held.agent, held.name, held.channel, held.address, thread, receiver, held.state.to_string()]
    };
    at.out.list(held, "no destinations", ["AGENT", "NAME", "CHANNEL", "ADDRESS", "THREAD", "RECEIVER", "STATE"], row)
}
