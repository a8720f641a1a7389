//! The quirks of one endpoint of kind `openai`, learned from its refusals.
//!
//! Never forgets a quirk before the host stops, and learns only from refusals. See [`crate::remote`].

use super::error_body::Complaint;
use super::openai::RequestOptions;
use super::spec::Spec;
use std::sync::atomic::{AtomicBool, Ordering};

/// The limit on an output after a model refused the configured one.
const SMALL_OUTPUT_TOKENS_MAX: u32 = 1024;

/// Options that an endpoint refused.
#[derive(Debug, Default)]
pub struct Quirks {
    /// The endpoint refused the option for the usage of a stream.
    without_usage: AtomicBool,
    /// The endpoint refused the field `max_tokens`.
    newer_limit: AtomicBool,
}

impl Quirks {
    /// Learns from the complaint of a refusal. Each complaint is learned once, so learning ends. The limit on the output changes for this
    /// caller only, because a server may refuse it only with a long prompt.
    pub fn learn(&self, complaint: Option<Complaint>, output_tokens_max: &mut u32) {
        match complaint {
            Some(Complaint::Usage) => self.without_usage.store(true, Ordering::Relaxed),
            Some(Complaint::LimitField) => self.newer_limit.store(true, Ordering::Relaxed),
            Some(Complaint::LimitSize) => *output_tokens_max = SMALL_OUTPUT_TOKENS_MAX.min(*output_tokens_max),
            None => {}
        }
    }

    /// Returns the options of the next request.
    pub fn options(&self, spec: &Spec, short_ids: bool, output_tokens_max: u32) -> RequestOptions {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        RequestOptions {
            streams: spec.streams,
            takes_images: spec.takes_images,
            asks_usage: !is(&self.without_usage),
            short_ids,
            limit_field: if is(&self.newer_limit) { "max_completion_tokens" } else { "max_tokens" },
            output_tokens_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::Spec;
    use super::*;

    #[test]
    fn refused_limit_is_sent_in_another_way() {
        let quirks = Quirks::default();
        let bound = |output_tokens_max| {
            let options = quirks.options(&Spec::builtin(), false, output_tokens_max);
            (options.limit_field, options.output_tokens_max)
        };
        let mut ours = 8192;
        quirks.learn(None, &mut ours);
        assert_eq!(bound(ours), ("max_tokens", 8192));
        quirks.learn(Some(Complaint::LimitField), &mut ours);
        assert_eq!(bound(ours), ("max_completion_tokens", 8192));
        quirks.learn(Some(Complaint::LimitSize), &mut ours);
        assert_eq!(bound(ours), ("max_completion_tokens", SMALL_OUTPUT_TOKENS_MAX));
        assert_eq!(bound(8192), ("max_completion_tokens", 8192), "the next prompt may be shorter");
        let mut smaller = 32;
        quirks.learn(Some(Complaint::LimitSize), &mut smaller);
        assert_eq!(smaller, 32);
    }
}
