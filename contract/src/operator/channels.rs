//! Channels other than the loopback, and dead letters.
//!
//! Plain data: never decides about a delivery. See [`crate::operator`].

use super::agents::AgentWiring;
use crate::ids::{DeliveryId, MessageId, SessionId};
use serde::{Deserialize, Serialize};

crate::words! {
    /// The kind of a channel, which is its protocol. The loopback is not listed, because it is no row of the record.
    pub enum ChannelKind {
        /// Signed HTTP in both directions, after the Standard Webhooks specification.
        Webhook = "webhook",
    }

    /// The receipt of a delivery.
    pub enum Receipt {
        /// It waits for an attempt.
        Pending = "pending",
        Sent = "sent",
        /// The receiver confirmed it.
        Received = "received",
        /// Its outcome is unknown.
        Unknown = "unknown",
        Dead = "dead",
        /// A person dropped it.
        Dropped = "dropped",
        /// An item has no delivery.
        Unsaid = "unsaid",
    }
}

impl Receipt {
    /// Returns whether the answer did not arrive, as far as the host knows, and there is no further attempt.
    pub const fn is_lost(self) -> bool {
        matches!(self, Self::Unknown | Self::Dead | Self::Dropped)
    }
}

impl ChannelKind {
    /// Returns a sentence for the manual.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Webhook => "Signed HTTP in both directions, after the Standard Webhooks specification.",
        }
    }
}

/// `POST /v1/channels`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewChannel {
    /// Its kind: a name of [`ChannelKind`]. The host refuses another text with `channel_kind`.
    pub kind: String,
    /// 1 to 32 characters of a-z, 0-9, - and _; the first part of every identity on it.
    pub name: String,
    /// The URL for replies: https anywhere, http on this machine and in private networks.
    pub url: String,
    /// True if the receiver shows a delivery once even if the host sends it twice.
    #[serde(default)]
    pub idempotent: bool,
    /// An existing signing secret, `whsec_…`; absent: the host makes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// A channel: in `GET /v1/channels`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: ChannelKind,
    /// The URL for replies.
    pub url: String,
    /// True if the receiver shows a delivery once even if the host sends it twice.
    pub idempotent: bool,
    /// Name of the connected agent. Without one, the host refuses all messages of the channel.
    pub agent: Option<String>,
    /// The rules of that connection; absent without an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wiring: Option<AgentWiring>,
    /// The senders who are linked to no person and wait for one, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingSender>,
    /// The URL for its messages on this machine, if the settings open a port for webhooks.
    pub hook: Option<String>,
    /// RFC 3339.
    pub created_at: String,
}

/// A new channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewChannelMade {
    /// The channel.
    #[serde(flatten)]
    pub channel: Channel,
    /// The signing secret that the host made, shown only in this answer; absent if the request had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// `POST /v1/channels/{channel}/agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewWiring {
    /// Name or id of the agent to connect.
    pub agent: String,
    /// The messages that it answers: `all pattern mention mention_sticky`; absent: `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engage: Option<String>,
    /// The regular expression; there if and only if `engage` is `pattern`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The senders whose messages it answers: `known all`; absent: `known`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The treatment of senders who are linked to no person: `strict request public`; absent: `strict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// The treatment of messages that it does not answer: `accumulate drop`; absent: `accumulate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<String>,
    /// The way in which people share sessions: `thread shared agent`; absent: `thread`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<String>,
}

/// `POST /v1/channels/{channel}/test`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChannelTest {
    /// True if the receiver accepted it.
    pub received: bool,
    /// The result, as a part of a sentence.
    pub result: String,
}

/// `POST /v1/channels/{channel}/probe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChannelProbe {
    /// True if the receiver accepts connections.
    pub reached: bool,
    /// The result, as a part of a sentence.
    pub result: String,
}

/// A sender of a channel who is linked to no person and waits for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WaitingSender {
    /// The identity, `channel:id`. The sender chose the id.
    pub identity: String,
    /// RFC 3339, the time of the first message.
    pub since: String,
}

/// The answer to a webhook request that the host accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Taken {
    /// `msg_…`; a repeated event gets the same id. Absent if the wiring drops the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
}

/// `GET /v1/dead`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeadLetters {
    /// The oldest first.
    pub letters: Vec<DeadLetter>,
    /// True if there are more.
    #[serde(default)]
    pub more: bool,
}

/// A delivery that failed, or whose outcome is unknown: in `GET /v1/dead`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeadLetter {
    /// `dlv_…`.
    pub delivery_id: DeliveryId,
    /// `ses_…`.
    pub session_id: SessionId,
    /// Its channel.
    pub channel: String,
    /// The recipient on that channel.
    pub recipient: String,
    /// The thread; empty for the one without a name.
    pub thread: String,
    /// `dead`: it failed; `unknown`: the outcome is unknown.
    pub receipt: Receipt,
    /// The reason.
    pub reason: String,
    /// The number of attempts.
    pub attempts: u32,
    /// RFC 3339, the time of the intent.
    pub created_at: String,
    /// RFC 3339, the time at which the host gave up.
    pub settled_at: String,
}

/// The answer to a retry or a drop of a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeadLetterDone {
    /// `dlv_…`.
    pub delivery_id: DeliveryId,
    /// Its present receipt: `pending` or `dropped`.
    pub receipt: Receipt,
}
