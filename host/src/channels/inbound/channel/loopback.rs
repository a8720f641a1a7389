//! The operator's own chat, the channel of `ironctl chat`.
//!
//! Has no state: a client that waits for an answer reads it from the record, so a delivery that is sent twice appears once.
//! See [`crate::channels::outbound::delivery`].

pub use crate::registry::LOOPBACK as NAME;
