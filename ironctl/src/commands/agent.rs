//! `ironctl agent`: adds, lists, shows, sets, connects and removes agents, and changes their directories and packages.
//!
//! Never validates a name or a tool: the host does. Removes only with a confirmation. See [`crate::commands::agent::set`] and
//! [`crate::commands::propose`].

pub mod connection;
pub mod directories;
pub mod set;
mod show;
pub mod software;

use super::propose;
use crate::at::At;
use crate::client::Client;
use crate::clock;
use crate::failure::Error;
use crate::output::table::Columns;
use clap::Subcommand;
use ironclaw_operator::{Agent, ChangeKind, NewAgent, routes};
use serde_json::json;

/// The columns of the list.
const COLUMNS: Columns<'_, 6> =
    Columns::new(["AGENT", "MODEL", "TOOLS", "SESSIONS", "ADDED", "ID"]).with_least(&["ID", "ADDED"]);

/// The verbs of `ironctl agent`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Add an agent
    #[command(
        alias = "create",
        after_help = "Example:\n  ironctl agent add assistant\n  ironctl agent add scribe --model scripted --persona Terse. --tool read_file"
    )]
    Add {
        /// Name: a-z, 0-9 and -, starting with a letter
        name: String,
        /// Name of the model endpoint [default: follow the default endpoint]
        #[arg(long)]
        model: Option<String>,
        /// Text about the agent for its model, @FILE, or - for stdin
        #[arg(long, value_name = "TEXT|@FILE|-")]
        persona: Option<String>,
        /// Tool that the agent may call; repeatable [default: files, notes and request_capability_change]
        #[arg(long = "tool", value_name = "TOOL")]
        tools: Vec<String>,
    },
    /// List agents
    #[command(after_help = "Example:\n  ironctl agent list --json")]
    List,
    /// Show an agent and everything that it can do
    #[command(after_help = "Example:\n  ironctl agent show assistant")]
    Show {
        /// Name or id
        agent: String,
    },
    /// Set the persona, the tools, the model endpoint, the ceilings and the guard mode of an agent
    #[command(
        override_usage = "ironctl agent set [OPTIONS] <AGENT>",
        after_help = "Example:\n  ironctl agent set assistant --persona @persona.txt\n  ironctl agent set assistant --add-tool run_command --remove-tool recall\n  ironctl agent set assistant --model openai\n  ironctl agent set assistant --model default\n  ironctl agent set assistant --tokens-per-day 200000 --cost-per-day 2.50\n  ironctl agent set assistant --mode enforce"
    )]
    Set {
        /// Name or id
        agent: String,
        #[command(flatten)]
        changes: set::Changes,
        /// Approve the change without a question
        #[arg(long)]
        yes: bool,
    },
    /// Give an agent access to a directory of this machine
    GrantDir(directories::Grant),
    /// Take directories of this machine from an agent
    RevokeDir(directories::Revoke),
    /// Install packages of apt or npm for an agent
    Install(software::Install),
    /// Remove packages from an agent
    Uninstall(software::Uninstall),
    /// Connect an agent to a channel, in place of its present connection
    Connect(connection::Connect),
    /// Disconnect an agent from a channel
    #[command(after_help = "Example:\n  ironctl agent disconnect assistant shop")]
    Disconnect {
        /// Name or id
        agent: String,
        /// Name of the channel
        channel: String,
    },
    /// Remove an agent and erase its sessions
    #[command(after_help = "Example:\n  ironctl agent remove assistant --yes")]
    Remove {
        /// Name or id
        agent: String,
        /// Remove it without a confirmation
        #[arg(long)]
        yes: bool,
    },
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::Add { name, model, persona, tools } => {
            let persona = persona.as_deref().map(set::persona).transpose()?;
            let enabled_tools = (!tools.is_empty()).then_some(tools);
            add(at, &client, &NewAgent { name, model, persona, enabled_tools }).await
        }
        Action::List => {
            let agents = client.call(routes::AGENTS, []).await?;
            let none = "no agents; add one with `ironctl agent add NAME`";
            at.out.list(agents, none, COLUMNS, row)
        }
        Action::Show { agent } => {
            let agent = client.call(routes::AGENT, [&agent]).await?;
            at.out.json(&agent)?;
            show::print(at.out, &agent)
        }
        Action::Set { agent, changes, yes } => set::run(at, &client, &agent, changes, yes).await,
        Action::GrantDir(args) => directories::grant(at, &client, args).await,
        Action::RevokeDir(args) => directories::revoke(at, &client, args).await,
        Action::Install(args) => software::install(at, &client, args).await,
        Action::Uninstall(args) => software::uninstall(at, &client, args).await,
        Action::Connect(args) => connection::connect(at, &client, args).await,
        Action::Disconnect { agent, channel } => disconnect(at, &client, &agent, &channel).await,
        Action::Remove { agent, yes } => remove(at, &client, &agent, yes).await,
    }
}

async fn add(at: &At, client: &Client, wanted: &NewAgent) -> Result<(), Error> {
    let agent = client.post(routes::CREATE_AGENT, [], wanted).await?;
    at.out.json(&agent)?;
    at.out.line(format!("added agent {} ({})", agent.name, agent.id))?;
    at.out.remark(format!("talk to it: ironctl chat {}", agent.name))
}

/// Disconnects an agent from a channel, or submits the change if the policy requires more people.
async fn disconnect(at: &At, client: &Client, agent: &str, channel: &str) -> Result<(), Error> {
    let disconnected = match client.call(routes::DISCONNECT_AGENT, [&channel, &agent]).await {
        Ok(disconnected) => disconnected,
        Err(refused) => {
            let wiring = json!({ "channel": channel, "engage": "none" });
            return Err(propose::instead(at, client, refused, ChangeKind::Wiring, Some(agent), wiring).await);
        }
    };
    at.out.result(&disconnected, format!("disconnected {agent} from {}", disconnected.name))
}

/// Removes an agent after a confirmation, or submits the change if the policy requires more people.
async fn remove(at: &At, client: &Client, agent: &str, yes: bool) -> Result<(), Error> {
    let agent = client.call(routes::AGENT, [&agent]).await?;
    let sessions = agent.sessions;
    at.out.confirm(&format!("remove {} and its {sessions} sessions", agent.name), yes)?;
    // By id, because another agent could get the name before the person answers.
    let id = agent.id.to_string();
    if let Err(refused) = client.send(routes::REMOVE_AGENT, [&id]).await {
        let settings = json!({ "remove": true });
        return Err(propose::instead(at, client, refused, ChangeKind::Settings, Some(&id), settings).await);
    }
    at.out.json(&json!({ "removed": agent.id, "name": agent.name }))?;
    at.out.line(format!("removed agent {} ({})", agent.name, agent.id))
}

fn row(agent: Agent) -> [String; 6] {
    let (tools, added) = (agent.enabled_tools.join(" "), clock::to_the_minute(&agent.created_at));
    [agent.name, agent.model, tools, agent.sessions.to_string(), added, agent.id.to_string()]
}
