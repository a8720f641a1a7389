//! Refusals: a code, a sentence, and a hint.
//!
//! A failure of the host is no refusal; it is an error of the module where it happens. See `api`, which answers with refusals.

mod denied;

pub use denied::{Decide, Denied};

use ironclaw_contract::operator::DenialCode;
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
}

impl Refusal {
    /// Makes a refusal without a hint.
    pub fn new(code: DenialCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: String::new() }
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
