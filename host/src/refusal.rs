//! A no on purpose: who is at fault, a stable code, a sentence, and what to do.
//!
//! Never wraps a breakdown; those are errors of the module where they happen. Next: `api`, which turns one into an answer.

use std::fmt;

/// Whose doing it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Whoever sent a message.
    Sender,
    /// The agent's process.
    Sandbox,
    /// Whoever runs the host.
    Operator,
    /// The host, which cannot do it now.
    Host,
}

impl Fault {
    /// As it stands in the ledger.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Sandbox => "sandbox",
            Self::Operator => "operator",
            Self::Host => "host",
        }
    }
}

/// A refusal that a person can read and that the ledger keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Whose doing it is.
    pub fault: Fault,
    /// Stable word for scripts, snake_case.
    pub code: &'static str,
    /// A sentence that names the thing.
    pub message: String,
    /// What to do; may be empty.
    pub hint: String,
}

impl Refusal {
    /// A refusal without a hint.
    pub fn new(fault: Fault, code: &'static str, message: impl Into<String>) -> Self {
        Self { fault, code, message: message.into(), hint: String::new() }
    }

    /// The same with what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// The operator asked for something that is not there or not so.
    pub fn operator(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Fault::Operator, code, message)
    }

    /// The host cannot do it now.
    pub fn host(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Fault::Host, code, message)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
