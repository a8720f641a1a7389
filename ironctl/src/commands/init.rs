//! `ironctl init`: creates a home.
//!
//! Never writes into it itself: `ironclaw-host init` does, because it owns the keys. See [`crate::commands::up`].

use crate::at::At;
use crate::failure::Error;
use crate::host_binary::{self, Offline};

/// Runs `ironclaw-host init`, which prints the result.
pub fn run(at: &At) -> Result<(), Error> {
    Offline::host(&["init"])?.at(&at.home).json(at.out.is_json()).pass()
}

/// Creates the home if it is missing; returns whether it was created.
pub fn ensure(at: &At) -> Result<bool, Error> {
    if at.home.is_initialised() {
        return Ok(false);
    }
    // The output is captured, because a script must not get two JSON documents.
    let output = Offline::host(&["init"])?.at(&at.home).json(at.out.is_json()).capture()?;
    host_binary::pass_on(output.status)?;
    Ok(true)
}
