//! The kind `skills`: a verified skill of an agent, with the changes that it contains.
//!
//! A request only names a package. The check fills in the signer, the persona and the parts from the record of verified packages, so that
//! no request can write them. Each part is checked, shown and applied by its own kind.

mod apply;
mod check;
mod lost;
mod page;
mod plan;

pub(super) use lost::forget_lost;

use super::kind::{Properties, Scope};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, restarts_sessions: true };
