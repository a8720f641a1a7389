//! A secret text that is never printed.

use std::fmt;
use zeroize::Zeroizing;

/// A secret of the operator's, such as an API key or a webhook's signing secret: does not print, does not clone, wipes itself.
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Takes a secret's text.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text, for the one place that sends it or computes with it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText")
    }
}
