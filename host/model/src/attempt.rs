//! The bounds on the attempts to get one output.
//!
//! Never sends a request. See [`crate::remote`].

use super::context_size::ContextSign;
use super::streaming::PartialAnswer;
use super::{Allowance, TRIES_MAX, Usage};
use tokio::time::Instant;

/// Remaining bounds of one output.
#[derive(Debug)]
pub struct AttemptBudget<'a> {
    pub until: Instant,
    /// Number of attempts that are left.
    pub tries_left: u32,
    /// Bound on the usage of all attempts together.
    pub allowance: Allowance,
    /// Sink of the words of the output.
    pub draft: &'a PartialAnswer,
    /// Usage of the attempts so far.
    pub usage: Usage,
    /// The tokens of the prompt, as the provider counted them for the output.
    pub counted: Option<u64>,
    /// What the answer showed about the size of the context.
    pub context: Option<ContextSign>,
}

impl<'a> AttemptBudget<'a> {
    /// Returns the bounds of an output before its first attempt.
    pub fn new(until: Instant, allowance: Allowance, draft: &'a PartialAnswer) -> Self {
        let usage = Usage::default();
        Self { until, tries_left: TRIES_MAX, allowance, draft, usage, counted: None, context: None }
    }

    /// Returns whether the allowance covers one more attempt with this estimate.
    pub const fn has_room(&self, estimate: Usage) -> bool {
        self.allowance.has_room(self.usage, estimate)
    }
}

/// Bounds on the attempts at one endpoint.
#[derive(Debug, Clone, Copy)]
pub struct AttemptLimits {
    /// Number of attempts.
    pub tries: u32,
    /// `true` if another endpoint follows in the chain.
    pub has_others: bool,
    /// Most tokens of the output.
    pub output_tokens_max: u32,
}
