//! The way out: rows that a sandbox wrote are accepted, and answers are delivered.
//!
//! [`crate::pipeline::Outbound::outbound`] drives it. Never delivers what is not recorded first.

pub mod accept;
pub mod delivery;
pub mod dispatch;
pub mod receipts;
