//! The frozen contract: what crosses a process boundary in IronClaw, and nothing else.
//!
//! Holds shapes, limits and the two ends of both queues; never a policy, never a decision, never a socket. See
//! [`crate::operator`] for the operator's side, [`crate::seam`] for what host and sandbox share.

#![forbid(unsafe_code)]

pub mod canonical;
pub mod ids;
pub mod ledger_entry;
pub mod operator;
pub mod seam;
mod stored;
