//! The payload of the change `permissions`: the people who may talk to an agent, and their roles.
//!
//! Never decides about a message: the host does. See [`crate::seam::change`] and [`crate::seam::bounds`].

use super::message::word;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

word!(/// The people who may talk to an agent.
Access {
    /// All people of the host.
    Everyone = "everyone",
    /// Owners and admins of the host, and people with a role at this agent.
    Members = "members",
});

word!(/// The role of a person at one agent.
AgentRole {
    /// May talk to the agent, and decide changes that concern this agent alone.
    Admin = "admin",
    /// May talk to the agent.
    Member = "member",
});

/// A role at one agent for the person who is linked to an identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The identity, `channel:id`.
    pub identity: String,
    /// The role.
    pub role: AgentRole,
}

/// The people who may talk to an agent, and those who may decide about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Permissions {
    /// The people who may talk to it; absent: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Roles to grant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grant: Vec<Grant>,
    /// Identities of the people who lose their role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoke: Vec<String>,
}
