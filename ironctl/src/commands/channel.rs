//! `ironctl channel`: makes, lists, tries and removes channels beside the loopback.
//!
//! Never takes a secret as an argument, and shows one only in the moment in which it is made. [`crate::commands::agent`] connects
//! an agent, [`crate::commands::message`] shows what did not arrive.

use super::At;
use crate::failure::Error;
use crate::output::Output;
use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ironclaw_contract::operator::{Channel, ChannelKind, NewChannel};
use serde_json::json;
use std::io::{self, Read};

/// Bytes of a signing secret, far above what one has.
const SECRET_BYTES_MAX: u64 = 1024;

/// What to do with channels.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Make a channel, and print its fresh secret this once
    #[command(before_long_help = rules(), after_help = examples())]
    Add {
        /// What it speaks
        #[arg(value_parser = kinds())]
        kind: ChannelKind,
        /// Its name: a-z, 0-9, - and _; the first part of every identity on it
        name: String,
        /// Where replies go
        #[arg(long)]
        url: String,
        /// Name or id of the agent that hears it; without one no agent hears it yet
        #[arg(long)]
        agent: Option<String>,
        /// The other side shows a reply once that is sent to it twice under one id
        #[arg(long)]
        idempotent: bool,
        /// Read its secret from stdin instead of making a fresh one
        #[arg(long)]
        secret_stdin: bool,
    },
    /// List the channels
    #[command(after_help = "Example:\n  ironctl channel list")]
    List,
    /// Send a test to a channel, and show what came of it
    #[command(after_help = "Example:\n  ironctl channel test shop")]
    Test {
        /// Its name
        name: String,
    },
    /// Remove a channel with its secret; what is still to be sent on it is not sent
    #[command(after_help = "Example:\n  ironctl channel remove shop --yes")]
    Remove {
        /// Its name
        name: String,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
}

/// Reads a kind of channel by its name.
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

/// Returns the rules for the address and the secret of each kind.
fn rules() -> String {
    let lines = ChannelKind::ALL.iter().map(|kind| match kind {
        ChannelKind::Webhook => {
            "The URL of a webhook is https anywhere, or http on this machine and in private networks. Its secret is whsec_… and the \
             base64 of 24 to 64 bytes."
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Says what is still to be done so that messages of this kind come in, where nothing takes them yet.
const fn opens(kind: ChannelKind) -> &'static str {
    match kind {
        ChannelKind::Webhook => {
            "nothing comes in yet: set webhook.listen in config.toml, e.g. \"127.0.0.1:8788\", and restart the host"
        }
    }
}

/// Says what its secret is for.
const fn secret_words(kind: ChannelKind) -> &'static str {
    match kind {
        ChannelKind::Webhook => "its signing secret, shown this once:",
    }
}

/// Does it.
pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::Add { kind, name, url, agent, idempotent, secret_stdin } => {
            let secret = secret_stdin.then(secret_from_stdin).transpose()?;
            let new = NewChannel { kind: kind.to_string(), name, url, agent, idempotent, secret };
            let made = client.add_channel(&new).await?;
            at.out.json(&made)?;
            let channel = &made.channel;
            at.out.remark(format!("made channel {}; replies go to {}", channel.name, channel.url))?;
            match &channel.hook {
                Some(hook) => at.out.remark(format!("messages come in at {hook}"))?,
                None => at.out.remark(opens(channel.kind))?,
            }
            if channel.agent.is_none() {
                at.out.remark(format!("no agent hears it yet: ironctl agent connect AGENT {}", channel.name))?;
            }
            at.out.remark(format!("say who speaks on it: ironctl person link PERSON {}:SENDER", channel.name))?;
            match &made.secret {
                Some(secret) => {
                    at.out.remark(secret_words(channel.kind))?;
                    at.out.line(secret)
                }
                None => Ok(()),
            }
        }
        Action::List => {
            let channels = client.channels().await?;
            at.out.json(&channels)?;
            if channels.is_empty() {
                let kinds: Vec<_> = ChannelKind::ALL.iter().map(|kind| kind.name()).collect();
                let command = format!("ironctl channel add {} NAME", kinds.join("|"));
                return at.out.line(format!("no channels beside the loopback; make one with `{command}`"));
            }
            table(at.out, channels)
        }
        Action::Test { name } => {
            let tested = client.test_channel(&name).await?;
            at.out.json(&tested)?;
            if tested.received {
                return at.out.line(format!("{name}: {}", tested.result));
            }
            Err(Error::failed("channel_test", format!("{name} did not take the test: {}", tested.result))
                .hinting("ironctl channel list shows where it went"))
        }
        Action::Remove { name, yes } => {
            at.out.confirm(&format!("remove channel {name} and its secret"), yes)?;
            let removed = client.remove_channel(&name).await?;
            at.out.json(&json!({ "removed": removed.name }))?;
            at.out.line(format!("removed channel {}", removed.name))
        }
    }
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
            channel.agent.unwrap_or_else(|| "(nobody)".to_owned()),
            channel.url,
            if channel.idempotent { "yes" } else { "no" }.to_owned(),
            channel.hook.unwrap_or_else(|| "(closed)".to_owned()),
        ]
    });
    out.table(["CHANNEL", "KIND", "HEARD BY", "REPLIES TO", "IDEMPOTENT", "COMES IN AT"], rows)
}
