//! The origin of a session: a channel, an address and its meaning, a thread.
//!
//! Never compares addresses of different meanings. See [`crate::sessions::store`].

use crate::store::tables::destinations::AGENT;
use ironclaw_contract::ids::{PersonId, SessionId};

/// The meaning of the address of an origin. Equal addresses of two meanings are two origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OriginKind {
    /// A person under one identity.
    Sender,
    /// A sender of a public channel who is linked to no person.
    Guest,
    /// A group; several people take part.
    Group,
    /// No address: the people of all channels that share one session of the agent.
    Agent,
}

impl OriginKind {
    /// Returns its name in the record.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Guest => "guest",
            Self::Group => "group",
            Self::Agent => "agent",
        }
    }

    /// Returns whether messages of several people meet in such a session.
    pub const fn is_shared(self) -> bool {
        match self {
            Self::Group | Self::Agent => true,
            Self::Sender | Self::Guest => false,
        }
    }
}

impl std::str::FromStr for OriginKind {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Sender, Self::Guest, Self::Group, Self::Agent].into_iter().find(|kind| kind.name() == text).ok_or(())
    }
}

ironclaw_state::stored_by_name!(OriginKind);

/// Origin of a session's messages, and destination of the replies to messages without an address of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The meaning of the address.
    pub kind: OriginKind,
    /// The channel, such as `loopback`.
    pub channel: String,
    /// The address on the channel.
    pub platform_id: String,
    /// The thread at that address; empty if there is none.
    pub thread_id: String,
}

impl Origin {
    /// Returns the origin of the messages of another agent: the session that asks, and the person at the start of the chain.
    pub fn of_agent(asking: SessionId, person: PersonId) -> Self {
        let (platform_id, thread_id) = (asking.to_string(), person.to_string());
        Self { kind: OriginKind::Sender, channel: AGENT.to_owned(), platform_id, thread_id }
    }

    /// Returns the identity of the person at its address, `CHANNEL:ADDRESS`; `None` for an origin without a single person.
    pub fn recipient(&self) -> Option<String> {
        let is_persons = self.kind == OriginKind::Sender && self.channel != AGENT;
        is_persons.then(|| format!("{}:{}", self.channel, self.platform_id))
    }

    /// Returns the origin of a person's messages under one identity.
    pub const fn of_sender(channel: String, platform_id: String, thread_id: String) -> Self {
        Self { kind: OriginKind::Sender, channel, platform_id, thread_id }
    }
}
