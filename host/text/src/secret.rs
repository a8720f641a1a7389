//! The text of a secret.
//!
//! Never prints and never clones. See [`SecretText`].

use std::fmt;
use zeroize::Zeroizing;

/// A secret of the operator, such as an API key or the signing secret of a webhook. It does not print, does not clone, and wipes
/// itself.
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Wraps the text of a secret.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Returns the text, for the one place that sends it or computes with it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText")
    }
}
