//! Functions for text that people and models read: visible characters, look-alikes, similar names, differences, secret text, excerpts,
//! names and types of files, streams of events, words of a shell, URLs, and JSON of other parties.
//!
//! Pure: never reads a clock, a file or the network. See [`visible`] and [`lookalike`].

#![forbid(unsafe_code)]
// The crates of this workspace alone read this one, so only what a name does not say is documented.
#![allow(missing_docs)]

pub mod confusable;
pub mod diff;
pub mod events;
pub mod excerpt;
pub mod file;
pub mod json;
pub mod lookalike;
pub mod nearest;
pub mod secret;
pub mod shell;
pub mod urls;
pub mod visible;
