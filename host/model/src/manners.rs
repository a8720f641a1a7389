//! Habits of one endpoint of kind `openai`, learned from what it refused.
//!
//! Never forgets before the host ends, and never learns from anything but a refusal. See [`crate::remote`].

use super::openai::Habits;
use super::refused::About;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bound on an output that is tried where the usual one is too much for a model.
const SMALL_OUTPUT_TOKENS_MAX: u32 = 1024;

/// Options that an endpoint refused.
#[derive(Debug, Default)]
pub struct Manners {
    /// The usage of a stream.
    without_usage: AtomicBool,
    /// A bound by `max_tokens`.
    newer_limit: AtomicBool,
}

impl Manners {
    /// Notes what a refusal is about. Each complaint is learned once, so learning ends. The bound on the output changes for the
    /// caller alone: a server may find it too large only beside a long prompt.
    pub fn learn(&self, about: Option<About>, output_tokens_max: &mut u32) {
        match about {
            Some(About::Usage) => self.without_usage.store(true, Ordering::Relaxed),
            Some(About::LimitField) => self.newer_limit.store(true, Ordering::Relaxed),
            Some(About::LimitSize) => *output_tokens_max = SMALL_OUTPUT_TOKENS_MAX.min(*output_tokens_max),
            None => {}
        }
    }

    /// Returns how it is asked now.
    pub fn habits(&self, streams: bool, short_ids: bool, output_tokens_max: u32) -> Habits {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        Habits {
            streams,
            asks_usage: !is(&self.without_usage),
            short_ids,
            limit_field: if is(&self.newer_limit) { "max_completion_tokens" } else { "max_tokens" },
            output_tokens_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_bound_is_asked_for_in_another_way() {
        let manners = Manners::default();
        let bound = |output_tokens_max| {
            let habits = manners.habits(true, false, output_tokens_max);
            (habits.limit_field, habits.output_tokens_max)
        };
        let mut ours = 8192;
        manners.learn(None, &mut ours);
        assert_eq!(bound(ours), ("max_tokens", 8192));
        manners.learn(Some(About::LimitField), &mut ours);
        assert_eq!(bound(ours), ("max_completion_tokens", 8192));
        manners.learn(Some(About::LimitSize), &mut ours);
        assert_eq!(bound(ours), ("max_completion_tokens", SMALL_OUTPUT_TOKENS_MAX));
        assert_eq!(bound(8192), ("max_completion_tokens", 8192), "the next prompt may be shorter");
        let mut smaller = 32;
        manners.learn(Some(About::LimitSize), &mut smaller);
        assert_eq!(smaller, 32);
    }
}
