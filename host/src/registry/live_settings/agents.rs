//! The bounds on messages between agents.

use serde::Deserialize;

/// `[agents]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The most agents that a message passes through.
    pub hops_max: u32,
    /// The most messages that one agent sends in a minute, to agents and to people.
    pub sends_per_minute: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { hops_max: 5, sends_per_minute: 120 }
    }
}

impl Config {
    /// Checks that each number is in its bounds.
    ///
    /// # Errors
    /// Returns a sentence that names the setting and its bounds.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=20).contains(&self.hops_max) {
            return Err("agents.hops_max must be 1 to 20".to_owned());
        }
        if !(1..=10_000).contains(&self.sends_per_minute) {
            return Err("agents.sends_per_minute must be 1 to 10000".to_owned());
        }
        Ok(())
    }
}
