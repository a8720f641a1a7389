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

/// The missing part of a home that [`ensure`] created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    Home,
    /// The owner's token of a home with a record.
    Token,
    Nothing,
}

/// Creates the home, or the owner's token of a home, if it is missing.
pub fn ensure(at: &At) -> Result<Made, Error> {
    if at.home.is_initialised() {
        return Ok(Made::Nothing);
    }
    let had_record = at.home.has_record();
    // The output is captured, because a script must not get two JSON documents.
    let output = Offline::host(&["init"])?.at(&at.home).json(at.out.is_json()).capture()?;
    host_binary::pass_on(output.status)?;
    Ok(if had_record { Made::Token } else { Made::Home })
}
