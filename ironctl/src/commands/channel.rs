//! `ironctl channel`: adds, lists, tests and removes channels other than the loopback.
//!
//! Never takes a secret as an argument, and shows one only once. [`crate::commands::agent`] connects an agent,
//! [`crate::commands::delivery`] lists replies that did not arrive.

use super::agent::connection::{propose_wiring, rules as rules_of};
use super::review;
use crate::at::At;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use crate::output::table::Columns;
use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ironclaw_operator::{Channel, ChannelKind, NewChannel, NewChannelMade, NewOwnSender, RefusedRequests, routes};
use serde_json::json;
use std::io::{self, Read};

/// Bytes of a signing secret; a real one is far shorter.
const SECRET_BYTES_MAX: u64 = 1024;

/// The verbs of `ironctl channel`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Add a channel, and print its new secret once
    #[command(before_long_help = rules(), after_help = examples())]
    Add {
        /// Kind of the channel
        #[arg(value_parser = kinds())]
        kind: ChannelKind,
        /// Name: a-z, 0-9, - and _; the first part of every identity on the channel
        name: String,
        /// URL for replies
        #[arg(long)]
        url: String,
        /// Name or id of the agent to connect [default: none yet]
        #[arg(long)]
        agent: Option<String>,
        /// The receiver shows a reply once, even if it is sent twice under one id
        #[arg(long)]
        idempotent: bool,
        /// Read the secret from stdin [default: create a new one]
        #[arg(long)]
        secret_stdin: bool,
        /// Approve the connection of the agent without a question
        #[arg(long, requires = "agent")]
        yes: bool,
    },
    /// List channels
    #[command(after_help = "Example:\n  ironctl channel list")]
    List,
    /// Send a test to a channel, and show the result
    #[command(after_help = "Example:\n  ironctl channel test shop")]
    Test {
        /// Name of the channel
        name: String,
    },
    /// Dismiss a sender who waits for a person; the sender waits again after another message
    #[command(after_help = "Example:\n  ironctl channel dismiss shop:eve")]
    Dismiss {
        /// Sender, as CHANNEL:SENDER
        sender: String,
    },
    /// Count an account without a person as your own source: its messages are no text of others in your turns
    #[command(after_help = "Example:\n  ironctl channel own desk:monitor")]
    Own {
        /// Sender, as CHANNEL:SENDER
        sender: String,
        /// Declare it without a question
        #[arg(long)]
        yes: bool,
    },
    /// Count the text of an account as text of others again, its earlier messages included
    #[command(after_help = "Example:\n  ironctl channel disown desk:monitor")]
    Disown {
        /// Sender, as CHANNEL:SENDER
        sender: String,
    },
    /// Remove a channel and its secret; replies that wait are not sent
    #[command(after_help = "Example:\n  ironctl channel remove shop --yes")]
    Remove {
        /// Name of the channel
        name: String,
        /// Remove it without a confirmation
        #[arg(long)]
        yes: bool,
    },
}

/// Returns the parser of a kind of channel.
fn kinds() -> impl TypedValueParser<Value = ChannelKind> {
    let value = |kind: &ChannelKind| PossibleValue::new(kind.name()).help(kind.meaning().trim_end_matches('.'));
    PossibleValuesParser::new(ChannelKind::ALL.iter().map(value)).try_map(|name| name.parse::<ChannelKind>())
}

/// Returns an example of each kind.
fn examples() -> String {
    let lines = ChannelKind::ALL.iter().map(|kind| match kind {
        ChannelKind::Webhook => {
            "\n  ironctl channel add webhook shop --url https://shop.example/ironclaw --agent assistant\
             \n  ironctl channel add webhook shop --url http://127.0.0.1:9000/ --agent assistant --idempotent\
             \n  ironctl channel add webhook shop --url https://shop.example/ironclaw"
        }
    });
    format!("Example:{}", lines.collect::<String>())
}

/// Returns the rules for the URL and the secret of each kind.
fn rules() -> String {
    let lines = ChannelKind::ALL.iter().map(|kind| match kind {
        ChannelKind::Webhook => {
            "The URL of a webhook is https anywhere, or http on this machine and in private networks. Its secret is whsec_… and the \
             base64 of 24 to 64 bytes, or a text of 24 to 128 bytes that signs as it is typed. Two of the first form, separated by a blank, \
             are the present one and the next one."
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the step that is missing before messages of this kind can come in.
const fn missing_step(kind: ChannelKind) -> &'static str {
    match kind {
        ChannelKind::Webhook => {
            "no messages come in yet: set webhook.listen in config.toml, e.g. \"127.0.0.1:8788\", and restart the host"
        }
    }
}

/// Returns the line above the new secret of a channel.
const fn secret_heading(kind: ChannelKind) -> &'static str {
    match kind {
        ChannelKind::Webhook => "signing secret, shown only once:",
    }
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::Add { kind, name, url, agent, idempotent, secret_stdin, yes } => {
            // Refuses an unknown agent before a channel exists.
            let agent = match agent {
                Some(agent) => Some(client.call(routes::AGENT, [&agent]).await?.name),
                None => None,
            };
            let secret = secret_stdin.then(secret_from_stdin).transpose()?;
            let new = NewChannel { kind: kind.to_string(), name, url, idempotent, secret };
            let made = client.post(routes::ADD_CHANNEL, [], &new).await?;
            print_made(at.out, &made, agent.is_none())?;
            match agent {
                Some(agent) => {
                    let wiring = json!({ "channel": made.channel.name, "engage": "all" });
                    propose_wiring(at, &client, &agent, wiring, yes).await
                }
                None => Ok(()),
            }
        }
        Action::List => list(at, client.call(routes::CHANNELS, []).await?),
        Action::Test { name } => {
            let tested = client.call(routes::TEST_CHANNEL, [&name]).await?;
            at.out.json(&tested)?;
            if tested.received {
                return at.out.line(format!("{name}: {}", tested.result));
            }
            Err(Error::failed("channel_test", format!("{name} did not accept the test: {}", tested.result))
                .hinting("check its URL with `ironctl channel list`"))
        }
        Action::Dismiss { sender } => {
            let [channel, name] = parts(&sender)?;
            client.send(routes::DISMISS_SENDER, [&channel, &name]).await?;
            at.out.result(&json!({ "dismissed": sender }), format!("{sender} no longer waits"))
        }
        Action::Own { sender, yes } => {
            let [channel, name] = parts(&sender)?;
            let page = client.call(routes::REVIEW_OWN_SENDER, [&channel, &name]).await?;
            let new = NewOwnSender { shown: Some(review::agreed(at.out, &page, yes).await?) };
            let declared = client.post(routes::ADD_OWN_SENDER, [&channel, &name], &new).await?;
            at.out.result(&declared, format!("{sender} is yours; end it with `ironctl channel disown {sender}`"))
        }
        Action::Disown { sender } => {
            let [channel, name] = parts(&sender)?;
            let ended = client.call(routes::END_OWN_SENDER, [&channel, &name]).await?;
            at.out.result(&ended, format!("the text of {sender} is text of others"))
        }
        Action::Remove { name, yes } => {
            at.out.confirm(&format!("remove channel {name} and its secret"), yes)?;
            let removed = client.call(routes::REMOVE_CHANNEL, [&name]).await?;
            at.out.result(&json!({ "removed": removed.name }), format!("removed channel {}", removed.name))
        }
    }
}

/// Returns the channel and the id of a sender.
///
/// # Errors
/// Refuses a text without one of them as wrong usage.
fn parts(sender: &str) -> Result<[&str; 2], Error> {
    match sender.split_once(':').filter(|(_, name)| !name.is_empty()) {
        Some((channel, name)) => Ok([channel, name]),
        None => Err(Error::usage(format!("{sender:?} names no sender"), "write CHANNEL:SENDER")),
    }
}

/// Prints a new channel with its secret, which no later answer has.
fn print_made(out: Output, made: &NewChannelMade, is_unheard: bool) -> Result<(), Error> {
    out.json(made)?;
    let channel = &made.channel;
    out.remark(format!("added channel {}; replies go to {}", channel.name, channel.url))?;
    match &channel.hook {
        Some(hook) => out.remark(format!("messages come in at {hook}"))?,
        None => out.remark(missing_step(channel.kind))?,
    }
    if is_unheard {
        out.remark(format!("no agent is connected: ironctl agent connect AGENT {}", channel.name))?;
    }
    out.remark(format!("link its senders to people: ironctl person link PERSON {}:SENDER", channel.name))?;
    if let Some(remark) = &made.remark {
        out.remark(remark)?;
    }
    match &made.secret {
        Some(secret) => {
            out.remark(secret_heading(channel.kind))?;
            out.line(secret)
        }
        None => Ok(()),
    }
}

/// Lists the channels, the senders that people call theirs, and the senders who wait for a person.
fn list(at: &At, channels: Vec<Channel>) -> Result<(), Error> {
    at.out.json(&channels)?;
    if channels.is_empty() {
        let kinds: Vec<_> = ChannelKind::ALL.iter().map(|kind| kind.name()).collect();
        let command = format!("ironctl channel add {} NAME", kinds.join("|"));
        return at.out.line(format!("no channels except the loopback; add one with `{command}`"));
    }
    let waiting: Vec<_> = channels.iter().flat_map(|channel| channel.waiting.clone()).collect();
    let refused: Vec<_> = channels.iter().flat_map(refused_rows).collect();
    let own: Vec<_> = channels.iter().flat_map(|channel| channel.own.clone()).collect();
    table(at.out, channels)?;
    if !own.is_empty() {
        at.out.line("")?;
        let rows = own.into_iter().map(|own| [own.identity, own.person, clock::to_the_minute(&own.since)]);
        at.out.table(["OWN SENDER", "OF", "SINCE"], rows)?;
    }
    if !refused.is_empty() {
        at.out.line("")?;
        at.out.table(["CHANNEL", "REFUSED", "RULE", "LAST", "CAUSE"], refused)?;
    }
    if waiting.is_empty() {
        return Ok(());
    }
    at.out.line("")?;
    let rows = waiting.into_iter().map(|waiting| [waiting.identity, clock::to_the_minute(&waiting.since)]);
    at.out.table(["SENDER WITHOUT A PERSON", "SINCE"], rows)?;
    at.out.remark("link one that you know: ironctl person link PERSON SENDER; or: ironctl channel dismiss SENDER")
}

/// Returns a row for each rule that refused requests to a channel since the start of the host.
fn refused_rows(channel: &Channel) -> Vec<[String; 5]> {
    let row = |refused: &RefusedRequests| {
        [
            channel.name.clone(),
            refused.count.to_string(),
            refused.rule_name().to_owned(),
            clock::to_the_minute(&refused.last_at),
            refused.meaning().to_owned(),
        ]
    };
    channel.refused.iter().map(row).collect()
}

fn secret_from_stdin() -> Result<String, Error> {
    let cannot = || Error::failed("stdin_unreadable", "cannot read the secret from stdin");
    let mut text = String::new();
    io::stdin().lock().take(SECRET_BYTES_MAX).read_to_string(&mut text).map_err(|cause| cannot().because(cause))?;
    Ok(text.trim().to_owned())
}

fn table(out: Output, channels: Vec<Channel>) -> Result<(), Error> {
    let rows = channels.into_iter().map(|channel| {
        [
            channel.name,
            channel.kind.to_string(),
            channel.agent.unwrap_or_else(|| "(none)".to_owned()),
            channel.wiring.as_ref().map(rules_of).unwrap_or_default(),
            channel.url,
            if channel.idempotent { "yes" } else { "no" }.to_owned(),
            channel.hook.unwrap_or_else(|| "(closed)".to_owned()),
        ]
    });
    let columns = ["CHANNEL", "KIND", "AGENT", "RULES", "REPLIES TO", "IDEMPOTENT", "MESSAGES TO"];
    out.table(Columns::new(columns).with_least(&["IDEMPOTENT"]), rows)
}
