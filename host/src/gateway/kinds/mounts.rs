//! The kind `mounts`: directories of the host in the jail of an agent.

mod apply;
mod check;
mod mount_source;
mod page;

pub use check::check_allowable;
pub(super) use check::{complete, describe_sources};

use super::kind::{Properties, Scope};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, restarts_sessions: true };
