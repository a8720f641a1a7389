//! The nine kinds of capability change that an agent may propose.
//!
//! The payload of a kind is an opaque bounded object here, until it is frozen together with what applies it. Next: `action`.

use super::message::word;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

word!(/// What would change.
ChangeKind {
    /// What the agent is told about itself.
    Persona = "persona",
    /// Which tools it may call.
    EnabledTools = "enabled_tools",
    /// Software in its jail.
    Packages = "packages",
    /// Which messages reach it.
    Wiring = "wiring",
    /// Roles and members.
    Permissions = "permissions",
    /// Directories of the host in its jail.
    Mounts = "mounts",
    /// A new agent.
    CreateAgent = "create_agent",
    /// Tools of a known MCP server.
    McpAccess = "mcp_access",
    /// A new MCP server.
    McpRegister = "mcp_register",
});

/// A payload that nobody has looked into yet: a JSON object, strict and bounded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Payload(pub serde_json::Map<String, serde_json::Value>);
