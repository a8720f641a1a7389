//! The record kept whole: verification, backups, new keys, bounds on what is kept, and the audit of the configuration.

pub mod backup;
pub mod configuration_audit;
pub mod key_rotation;
pub mod machine_checks;
pub mod maintenance;
pub mod memory_worker;
pub mod retention_worker;
