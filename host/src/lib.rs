//! The IronClaw daemon, as a library so that its tests and benches drive the same code as `main`.
//!
//! Nothing here is meant for another crate. Next: `daemon` for the order in which it all starts, `pipeline` for what happens to a message.

#![forbid(unsafe_code)]

pub mod api;
pub mod approval;
pub mod audit;
pub mod budget;
pub mod calls;
pub mod channel;
pub mod command;
pub mod config;
pub mod context;
pub mod daemon;
pub mod delivery;
pub mod gateway;
pub mod identity;
pub mod inbox;
pub mod items;
pub mod maintenance;
pub mod memories;
pub mod observe;
pub mod packages;
pub mod pipeline;
pub mod preflight;
pub mod quota;
pub mod record;
pub mod refusal;
pub mod registry;
pub mod rotation;
pub mod routing;
pub mod secrets;
pub mod session;
pub mod settings;
pub mod tools;
pub mod turn;
