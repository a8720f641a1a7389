//! The kind `mcp_register`: an MCP server in the catalogue, or its removal.

mod apply;
mod check;
mod page;

pub(super) use apply::lost;

use super::kind::{Properties, Scope};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::Host, restarts_sessions: false };
