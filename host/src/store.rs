//! The record: SQL, rows, refusals, and the loop of a worker.

pub mod error;
pub mod record;
pub mod refusal;
mod rows;
pub mod shutdown;
pub mod tables;
pub mod times;
pub mod toml_file;
pub mod worker;
