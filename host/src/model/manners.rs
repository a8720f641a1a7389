//! How one endpoint of kind `openai` wants to be asked, learned from what it refused.
//!
//! Never forgets before the host ends, and never learns from anything but a refusal. Next: `model::remote`.

use super::openai::Habits;
use super::refused::About;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bound on an output that is tried where the usual one is too much for a model.
const SMALL_OUTPUT_TOKENS_MAX: u32 = 1024;

/// What an endpoint said it cannot be asked for.
#[derive(Debug, Default)]
pub struct Manners {
    /// The usage of a stream.
    without_usage: AtomicBool,
    /// A bound by `max_tokens`.
    newer_limit: AtomicBool,
    /// An output as long as usual.
    small_limit: AtomicBool,
}

impl Manners {
    /// Notes what a refusal is about. Each thing is learned once, so what is learned ends.
    pub fn learn(&self, about: Option<About>) {
        let known = match about {
            Some(About::Usage) => &self.without_usage,
            Some(About::LimitField) => &self.newer_limit,
            Some(About::LimitSize) => &self.small_limit,
            None => return,
        };
        known.store(true, Ordering::Relaxed);
    }

    /// How it is asked now.
    pub fn habits(&self, streams: bool, short_ids: bool, output_tokens_max: u32) -> Habits {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let small = if is(&self.small_limit) { SMALL_OUTPUT_TOKENS_MAX } else { u32::MAX };
        Habits {
            streams,
            asks_usage: !is(&self.without_usage),
            short_ids,
            limit_field: if is(&self.newer_limit) { "max_completion_tokens" } else { "max_tokens" },
            output_tokens_max: output_tokens_max.min(small),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_bound_is_asked_for_in_another_way() {
        let manners = Manners::default();
        let bound = || {
            let habits = manners.habits(true, false, 8192);
            (habits.limit_field, habits.output_tokens_max)
        };
        manners.learn(None);
        assert_eq!(bound(), ("max_tokens", 8192));
        manners.learn(Some(About::LimitField));
        assert_eq!(bound(), ("max_completion_tokens", 8192));
        manners.learn(Some(About::LimitSize));
        assert_eq!(bound(), ("max_completion_tokens", SMALL_OUTPUT_TOKENS_MAX));
        assert_eq!(manners.habits(true, false, 32).output_tokens_max, 32);
    }
}
