//! Messages from outside, before their sender is identified.
//!
//! A channel only receives and sends; it decides nothing. See [`crate::channels::inbound::identity`].

pub mod checks;
pub mod loopback;
pub mod outgoing;
pub mod registration;
pub mod webhook;

use crate::registry::channels::Channel;
pub use crate::registry::live_settings::channels::Config;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::PersonId;
use ironclaw_judge::provenance::spans::Telling;
use ironclaw_judge::scope::declared::Declaration;
use ironclaw_operator::{ChannelKind, DenialCode, MessageFile};
use ironclaw_state::keys::{self, WrappingKey};
use ironclaw_store::refusal::{Denied, Refusal};

use crate::registry::live_settings::channels::Attempts;
use ironclaw_store::tables::messages::Kind;
use outgoing::{Body, Outcome};
use std::net::SocketAddr;
use webhook::signature::Secret;

/// Returns whether the journal sends the replies on a channel: over a network, or to another agent. Any other is complete with its row.
pub fn is_over_network(channel: &str) -> bool {
    channel != loopback::NAME
}

/// One message as a channel received it. Its claims about itself prove nothing.
#[derive(Debug, Clone)]
pub struct Received {
    /// Name of the channel: the loopback's, or one that an operator gave.
    pub channel: String,
    /// The kind of the message.
    pub kind: Kind,
    /// Address on the channel for replies.
    pub platform_id: String,
    /// Thread on the channel; empty if it has no threads.
    pub thread_id: String,
    /// Group on the channel; `None` for a message to the agent alone.
    pub group: Option<String>,
    /// The names that the message mentions, as the channel has them.
    pub mentions: Vec<String>,
    /// The sender's full, opaque id on the channel.
    pub sender: String,
    /// The speaking person, if the channel itself knows it (the loopback: the owner of the token). An identity of another
    /// person is refused.
    pub speaker: Option<PersonId>,
    /// The platform's id of the event; the same id again means the same message.
    pub event_id: Option<String>,
    /// Digest of the whole received event, if the channel has it: another event under the same id is refused.
    pub event_digest: Option<Digest>,
    /// Name or id of the agent that the message is for.
    pub agent: String,
    /// Text of the sender.
    pub text: String,
    pub files: Vec<MessageFile>,
    /// Texts of others that the sender quotes or forwards.
    pub quoted: Vec<String>,
    /// What the sender declares beside the text.
    pub allow: Option<Declaration>,
    /// What the channel says of the text.
    pub telling: Telling,
}

/// The other end of a channel, with everything that a send needs.
pub enum Receiver {
    /// An address that takes signed HTTP.
    Webhook { url: url::Url, secret: Secret },
}

impl Receiver {
    /// Returns how often a delivery to it is tried.
    pub const fn attempts(&self, settings: &Config) -> Attempts {
        match self {
            Self::Webhook { .. } => settings.webhook.attempts(),
        }
    }

    /// Makes the receiver of replies on this channel.
    ///
    /// # Errors
    /// Refuses settings that do not fit the kind; fails if the key does not open the secret.
    pub fn new(channel: &Channel, wrapping: &WrappingKey) -> Result<Self, Denied<keys::Error>> {
        match channel.kind {
            ChannelKind::Webhook => {
                let secret = channel.secret(wrapping).map_err(Denied::Failed)?;
                let secret = Secret::read(&secret).map_err(|why| Refusal::new(DenialCode::ChannelSecret, why))?;
                let url = webhook::check_url(&channel.url).map_err(|why| Refusal::new(DenialCode::ChannelUrl, why))?;
                Ok(Self::Webhook { url, secret })
            }
        }
    }
}

/// Connects to a receiver, without a request. Returns the address that accepted.
///
/// # Errors
/// A clause with the reason.
pub async fn probe(to: &Receiver) -> Result<SocketAddr, String> {
    match to {
        Receiver::Webhook { url, .. } => webhook::outgoing::probe(url).await,
    }
}

/// The clients that send, one for each kind of channel.
#[derive(Default)]
pub struct Sender {
    webhook: webhook::outgoing::Sender,
}

impl Sender {
    /// Sends a body under this id; `now` in milliseconds.
    pub async fn send(&self, to: &Receiver, id: &str, now: i64, body: &Body<'_>) -> Outcome {
        match to {
            Receiver::Webhook { url, secret } => self.webhook.send(url, secret, id, now, body).await,
        }
    }
}
