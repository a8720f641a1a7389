//! What makes words trustworthy: seals, and text that cannot pass for one.
//!
//! Never decides what may be done; that is for `calls`. Next: `integrity::seal`.

pub mod locked;
pub mod lookalike;
pub mod seal;
