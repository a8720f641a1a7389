//! Channels other than the loopback, and dead letters.
//!
//! Plain data: never decides about a delivery. See [`crate`].

use super::agents::AgentWiring;
use super::denial::DenialCode;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{DeliveryId, MessageId, SessionId};
use serde::{Deserialize, Serialize};

ironclaw_contract::words! {
    /// The kind of a channel, which is its protocol. The loopback is not listed, because it is no row of the record.
    pub enum ChannelKind {
        /// Signed HTTP in both directions, after the Standard Webhooks specification.
        Webhook = "webhook",
    }

    /// The rule about signatures that refused a request to a webhook.
    pub enum SignatureRule {
        /// No header of the request has a signature.
        Missing = "signature_missing",
        /// The headers are those of another product.
        OtherProduct = "other_product",
        /// A header of the signature is missing, or is there twice.
        HeadersIncomplete = "headers_incomplete",
        /// No signature has the form `v1,` and the base64 of 32 bytes.
        Malformed = "signature_malformed",
        /// No signature belongs to this id, time, body and secret, or no channel has this name.
        Wrong = "signature_wrong",
        /// The text of the secret signed, in place of the bytes that it encodes.
        SecretAsText = "secret_as_text",
        /// The bytes that the secret could encode signed, in place of its text.
        SecretDecoded = "secret_decoded",
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

impl SignatureRule {
    /// Returns a sentence for operators and for the manual.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Missing => "No header of the request has a signature.",
            Self::OtherProduct => "The request has the signature headers of another product.",
            Self::HeadersIncomplete => "A header of the signature is missing, or is there twice.",
            Self::Malformed => "No signature of the request has the form `v1,` and the base64 of 32 bytes.",
            Self::Wrong => "No signature of the request belongs to its id, time and body and to the secret.",
            Self::SecretAsText => "The sender signs with the text of the secret, not with the bytes that it encodes.",
            Self::SecretDecoded => "The sender decodes the secret, and the host uses its text.",
        }
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
    /// An existing secret: `whsec_` and base64, two of these, or another text, whose bytes sign; absent: the host makes one.
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
    /// The senders, linked to no person, whose text a person calls theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<OwnSender>,
    /// The refused requests to it since the start of the host, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedRequests>,
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
    /// A remark on the reading of the given secret, if it could be read in two ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
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

/// A sender of a channel, linked to no person, whose text a person calls theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OwnSender {
    /// The identity, `channel:id`.
    pub identity: String,
    /// Name of the person.
    pub person: String,
    /// RFC 3339, the time of the declaration.
    pub since: String,
}

/// `POST /v1/channels/{channel}/own_senders/{sender}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewOwnSender {
    /// The digest of the page of `POST /v1/channels/{channel}/own_senders/{sender}/review`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Digest>,
}

/// The requests to a channel that the host refused for one reason: in `GET /v1/channels`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RefusedRequests {
    /// The code of the refusals.
    pub code: DenialCode,
    /// The rule about signatures; absent for another code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<SignatureRule>,
    /// The number since the start of the host.
    pub count: u64,
    /// RFC 3339, the time of the newest.
    pub last_at: String,
}

impl RefusedRequests {
    /// Returns the name of the rule: that about signatures, or else the code.
    pub const fn rule_name(&self) -> &'static str {
        match self.rule {
            Some(rule) => rule.name(),
            None => self.code.name(),
        }
    }

    /// Returns a sentence about the cause.
    pub const fn meaning(&self) -> &'static str {
        match self.rule {
            Some(rule) => rule.meaning(),
            None => self.code.meaning(),
        }
    }
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
