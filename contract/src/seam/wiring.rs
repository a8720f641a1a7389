//! The payload of the change `wiring`: the channel that an agent hears, the messages that it answers, and the sessions of its people.
//!
//! Never decides about a message: the host does. See [`crate::seam::change`] and [`crate::seam::bounds`].

use super::field::text;
use super::limits::NAME_BYTES_MAX;
use super::message::word;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

word!(/// The messages of a channel that open a turn.
Engage {
    /// All messages.
    All = "all",
    /// Messages that match the pattern.
    Pattern = "pattern",
    /// Messages that mention the agent.
    Mention = "mention",
    /// Messages that mention the agent, and later messages of a thread in which it was mentioned.
    MentionSticky = "mention_sticky",
    /// No message: the agent is not connected to the channel.
    None = "none",
});

word!(/// The senders whose messages may open a turn.
Senders {
    /// People of the host.
    Known = "known",
    /// Everyone whose messages the host accepts.
    All = "all",
});

word!(/// The treatment of a sender who is linked to no person.
UnknownSenders {
    /// The message is refused.
    Strict = "strict",
    /// The message is refused, and owners and admins are told of the sender.
    Request = "request",
    /// The message is accepted from a guest, who gets a reply and no tools.
    Public = "public",
});

word!(/// The treatment of a message that opens no turn.
Ignored {
    /// It is context of the next turn.
    Accumulate = "accumulate",
    /// It is not recorded.
    Drop = "drop",
});

word!(/// The way in which people share the sessions of a channel.
Sharing {
    /// One session for each thread of a group, or of a person outside of a group.
    Thread = "thread",
    /// One session for each group, or for each person outside of a group.
    Shared = "shared",
    /// One session of the agent for all channels that are connected in this way.
    Agent = "agent",
});

/// A connection between a channel and an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wiring {
    /// Name of the channel.
    pub channel: String,
    /// The messages that open a turn.
    pub engage: Engage,
    /// A regular expression over the text of a message; there if and only if `engage` is `pattern`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The senders whose messages may open a turn.
    #[serde(default = "known", skip_serializing_if = "is_known")]
    pub from: Senders,
    /// The treatment of senders who are linked to no person.
    #[serde(default = "strict", skip_serializing_if = "is_strict")]
    pub unknown: UnknownSenders,
    /// The treatment of messages that open no turn.
    #[serde(default = "accumulate", skip_serializing_if = "is_accumulate")]
    pub ignored: Ignored,
    /// The way in which people share sessions.
    #[serde(default = "thread", skip_serializing_if = "is_thread")]
    pub sharing: Sharing,
}

const fn known() -> Senders {
    Senders::Known
}

fn is_known(from: &Senders) -> bool {
    *from == known()
}

const fn strict() -> UnknownSenders {
    UnknownSenders::Strict
}

fn is_strict(unknown: &UnknownSenders) -> bool {
    *unknown == strict()
}

const fn accumulate() -> Ignored {
    Ignored::Accumulate
}

fn is_accumulate(ignored: &Ignored) -> bool {
    *ignored == accumulate()
}

const fn thread() -> Sharing {
    Sharing::Thread
}

fn is_thread(sharing: &Sharing) -> bool {
    *sharing == thread()
}

impl Wiring {
    /// Returns a wiring without a pattern, with the default of every other field.
    pub const fn new(channel: String, engage: Engage) -> Self {
        let (from, unknown, ignored, sharing) = (known(), strict(), accumulate(), thread());
        Self { channel, engage, pattern: None, from, unknown, ignored, sharing }
    }

    pub(super) fn within_bounds(&self) -> Result<(), String> {
        text("channel", &self.channel, NAME_BYTES_MAX)?;
        match (self.engage, &self.pattern) {
            (Engage::Pattern, Some(pattern)) => text("pattern", pattern, NAME_BYTES_MAX)?,
            (Engage::Pattern, None) => return Err("engage is `pattern`, but pattern is missing".to_owned()),
            (_, None) => {}
            (_, Some(_)) => return Err("pattern is allowed only if engage is `pattern`".to_owned()),
        }
        if self.engage == Engage::None && *self != Self::new(self.channel.clone(), Engage::None) {
            return Err("from, unknown, ignored and sharing are not allowed if engage is `none`".to_owned());
        }
        Ok(())
    }
}
