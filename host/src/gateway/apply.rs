//! Applies an approved change, in one transaction with the use of its approvals.
//!
//! Takes only an [`Approved`], and has no effect that was not shown. See [`crate::gateway::decide`] and [`crate::gateway::kinds`].

use super::decide::proof::Approved;
use super::kinds::{self, Prepared};
use crate::refusal::Denied;
use ironclaw_state::WriteTx;

/// That a change was applied.
#[derive(Debug)]
pub struct Applied {
    /// What came of it, a sentence in the host's own words.
    pub outcome: String,
}

/// Applies an approved change.
///
/// # Errors
/// Refuses what cannot be done any more. The caller then rolls back, because a part may be written already.
pub fn apply(tx: &mut WriteTx<'_>, approved: &Approved, prepared: &Prepared) -> Result<Applied, Denied> {
    kinds::apply(tx, approved, prepared).map(|outcome| Applied { outcome })
}

#[cfg(test)]
mod tests;
