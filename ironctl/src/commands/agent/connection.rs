//! `ironctl agent connect`: the channel that an agent hears, the messages that it answers, and the sessions of its people.
//!
//! Never compiles a pattern: the host does. See [`crate::commands::agent`] and [`crate::commands::propose`].

use crate::at::At;
use crate::client::Client;
use crate::commands::propose;
use crate::failure::Error;
use clap::{Args, ValueEnum};
use ironclaw_operator::{AgentWiring, ChangeKind, Channel, DenialCode, Engage, NewWiring, routes};
use serde_json::{Map, Value, json};

/// The rules of a connection with the default of each.
const ALL: &str = "all messages";

/// The senders whose messages get an answer.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum From {
    /// People of the host
    Known,
    /// Everyone whose messages the host accepts
    All,
}

/// The treatment of senders who are linked to no person.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Unknown {
    /// Refuse them
    Strict,
    /// Refuse them, and tell owners and admins
    Request,
    /// Accept them as guests: replies, no tools
    Public,
}

/// The treatment of messages that get no answer.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Ignored {
    /// Keep them as context of the next answer
    Accumulate,
    /// Keep nothing of them
    Drop,
}

/// The way in which people share sessions.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Sharing {
    /// One session for each thread
    Thread,
    /// One session for each group
    Shared,
    /// One session of the agent
    Agent,
}

/// The arguments of `ironctl agent connect`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  ironctl agent connect assistant shop\n  ironctl agent connect assistant shop --engage mention-sticky --sharing shared\n  ironctl agent connect assistant shop --engage '^!bot' --ignored drop\n  ironctl agent connect greeter shop --from all --unknown public"
)]
pub struct Connect {
    /// Name or id
    agent: String,
    /// Name of the channel
    channel: String,
    /// Messages that it answers: all, mention, mention-sticky, or those that match a regular expression [default: all]
    #[arg(long, value_name = "WHICH|PATTERN")]
    engage: Option<String>,
    /// Senders whose messages it answers [default: known]
    #[arg(long, hide_possible_values = true, value_name = "known|all")]
    from: Option<From>,
    /// Treatment of senders who are linked to no person [default: strict]
    #[arg(long, hide_possible_values = true, value_name = "strict|request|public")]
    unknown: Option<Unknown>,
    /// Treatment of messages that it does not answer [default: accumulate]
    #[arg(long, hide_possible_values = true, value_name = "accumulate|drop")]
    ignored: Option<Ignored>,
    /// Sessions that people share [default: thread]
    #[arg(long, hide_possible_values = true, value_name = "thread|shared|agent")]
    sharing: Option<Sharing>,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

/// Returns the word of a value in the contract.
fn word(value: impl ValueEnum) -> Option<String> {
    value.to_possible_value().map(|value| value.get_name().to_owned())
}

impl Connect {
    fn wiring(&self) -> NewWiring {
        let (engage, pattern) = match self.engage.as_deref() {
            None => (None, None),
            Some("mention-sticky") => (Some("mention_sticky".to_owned()), None),
            Some(which @ ("all" | "mention")) => (Some(which.to_owned()), None),
            Some(pattern) => (Some("pattern".to_owned()), Some(pattern.to_owned())),
        };
        NewWiring {
            agent: self.agent.clone(),
            engage,
            pattern,
            from: self.from.and_then(word),
            unknown: self.unknown.and_then(word),
            ignored: self.ignored.and_then(word),
            sharing: self.sharing.and_then(word),
        }
    }
}

/// Returns the payload of a change with these rules.
fn payload(channel: &str, wiring: NewWiring) -> Value {
    let NewWiring { agent: _, engage, pattern, from, unknown, ignored, sharing } = wiring;
    let mut fields = Map::new();
    fields.insert("channel".to_owned(), json!(channel));
    fields.insert("engage".to_owned(), json!(engage.as_deref().unwrap_or("all")));
    let given =
        [("pattern", pattern), ("from", from), ("unknown", unknown), ("ignored", ignored), ("sharing", sharing)];
    fields.extend(given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))));
    Value::Object(fields)
}

/// Connects an agent to a channel: at once if no further message reaches it, else by a change that the caller approves on its page.
pub async fn connect(at: &At, client: &Client, args: Connect) -> Result<(), Error> {
    let (name, yes) = (args.channel.clone(), args.yes);
    let before = channel(client, &name).await?.and_then(|channel| channel.agent);
    let wiring = args.wiring();
    let narrowed = client.post(routes::CONNECT_AGENT, [&name], &wiring).await;
    if let Err(refused) = narrowed {
        if !needs_page(&refused) {
            return Err(refused);
        }
        propose_wiring(at, client, &args.agent, payload(&name, wiring), yes).await?;
    }
    let Some(connected) = channel(client, &name).await? else { return Ok(()) };
    at.out.json(&connected)?;
    let agent = connected.agent.unwrap_or(args.agent);
    let taken = before.filter(|before| *before != agent).map(|from| format!("; {from} is disconnected"));
    let rules = connected.wiring.as_ref().map(rules).filter(|rules| rules != ALL);
    let rules = rules.map_or_else(String::new, |rules| format!(" ({rules})"));
    at.out.line(format!("connected {agent} to {}{rules}{}", connected.name, taken.unwrap_or_default()))
}

/// Proposes the connection of an agent and applies the decision of the caller, who has to see its page or to say `yes` before.
pub async fn propose_wiring(at: &At, client: &Client, agent: &str, payload: Value, yes: bool) -> Result<(), Error> {
    propose::decide(at, client, ChangeKind::Wiring, Some(agent), payload, yes).await.map(drop)
}

/// Returns whether the host refused a connection because it needs a change.
fn needs_page(refused: &Error) -> bool {
    let codes = [DenialCode::PageUnseen, DenialCode::PolicyAsksForMore];
    matches!(refused, Error::Refused(failure) if codes.iter().any(|code| failure.error.code == code.name()))
}

async fn channel(client: &Client, name: &str) -> Result<Option<Channel>, Error> {
    Ok(client.call(routes::CHANNELS, []).await?.into_iter().find(|channel| channel.name == name))
}

/// Returns the rules of a connection in one line; those that have their default are left out, except the first.
pub fn rules(wiring: &AgentWiring) -> String {
    let AgentWiring { channel: _, engage, pattern, from, unknown, ignored, sharing } = wiring;
    let mut parts = vec![match (engage, pattern) {
        (_, Some(pattern)) => format!("messages that match {pattern}"),
        (Engage::All, None) => ALL.to_owned(),
        (engage, None) => format!("messages by {}", engage.name().replace('_', "-")),
    }];
    let others = [
        ("from", from.name(), "known"),
        ("unknown", unknown.name(), "strict"),
        ("ignored", ignored.name(), "accumulate"),
        ("sharing", sharing.name(), "thread"),
    ];
    for (name, value, default) in others {
        if value != default {
            parts.push(format!("{name} {value}"));
        }
    }
    parts.join(", ")
}
