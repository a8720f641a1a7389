//! Text of the host: what a person can see of it, what it could be mistaken for, and how two texts differ.
//!
//! Pure: no clock, no file, no network.

#![forbid(unsafe_code)]

pub mod confusable;
pub mod diff;
pub mod lookalike;
pub mod secret;
pub mod visible;
