//! `ironctl agent`: adds, lists, shows, sets, connects and removes agents.
//!
//! Never validates a name or a tool: the host does. Removes only with a confirmation. See [`crate::commands::chat`].

use super::review::{self, Choice};
use super::{At, change, propose, usage};
use crate::client::Client;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use clap::Subcommand;
use ironclaw_contract::operator::{
    Agent, AgentBudget, AgentMcp, AgentMember, AgentMount, AgentPackages, AgentWiring, ChangeKind, NewAgent, NewChange,
    Payload,
};
use serde_json::{Map, Value, json};
use std::time::Duration;

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
        /// Text about the agent for its model
        #[arg(long, value_name = "TEXT")]
        persona: Option<String>,
        /// Tool that the agent may call; repeatable [default: files, notes and request_capability_change]
        #[arg(long = "tool", value_name = "TOOL")]
        tools: Vec<String>,
    },
    /// List agents
    #[command(after_help = "Example:\n  ironctl agent list --json")]
    List,
    /// Show an agent
    #[command(after_help = "Example:\n  ironctl agent show assistant")]
    Show {
        /// Name or id
        agent: String,
    },
    /// Set the model endpoint, the ceilings and the guard mode of an agent
    #[command(
        after_help = "Example:\n  ironctl agent set assistant --model openai\n  ironctl agent set assistant --model default\n  ironctl agent set assistant --tokens-per-day 200000 --cost-per-day 2.50\n  ironctl agent set assistant --mode enforce"
    )]
    Set {
        /// Name or id
        agent: String,
        #[command(flatten)]
        changes: Changes,
        /// Lower the guard or raise a ceiling without a confirmation, as without a terminal
        #[arg(long)]
        yes: bool,
    },
    /// Connect an agent to a channel
    #[command(after_help = "Example:\n  ironctl agent connect assistant shop")]
    Connect {
        /// Name or id
        agent: String,
        /// Name of the channel
        channel: String,
    },
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

/// The settings of `agent set`; at least one is required.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub struct Changes {
    /// Guard mode: enforce, or with a lowered guard dangerous_warn or dangerous_off
    #[arg(long)]
    mode: Option<String>,
    /// Name of the model endpoint; `default` follows the default endpoint
    #[arg(long)]
    model: Option<String>,
    /// Ceiling of tokens for a day (UTC), or none to use the settings
    #[arg(long, value_name = "NUMBER", value_parser = usage::tokens)]
    tokens_per_day: Option<u64>,
    /// Ceiling of cost for a day (UTC) in the currency of the prices, e.g. 2.50, or none to use the settings
    #[arg(long, value_name = "AMOUNT", value_parser = usage::sum)]
    cost_per_day: Option<u64>,
}

impl Changes {
    /// Returns the settings as the payload of a change.
    fn payload(&self) -> Value {
        let mut payload = Map::new();
        let mut set = |field: &str, value: Option<Value>| value.map(|value| payload.insert(field.to_owned(), value));
        set("mode", self.mode.clone().map(Value::from));
        set("model", self.model.clone().map(Value::from));
        set("tokens_per_day", self.tokens_per_day.map(Value::from));
        set("cost_per_day_micros", self.cost_per_day.map(Value::from));
        payload.into()
    }
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::Add { name, model, persona, tools } => {
            let enabled_tools = (!tools.is_empty()).then_some(tools);
            add(at, &client, &NewAgent { name, model, persona, enabled_tools }).await
        }
        Action::List => {
            let agents = client.agents().await?;
            at.out.json(&agents)?;
            if agents.is_empty() {
                return at.out.line("no agents; add one with `ironctl agent add NAME`");
            }
            table(at.out, agents)
        }
        Action::Show { agent } => {
            let agent = client.agent(&agent).await?;
            at.out.json(&agent)?;
            show(at.out, agent)
        }
        Action::Set { agent, changes, yes } => set(at, &client, &agent, changes, yes).await,
        Action::Connect { agent, channel } => connect(at, &client, agent, &channel).await,
        Action::Disconnect { agent, channel } => disconnect(at, &client, &agent, &channel).await,
        Action::Remove { agent, yes } => remove(at, &client, &agent, yes).await,
    }
}

async fn add(at: &At, client: &Client, wanted: &NewAgent) -> Result<(), Error> {
    let agent = client.create_agent(wanted).await?;
    at.out.json(&agent)?;
    at.out.line(format!("added agent {} ({})", agent.name, agent.id))?;
    at.out.remark(format!("talk to it: ironctl chat {}", agent.name))
}

/// Connects an agent to a channel, or submits the change if the policy requires more people.
async fn connect(at: &At, client: &Client, agent: String, channel: &str) -> Result<(), Error> {
    let connected = match client.connect(channel, &agent).await {
        Ok(connected) => connected,
        Err(refused) => {
            let wiring = json!({ "channel": channel, "engage": "all" });
            return Err(propose::instead(at, client, refused, ChangeKind::Wiring, Some(&agent), wiring).await);
        }
    };
    at.out.json(&connected)?;
    let taken = connected.taken_from.map(|from| format!("; {from} is disconnected"));
    let agent = connected.agent.unwrap_or(agent);
    at.out.line(format!("connected {agent} to {}{}", connected.name, taken.unwrap_or_default()))
}

/// Disconnects an agent from a channel, or submits the change if the policy requires more people.
async fn disconnect(at: &At, client: &Client, agent: &str, channel: &str) -> Result<(), Error> {
    let disconnected = match client.disconnect(channel, agent).await {
        Ok(disconnected) => disconnected,
        Err(refused) => {
            let wiring = json!({ "channel": channel, "engage": "none" });
            return Err(propose::instead(at, client, refused, ChangeKind::Wiring, Some(agent), wiring).await);
        }
    };
    at.out.json(&disconnected)?;
    at.out.line(format!("disconnected {agent} from {}", disconnected.name))
}

/// Removes an agent after a confirmation, or submits the change if the policy requires more people.
async fn remove(at: &At, client: &Client, agent: &str, yes: bool) -> Result<(), Error> {
    let agent = client.agent(agent).await?;
    let sessions = agent.sessions;
    at.out.confirm(&format!("remove {} and its {sessions} sessions", agent.name), yes)?;
    // By id, because another agent could get the name before the person answers.
    let id = agent.id.to_string();
    if let Err(refused) = client.remove_agent(&id).await {
        let settings = json!({ "remove": true });
        return Err(propose::instead(at, client, refused, ChangeKind::Settings, Some(&id), settings).await);
    }
    at.out.json(&json!({ "removed": agent.id, "name": agent.name }))?;
    at.out.line(format!("removed agent {} ({})", agent.name, agent.id))
}

/// Sets at once if the policy lets this person decide alone; submits the change otherwise. On a terminal, shows the review page
/// and asks first if the change lowers the guard or raises a ceiling.
async fn set(at: &At, client: &Client, agent: &str, changes: Changes, yes: bool) -> Result<(), Error> {
    if !yes && review::is_possible(at.out) && lowers(client, agent, &changes).await? {
        return ask(at, client, agent, &changes).await;
    }
    let settings = changes.payload();
    match set_at_once(at.out, client, agent, changes).await {
        Ok(()) => Ok(()),
        Err(refused) => Err(propose::instead(at, client, refused, ChangeKind::Settings, Some(agent), settings).await),
    }
}

/// Returns whether the settings lower the guard, or raise or remove a ceiling.
async fn lowers(client: &Client, agent: &str, changes: &Changes) -> Result<bool, Error> {
    if changes.mode.as_deref().is_some_and(|mode| mode != "enforce") {
        return Ok(true);
    }
    if changes.tokens_per_day.is_none() && changes.cost_per_day.is_none() {
        return Ok(false);
    }
    let now = client.budget(agent).await?;
    let raises = |now: Option<u64>, then: Option<u64>| match (now, then) {
        (_, None) | (None, Some(_)) => false,
        (Some(now), Some(then)) => then == 0 || then > now,
    };
    Ok(raises(now.tokens_per_day, changes.tokens_per_day) || raises(now.cost_per_day_micros, changes.cost_per_day))
}

/// Submits the change, shows its review page, and applies the decision of the person.
async fn ask(at: &At, client: &Client, agent: &str, changes: &Changes) -> Result<(), Error> {
    let payload = Payload::try_from(changes.payload())
        .map_err(|what| Error::usage(what.to_owned(), "name a setting: --mode, --model, --tokens-per-day"))?;
    let new = NewChange { kind: ChangeKind::Settings, agent: Some(agent.to_owned()), payload, reason: String::new() };
    let submitted = client.submit_change(&new).await?;
    let waiting = client.change(&submitted.id.to_string(), Duration::ZERO).await?;
    match review::ask(at.out, &waiting, false)? {
        Choice::Approve(shown) => {
            let decided = change::settled(client, client.approve(&submitted.id.to_string(), shown).await?).await?;
            if decided.status == "pending" {
                return Err(propose::waits(&decided.id.to_string()));
            }
            change::outcome(at.out, &decided)
        }
        Choice::Reject(reason) => {
            client.reject(&submitted.id.to_string(), reason).await?;
            Err(Error::failed("not_confirmed", format!("agent {agent} was not changed")))
        }
        Choice::Skip | Choice::Quit => {
            client.reject(&submitted.id.to_string(), String::new()).await?;
            Err(Error::failed("not_confirmed", format!("agent {agent} was not changed")))
        }
    }
}

async fn set_at_once(out: Output, client: &Client, agent: &str, changes: Changes) -> Result<(), Error> {
    let mut report = Map::new();
    let mut add = |set: serde_json::Value| report.extend(set.as_object().cloned().into_iter().flatten());
    let concerns_costs = changes.model.is_some() || changes.cost_per_day.is_some();
    if let Some(model) = changes.model {
        let model = client.set_model(agent, &model).await?;
        out.line(format!("set agent {agent} to model endpoint {}", model.model))?;
        add(json!(model));
    }
    if let Some(mode) = changes.mode {
        let mode = client.set_mode(agent, &mode).await?;
        add(json!(mode));
        out.line(format!("set agent {agent} to mode {}", mode.mode))?;
        if mode.mode != "enforce" {
            out.remark(format!("the guard is lowered; raise it: ironctl agent set {agent} --mode enforce"))?;
        }
    }
    let wanted = AgentBudget { tokens_per_day: changes.tokens_per_day, cost_per_day_micros: changes.cost_per_day };
    if wanted != AgentBudget::default() {
        let budget = client.set_budget(agent, &wanted).await?;
        add(json!(budget));
        let tokens = budget.tokens_per_day.map_or_else(|| "none".to_owned(), |tokens| tokens.to_string());
        let cost = budget.cost_per_day_micros.map_or_else(|| "none".to_owned(), usage::money);
        out.line(format!("set the ceilings of agent {agent}: tokens a day {tokens}, cost a day {cost}"))?;
    }
    if concerns_costs {
        usage::remark_unpriced(out, &usage::unpriced(client, agent).await?)?;
    }
    out.json(&report)
}

fn table(out: Output, agents: Vec<Agent>) -> Result<(), Error> {
    let rows = agents.into_iter().map(|agent| {
        [
            agent.name,
            agent.model,
            agent.enabled_tools.join(" "),
            agent.sessions.to_string(),
            clock::date_and_time(&agent.created_at),
            agent.id.to_string(),
        ]
    });
    out.table(["AGENT", "MODEL", "TOOLS", "SESSIONS", "ADDED", "ID"], rows)
}

fn show(out: Output, agent: Agent) -> Result<(), Error> {
    let mut rows = vec![
        ["id".to_owned(), agent.id.to_string()],
        [
            "model".to_owned(),
            if agent.follows_default { format!("{} (the default)", agent.model) } else { agent.model },
        ],
        ["tools".to_owned(), agent.enabled_tools.join(" ")],
        ["sessions".to_owned(), agent.sessions.to_string()],
        ["added".to_owned(), clock::date_and_time(&agent.created_at)],
        ["persona".to_owned(), agent.persona],
        ["access".to_owned(), agent.access],
    ];
    let mut add = |what: &str, text: String| rows.push([what.to_owned(), text]);
    for AgentMember { person, name, role } in agent.roles {
        add("role", format!("{name} ({person}): {role}"));
    }
    for AgentMount { source, target, read_only } in agent.mounts {
        add("mount", format!("{source} at {target}, {}", if read_only { "read only" } else { "writable" }));
    }
    if let Some(AgentPackages { apt, npm, layer, made_at }) = agent.packages {
        for (of, names) in [("apt", apt), ("npm", npm)] {
            if !names.is_empty() {
                add("packages", format!("{of}: {}", names.join(" ")));
            }
        }
        add("layer", format!("{layer}, built {}", clock::date_and_time(&made_at)));
    }
    for AgentWiring { channel, engage, pattern } in agent.wirings {
        add(
            "channel",
            format!("{channel}: {}", pattern.map_or(engage, |pattern| format!("messages that match {pattern}"))),
        );
    }
    for AgentMcp { server, tools } in agent.mcp {
        add("mcp", format!("{server}: {}", tools.join(" ")));
    }
    out.table(["AGENT", agent.name.as_str()], rows)
}
