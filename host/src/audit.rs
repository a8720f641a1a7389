//! Looks at the ledger of a home, whether or not a host runs there.
//!
//! Reads only; needs the master key because the ledger lies in the encrypted state. Next: `ledger::chain`.

use crate::config;
use crate::custody::{self, MasterKey};
use crate::home::{self, Home};
use crate::ledger::chain;
use crate::state;
use ironclaw_contract::operator::LedgerLine;
use std::path::Path;

/// Why a ledger could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The home.
    #[error(transparent)]
    Home(#[from] home::Error),
    /// Its settings.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// Its master key.
    #[error(transparent)]
    Key(#[from] custody::Error),
    /// The state, or a broken chain.
    #[error(transparent)]
    Chain(#[from] chain::Error),
}

impl From<state::Error> for Error {
    fn from(error: state::Error) -> Self {
        Self::Chain(error.into())
    }
}

fn open(path: &Path) -> Result<rusqlite::Connection, Error> {
    let home = Home::open(path)?;
    let (config, _) = config::load(&home)?;
    let master = MasterKey::load(&home, &config.keys)?;
    Ok(state::open_to_look(&home.state_db(), &master.state_key())?)
}

/// Verifies the ledger of the home at `path`; returns how many entries it has.
pub fn verify(path: &Path) -> Result<u64, Error> {
    Ok(chain::verify(&open(path)?)?)
}

/// Gives every entry of the ledger of the home at `path`, in order.
pub fn export(path: &Path, each: impl FnMut(LedgerLine) -> Result<(), Error>) -> Result<(), Error> {
    chain::walk(&open(path)?, 0, each)
}

/// The last `count` entries.
pub fn tail(path: &Path, count: u64) -> Result<Vec<LedgerLine>, Error> {
    let db = open(path)?;
    let entries: i64 = db
        .query_row("SELECT coalesce(max(seq) + 1, 0) FROM ledger", [], |row| row.get(0))
        .map_err(state::Error::from)?;
    let mut lines = Vec::new();
    chain::walk(&db, (entries as u64).saturating_sub(count), |line| {
        lines.push(line);
        Ok::<_, Error>(())
    })?;
    Ok(lines)
}
