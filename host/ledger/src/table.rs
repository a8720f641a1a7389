//! The SQL statements of the ledger. Tables: `ledger` has the live chain, `ledger_subjects` names the entries of its complete blocks about
//! a message or a turn, `ledger_archived` names the archives with such entries, and `ledger_keys` has the signing keys.
//!
//! It has no rules and makes no checks: a damaged chain is read as stored. See [`mod@crate::check`].

use super::line::Parts;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{MessageId, SessionId, TurnId};
use ironclaw_contract::ledger_entry::Kind;
use ironclaw_state::{Error, ReadTx, WriteTx, stored_json};
use rusqlite::{ToSql, params};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Numbers in a block; the size is a part of the schema. The entry with the last number of a block adds the block to `ledger_subjects`, so that the other entries change no
/// page of it. A search reads the entries after the last complete block one by one.
const BLOCK: u64 = 256;

/// Returns the statement that finds the entries of the live chain about the message `?1` or one of the turns `?2`, a JSON array.
fn search(columns: &str, condition: &str) -> String {
    const IS_ABOUT: &str = "(message_id = ?1 OR turn_id IN (SELECT value FROM json_each(?2)))";
    format!(
        "SELECT {columns} FROM ledger WHERE seq IN \
         (SELECT seq FROM ledger_subjects WHERE subject = ?1 OR subject IN (SELECT value FROM json_each(?2)) \
         UNION SELECT seq FROM ledger WHERE seq >= (SELECT (max(seq) + 1) / {BLOCK} * {BLOCK} FROM ledger) AND {IS_ABOUT}) \
         AND {IS_ABOUT} AND {condition} ORDER BY seq"
    )
}

/// An entry that is inserted.
pub(super) struct New<'a> {
    /// Its number.
    pub(super) seq: u64,
    pub(super) kind: Kind,
    /// The canonical bytes that were hashed.
    pub(super) data: &'a str,
    pub(super) hash: &'a Digest,
    /// Time of the entry, in milliseconds since the epoch.
    pub(super) at: i64,
    /// The session that it is about.
    pub(super) session: Option<SessionId>,
    /// The message that it is about.
    pub(super) message: Option<MessageId>,
    /// The turn that it is about.
    pub(super) turn: Option<TurnId>,
}

/// The first or last entry of the live chain.
pub(super) struct End {
    /// Number of the entry.
    pub(super) seq: u64,
    /// Hash of the entry.
    pub(super) hash: String,
}

/// An entry about a message or a turn.
pub(super) struct Named {
    /// Its number.
    pub(super) seq: u64,
    pub(super) kind: Kind,
    pub(super) data: Map<String, Value>,
}

/// A key that signs heads.
pub(super) struct Key {
    /// The public half, 64 hex characters.
    pub(super) public: String,
    /// The secret half, wrapped under the master key.
    pub(super) wrapped: Vec<u8>,
}

pub(super) fn insert(tx: &mut WriteTx<'_>, new: &New<'_>) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO ledger (seq, type, data, hash, at, session_id, message_id, turn_id) VALUES (?1,?2,?3,?4,?5,?6,?7,?8)",
        params![
            new.seq as i64,
            new.kind.name(),
            new.data,
            new.hash,
            new.at,
            new.session,
            new.message,
            new.turn,
        ],
    )?;
    if (new.seq + 1).is_multiple_of(BLOCK) { insert_subjects(tx, new.seq) } else { Ok(()) }
}

/// Inserts the messages and the turns that the entries of a block name, by the last number of the block.
fn insert_subjects(tx: &mut WriteTx<'_>, last: u64) -> Result<(), Error> {
    let sql = "INSERT OR IGNORE INTO ledger_subjects (subject, seq) \
               SELECT message_id, seq FROM ledger WHERE seq BETWEEN ?1 AND ?2 AND message_id IS NOT NULL \
               UNION SELECT turn_id, seq FROM ledger WHERE seq BETWEEN ?1 AND ?2 AND turn_id IS NOT NULL";
    tx.execute(sql, [(last + 1 - BLOCK) as i64, last as i64])?;
    Ok(())
}

/// Returns the first entry of the live chain, and its data.
pub(super) fn genesis(tx: &ReadTx<'_>) -> Result<Option<(End, String)>, Error> {
    tx.find("SELECT seq, hash, data FROM ledger ORDER BY seq LIMIT 1", [], |row| {
        Ok((End { seq: row.get::<_, i64>(0)? as u64, hash: row.get(1)? }, row.get(2)?))
    })
}

/// Returns the data of the first entry of the live chain.
///
/// # Errors
/// When there is no entry.
pub(super) fn genesis_data(tx: &ReadTx<'_>) -> Result<String, Error> {
    tx.get("SELECT data FROM ledger ORDER BY seq LIMIT 1", [], |row| row.get(0))
}

/// Returns the last entry of the live chain.
pub(super) fn last(tx: &ReadTx<'_>) -> Result<Option<End>, Error> {
    tx.find("SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1", [], |row| {
        Ok(End { seq: row.get::<_, i64>(0)? as u64, hash: row.get(1)? })
    })
}

/// Returns the lowest number of the live chain; `None` if there is no entry.
pub fn first_seq(tx: &ReadTx<'_>) -> Result<Option<u64>, Error> {
    let first: Option<i64> = tx.get("SELECT min(seq) FROM ledger", [], |row| row.get(0))?;
    Ok(first.map(|first| first as u64))
}

/// Returns the stored highest number. It is negative only in a manipulated table.
pub(super) fn stored_last_seq(tx: &ReadTx<'_>) -> Result<Option<i64>, Error> {
    tx.get("SELECT max(seq) FROM ledger", [], |row| row.get(0))
}

/// Returns the highest number of the live chain; 0 if there is no entry.
pub fn last_seq(tx: &ReadTx<'_>) -> Result<u64, Error> {
    tx.get("SELECT coalesce(max(seq), 0) FROM ledger", [], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
}

/// Returns the number of the next entry.
pub fn next_seq(tx: &ReadTx<'_>) -> Result<u64, Error> {
    tx.get("SELECT coalesce(max(seq) + 1, 0) FROM ledger", [], |row| Ok(row.get::<_, i64>(0)? as u64))
}

/// Returns the hash of an entry of the live chain; `None` if the chain does not have the entry.
pub fn hash_at(tx: &ReadTx<'_>, seq: u64) -> Result<Option<String>, Error> {
    tx.find("SELECT hash FROM ledger WHERE seq = ?1", [seq as i64], |row| row.get(0))
}

/// Returns whether the ledger is older than this run of the host: it was rotated, or it has several starts.
pub fn is_older_than_this_run(tx: &ReadTx<'_>) -> Result<bool, Error> {
    tx.get("SELECT min(seq) > 0 OR count(*) FILTER (WHERE type = 'BOOT') > 1 FROM ledger", [], |row| row.get(0))
}

/// Calls `each` with the entries from `from_seq` to `to_seq`, in their order.
pub(super) fn entries<E: From<Error>>(
    tx: &ReadTx<'_>,
    from_seq: u64,
    to_seq: u64,
    mut each: impl FnMut(Parts<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let sql = "SELECT seq, type, data, hash FROM ledger WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq";
    tx.each(sql, [from_seq as i64, to_seq as i64], |row| {
        each(parts(row).map_err(Error::from)?)?;
        Ok(true)
    })
}

fn parts<'a>(row: &'a rusqlite::Row<'_>) -> rusqlite::Result<Parts<'a>> {
    let text = |column: usize| -> rusqlite::Result<&'a str> { Ok(row.get_ref(column)?.as_str()?) };
    Ok(Parts { seq: row.get::<_, i64>(0)? as u64, kind: text(1)?, canonical: text(2)?, hash: text(3)? })
}

/// Returns the entries of the live chain about a message, or about one of these turns, in their order.
pub(super) fn about(tx: &ReadTx<'_>, message: MessageId, turns: &BTreeSet<String>) -> Result<Vec<Named>, Error> {
    let turns = serde_json::to_string(turns).expect("text is JSON");
    tx.list(&search("seq, type, data", "true"), params![message, turns], |row| {
        let data = stored_json(row, "data")?;
        let kind = row.get("type")?;
        Ok(Named { seq: row.get::<_, i64>(0)? as u64, kind, data })
    })
}

/// Returns the fields of the first entry of the live chain about a message and no turn.
pub(super) fn first_about(tx: &ReadTx<'_>, message: MessageId) -> Result<Option<Map<String, Value>>, Error> {
    tx.find(&search("data", "turn_id IS NULL"), params![message, "[]"], |row| stored_json(row, "data"))
}

/// Returns the turns that the live chain names with a message.
pub(super) fn turns_of(tx: &ReadTx<'_>, message: MessageId) -> Result<Vec<String>, Error> {
    tx.list(&search("DISTINCT turn_id", "turn_id IS NOT NULL"), params![message, "[]"], |row| row.get(0))
}

/// Deletes the live chain.
pub(super) fn delete_chain(tx: &mut WriteTx<'_>) -> Result<(), Error> {
    tx.execute("DELETE FROM ledger_subjects", [])?;
    tx.execute("DELETE FROM ledger", [])?;
    Ok(())
}

/// Records that the archive that begins at `first` names the messages and the turns of the live chain.
pub(super) fn record_archived(tx: &mut WriteTx<'_>, first: u64) -> Result<(), Error> {
    // `forgotten` searches for a subject without a row by its time.
    for (column, table) in [("message_id", "messages"), ("turn_id", "turns")] {
        let sql = format!(
            "INSERT OR IGNORE INTO ledger_archived (subject, first_seq) \
             SELECT DISTINCT {column}, ?1 FROM ledger WHERE {column} IN (SELECT id FROM {table})"
        );
        tx.execute(&sql, [first as i64])?;
    }
    Ok(())
}

/// Returns the first numbers of the archives that name a message or a turn.
pub(super) fn archives_of(tx: &ReadTx<'_>, subject: impl ToSql) -> Result<BTreeSet<u64>, Error> {
    let sql = "SELECT first_seq FROM ledger_archived WHERE subject = ?1";
    tx.list(sql, [subject], |row| Ok(row.get::<_, i64>(0)? as u64))
}

/// Returns at most `most` messages and turns that archives name and whose rows were removed, as a JSON array of their ids; `None` if
/// there are none.
///
/// # Errors
/// Those of the database.
pub fn forgettable(tx: &ReadTx<'_>, most: i64) -> Result<Option<String>, Error> {
    let sql = "SELECT nullif(json_group_array(key), '[]') FROM (SELECT DISTINCT subject AS key FROM ledger_archived \
               WHERE subject NOT IN (SELECT id FROM messages) AND subject NOT IN (SELECT id FROM turns) LIMIT ?1)";
    tx.get(sql, [most], |row| row.get(0))
}

/// Deletes the references of these messages and turns, a JSON array of ids, to archives; returns the number of deleted rows.
///
/// # Errors
/// Those of the database.
pub fn forget(tx: &mut WriteTx<'_>, ids: &str) -> Result<usize, Error> {
    tx.execute("DELETE FROM ledger_archived WHERE subject IN (SELECT value FROM json_each(?1))", [ids])
}

/// Inserts a key that signs heads, made at `at`.
pub(super) fn insert_key(tx: &mut WriteTx<'_>, public: &str, wrapped: &[u8], at: i64) -> Result<(), Error> {
    let sql = "INSERT INTO ledger_keys (public, wrapped, made_at) VALUES (?1, ?2, ?3)";
    tx.execute(sql, params![public, wrapped, at])?;
    Ok(())
}

/// Returns every key that signs heads.
pub(super) fn keys(tx: &ReadTx<'_>) -> Result<Vec<Key>, Error> {
    tx.list("SELECT public, wrapped FROM ledger_keys", [], key)
}

/// Returns the newest key that signs heads.
pub(super) fn newest_key(tx: &ReadTx<'_>) -> Result<Option<Key>, Error> {
    tx.find("SELECT public, wrapped FROM ledger_keys ORDER BY made_at DESC, rowid DESC LIMIT 1", [], key)
}

fn key(row: &rusqlite::Row<'_>) -> rusqlite::Result<Key> {
    Ok(Key { public: row.get(0)?, wrapped: row.get(1)? })
}

/// Returns the public halves of the keys that signed heads of this ledger.
pub fn public_keys(tx: &ReadTx<'_>) -> Result<Vec<String>, Error> {
    tx.list("SELECT public FROM ledger_keys", [], |row| row.get(0))
}

/// Replaces the wrapped secret half of a key.
pub(super) fn set_wrapped(tx: &mut WriteTx<'_>, public: &str, wrapped: &[u8]) -> Result<(), Error> {
    tx.execute("UPDATE ledger_keys SET wrapped = ?2 WHERE public = ?1", params![public, wrapped])?;
    Ok(())
}
