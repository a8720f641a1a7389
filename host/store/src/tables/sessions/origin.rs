//! The origin of a session: a channel, an address and its meaning, a thread.
//!
//! Never compares addresses of different meanings. See `sessions::store`.

use crate::rows::rows;
use crate::tables::destinations::AGENT;
use ironclaw_contract::ids::{PersonId, ScheduleId, SessionId};
use std::fmt;
use std::str::FromStr;

ironclaw_contract::words! {
    /// The meaning of the address of an origin. Equal addresses of two meanings are two origins.
    pub enum OriginKind {
        /// A person under one identity.
        Sender = "sender",
        /// A sender of a public channel who is linked to no person.
        Guest = "guest",
        /// A group; several people take part.
        Group = "group",
        /// No address: the people of all channels that share one session of the agent.
        Agent = "agent",
    }
}

impl OriginKind {
    /// Returns whether messages of several people meet in such a session.
    pub const fn is_shared(self) -> bool {
        match self {
            Self::Group | Self::Agent => true,
            Self::Sender | Self::Guest => false,
        }
    }
}

ironclaw_contract::stored_as_text!(OriginKind);

/// The runs of schedules that a session has in place of the messages of its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ScheduleRuns {
    /// None: it is a conversation.
    #[default]
    None,
    /// ScheduleRuns that each see their own prompt alone.
    Fresh,
    /// The runs of one schedule, which continue one conversation.
    Continued(ScheduleId),
}

/// The word of [`ScheduleRuns::Fresh`] in the record.
const FRESH: &str = "fresh";

impl fmt::Display for ScheduleRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Fresh => f.write_str(FRESH),
            Self::Continued(schedule) => schedule.fmt(f),
        }
    }
}

impl FromStr for ScheduleRuns {
    type Err = <ScheduleId as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" => Ok(Self::None),
            FRESH => Ok(Self::Fresh),
            schedule => schedule.parse().map(Self::Continued),
        }
    }
}

rows! {
    /// Origin of a session's messages, and destination of the replies to messages without an address of their own.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    pub struct Origin {
        /// The meaning of the address.
        pub kind: OriginKind = "origin_kind",
        /// The channel, such as `loopback`.
        pub channel: String,
        /// The address on the channel.
        pub platform_id: String,
        /// The thread at that address; empty if there is none.
        pub thread_id: String,
        /// The runs of schedules that have the session to themselves.
        pub runs: ScheduleRuns as text,
    }
}

impl Origin {
    /// Returns the origin of the messages of another agent: the session that asks, and the person at the start of the chain.
    pub fn from_agent(asking: SessionId, person: PersonId) -> Self {
        let (platform_id, thread_id) = (asking.to_string(), person.to_string());
        Self::from_sender(AGENT.to_owned(), platform_id, thread_id)
    }

    /// Returns the identity of the person at its address, `CHANNEL:ADDRESS`; `None` for an origin without a single person.
    pub fn recipient(&self) -> Option<String> {
        let is_persons = self.kind == OriginKind::Sender && self.channel != AGENT;
        is_persons.then(|| format!("{}:{}", self.channel, self.platform_id))
    }

    /// Returns the origin of a person's messages under one identity.
    pub const fn from_sender(channel: String, platform_id: String, thread_id: String) -> Self {
        Self { kind: OriginKind::Sender, channel, platform_id, thread_id, runs: ScheduleRuns::None }
    }
}
