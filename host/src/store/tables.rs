//! The SQL of the host. Exactly one file writes each table, and others may read it. Only `meta` has two writers: [`facts`], and
//! the crate [`ironclaw_state`] for its own marks.
//!
//! A function runs one statement, or a few related ones, in the transaction of its caller. It applies no rule and appends no ledger
//! entry, because the modules above do that. Each row has a type in the same file; `rows!` of `store::rows` declares the types that
//! have the columns of a table.

pub mod agent_messages;
pub mod agents;
pub mod changes;
pub mod channels;
pub mod deliveries;
pub mod destinations;
pub mod facts;
pub mod groups;
pub mod items;
pub mod memories;
pub mod messages;
pub mod models;
pub mod notifications;
pub mod people;
pub mod questions;
pub mod requests;
pub mod schedules;
pub mod sent_files;
pub mod sessions;
pub mod skills;
pub mod turns;
