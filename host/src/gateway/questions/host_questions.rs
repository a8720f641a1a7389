//! The questions of a host, and the text of one.
//!
//! Decides nothing. See [`super`].

use crate::registry::live_settings::Live;
use crate::sessions::store;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_state::{ReadTx, keys};
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::tables::questions::Row;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::sync::Notify;

/// The text of a question as the agent wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    pub question: String,
    /// The answers to choose from.
    pub options: Vec<String>,
    /// True if the person may type an answer.
    pub free_text: bool,
}

impl Body {
    /// Returns the digest of the text.
    pub fn digest(&self) -> Digest {
        Digest::of(canonical::to_string(self).as_bytes())
    }
}

/// Returns the text of a question.
///
/// # Errors
/// Errors of the record and of the key, and a damaged text.
pub fn body(tx: &ReadTx<'_>, record: &Record, row: &Row) -> Result<Body, Error> {
    let damaged = || ironclaw_state::Error::Stored(format!("{}: its text", row.id));
    let session = store::find(tx, row.session)?.ok_or_else(damaged)?;
    let key = session.content_key(&record.wrapping)?;
    let text = key.open(row.id.item(), &row.sealed_text)?;
    let text = String::from_utf8(text).map_err(|_| Error::from(keys::Error::Sealed("the text of a question")))?;
    Ok(serde_json::from_str(&text).map_err(|_| damaged())?)
}

pub struct Questions {
    pub record: Arc<Record>,
    /// Have the time for an answer, and the quotas.
    pub settings: Arc<Live>,
    pub bell: Notify,
}

impl Questions {
    pub fn new(record: Arc<Record>, settings: Arc<Live>) -> Self {
        Self { record, settings, bell: Notify::new() }
    }
}
