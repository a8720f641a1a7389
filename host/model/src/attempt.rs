//! The bounds of the attempts to get one output.
//!
//! Asks no server. See [`crate::remote`].

use super::draft::Draft;
use super::endpoint::Prices;
use super::{Allowance, Prompt, Usage};
use tokio::time::Instant;

/// Remaining bounds of one output.
#[derive(Debug)]
pub struct AttemptBudget<'a> {
    /// The deadline.
    pub until: Instant,
    /// Attempts.
    pub tries_left: u32,
    /// Usage that all attempts together may have.
    pub allowance: Allowance,
    /// Sink of the words.
    pub draft: &'a Draft,
    /// Usage of the attempts so far.
    pub usage: Usage,
}

impl AttemptBudget<'_> {
    /// Returns whether one more try at these prices may be made.
    pub fn has_room(&self, prompt: &Prompt, prices: Prices) -> bool {
        self.allowance.has_room(self.usage, prompt.estimate(prices))
    }
}

/// Part of the bounds that one endpoint may use.
#[derive(Debug, Clone, Copy)]
pub struct AttemptLimits {
    /// Tries.
    pub tries: u32,
    /// Whether another endpoint can be asked after it.
    pub has_others: bool,
    /// Tokens of the output.
    pub output_tokens_max: u32,
}
