//! The IronClaw daemon, as a library so that its tests and benchmarks run the same code as `main`.
//!
//! No other crate depends on it. See [`daemon`] for the order of a start, and [`runtime::pipeline`] for the path of a message.
//!
//! The list of rooms is their order, lowest first. A room imports only from rooms before it; `tests/layers.rs` reads the list.

#![forbid(unsafe_code)]

pub mod store; // the record: SQL, rows, refusals, and the loop of a worker

pub mod registry; // who and what exists, what is allowed, and the settings that a decision reads

pub mod sessions; // the row, the keys and the files of a conversation

pub mod turns; // what a model sees, and what it costs

pub mod channels; // how words come in and go out

pub mod reach; // what comes from other machines for an agent, or goes to them

pub mod gateway; // everything that waits for people

pub mod calls; // the calls of a model, judged and run

pub mod runtime; // the sessions that are awake

pub mod upkeep; // the record kept whole

pub mod api; // HTTP for the operator

pub mod daemon; // start, stop, settings and command line
