//! The kind `settings`: guard mode, model endpoint, ceilings and removal of an agent, and the default model of the host.
//!
//! Only people ask for it. A change that only tightens takes one person, whatever the policy says; every other change follows the
//! policy. No session begins anew: the host looks up settings at each request.

mod apply;
mod check;
mod page;

pub(in crate::gateway) use check::for_default_model;

use super::{Properties, Scope};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, begins_anew: false };
