//! The way out: rows that a sandbox wrote are accepted, and answers are delivered.
//!
//! [`super::outbound()`] drives it. Never delivers what is not recorded first.

pub(in crate::pipeline) mod accept;
pub(in crate::pipeline) mod dispatch;
pub(in crate::pipeline) mod receipts;
pub(in crate::pipeline) mod rows;
