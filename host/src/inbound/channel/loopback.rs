//! The operator's own chat: what `ironctl chat` speaks.
//!
//! Keeps nothing: a client that waits for an answer reads it from the record, so sending the same delivery twice shows it once.
//! See [`crate::outbound::delivery`].

pub use crate::registry::LOOPBACK as NAME;
