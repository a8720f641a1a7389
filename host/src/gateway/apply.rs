//! Applies an approved change, in one transaction with the use of its approvals.
//!
//! Takes only an [`Approved`], and has only effects that people were shown. See [`crate::gateway::decide`] and
//! [`crate::gateway::kinds`].

use super::decide::proof::Approved;
use super::kinds::{self, Prepared};
use ironclaw_state::WriteTx;
use ironclaw_store::refusal::Denied;

/// The result of an applied change.
#[derive(Debug)]
pub struct Applied {
    /// The outcome: a sentence in the host's own words.
    pub outcome: String,
}

/// Applies an approved change.
///
/// # Errors
/// Refuses a change that can no longer be applied. The caller then rolls back, because a part may already be written.
pub fn apply(tx: &mut WriteTx<'_>, approved: &Approved, prepared: &Prepared) -> Result<Applied, Denied> {
    kinds::apply(tx, approved, prepared).map(|outcome| Applied { outcome })
}

#[cfg(test)]
mod tests;
