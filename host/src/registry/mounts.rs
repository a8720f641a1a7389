//! The granted directories of the host in an agent's jail, as in the record.
//!
//! Never decides whether a directory may be granted, and never reads a disk. See [`crate::runtime::launch`], which mounts them, and [`own`]
//! for those whose text is a person's.

pub mod own;

pub use ironclaw_store::tables::agents::{Mount, mounts_of as list_for_agent};
