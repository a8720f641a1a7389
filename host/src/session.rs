//! Sessions: their rows, their link, and the projection of their inbound queue.
//!
//! Never decides what a message may do; the actor that drives a session is in `runtime`. See [`crate::session::store`].

pub mod link;
pub mod projection;
#[cfg(feature = "relay")]
pub mod relay;
pub mod store;

use ironclaw_contract::ids::SessionId;
use serde::Deserialize;

/// Sessions awake at once that may be asked for.
const AWAKE_MAX: u32 = 4096;

/// `[session]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// An idle agent's process ends after this long.
    pub idle_seconds: u64,
    /// Failed launches in a row before a session is parked.
    pub launch_attempts_max: u32,
    /// Sessions that may be awake at once; 0 for as many as this machine can bear.
    pub awake_max: u32,
    /// The same for one agent; 0 for half of them.
    pub awake_per_agent_max: u32,
    /// Waits this long after the first failed launch; twice as long after each further one.
    pub backoff_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { idle_seconds: 300, launch_attempts_max: 5, awake_max: 0, awake_per_agent_max: 0, backoff_ms: 200 }
    }
}

impl Config {
    /// Refuses values that are out of bounds.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=2_592_000).contains(&self.idle_seconds) || self.backoff_ms > 60_000 {
            return Err(
                "session.idle_seconds must be 1 to 2592000 (30 days), and session.backoff_ms at most 60000".to_owned()
            );
        }
        let (all, one) = (self.awake_max, self.awake_per_agent_max);
        if all > AWAKE_MAX || one > AWAKE_MAX || (all > 0 && one > all) {
            return Err(
                "session.awake_max must be at most 4096, and session.awake_per_agent_max no more than that".to_owned()
            );
        }
        if self.launch_attempts_max == 0 {
            return Err("session.launch_attempts_max must be at least 1".to_owned());
        }
        Ok(())
    }
}

/// Tells the actor of a session that the record has something for it.
pub trait Wake: Send + Sync {
    /// Has a session look at its work, unless everything is stopped: then its work is found when that ends.
    fn wake(&self, session: SessionId);

    /// Has a session look at its work if it has an actor.
    fn nudge(&self, session: SessionId);
}
