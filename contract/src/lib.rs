//! The frozen contract: the data that crosses a process boundary in IronClaw, and nothing else.
//!
//! Holds shapes, limits and the two sides of both queues; never a policy, a decision or a socket. See [`crate::operator`] for
//! the API of the operator, and [`crate::seam`] for the part that host and sandbox share.

#![forbid(unsafe_code)]

pub mod canonical;
pub mod ids;
pub mod ledger_entry;
pub mod operator;
pub mod seam;
pub mod settings;
mod stored;
pub mod words;
