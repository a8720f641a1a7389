//! Sessions: their rows, their link, and the projection of their inbound queue.
//!
//! Never decides on the effects of a message. The actor that drives a session is in [`crate::runtime`]. See [`crate::sessions::store`].

pub mod files;
pub mod store;

pub use crate::registry::live_settings::session::Config;

use ironclaw_contract::ids::SessionId;

/// A notification to the actor of a session that the record has work for it.
pub trait Wake: Send + Sync {
    /// Lets a session look for work. During an emergency stop it does nothing; the end of the stop finds the work.
    fn wake(&self, session: SessionId);

    /// Lets a session look for work if it has an actor.
    fn nudge(&self, session: SessionId);
}
