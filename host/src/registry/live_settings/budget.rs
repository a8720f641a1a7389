//! The ceilings for the use of models.

use serde::Deserialize;

/// `[budget]`: ceilings; 0 is none.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Tokens of all agents on one day.
    pub tokens_per_day: u64,
    /// Cost of all agents on one day, in millionths of the currency of the prices.
    pub cost_per_day_micros: u64,
    /// Tokens of one agent on one day, unless the agent has its own ceiling.
    pub tokens_per_agent_day: u64,
    /// Cost of one agent on one day, unless the agent has its own ceiling.
    pub cost_per_agent_day_micros: u64,
    /// Tokens of one session in its whole life.
    pub tokens_per_session: u64,
    /// Tokens of all turns that the messages of agents open in one chain.
    pub tokens_per_chain: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            tokens_per_day: 0,
            cost_per_day_micros: 0,
            tokens_per_agent_day: 0,
            cost_per_agent_day_micros: 0,
            tokens_per_session: 0,
            // No person takes part in a chain, so it has an end by default.
            tokens_per_chain: 1_000_000,
        }
    }
}
