//! What no change may be, whoever approves it: deterministic, and able to refuse only.
//!
//! Completes what the contract leaves open (targets of mounts, tools of a server), so that a person sees all of it. Next: `apply`.

use super::{Checked, Grounds, Judged, Proposed, before};
use crate::state::{self, Tx};

/// Looks at a proposal.
///
/// # Errors
/// The inner error is the first check that it did not pass.
pub fn check(tx: &Tx<'_>, grounds: &Grounds, proposed: Proposed) -> Result<Judged<Checked>, state::Error> {
    let standing = before::look(tx, grounds, &proposed)?;
    Ok(Ok(Checked { proposed, standing }))
}
