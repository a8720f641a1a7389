//! Settings of an agent beyond its persona and its tools, and the catalogue of MCP servers: parts of `/v1/agents`, and `/v1/mcp`.
//!
//! Never holds the value of a secret. See [`crate::operator::Agent`].

use crate::canonical::Digest;
use crate::ids::PersonId;
use serde::{Deserialize, Serialize};

pub use crate::seam::change::{AgentRole, Engage, Ignored, Senders, Sharing, UnknownSenders};

/// A person with a role at one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentMember {
    /// `per_…`.
    pub person: PersonId,
    /// Their name.
    pub name: String,
    /// Their role at it.
    pub role: AgentRole,
}

/// A directory of the host in an agent's jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentMount {
    /// Absolute path on the host.
    pub source: String,
    /// Its path in the jail.
    pub target: String,
    /// True if the agent can only read it.
    pub read_only: bool,
}

/// Software in the jail of an agent or of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentPackages {
    /// Names for apt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apt: Vec<String>,
    /// Names for npm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub npm: Vec<String>,
    /// Names for pypi.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pypi: Vec<String>,
    /// Digest of the layer with these packages.
    pub layer: Digest,
    /// The time at which the layer was made, RFC 3339.
    pub made_at: String,
}

/// A channel to which an agent is connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentWiring {
    /// Name of the channel.
    pub channel: String,
    /// The messages that the agent answers.
    pub engage: Engage,
    /// The regular expression; there if `engage` is `pattern`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The senders whose messages it answers.
    pub from: Senders,
    /// The treatment of senders who are linked to no person.
    pub unknown: UnknownSenders,
    /// The treatment of messages that it does not answer.
    pub ignored: Ignored,
    /// The way in which people share sessions.
    pub sharing: Sharing,
}

/// The tools of an MCP server that an agent may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentMcp {
    /// Name of the server.
    pub server: String,
    /// Names of its tools.
    pub tools: Vec<String>,
}
