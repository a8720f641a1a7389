//! The SQL of the host. One file writes each table; other statements here may read it. Only `meta` has two writers: [`facts`], and
//! the crate of the state for marks of its own.
//!
//! A function runs one statement, or a few that belong together, in the transaction that it is given. It knows no rule, and makes no
//! entry in the ledger: the modules above it do. A row is read into a type of the same file.

pub mod agents;
pub mod changes;
pub mod channels;
pub mod deliveries;
pub mod facts;
pub mod items;
pub mod memories;
pub mod messages;
pub mod models;
pub mod people;
pub mod sessions;
pub mod turns;
