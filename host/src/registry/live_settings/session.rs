//! The limits of sessions that are awake.

use serde::Deserialize;

/// The bound on the settings for sessions that are awake at once.
const AWAKE_MAX: u32 = 4096;

/// `[session]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The time after which an idle sandbox ends.
    pub idle_seconds: u64,
    /// The number of failed launches in a row after which a session is parked.
    pub launch_attempts_max: u32,
    /// The most sessions awake at once; 0 for the capacity of this machine.
    pub awake_max: u32,
    /// The most sessions of one agent awake at once; 0 for half of all.
    pub awake_per_agent_max: u32,
    /// The backoff after the first failed launch; it doubles after each further one.
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
