//! Refusals: a code, a sentence, and a hint.
//!
//! A failure of the host is no refusal; it is an error of the module where it happens. See `api`, which answers with refusals.

mod denied;

pub use denied::{Decide, Denied};

use ironclaw_operator::{Bound, DenialCode};
use std::fmt;

/// A deliberate no, for a person to read and for the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The stable code, for scripts.
    pub code: DenialCode,
    /// A sentence that names the object.
    pub message: String,
    /// Advice to the reader; may be empty.
    pub hint: String,
    /// The bound that is reached, for a code that [`DenialCode::is_of_bound`].
    pub bound: Option<Box<Bound>>,
}

impl Refusal {
    /// Makes a refusal without a hint. A refusal by a bound is made by [`Self::over`].
    pub fn new(code: DenialCode, message: impl Into<String>) -> Self {
        debug_assert!(!code.is_of_bound(), "{code} is a refusal by a bound, which names its count and its remedy");
        Self { code, message: message.into(), hint: String::new(), bound: None }
    }

    /// Makes a refusal by a bound: its words are those of the bound.
    pub fn over(code: DenialCode, bound: Bound) -> Self {
        debug_assert!(code.is_of_bound(), "{code} is not in the list of refusals by a bound");
        Self { code, message: bound.to_string(), hint: bound.advice(), bound: Some(Box::new(bound)) }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
