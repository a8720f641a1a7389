//! The kind `settings`: guard mode, model endpoint, ceilings, receiver policy and removal of an agent, and the default model of the host.
//!
//! Only people request it. A change that only tightens needs one approval under every policy; every other change follows the
//! policy. No session restarts: the host reads the settings at each request.

mod apply;
mod check;
mod page;
mod receiver;

pub(in crate::gateway) use check::for_default_model;

use super::kind::{Properties, Scope};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, restarts_sessions: false };
