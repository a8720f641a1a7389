//! The kind `packages`: software in the jail of an agent.

mod apply;
mod check;
mod page;

use super::{Properties, Scope};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, restarts_sessions: true };
