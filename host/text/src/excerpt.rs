//! The beginning of a text of others, for a message about it.
//!
//! Never cuts inside of a character. See [`crate::visible`] for characters that mislead.

use std::fmt::Display;

/// Characters of a text that a message quotes.
const QUOTED_CHARACTERS_MAX: usize = 64;

/// Returns at most this many characters from the beginning of a text.
pub fn start(text: &str, characters_max: usize) -> &str {
    text.char_indices().nth(characters_max).map_or(text, |(end, _)| &text[..end])
}

/// Returns the beginning of a name or an id in quotation marks, for a refusal of it.
pub fn quoted(text: impl Display) -> String {
    format!("{:?}", start(&text.to_string(), QUOTED_CHARACTERS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_ends_at_a_character() {
        for (characters_max, expected) in [(0, ""), (1, "ä"), (2, "äb"), (3, "äb"), (9, "äb")] {
            assert_eq!(start("äb", characters_max), expected, "{characters_max}");
        }
        assert_eq!(quoted("ä".repeat(65)), format!("\"{}\"", "ä".repeat(64)));
    }
}
