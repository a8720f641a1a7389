//! The IronClaw daemon, as a library so that its tests and benchmarks run the same code as `main`.
//!
//! No other crate depends on it. See [`daemon`] for the order of a start, and [`pipeline`] for the path of a message.

#![forbid(unsafe_code)]

pub mod agent_messages;
pub mod api;
pub mod approval;
pub mod audit;
pub mod backup;
pub mod changes;
pub mod command;
pub mod config;
pub mod daemon;
pub mod emergency_stop;
pub mod error;
pub mod executor;
pub mod gateway;
pub mod git_push;
pub mod inbound;
pub mod jail_network;
pub mod key_rotation;
pub mod latch;
pub mod maintenance;
pub mod mcp;
pub mod mcp_jail;
pub mod model_socket;
pub mod network_command;
pub mod notifications;
pub mod observe;
pub mod open_turns;
pub mod outbound;
pub mod packages;
pub mod pipeline;
pub mod preflight;
pub mod questions;
pub mod quota;
pub mod record;
pub mod refusal;
pub mod registry;
pub mod requests;
pub mod retention_worker;
pub mod runtime;
pub mod schedules;
pub mod secrets;
pub mod session;
pub mod shutdown;
pub mod skills;
pub mod tables;
pub mod toml_file;
pub mod tools;
pub mod turns;
pub mod worker;
