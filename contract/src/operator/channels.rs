//! Channels beside the loopback, and answers that did not arrive.
//!
//! Plain data.

use crate::ids::{DeliveryId, MessageId, SessionId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

// The name is a `tt`: the schema of the API does not read a `literal` of a macro.
macro_rules! channel_kinds {
    ($($kind:ident = $name:tt, $meaning:literal;)+) => {
        /// What a channel speaks. The loopback is not listed, because it is no row of the record.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        pub enum ChannelKind {
            $(
                #[doc = $meaning]
                #[serde(rename = $name)]
                $kind,
            )+
        }

        impl ChannelKind {
            /// Every kind, in the order of the list.
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            /// Returns its name in rows, in JSON and on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }

            /// Returns a sentence for the manual.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$kind => $meaning,)+
                }
            }
        }
    };
}

channel_kinds! {
    Webhook = "webhook", "Signed HTTP in both directions, after the Standard Webhooks specification.";
}

impl fmt::Display for ChannelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no kind of channel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no kind of channel has this name")]
pub struct UnknownChannelKind;

impl FromStr for ChannelKind {
    type Err = UnknownChannelKind;

    fn from_str(text: &str) -> Result<Self, UnknownChannelKind> {
        Self::ALL.iter().copied().find(|kind| kind.name() == text).ok_or(UnknownChannelKind)
    }
}

/// `POST /v1/channels`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewChannel {
    /// What it speaks: a name of [`ChannelKind`]. Another text is refused with `channel_kind`.
    pub kind: String,
    /// 1 to 32 characters of a-z, 0-9, - and _; the first part of every identity on it.
    pub name: String,
    /// Where replies go: https anywhere, http on this machine and in private networks.
    pub url: String,
    /// Name or id of the agent that hears it; without one no agent does until a change of kind `wiring` says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Whether the other side shows a delivery once that is sent to it twice.
    #[serde(default)]
    pub idempotent: bool,
    /// A signing secret of one's own, `whsec_…`; a fresh one is made without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// A channel: in `GET /v1/channels`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// What it speaks.
    pub kind: ChannelKind,
    /// Where replies go.
    pub url: String,
    /// Whether the other side shows a delivery once that is sent to it twice.
    pub idempotent: bool,
    /// Name of the agent that hears it; nothing that comes in is taken without one.
    pub agent: Option<String>,
    /// Where its messages come in on this machine, if the settings open a port for them.
    pub hook: Option<String>,
    /// Name of the agent that heard it before, where it was taken from one just now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_from: Option<String>,
    /// RFC 3339.
    pub created_at: String,
}

/// A channel that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewChannelMade {
    /// The channel.
    #[serde(flatten)]
    pub channel: Channel,
    /// Its fresh signing secret, this once; none when one was brought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// `POST /v1/channels/{channel}/agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewWiring {
    /// Name or id of the agent that is to hear it.
    pub agent: String,
}

/// `POST /v1/channels/{channel}/test`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChannelTest {
    /// Whether the other side took it.
    pub received: bool,
    /// What came of it, half a sentence.
    pub result: String,
}

/// Answer to a webhook once its message is in the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Taken {
    /// `msg_…`; the same for the same event again.
    pub message_id: MessageId,
}

/// An answer that did not arrive, or may not have: in `GET /v1/dead`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeadLetter {
    /// `dlv_…`.
    pub delivery_id: DeliveryId,
    /// `ses_…`.
    pub session_id: SessionId,
    /// Its channel.
    pub channel: String,
    /// Whom it was for, on that channel.
    pub recipient: String,
    /// In which thread; empty for the one without a name.
    pub thread: String,
    /// `dead`: it did not arrive; `unknown`: nobody here knows.
    pub receipt: String,
    /// Why.
    pub reason: String,
    /// How often it was sent.
    pub attempts: u32,
    /// RFC 3339, when it was to be sent first.
    pub created_at: String,
    /// RFC 3339, when it was given up.
    pub settled_at: String,
}

/// What was done to such an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeadLetterDone {
    /// `dlv_…`.
    pub delivery_id: DeliveryId,
    /// Where it stands now: `pending` or `dropped`.
    pub receipt: String,
}
