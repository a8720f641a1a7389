//! The kind `create_agent`: a new agent, with nothing that is not named.

mod apply;
mod check;
mod page;

use super::{Properties, Scope};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::Host, begins_anew: true };
