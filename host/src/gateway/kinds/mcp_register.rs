//! The kind `mcp_register`: an MCP server in the catalogue.

mod apply;
mod check;
mod page;

use super::{Properties, Scope};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::Host, restarts_sessions: true };
