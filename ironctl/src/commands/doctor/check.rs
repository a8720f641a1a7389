//! The result of a check as `ironctl doctor` prints it.

use crate::failure::Error;
use ironclaw_operator::Check;

/// Returns a check that passed, which needs no remedy.
pub fn passed(name: &str, found: String) -> Check {
    Check { name: name.to_owned(), ok: true, found, remedy: String::new() }
}

/// Returns a check that failed with this error.
pub fn failed(name: &str, error: &Error, remedy: &str) -> Check {
    let message = error.report().map(|failure| failure.error.message);
    let found = message.unwrap_or_else(|| error.to_string());
    Check { name: name.to_owned(), ok: false, found, remedy: remedy.to_owned() }
}
