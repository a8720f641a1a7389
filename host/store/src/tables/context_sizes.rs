//! The sizes of contexts that the host learned from the answers of model endpoints.
//!
//! Tables: `context_sizes`.

use crate::rows::rows;
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;

ironclaw_contract::words! {
    /// The reason to believe the size of a context.
    pub enum SizeSource {
        /// The server named the number.
        Stated = "stated",
        /// The counts of the server stay the same while the prompt grows.
        Counted = "counted",
        /// The server refused a prompt because of its size, or ended the answer there, and named no number. The model reads at most these.
        Refused = "refused",
    }
}

rows! {
    /// What the host learned about one endpoint. Its row ends with that of the endpoint.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ContextSize {
        /// Name of the endpoint.
        pub model: String,
        /// Tokens that its model reads.
        pub tokens: u64,
        pub source: SizeSource as word,
        /// Answers that agree.
        pub answers: u32,
        /// The time of the last answer that changed it, milliseconds since the epoch.
        pub learned_at: i64,
    }
}

/// Returns what was learned about an endpoint.
pub fn find(tx: &ReadTx<'_>, model: &str) -> Result<Option<ContextSize>, Error> {
    tx.find("SELECT * FROM context_sizes WHERE model = ?1", [model], ContextSize::read)
}

/// Returns what was learned about all endpoints, by name.
pub fn all(tx: &ReadTx<'_>) -> Result<Vec<ContextSize>, Error> {
    tx.list("SELECT * FROM context_sizes ORDER BY model", [], ContextSize::read)
}

/// Inserts or replaces what was learned about an endpoint of the record; an endpoint without a row learns nothing.
pub fn put(tx: &mut WriteTx<'_>, size: &ContextSize) -> Result<(), Error> {
    let sql = "INSERT OR REPLACE INTO context_sizes (model, tokens, source, answers, learned_at) \
               SELECT name, ?2, ?3, ?4, ?5 FROM models WHERE name = ?1";
    let ContextSize { model, tokens, source, answers, learned_at } = size;
    tx.execute(sql, params![model, tokens, source.name(), answers, learned_at]).map(drop)
}

/// Deletes what was learned about an endpoint.
pub fn delete(tx: &mut WriteTx<'_>, model: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM context_sizes WHERE model = ?1", [model]).map(drop)
}
