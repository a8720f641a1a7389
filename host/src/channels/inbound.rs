//! The inbound stages of a message: a channel, the identity of its sender, the route to a session, and the inbox.
//!
//! [`crate::runtime::pipeline`] calls these stages in their order.

pub mod channel;
pub mod identity;
pub mod inbox;
pub mod routing;
pub mod scope;
