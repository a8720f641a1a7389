//! How things stand that a change would alter, as the person who decides sees it and as it is compared when it is applied.
//!
//! Only looks. Next: `gateway::checks`.

use super::{Grounds, Proposed, Standing};
use crate::state::{self, Tx};

/// How things stand now.
///
/// # Errors
/// Those of the record.
pub fn look(_tx: &Tx<'_>, _grounds: &Grounds, _proposed: &Proposed) -> Result<Standing, state::Error> {
    todo!("before")
}
