//! The kind `create_agent`: a new agent with exactly the named capabilities.

mod apply;
mod check;
mod page;

use super::kind::{Properties, Scope};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::Host, restarts_sessions: true };
