//! Single facts about this host. Tables: `meta`.

use ironclaw_state::{Error, ReadTx, WriteTx};

/// Where `meta` says which model endpoint is the default.
const DEFAULT_MODEL: &str = "default_model";

/// Returns the name of the model endpoint that was made the default.
pub fn default_model(tx: &ReadTx<'_>) -> Result<Option<String>, Error> {
    tx.find("SELECT value FROM meta WHERE key = ?1", [DEFAULT_MODEL], |row| row.get(0))
}

/// Sets the name of the model endpoint that is the default.
pub fn set_default_model(tx: &mut WriteTx<'_>, name: &str) -> Result<(), Error> {
    tx.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", [DEFAULT_MODEL, name])?;
    Ok(())
}
