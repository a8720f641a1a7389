//! The kind `settings`: guard mode, model endpoint, ceilings and removal of an agent, and the default model of the host.
//!
//! Only people ask for it. What only tightens takes one person, whatever the policy says; what loosens goes by the policy. No session
//! begins anew: settings are looked up at each request.

mod apply;
mod check;
mod page;

pub(in crate::gateway) use check::for_default_model;

use super::{Properties, Scope};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, begins_anew: false };
