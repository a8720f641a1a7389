//! The confirmed form of a tool of an MCP server.

use ironclaw_contract::canonical::Digest;
use ironclaw_judge::manifest::Manifest;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A tool of an MCP server that an agent has.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    /// Name of the server.
    pub server: String,
    /// Its name on the server.
    pub tool: String,
    /// The confirmed description, which the server wrote, in a [harmless](super::levels::harmless) form.
    pub description: String,
    /// The confirmed schema of its arguments, in a harmless form.
    pub parameters: Value,
    /// The confirmed manifest; its name is that of the tool for a model.
    pub manifest: Manifest,
    /// The names of all tools of the server that take values by reference alone, or that the host cannot enforce.
    pub floored: Arc<[String]>,
    /// The arguments of all tools of the server, as `TOOL.ARGUMENT`, if one of them has result paths.
    pub arguments: Option<Arc<BTreeSet<String>>>,
    /// The arguments of those of its tools that only read, if a person calls text of one of them theirs.
    pub reading: Option<Arc<BTreeSet<String>>>,
    /// The pin of the confirmed listing.
    pub pin: Digest,
    /// True if the server lists the tool as people confirmed it.
    pub is_current: bool,
}
