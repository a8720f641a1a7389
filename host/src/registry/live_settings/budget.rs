//! The ceilings for the use of models.

ironclaw_operator::settings! {
    /// `[budget]`
    pub struct Config for budget {
        /// The ceiling of all agents for one day (UTC); 0 means none.
        tokens_per_day: u64 = 0, AtLeast(0, "tokens"), Live;
        /// The ceiling of cost of all agents for one day (UTC); 0 means none.
        cost_per_day_micros: u64 = 0, AtLeast(0, "millionths of the currency of the prices"), Live;
        /// The ceiling of one agent for one day (UTC), unless the agent has its own; 0 means none.
        tokens_per_agent_day: u64 = 0, AtLeast(0, "tokens"), Live;
        /// The ceiling of cost of one agent for one day (UTC), unless the agent has its own; 0 means none.
        cost_per_agent_day_micros: u64 = 0, AtLeast(0, "millionths of the currency of the prices"), Live;
        /// The ceiling of one session for its whole life; 0 means none.
        tokens_per_session: u64 = 0, AtLeast(0, "tokens"), Live;
        // No person takes part in a chain, so it has an end by default.
        /// The ceiling of all turns that the messages of agents open in one chain; 0 means none.
        tokens_per_chain: u64 = 1_000_000, AtLeast(0, "tokens"), Live;
    }
}
