//! The bound on the outputs of one endpoint after its server refused a larger one.
//!
//! Keeps nothing in the record: the size of a context goes to the host, and any other bound is learned anew after a start. See
//! [`crate::remote`].

use super::context_size::{self, ContextSign};
use super::error_body::Complaint;
use super::fault::Fault;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The bound after a refusal that names no number.
const SMALL_OUTPUT_TOKENS_MAX: u32 = 1024;
/// Answers in a row that agree before a bound without a number counts for later requests.
const ANSWERS_MIN: u32 = 2;
/// Time after which a larger output is tried again, because a server may refuse it with a long prompt alone.
const KEPT_MAX: Duration = Duration::from_secs(60 * 60);

/// The bound that later requests have.
#[derive(Debug, Default)]
pub struct OutputBound(Mutex<Option<Learned>>);

#[derive(Debug, Clone, Copy)]
struct Learned {
    tokens: u32,
    /// The tokens of the shortest prompt that it counts for.
    prompt: u64,
    answers: u32,
    at: Instant,
}

/// A smaller bound for the rest of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Smaller {
    pub tokens: u32,
    /// The tokens of the prompt.
    prompt: u64,
    origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A part of the context with this size, which the server named.
    Context(u64),
    /// The server named the bound.
    Named,
    Guessed,
}

impl Smaller {
    /// Returns the bound after a refusal of `asked` tokens beside a prompt of about `prompt` tokens; `None` if a smaller output does not
    /// help.
    pub fn after(fault: Fault, complaint: Option<Complaint>, words: &str, asked: u32, prompt: u64) -> Option<Self> {
        let is_limit = complaint == Some(Complaint::LimitSize);
        let is_too_long = fault == Fault::ContextTooLong;
        if let Some(context) = context_size::stated(words).filter(|_| is_limit || is_too_long) {
            let tokens = context_size::output_tokens_max(context, asked);
            let is_room = prompt.saturating_add(u64::from(tokens)) <= context;
            let smaller = Self { tokens, prompt, origin: Origin::Context(context) };
            return (is_room && tokens < asked).then_some(smaller);
        }
        let named = context_size::stated_output(words).map(|tokens| (tokens, Origin::Named));
        let (tokens, origin) = named.unwrap_or((SMALL_OUTPUT_TOKENS_MAX, Origin::Guessed));
        (is_limit && tokens < asked).then_some(Self { tokens, prompt, origin })
    }

    /// Returns a still smaller bound after a refusal of this one; `None` if it is the smallest.
    pub fn again(self, complaint: Option<Complaint>) -> Option<Self> {
        let is_limit = complaint == Some(Complaint::LimitSize);
        (is_limit && self.tokens > SMALL_OUTPUT_TOKENS_MAX).then_some(Self { tokens: SMALL_OUTPUT_TOKENS_MAX, ..self })
    }

    /// Returns the size of the context that the server named.
    pub const fn context(self) -> Option<ContextSign> {
        match self.origin {
            Origin::Context(tokens) => Some(ContextSign::Stated(tokens)),
            Origin::Named | Origin::Guessed => None,
        }
    }
}

impl OutputBound {
    fn learned(&self) -> MutexGuard<'_, Option<Learned>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tokens that a request with such a prompt asks for, at most `bound`.
    pub fn at_most(&self, bound: u32, prompt: u64, now: Instant) -> u32 {
        let is_used = |learned: &Learned| {
            learned.answers >= ANSWERS_MIN && prompt >= learned.prompt && now < learned.at + KEPT_MAX
        };
        let used = self.learned().filter(is_used);
        used.map_or(bound, |learned| learned.tokens.min(bound))
    }

    /// Learns from an answer to a prompt of so many tokens, with a bound of `asked` tokens, or a smaller one if the server refused that.
    pub fn answered(&self, asked: u32, prompt: u64, smaller: Option<Smaller>, now: Instant) {
        let mut learned = self.learned();
        let before = learned.filter(|learned| now < learned.at + KEPT_MAX);
        let again = before.filter(|before| Some(before.tokens) == smaller.map(|smaller| smaller.tokens));
        *learned = match smaller {
            Some(Smaller { tokens, origin: Origin::Named, .. }) => {
                Some(Learned { tokens, prompt: 0, answers: ANSWERS_MIN, at: now })
            }
            Some(Smaller { tokens, prompt, origin: Origin::Guessed }) => {
                let answers = again.map_or(1, |before| before.answers.saturating_add(1));
                // One long prompt does not limit the answers to short ones.
                let prompt = again.map_or(prompt, |before| before.prompt.min(prompt));
                Some(Learned { tokens, prompt, answers, at: now })
            }
            // The record has the size of the context.
            Some(Smaller { origin: Origin::Context(_), .. }) => before,
            // An answer of the size that was refused contradicts what was seen, unless its prompt is shorter.
            None => before.filter(|before| asked <= before.tokens || prompt < before.prompt),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Option<Complaint> = Some(Complaint::LimitSize);

    #[test]
    fn refused_output_is_asked_again_with_what_the_words_leave() {
        let long = Fault::ContextTooLong;
        let bad = Fault::BadRequest(400);
        for (fault, complaint, words, prompt, tokens, context) in [
            (
                long,
                None,
                "maximum context length is 8192 tokens. However, you requested 9890",
                1698,
                Some(2048),
                Some(8192),
            ),
            (long, None, "maximum context length is 8192 tokens. However, you requested 9890", 7000, None, None),
            (long, None, "the prompt is too long", 10, None, None),
            (
                long,
                LIMIT,
                "max_tokens is too large. This model's maximum context length is 4096 tokens",
                9,
                Some(1024),
                Some(4096),
            ),
            (
                long,
                LIMIT,
                "input length and `max_tokens` exceed context limit: 1674 + 8192 > 8192",
                1674,
                Some(2048),
                Some(8192),
            ),
            (
                bad,
                LIMIT,
                "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens",
                9,
                Some(4096),
                None,
            ),
            (
                bad,
                LIMIT,
                "max_tokens is too large: 8192. This model supports at most 2048 completion tokens",
                9,
                Some(2048),
                None,
            ),
            (bad, LIMIT, "Range of max_tokens should be [1, 2000]", 9, Some(2000), None),
            (bad, LIMIT, "the valid range of max_tokens is [1, 16384]", 9, None, None),
            (bad, LIMIT, "max_tokens is too large", 9, Some(1024), None),
            (bad, None, "the parameter n is too large", 9, None, None),
        ] {
            let found = Smaller::after(fault, complaint, words, 8192, prompt);
            assert_eq!(found.map(|found| found.tokens), tokens, "{words}");
            assert_eq!(found.and_then(Smaller::context), context.map(ContextSign::Stated), "{words}");
        }
    }

    #[test]
    fn bound_is_learned_from_its_number_or_from_two_answers() {
        let now = Instant::now();
        let smaller = |origin| Some(Smaller { tokens: 1024, prompt: 500, origin });
        for (origin, bounds) in
            [(Origin::Named, [1024, 1024]), (Origin::Guessed, [8192, 1024]), (Origin::Context(4096), [8192, 8192])]
        {
            let bound = OutputBound::default();
            for expected in bounds {
                bound.answered(8192, 500, smaller(origin), now);
                assert_eq!(bound.at_most(8192, 500, now), expected, "{origin:?}");
            }
            assert_eq!(bound.at_most(96, 500, now), 96);
            assert_eq!(bound.at_most(8192, 500, now + KEPT_MAX), 8192, "a larger output is tried again");
            let of_short = if origin == Origin::Named { 1024 } else { 8192 };
            assert_eq!(bound.at_most(8192, 499, now), of_short, "{origin:?}");
        }
        let bound = OutputBound::default();
        bound.answered(8192, 500, smaller(Origin::Guessed), now);
        bound.answered(8192, 500, None, now);
        bound.answered(8192, 500, smaller(Origin::Guessed), now);
        assert_eq!(bound.at_most(8192, 500, now), 8192, "an answer between them contradicts");
    }
}
