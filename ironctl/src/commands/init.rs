//! `ironctl init`: makes a new home.
//!
//! Never writes into it itself: `ironclaw-host init` does, because it owns the keys. See [`crate::commands::up`].

use super::At;
use crate::failure::Error;
use crate::sibling::{self, Offline};

/// Makes the home, and lets the host's binary say what it made.
pub fn run(at: &At) -> Result<(), Error> {
    Offline::host(&["init"])?.at(&at.home).json(at.out.is_json()).pass()
}

/// Makes the home unless it is there; tells whether it was made now.
pub fn ensure(at: &At) -> Result<bool, Error> {
    if at.home.is_initialised() {
        return Ok(false);
    }
    // Captured, because a script that asked for one JSON document must not get two.
    let made = Offline::host(&["init"])?.at(&at.home).json(at.out.is_json()).capture()?;
    sibling::pass_on(made.status)?;
    Ok(true)
}
