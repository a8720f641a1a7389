//! The record: SQL, rows, refusals, and the loop of a worker.
//!
//! `ironclaw-state` opens the file, writes it and knows no table; this crate has the tables and knows no thread. It decides nothing.

#![forbid(unsafe_code)]
// The host alone reads this crate, so only what a name does not say is documented.
#![allow(missing_docs)]

pub mod error;
pub mod record;
pub mod refusal;
mod rows;
pub mod shutdown;
pub mod tables;
pub mod times;
pub mod toml_file;
pub mod worker;
