//! Settings of an agent beyond its persona and its tools, and the catalogue of MCP servers: parts of `/v1/agents`, and `/v1/mcp`.
//!
//! Never holds the value of a secret. See [`crate::Agent`].

use super::allowances::Allowance;
use super::calls::{AgentGroup, Destination, EgressGrant};
use super::judgement::{Class, Principal};
use super::schedules::ScheduleView;
use super::skills::InstalledSkill;
use super::usage::AgentBudget;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::GuardMode;
use serde::{Deserialize, Serialize};

pub use ironclaw_contract::seam::change::{AgentRole, Engage, Ignored, Senders, Sharing, UnknownSenders};

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
    /// The person who declared its text theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mine: Option<OwnSource>,
}

/// The declaration of a person that the text of a directory, or a text in the answers of a tool, is theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OwnSource {
    /// Name of the person.
    pub person: String,
    /// The reason why the text counts as text of others all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
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

/// What an agent can do, beside its directories, packages, channels and tools: a part of `GET /v1/agents/{agent}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentAbilities {
    /// Its guard mode.
    pub mode: GuardMode,
    /// The tools that the host offers it by itself, such as `send_message` to an agent with a destination.
    pub automatic_tools: Vec<String>,
    /// The hosts that it reaches.
    pub hosts: Vec<EgressGrant>,
    /// The addresses and the agents to which it may send messages.
    pub destinations: Vec<Destination>,
    /// Its trust groups.
    pub groups: Vec<AgentGroup>,
    /// Its skills.
    pub skills: Vec<InstalledSkill>,
    /// Its schedules, as far as the caller may list them.
    pub schedules: Vec<ScheduleView>,
    /// The allowances of its calls, as far as the caller may list them.
    pub allowances: Vec<Allowance>,
    /// Its own ceilings.
    pub ceilings: AgentBudget,
    /// The classes of calls that each kind of principal may ask it for.
    pub scopes: Vec<AgentScope>,
}

/// The classes of calls that one kind of principal may ask an agent for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentScope {
    /// `person`, `guest`, `agent`, `schedule` or `unsigned`. An agent or a schedule may also ask for what its group or its list has.
    pub principal: Principal,
    /// The classes that it may ask for.
    pub may: Vec<Class>,
    /// The classes of a request that asks for none.
    pub unasked: Vec<Class>,
}
