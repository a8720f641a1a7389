//! The outbound path: it accepts rows that a sandbox wrote, and delivers answers.
//!
//! [`crate::runtime::pipeline::Outbound`] accepts rows and delivers on the loopback; the worker in [`dispatch`] sends over a network. Never
//! delivers an answer that is not recorded first.

pub mod attempts;
pub mod delivery;
pub mod dispatch;
pub mod journal;
