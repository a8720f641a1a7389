//! A value that a sandbox wrote, closed until it is checked.
//!
//! There is no way to look inside without a check that may refuse; nothing derefs, prints or copies it. Next: `message`.

use serde::Deserialize;
use std::fmt;

/// Wraps what came over the wall.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct Untrusted<T>(T);

impl<T> Untrusted<T> {
    /// Marks a value as untrusted.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The only way in: `check` gets the value and says what it is worth, or why it is refused.
    pub fn check<U, E>(self, check: impl FnOnce(T) -> Result<U, E>) -> Result<U, E> {
        check(self.0)
    }
}

impl<T> fmt::Debug for Untrusted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Untrusted(..)")
    }
}
