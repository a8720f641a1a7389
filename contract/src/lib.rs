//! The frozen contract: the data that crosses a process boundary in IronClaw, and nothing else.
//!
//! Holds shapes, limits and the two sides of both queues; never a policy, a decision or a socket. See [`crate::seam`] for the part
//! that host and sandbox share. The API for operators is a crate of its own, `ironclaw-operator`.

#![forbid(unsafe_code)]

pub mod canonical;
pub mod ids;
pub mod ledger_entry;
pub mod seam;
mod stored;
pub mod words;
