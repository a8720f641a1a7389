//! The number of tokens that a model reads, as the words of its server state it or the counts of its server show it.
//!
//! Never changes a prompt and keeps nothing in the record: the caller decides. See [`crate::error_body`] for the other refusals.

mod counts;
mod words;

pub use counts::Counts;
pub(crate) use counts::{is_end_of_context, rounded};
pub(crate) use words::stated_output;
pub use words::{is_about_size, is_refusal, stated};

use super::fault::{Failed, Fault};
use super::profile;
use super::size::tokens_estimated;
use super::spec::Spec;

/// The setting of a server that no profile names.
const CONTEXT_SETTING: &str =
    "the context length of its server (`num_ctx` at Ollama, `-c` at llama.cpp, `--max-model-len` at vLLM)";

/// Fewest and most tokens that are a size of a context; other numbers in the words of a server are something else.
const TOKENS: std::ops::RangeInclusive<u64> = 256..=100_000_000;

/// Bytes of a conversation that a prompt may have with any model, so that it has the newest message and a part before it.
pub const CONVERSATION_BYTES_MIN: u64 = 4096;

/// Bytes of a conversation that count as one token: fewer than the average, because names, code and other scripts have fewer.
const BYTES_PER_TOKEN: u64 = 3;

/// The largest part of a context that is kept free for the output, as a divisor.
const OUTPUT_PART: u64 = 4;

/// Returns the tokens of an output for a model that reads so many: the bound, or a quarter of the context.
pub fn output_tokens_max(tokens: u64, bound: u32) -> u32 {
    u32::try_from(tokens / OUTPUT_PART).unwrap_or(u32::MAX).clamp(1, bound)
}

/// Returns the bytes of a conversation that fit beside `fixed` bytes of instructions and tools, and beside the output.
pub fn conversation_bytes_max(tokens: u64, output: u32, fixed: usize) -> u64 {
    let left = tokens.saturating_sub(u64::from(output)).saturating_sub(tokens_estimated(fixed));
    left.saturating_mul(BYTES_PER_TOKEN).max(CONVERSATION_BYTES_MIN)
}

/// What an endpoint shows about the size of its context while it gives an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextSign {
    /// Its server named the tokens that its model reads, in the refusal of a longer output.
    Stated(u64),
    /// The output ended where prompt and output together have this size.
    Ended(u64),
}

/// A refusal of a prompt because of its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooLong {
    /// Name of the endpoint.
    pub endpoint: String,
    /// The tokens that its model reads, if its server stated them.
    pub tokens: Option<u64>,
    /// `true` if the server named the number itself, and it is no sum of its counts.
    pub is_stated: bool,
}

impl Failed {
    /// Returns the refusal because of the size, if an endpoint refused for this reason.
    pub fn too_long(&self) -> Option<TooLong> {
        let failure = self.failures.iter().find(|failure| failure.fault == Fault::ContextTooLong)?;
        let words = failure.detail.for_operator().and_then(stated);
        // A refusal costs nothing, so these are the counts of an answer that ended at the end of the context.
        let counted = (self.failures.len() == 1).then(|| self.usage.tokens()).filter(|tokens| TOKENS.contains(tokens));
        let (endpoint, is_stated) = (failure.endpoint.clone(), words.is_some());
        Some(TooLong { endpoint, tokens: words.or(counted.map(counts::rounded)), is_stated })
    }
}

impl Spec {
    /// Returns the setting of its server that says how many tokens the model reads.
    pub fn context_setting(&self) -> &'static str {
        profile::used_by(self).and_then(|profile| profile.context_setting.as_deref()).unwrap_or(CONTEXT_SETTING)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Usage;
    use super::super::fault::{Detail, Failure};
    use super::*;
    use url::Url;

    #[test]
    fn conversation_gets_what_output_and_tools_leave() {
        for (tokens, output, fixed, bytes) in [
            (8192, 2048, 8000, (8192 - 2048 - 2000) * 3),
            (8192, 96, 8000, (8192 - 96 - 2000) * 3),
            (4096, 8192, 20_000, CONVERSATION_BYTES_MIN),
            (0, 8192, 0, CONVERSATION_BYTES_MIN),
            (u64::MAX, 8192, 0, u64::MAX),
        ] {
            assert_eq!(conversation_bytes_max(tokens, output, fixed), bytes, "{tokens} {output} {fixed}");
        }
        assert_eq!(
            (output_tokens_max(4096, 8192), output_tokens_max(0, 8192), output_tokens_max(4096, 96)),
            (1024, 1, 96)
        );
    }

    #[test]
    fn refusal_by_size_names_endpoint_and_tokens() {
        let failure = |fault, words: &str| Failure {
            endpoint: "local".into(),
            model: "small".into(),
            key: None,
            fault,
            tries: 1,
            detail: Detail::new(words, None),
        };
        let failed = |fault, words, usage| Failed { failures: vec![failure(fault, words)], usage };
        let long = |tokens, is_stated| Some(TooLong { endpoint: "local".into(), tokens, is_stated });
        let said = "This model's maximum context length is 4096 tokens.";
        let nothing = Usage::default();
        let counted = Usage { input_tokens: 4095, output_tokens: 1, cost_micros: 0 };
        assert_eq!(failed(Fault::ContextTooLong, said, nothing).too_long(), long(Some(4096), true));
        assert_eq!(failed(Fault::ContextTooLong, "too long", nothing).too_long(), long(None, false));
        assert_eq!(failed(Fault::ContextTooLong, "", counted).too_long(), long(Some(4096), false));
        assert_eq!(failed(Fault::BadRequest(400), said, nothing).too_long(), None);
    }

    #[test]
    fn setting_is_named_for_the_port_of_a_local_server() {
        for (url, word) in [
            ("http://127.0.0.1:11434/v1", "num_ctx"),
            ("http://[::1]:8000/v1", "--max-model-len"),
            ("http://10.0.0.7:8080", "`-c`"),
            ("http://127.0.0.1:1234/v1", "LM Studio"),
            ("http://127.0.0.1:40123/v1", "num_ctx"),
        ] {
            let spec = Spec { base_url: Some(Url::parse(url).expect("a URL")), ..Spec::builtin() };
            assert!(spec.context_setting().contains(word), "{url}");
        }
    }
}
