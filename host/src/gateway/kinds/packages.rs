//! The kind `packages`: software in the jail of an agent.

mod apply;
mod check;
mod page;

pub(super) use apply::fetched;
pub(super) use check::clients;
pub(super) use page::{put_clients, put_names, put_publishers};

use super::kind::{Properties, Scope};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, restarts_sessions: true };
