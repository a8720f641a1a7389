//! Walks over the live chain of the record, also beside a running host.
//!
//! Returns the canonical bytes as stored, and never serializes them again before hashing. See [`crate::check`].

use super::check::{self, Bad, Chain, Walk};
use super::line::Parts;
use super::{quick, table};
use ironclaw_operator::LedgerLine;
use ironclaw_state::{ReadTx, View};
use std::collections::BTreeSet;

pub use super::table::{first_seq, hash_at, is_older_than_this_run, last_seq, next_seq};

/// The reason why a walk ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The chain is not whole.
    #[error(transparent)]
    Bad(#[from] Bad),
    /// The database does not answer.
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
}

impl From<ironclaw_contract::ledger_entry::Broken> for Error {
    fn from(broken: ironclaw_contract::ledger_entry::Broken) -> Self {
        Self::Bad(broken.into())
    }
}

impl From<Error> for check::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Bad(bad) => Self::Bad(bad),
            Error::State(error) => Self::Io(std::io::Error::other(error)),
        }
    }
}

/// Calls `each` with every entry of the live chain from `from_seq` on, in order.
pub fn walk<E: From<ironclaw_state::Error>>(
    tx: &ReadTx<'_>,
    from_seq: u64,
    each: impl FnMut(Parts<'_>) -> Result<(), E>,
) -> Result<(), E> {
    table::entries(tx, from_seq, i64::MAX as u64, each)
}

/// Converts an entry to the form of the API.
pub fn view(parts: Parts<'_>) -> LedgerLine {
    LedgerLine {
        seq: parts.seq,
        kind: parts.kind.to_owned(),
        data: serde_json::from_str(parts.canonical).unwrap_or(serde_json::Value::Null),
        hash: parts.hash.to_owned(),
        canonical: parts.canonical.to_owned(),
    }
}

/// Checks the live chain without its archives; notes the hashes of the `wanted` entries.
///
/// Most of the time is decryption, page by page. `beside` is a second view of the same record, which reads half of the chain. It may
/// see the record at another moment, so only `tx` decides that an entry is wrong or missing.
///
/// # Errors
/// [`Error::Bad`] with the first sequence number that cannot be right.
pub fn check(tx: &ReadTx<'_>, beside: Option<View>, wanted: &BTreeSet<u64>) -> Result<Chain, Error> {
    let first = first_seq(tx)?.unwrap_or(0);
    let last = table::stored_last_seq(tx)?;
    let end = last.and_then(|last| u64::try_from(last).ok()).map_or(0, |last| last + 1);
    if let Some(chain) = quick::live(tx, beside, first..end, wanted) {
        return Ok(chain);
    }
    let mut walk = Walk::from(first, wanted);
    // Valid numbers are not negative. If the first one is, the walk begins at 0.
    let from = Some(first).filter(|first| *first <= end).unwrap_or(0);
    self::walk(tx, from, |parts| Ok::<_, Error>(walk.entry(parts)?))?;
    Ok(walk.end(None, None)?)
}
