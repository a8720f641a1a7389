//! The limits of each kind of channel.

use serde::Deserialize;

/// The settings of each kind of channel.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// `[webhook]`
    pub webhook: WebhookConfig,
}

/// `[webhook]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookConfig {
    /// A loopback address and port that receives webhooks, e.g. `127.0.0.1:8788`; empty for none.
    pub listen: String,
    /// Signed requests that one channel may make in a minute.
    pub requests_per_minute: u32,
    /// Attempts of one delivery; after the last it is a dead letter.
    pub attempts_max: u32,
    /// Wait before the second attempt; each further wait is four times as long, up to six hours.
    pub backoff_ms: u64,
}

impl Default for WebhookConfig {
    fn default() -> Self {
        Self { listen: String::new(), requests_per_minute: 1200, attempts_max: 10, backoff_ms: 1000 }
    }
}

impl WebhookConfig {
    /// Returns how often a delivery is tried.
    pub const fn attempts(&self) -> Attempts {
        Attempts { most: self.attempts_max, backoff_ms: self.backoff_ms }
    }

    /// Checks the ranges of the numbers; the code that opens the port checks the address.
    ///
    /// # Errors
    /// A sentence that names the error.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=1_000_000).contains(&self.requests_per_minute)
            || !(1..=100).contains(&self.attempts_max)
            || !(1..=3_600_000).contains(&self.backoff_ms)
        {
            return Err("webhook.requests_per_minute must be 1 to 1000000, webhook.attempts_max 1 to 100, and webhook.backoff_ms 1 to 3600000".to_owned());
        }
        Ok(())
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
