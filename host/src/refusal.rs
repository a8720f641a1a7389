//! A refusal: a code, a sentence, and what to do.
//!
//! Not for failures of the host; those are errors of the module where they happen. Next: `api`, which answers with one.

mod denied;

pub use denied::{Decide, Denied};

use ironclaw_contract::operator::DenialCode;
use std::fmt;

/// A refusal that a person can read and that the ledger keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why, for scripts.
    pub code: DenialCode,
    /// A sentence that names the object.
    pub message: String,
    /// What to do; may be empty.
    pub hint: String,
}

impl Refusal {
    /// A refusal without a hint.
    pub fn new(code: DenialCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: String::new() }
    }

    /// The same with what to do about it.
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
