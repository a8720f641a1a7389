//! The IronClaw daemon, as a library so that its tests and benchmarks run the same code as `main`.
//!
//! No other crate depends on it. See [`daemon`] for the order of a start, and [`runtime::pipeline`] for the path of a message.
//!
//! The list of rooms is their order, lowest first. Below them is `store`, the crate `ironclaw-store`: the record. A room imports only
//! from rooms before it; `tests/layers.rs` reads the list.

#![forbid(unsafe_code)]
// No other crate reads this one, so only what a name does not say is documented.
#![allow(missing_docs)]

pub(crate) mod registry; // who and what exists, what is allowed, and the settings that a decision reads

pub(crate) mod sessions; // the row, the keys and the files of a conversation

pub(crate) mod turns; // what a model sees, and what it costs

pub(crate) mod channels; // how words come in and go out

pub(crate) mod reach; // what comes from other machines for an agent, or goes to them

pub(crate) mod gateway; // everything that waits for people

pub(crate) mod calls; // the calls of a model, judged and run

pub(crate) mod runtime; // the sessions that are awake

pub(crate) mod upkeep; // the record kept whole

pub(crate) mod api; // HTTP for the operator

pub mod daemon; // start, stop, settings and command line

/// Parts that tests, benches and examples call without a process. No program uses this list.
#[doc(hidden)]
pub mod driven {
    pub use crate::channels::inbound::channel::webhook::signature;
    pub use crate::gateway::decide::proof::{Approved, Direct};
    pub use crate::reach::{mcp_jail, packages};
    pub use crate::registry::live_settings::{ApprovalConfig, HostPolicy, LiveSettings};
    pub use crate::registry::policy::Policy;
    pub use crate::registry::tools::catalogue::Catalogue;
    pub use crate::registry::tools::levels::Room;
    pub use crate::registry::{Agent, LOOPBACK, Mode, find_agent, owner};
    pub use crate::runtime::schedules as runs;
    pub use crate::sessions::store as sessions;
    pub use crate::turns::calls::http::Network;
    pub use crate::turns::{calls, context, items, turn};
    pub use crate::upkeep::maintenance::HeadPublisher;
    pub use ironclaw_store::error::Error;
    pub use ironclaw_store::record::Record;
    pub use ironclaw_store::refusal::Denied;
    pub use ironclaw_store::tables::schedules;
}
