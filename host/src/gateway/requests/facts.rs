//! The facts of a call: the one value from which its page, its digest and its execution are made.
//!
//! Has everything that decides the effect of a call: the arguments as they are sent, the hosts with their grants,
//! each secret by name and version, the address of a message, and the place where a server runs. Never has the value of a secret. An
//! approval is bound to the digest of the facts that its page showed; the executor reads the facts again in the transaction that uses the
//! approval, and builds the effect from them. See [`super::use_approvals`].

pub(super) mod read;
pub(super) mod section;
pub(super) mod standing;
#[cfg(test)]
pub(super) mod tests;

use crate::registry::channels::Channel;
use crate::registry::mcp::Registration;
use crate::registry::secrets::Versioned;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::AgentId;
use ironclaw_judge::egress::{Grant, Request};
use ironclaw_operator::SentFile;
use serde::Serialize;
use serde_json::{Map, Value};

/// The facts of one call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Facts {
    /// The tool by its name for a model.
    tool: String,
    /// The arguments, exactly as hashed.
    arguments: Map<String, Value>,
    /// The place at which the call has its effect.
    reach: Reach,
}

/// The place at which a call has its effect.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// A request over the network.
    Request(Box<SentRequest>),
    /// The hosts that a command can reach.
    Command {
        /// The hosts to which the gateway of the host sends requests for the command.
        hosts: Vec<Reached>,
        /// The hosts to which the command makes connections that this host cannot read.
        tunnels: Vec<Grant>,
    },
    /// The host that gets a push; `None` if no grant has it.
    Push(Option<Box<Reached>>),
    /// The address of a message or a file.
    Message(Box<Message>),
    /// A tool of an MCP server.
    Server(Box<ServerTool>),
    /// The jail of the session, and the record of its agent.
    Session {
        /// The granted directories that the tool can reach.
        directories: Vec<Directory>,
    },
    /// None: the tool, its address or its file is gone, and the call has no effect.
    Nowhere,
}

/// A directory of the machine in the jail of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Directory {
    /// Its path on the machine.
    pub source: String,
    /// Its path in the jail.
    pub target: String,
    pub read_only: bool,
}

/// A request over the network, as this host sends it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SentRequest {
    /// Method, address, headers, and the body by digest.
    pub request: Request,
    /// The text of the body.
    pub body: Option<String>,
    /// The grant of its host, whether it covers the request or not.
    pub grant: Option<Grant>,
    /// The secret that is sent along: that of the grant, if the grant covers the request.
    pub secret: Option<Versioned>,
}

/// A granted host with its secret.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reached {
    pub grant: Grant,
    /// The secret that requests to it carry.
    pub secret: Option<Versioned>,
}

/// The address of a message or a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    /// The agent's name for it.
    pub to: String,
    pub channel: String,
    /// The URL and the registration of the channel; `None` if the host itself has no channel of this name.
    pub registered: Option<RegisteredChannel>,
    /// The address on the channel.
    pub address: String,
    /// The thread at the address; empty for none.
    pub thread: String,
    /// The other agent, if one receives the message.
    pub receiver: Option<AgentId>,
    /// The copy of the file that is sent.
    pub file: Option<SentFile>,
}

/// The channel of a message, as it is registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RegisteredChannel {
    /// The URL to which it sends.
    pub url: String,
    /// Distinguishes it from earlier channels of the same name.
    pub generation: i64,
}

impl From<Channel> for RegisteredChannel {
    fn from(channel: Channel) -> Self {
        Self { url: channel.url, generation: channel.generation }
    }
}

/// A tool of an MCP server, with the registration of the server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerTool {
    /// Name of the server.
    pub server: String,
    /// The name of the tool on the server.
    pub tool: String,
    /// The pin of the confirmed listing.
    pub pin: Digest,
    /// The registration of the server: the place where it runs, its hosts, and its credentials.
    pub registration: Registration,
}

impl Facts {
    /// Returns the digest of all facts. Calls with different facts have different digests.
    pub fn digest(&self) -> Digest {
        Digest::of(&canonical::to_vec(self))
    }

    /// Returns the name of the tool for a model.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    pub const fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    /// Returns the place at which the call has its effect.
    pub const fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Returns whether a value of the call leaves this machine, or may leave it.
    pub fn leaves_machine(&self) -> bool {
        match &self.reach {
            Reach::Request(_) | Reach::Command { .. } | Reach::Push(_) => true,
            Reach::Message(message) => message.receiver.is_none(),
            Reach::Server(tool) => tool.registration.place().has_network(),
            Reach::Session { .. } => false,
            // The record no longer says where it would go.
            Reach::Nowhere => true,
        }
    }
}
