//! The way out: rows that a sandbox wrote are accepted, and answers are delivered.
//!
//! [`crate::pipeline::Outbound`] accepts rows and delivers on the loopback; the worker in [`dispatch`] sends by a network. Never
//! delivers what is not recorded first.

pub mod accept;
pub mod delivery;
pub mod dispatch;
pub mod receipts;
