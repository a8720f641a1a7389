//! The limits of sessions that are awake.

/// The bound on the settings for sessions that are awake at once.
const AWAKE_MAX: u64 = 4096;

ironclaw_operator::settings! {
    /// `[session]`
    pub struct Config for session {
        /// An awake session without work goes to sleep after this time.
        idle_seconds: u64 = 300, Range(1, 2_592_000, "seconds"), Live;
        /// The most sessions that are awake at once; 0 derives 4 to 256 from the memory, processes and descriptors of the machine.
        awake_max: u32 = 0, Range(0, AWAKE_MAX, "sessions"), Restart;
        /// The most sessions of one agent that are awake at once, at most `awake_max`; 0 means half of the sessions that may be awake.
        awake_per_agent_max: u32 = 0, Range(0, AWAKE_MAX, "sessions"), Restart;
        /// A session is parked after this number of failures in a row.
        launch_attempts_max: u32 = 5, AtLeast(1, "failures"), Live;
        /// The pause after the first failed launch; it doubles with each further failure, up to 30 seconds.
        backoff_ms: u64 = 200, Range(0, 60_000, "milliseconds"), Live;
    }
}

impl Config {
    /// Refuses limits that do not fit together.
    pub fn check(&self) -> Result<(), String> {
        if self.awake_max > 0 && self.awake_per_agent_max > self.awake_max {
            return Err("session.awake_per_agent_max must be no more than session.awake_max".to_owned());
        }
        Ok(())
    }
}
