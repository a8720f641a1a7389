//! The record kept whole: verification, backups, new keys, and bounds on what is kept.

pub mod backup;
pub mod key_rotation;
pub mod maintenance;
pub mod memory_worker;
pub mod retention_worker;
