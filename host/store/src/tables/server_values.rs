//! What agents sent to MCP servers, and what the servers returned, as keyed digests. Table: `server_values`.
//!
//! Never has a value, and never forgets one: a value that an agent once sent to a server never counts as the server's own.

use super::facts::{self, Fact};
use ironclaw_state::keys::DigestKey;
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;
use std::collections::BTreeSet;

/// The argument of a value that no agent set.
const NO_ARGUMENT: &str = "";

/// Returns the key of the digests; `None` before the first value.
fn key(tx: &ReadTx<'_>) -> Result<Option<DigestKey>, Error> {
    let text = facts::get(tx, Fact::ServerValuesKey)?;
    text.map(|text| DigestKey::read(&text).map_err(|_| Error::Stored("meta: server_values_key".to_owned()))).transpose()
}

/// Returns the key of the digests, and makes it for the first value.
fn own_key(tx: &mut WriteTx<'_>) -> Result<DigestKey, Error> {
    if let Some(key) = key(tx)? {
        return Ok(key);
    }
    let key = DigestKey::fresh().map_err(|error| Error::Stored(error.to_string()))?;
    facts::set(tx, Fact::ServerValuesKey, &*key.text())?;
    Ok(key)
}

/// Records values that an agent sent to a server in an argument, which is written as `TOOL.ARGUMENT`.
pub fn insert_sent(tx: &mut WriteTx<'_>, server: &str, argument: &str, values: &BTreeSet<String>) -> Result<(), Error> {
    let key = own_key(tx)?;
    for value in values {
        let sql = "INSERT OR IGNORE INTO server_values (server, digest, argument) VALUES (?1, ?2, ?3)";
        tx.execute(sql, params![server, key.digest(value), argument])?;
    }
    Ok(())
}

/// Records values of a server that no agent set: those that a person typed, and those of its answers.
pub fn insert_known(tx: &mut WriteTx<'_>, server: &str, values: &BTreeSet<String>) -> Result<(), Error> {
    insert_sent(tx, server, NO_ARGUMENT, values)
}

/// Returns whether a server has one of these values, from an argument or from an answer.
pub fn is_known(tx: &ReadTx<'_>, server: &str, values: &BTreeSet<String>) -> Result<bool, Error> {
    let Some(key) = key(tx)? else { return Ok(false) };
    for value in values {
        let sql = "SELECT EXISTS (SELECT 1 FROM server_values WHERE server = ?1 AND digest = ?2)";
        if tx.get(sql, params![server, key.digest(value)], |row| row.get(0))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the arguments in which agents sent one of these values to a server.
pub fn arguments(tx: &ReadTx<'_>, server: &str, values: &BTreeSet<String>) -> Result<BTreeSet<String>, Error> {
    let mut all = BTreeSet::new();
    let Some(key) = key(tx)? else { return Ok(all) };
    for value in values {
        let sql = "SELECT argument FROM server_values WHERE server = ?1 AND digest = ?2 AND argument <> ?3";
        let found: Vec<String> = tx.list(sql, params![server, key.digest(value), NO_ARGUMENT], |row| row.get(0))?;
        all.extend(found);
    }
    Ok(all)
}
