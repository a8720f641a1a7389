//! Walks the stored chain: verifies it, counts it, exports it. Works on a stopped host too.
//!
//! Verifies the canonical bytes as they are stored; never re-serializes before hashing. Next: `docs/threat-model.md`.

use crate::state;
use ironclaw_contract::ledger_entry::{Broken, Verifier};
use ironclaw_contract::operator::LedgerLine;
use rusqlite::Connection;

/// Why a walk ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The chain is not whole.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The database does not answer.
    #[error(transparent)]
    State(#[from] state::Error),
}

/// Gives every stored entry from `from_seq` on, in order.
pub fn walk<E: From<state::Error>>(
    db: &Connection,
    from_seq: u64,
    mut each: impl FnMut(LedgerLine) -> Result<(), E>,
) -> Result<(), E> {
    let lines = || -> Result<(), Stop<E>> {
        let mut statement = db.prepare("SELECT seq, type, data, hash FROM ledger WHERE seq >= ?1 ORDER BY seq")?;
        let mut rows = statement.query([from_seq as i64])?;
        while let Some(row) = rows.next()? {
            let canonical: String = row.get(2)?;
            let line = LedgerLine {
                seq: row.get::<_, i64>(0)? as u64,
                kind: row.get(1)?,
                data: serde_json::from_str(&canonical).unwrap_or(serde_json::Value::Null),
                hash: row.get(3)?,
                canonical,
            };
            each(line).map_err(Stop::Asked)?;
        }
        Ok(())
    };
    let mut lines = lines;
    lines().map_err(|stop| match stop {
        Stop::Asked(error) => error,
        Stop::Sqlite(error) => E::from(state::Error::Sqlite(error)),
    })
}

enum Stop<E> {
    Asked(E),
    Sqlite(rusqlite::Error),
}

impl<E> From<rusqlite::Error> for Stop<E> {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Verifies the whole chain; returns the number of entries.
///
/// # Errors
/// [`Error::Broken`] with the first sequence number that cannot be right.
pub fn verify(db: &Connection) -> Result<u64, Error> {
    let mut verifier = Verifier::default();
    walk(db, 0, |line| verifier.accept_line(&line).map_err(Error::from))?;
    if verifier.entries() == 0 {
        return Err(Broken { seq: 0, why: "the ledger is empty: even its genesis is missing".to_owned() }.into());
    }
    Ok(verifier.entries())
}
