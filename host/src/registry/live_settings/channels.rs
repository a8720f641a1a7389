//! The limits of each kind of channel.

/// The settings of each kind of channel.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// `[webhook]`
    pub webhook: WebhookConfig,
}

ironclaw_operator::settings! {
    /// `[webhook]`
    pub struct WebhookConfig for webhook {
        /// The host accepts webhooks on this address, e.g. 127.0.0.1:8788; empty opens no port.
        listen: String = String::new(), Rule("a loopback address with a port, or empty"), Restart;
        /// The most signed requests that one channel may make in a minute.
        requests_per_minute: u32 = 1200, Range(1, 1_000_000, "requests"), Restart;
        /// A delivery is a dead letter after this number of attempts.
        attempts_max: u32 = 10, Range(1, 100, "attempts"), Live;
        /// The pause before the second attempt; each further one is four times as long, up to six hours.
        backoff_ms: u64 = 1000, Range(1, 3_600_000, "milliseconds"), Live;
    }
}

impl WebhookConfig {
    /// Returns how often a delivery is tried.
    pub const fn attempts(&self) -> Attempts {
        Attempts { most: self.attempts_max, backoff_ms: self.backoff_ms }
    }
}

/// The bounds on the attempts of a delivery.
#[derive(Debug, Clone, Copy)]
pub struct Attempts {
    /// Attempts of one delivery; after the last it is a dead letter.
    pub most: u32,
    /// Wait before the second attempt; each further wait is four times as long, up to six hours.
    pub backoff_ms: u64,
}
