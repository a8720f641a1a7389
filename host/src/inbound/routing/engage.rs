//! The decision whether a message of a channel opens a turn of the agent that hears the channel.
//!
//! Never lets more through than the pattern that a person confirmed: a pattern that does not compile matches nothing. See
//! [`crate::inbound::inbox`].

use crate::registry::channels::{Channel, Hears};
use regex::{Regex, RegexBuilder};

/// Bytes of a compiled pattern, and of the cache of a match. The pattern is compiled for each message.
const COMPILED_BYTES_MAX: usize = 256 * 1024;

/// Nesting depth of groups.
const DEPTH_MAX: u32 = 32;

/// Returns whether this message asks for an answer; otherwise it is context.
pub(super) fn opens_a_turn(channel: &Channel, text: &str) -> bool {
    match &channel.hears {
        Hears::All => true,
        Hears::Pattern(pattern) => match compile(pattern) {
            Ok(pattern) => pattern.is_match(text),
            Err(_) => {
                tracing::error!(channel = channel.name, "the confirmed pattern does not compile");
                false
            }
        },
    }
}

/// Compiles a pattern. It matches anywhere in a message unless it has an anchor, and is case-sensitive unless it has `(?i)`.
/// A match takes time in proportion to the message, for any pattern.
///
/// # Errors
/// Refuses a malformed pattern, and one that would take too much memory.
pub fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .nest_limit(DEPTH_MAX)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_or_too_large_pattern_is_refused() {
        for bad in ["(", "[z-a]", "a{1000}{1000}", r"(?=x)", &"(".repeat(100)] {
            assert!(compile(bad).is_err(), "{bad}");
        }
        assert!(compile("^!bot").expect("a pattern").is_match("!bot hello"));
        assert!(!compile("^!bot").expect("a pattern").is_match("hello !bot"));
    }
}
