//! The result of a tool, and the length that it may have.
//!
//! See [`crate::files`].

use ironclaw_contract::seam::limits::{BODY_BYTES_MAX, FRAME_BYTES_MAX};

/// Longest result, in bytes: the bound of the host, minus a line that reports what is missing.
pub const RESULT_BYTES_MAX: usize = BODY_BYTES_MAX - 1024;
/// Longest result as JSON, in bytes, minus the rest of its frame. In JSON a control character takes six bytes.
const RESULT_JSON_BYTES_MAX: usize = FRAME_BYTES_MAX - 4096;

/// Result of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// True if the tool succeeded.
    pub ok: bool,
    /// Its result, or a sentence with the reason of the failure.
    pub body: String,
}

/// Returns the length of the prefix of a text that fits into a result, in bytes, up to a character boundary.
pub fn prefix_that_fits(text: &str) -> usize {
    let mut json = 0;
    for (at, character) in text.char_indices() {
        json += match character {
            '"' | '\\' => 2,
            '\0'..='\x1f' => 6,
            other => other.len_utf8(),
        };
        if json > RESULT_JSON_BYTES_MAX || at + character.len_utf8() > RESULT_BYTES_MAX {
            return at;
        }
    }
    text.len()
}
