//! Does what an approved change says, in one transaction with the use of its approvals. One arm for each kind, none by default.
//!
//! Takes nothing but an [`Approved`], and does nothing that was not shown. Next: `gateway::decide`.

use crate::gateway::Approved;
use crate::refusal::Refusal;
use crate::state::{self, Tx};

/// What was prepared outside of the transaction.
#[derive(Debug)]
pub enum Prepared {
    /// Nothing.
    Nothing,
    /// A layer.
    Layer(crate::packages::Layer),
}

/// That a change was applied.
#[derive(Debug)]
pub struct Applied {
    /// What came of it, a sentence in the host's own words.
    pub outcome: String,
}

/// Applies it.
///
/// # Errors
/// The inner error refuses what cannot be done any more; then nothing was changed.
pub fn apply(
    _tx: &mut Tx<'_>,
    _approved: &Approved,
    _prepared: &Prepared,
) -> Result<Result<Applied, Refusal>, state::Error> {
    todo!("apply")
}
