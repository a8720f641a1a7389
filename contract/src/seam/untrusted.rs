//! A value that a sandbox wrote, closed until the host checks it.
//!
//! Never opens without a check that may refuse, and never derefs, prints or copies its content. See [`crate::seam::message`].

use serde::Deserialize;
use std::fmt;

/// A wrapper around a value that a sandbox wrote.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct Untrusted<T>(T);

impl<T> Untrusted<T> {
    /// Marks a value as untrusted.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Opens the value: `check` gets it, and returns a checked value or the reason of a refusal.
    pub fn check<U, E>(self, check: impl FnOnce(T) -> Result<U, E>) -> Result<U, E> {
        check(self.0)
    }
}

impl<T> fmt::Debug for Untrusted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Untrusted(..)")
    }
}
