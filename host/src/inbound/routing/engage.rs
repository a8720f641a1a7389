//! Which messages of a channel open a turn of the agent that hears it.
//!
//! Never lets more through than the pattern that a person confirmed: one that cannot be compiled fits nothing. Next: `inbound::inbox`.

use crate::registry::channels::{Channel, Hears};
use regex::{Regex, RegexBuilder};

/// Bytes of a compiled pattern, and of the cache that looking for it takes: it is compiled for each message.
const COMPILED_BYTES_MAX: usize = 256 * 1024;

/// Groups within groups.
const DEPTH_MAX: u32 = 32;

/// Whether this message asks for an answer; otherwise it is context.
pub(super) fn opens_a_turn(channel: &Channel, text: &str) -> bool {
    match &channel.hears {
        Hears::All => true,
        Hears::Pattern(pattern) => match compile(pattern) {
            Ok(pattern) => pattern.is_match(text),
            Err(_) => {
                tracing::error!(channel = channel.name, "its pattern was confirmed, and cannot be compiled");
                false
            }
        },
    }
}

/// Compiles a pattern. It looks anywhere in a message, unless it says where, and tells capitals from others, unless it says `(?i)`.
/// Looking takes time in proportion to the message, whatever the pattern.
///
/// # Errors
/// When it is none, or would take too much memory.
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
