//! The SQL of the host. Each table has one owner here, and no other module of the host names it.
//!
//! A function runs one statement, or a few that belong together, in the transaction that it is given. It knows no rule, and makes no
//! entry in the ledger: the modules above it do. A row that is read becomes a type of its file.

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
