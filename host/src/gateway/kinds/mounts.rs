//! The kind `mounts`: directories of the host in the jail of an agent.

mod apply;
mod check;
mod mount_source;
mod own_directory;
mod page;

pub use check::check_allowable;
pub(super) use check::{complete, describe_sources};
pub(super) use own_directory::{add_ended, add_known_since, put_ended, put_known_since, refuse};
pub use own_directory::{look_at, to_look_at};

use super::kind::{Properties, Scope};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, restarts_sessions: true };
