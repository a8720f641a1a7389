//! What agents sent to MCP servers, and what the servers returned, as keyed digests. Tables: `server_values`,
//! `server_arguments`.
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

/// Marks of one value that have rows of their own. A longer one counts as every value.
const MARKS_MAX: usize = 65_536;

/// The mark of an argument or an answer that may have had any value.
const EVERYTHING: &str = "*";

/// Records the marks of a value that an agent sent to the server at a place, in an argument that is written as `TOOL.ARGUMENT`.
pub fn insert_sent(tx: &mut WriteTx<'_>, place: &str, argument: &str, marks: &BTreeSet<String>) -> Result<(), Error> {
    if marks.is_empty() {
        return Ok(());
    }
    let key = own_key(tx)?;
    let everything = BTreeSet::from([EVERYTHING.to_owned()]);
    for mark in if marks.len() > MARKS_MAX { &everything } else { marks } {
        let sql = "INSERT OR IGNORE INTO server_values (place, digest, argument) VALUES (?1, ?2, ?3)";
        tx.execute(sql, params![place, key.digest(mark), argument])?;
    }
    Ok(())
}

/// Records that an agent sends a value to the server at a place, in an argument that is written as `TOOL.ARGUMENT`.
pub fn insert_argument(tx: &mut WriteTx<'_>, place: &str, argument: &str) -> Result<(), Error> {
    let sql = "INSERT OR IGNORE INTO server_arguments (place, argument) VALUES (?1, ?2)";
    tx.execute(sql, params![place, argument]).map(drop)
}

/// Returns the arguments in which agents ever sent a value to the server at a place.
pub fn sent_arguments(tx: &ReadTx<'_>, place: &str) -> Result<Vec<String>, Error> {
    tx.list("SELECT argument FROM server_arguments WHERE place = ?1", [place], |row| row.get(0))
}

/// Records the marks of a value of a server that no agent set: one that a person typed, or one of its answers.
pub fn insert_known(tx: &mut WriteTx<'_>, place: &str, marks: &BTreeSet<String>) -> Result<(), Error> {
    insert_sent(tx, place, NO_ARGUMENT, marks)
}

/// Returns whether the server at a place has one of these marks, from an argument or from an answer.
pub fn is_known(tx: &ReadTx<'_>, place: &str, marks: &BTreeSet<String>) -> Result<bool, Error> {
    let Some(key) = key(tx)? else { return Ok(false) };
    for mark in marks.iter().map(String::as_str).chain([EVERYTHING]) {
        let sql = "SELECT EXISTS (SELECT 1 FROM server_values WHERE place = ?1 AND digest = ?2)";
        if tx.get(sql, params![place, key.digest(mark)], |row| row.get(0))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the arguments in which agents sent one of these marks to the server at a place.
pub fn arguments(tx: &ReadTx<'_>, place: &str, marks: &BTreeSet<String>) -> Result<BTreeSet<String>, Error> {
    let mut all = BTreeSet::new();
    let Some(key) = key(tx)? else { return Ok(all) };
    for mark in marks.iter().map(String::as_str).chain([EVERYTHING]) {
        let sql = "SELECT argument FROM server_values WHERE place = ?1 AND digest = ?2 AND argument <> ?3";
        let found: Vec<String> = tx.list(sql, params![place, key.digest(mark), NO_ARGUMENT], |row| row.get(0))?;
        all.extend(found);
    }
    Ok(all)
}
