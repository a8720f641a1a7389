//! The bounds on messages between agents.

ironclaw_operator::settings! {
    /// `[agents]`
    pub struct Config for agents {
        /// The most agents that a message passes through.
        hops_max: u32 = 5, Range(1, 20, "agents"), Live;
        /// The most messages that one agent sends in a minute, to agents and to people.
        sends_per_minute: u32 = 120, Range(1, 10_000, "messages"), Live;
    }
}
