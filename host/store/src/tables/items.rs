//! Items of conversations, and summaries. Tables: `items`, `summaries`.

use super::deliveries::DeliveryState;
use crate::rows::rows;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{ItemId, SessionId, TurnId};
use ironclaw_contract::seam::message::Span;
use ironclaw_contract::seam::seal::{Ref, Tuple};
use ironclaw_state::seal::Sealer;
use ironclaw_state::{Error, ReadTx, WriteTx, stored_json};
use rusqlite::{Row, params};

#[derive(Debug, Clone)]
pub struct Recorded {
    /// The tuple that its seal binds.
    pub tuple: Tuple,
    /// Bytes of its body.
    pub bytes: u64,
    /// True if the built-in script made it instead of a model.
    pub scripted: bool,
}

impl Recorded {
    /// Seals its ref for this run of the host.
    pub fn seal(&self, sealer: &Sealer) -> Ref {
        sealer.seal(&self.tuple)
    }

    /// Returns its spans; none if the recorded text cannot be read.
    pub fn spans(&self) -> Vec<Span> {
        serde_json::from_str(&self.tuple.authors).unwrap_or_default()
    }
}

const COLUMNS: &str = "id, session_id, seq, kind, issued_at, boot, turn_id, call_id, tool, hop, authors, labels, scope, digest, bytes, scripted";

/// Reads a row of [`COLUMNS`] by position: a wake reads each item of a conversation, and a search for 16 names takes half of that time.
fn recorded(row: &Row<'_>) -> rusqlite::Result<Recorded> {
    let tuple = Tuple {
        item: row.get(0)?,
        session: row.get(1)?,
        seq: row.get(2)?,
        kind: row.get(3)?,
        issued_at: row.get(4)?,
        boot: row.get(5)?,
        turn: row.get(6)?,
        call: row.get(7)?,
        tool: row.get(8)?,
        hop: row.get(9)?,
        authors: row.get(10)?,
        labels: stored_json(row, 11)?,
        scope: row.get(12)?,
        digest: row.get(13)?,
    };
    Ok(Recorded { tuple, bytes: row.get(14)?, scripted: row.get(15)? })
}

/// The number, the bytes and the time of an item.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// Its number in the session.
    pub seq: i64,
    /// Bytes of its body.
    pub bytes: i64,
    /// Milliseconds since the epoch.
    pub issued_at: i64,
}

rows! {
    /// The items that a summary replaces.
    #[derive(Debug, Clone, Copy)]
    pub struct Covered {
        /// The number of the first item.
        pub from: u64 = "from_seq",
        /// The number of the last item.
        pub upto: u64 = "upto_seq",
        /// The number of items.
        pub items: u64,
    }
}

/// Inserts an item with its encrypted body; for an answer of a model, with the digest of its request.
pub fn insert(tx: &mut WriteTx<'_>, item: &Recorded, body: &[u8], request: Option<Digest>) -> Result<(), Error> {
    let tuple = &item.tuple;
    tx.execute(
        "INSERT INTO items (id, session_id, seq, kind, issued_at, boot, turn_id, call_id, tool, hop, authors, labels, digest, bytes, body, scripted, scope, request) \
         VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18)",
        params![
            tuple.item,
            tuple.session,
            tuple.seq as i64,
            tuple.kind.name(),
            tuple.issued_at,
            tuple.boot,
            tuple.turn,
            tuple.call,
            tuple.tool,
            tuple.hop,
            tuple.authors,
            canonical::to_string(&tuple.labels),
            tuple.digest,
            item.bytes as i64,
            body,
            item.scripted,
            tuple.scope,
            request,
        ],
    )?;
    if let Some(turn) = tuple.turn {
        // A late item. The end of a turn sets the number for all others.
        let sql = "UPDATE turns SET last_seq = ?2 WHERE id = ?1 AND state = 'closed'";
        tx.execute(sql, params![turn, tuple.seq as i64])?;
    }
    Ok(())
}

/// Sets the ranges of items in the prompt of an output, as JSON.
pub fn set_prompt(tx: &mut WriteTx<'_>, item: ItemId, ranges: &str) -> Result<(), Error> {
    tx.execute("UPDATE items SET prompt = ?2 WHERE id = ?1", params![item, ranges]).map(drop)
}

/// Returns the ranges of items in the prompts of a turn's outputs up to a number, in order.
pub fn prompts_in_turn(tx: &ReadTx<'_>, session: SessionId, turn: TurnId, upto: u64) -> Result<Vec<String>, Error> {
    let sql = "SELECT prompt FROM items WHERE session_id = ?1 AND seq BETWEEN coalesce((SELECT first_seq FROM turns WHERE id = ?2), 0) \
               AND ?3 AND turn_id = ?2 AND prompt IS NOT NULL ORDER BY seq";
    tx.list(sql, params![session, turn, stored_seq(upto)], |row| row.get(0))
}

/// Stores the encrypted thoughts of the model beside an output.
pub fn set_reasoning(tx: &mut WriteTx<'_>, item: ItemId, reasoning: &[u8]) -> Result<(), Error> {
    tx.execute("UPDATE items SET reasoning = ?2 WHERE id = ?1", params![item, reasoning]).map(drop)
}

/// Returns the encrypted thoughts of the model beside an output, if it has any.
pub fn encrypted_reasoning(tx: &ReadTx<'_>, item: ItemId) -> Result<Option<Vec<u8>>, Error> {
    Ok(tx.find("SELECT reasoning FROM items WHERE id = ?1", [item], |row| row.get(0))?.flatten())
}

/// Stores the encrypted values at the result paths of an answer beside its item.
pub fn set_returned(tx: &mut WriteTx<'_>, item: ItemId, returned: &[u8]) -> Result<(), Error> {
    tx.execute("UPDATE items SET returned = ?2 WHERE id = ?1", params![item, returned]).map(drop)
}

/// Returns the encrypted values at the result paths of an answer, if it has any.
pub fn encrypted_returned(tx: &ReadTx<'_>, item: ItemId) -> Result<Option<Vec<u8>>, Error> {
    Ok(tx.find("SELECT returned FROM items WHERE id = ?1", [item], |row| row.get(0))?.flatten())
}

/// Returns the newest items before a number with values at result paths, at most `limit`, the newest first.
pub fn with_returned(tx: &ReadTx<'_>, session: SessionId, before: u64, limit: usize) -> Result<Vec<Recorded>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM items WHERE session_id = ?1 AND seq < ?2 AND returned IS NOT NULL ORDER BY seq DESC LIMIT ?3"
    );
    tx.list(&sql, params![session, stored_seq(before), limit as i64], recorded)
}

/// Returns the item of this id, of any session.
pub fn find(tx: &ReadTx<'_>, item: ItemId) -> Result<Option<Recorded>, Error> {
    tx.find(&format!("SELECT {COLUMNS} FROM items WHERE id = ?1"), [item], recorded)
}

/// Returns the digest of the request that an answer of a model answers; `None` for other items.
pub fn answered_request(tx: &ReadTx<'_>, item: ItemId) -> Result<Option<Digest>, Error> {
    Ok(tx.find("SELECT request FROM items WHERE id = ?1", [item], |row| row.get(0))?.flatten())
}

/// Returns the encrypted body of an item.
pub fn encrypted_body(tx: &ReadTx<'_>, item: ItemId) -> Result<Vec<u8>, Error> {
    tx.get("SELECT body FROM items WHERE id = ?1", [item], |row| row.get(0))
}

/// Returns the items that a turn made, in order, among those of its session that no mark leaves out.
pub fn made_in_turn(tx: &ReadTx<'_>, session: SessionId, turn: TurnId) -> Result<Vec<Recorded>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM items WHERE session_id = ?1 AND turn_id = ?2 \
         AND seq > (SELECT settled_seq FROM sessions WHERE id = ?1) ORDER BY seq"
    );
    tx.list(&sql, params![session, turn], recorded)
}

/// Returns the session's items numbered above `after_seq`, in order, at most `limit`.
pub fn after(tx: &ReadTx<'_>, session: SessionId, after_seq: u64, limit: usize) -> Result<Vec<Recorded>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM items WHERE session_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
    tx.list(&sql, params![session, stored_seq(after_seq), limit as i64], recorded)
}

/// Returns the items that the host names to a sandbox: the session's items numbered above `after_seq`, in order, at most `limit`. Leaves
/// out items that a summary replaces, messages that wait for a turn or that no turn has shown yet, and notices outside of every turn,
/// which are for people alone.
pub fn live_after(tx: &ReadTx<'_>, session: SessionId, after_seq: u64, limit: usize) -> Result<Vec<Recorded>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM items WHERE session_id = ?1 AND seq > max(?2, (SELECT settled_seq FROM sessions WHERE id = ?1)) \
         AND summary_item IS NULL AND NOT (kind = 'notice' AND turn_id IS NULL) AND seq NOT IN \
         (SELECT seq FROM messages WHERE session_id = ?1 AND waits = 1 AND (status = 'queued' AND trigger = 1 OR first_ordinal IS NULL) \
         UNION ALL SELECT seq FROM messages WHERE session_id = ?1 AND first_ordinal IS NULL AND waits IS NULL) \
         ORDER BY seq LIMIT ?3"
    );
    tx.list(&sql, params![session, stored_seq(after_seq), limit as i64], recorded)
}

/// Returns a requested number as the table stores it, at most `i64::MAX`.
fn stored_seq(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

/// Returns the last `limit` items of the session, in order.
pub fn last(tx: &ReadTx<'_>, session: SessionId, limit: usize) -> Result<Vec<Recorded>, Error> {
    let sql = format!(
        "SELECT * FROM (SELECT {COLUMNS} FROM items WHERE session_id = ?1 ORDER BY seq DESC LIMIT ?2) ORDER BY seq"
    );
    tx.list(&sql, params![session, limit as i64], recorded)
}

/// Returns the last items of a session numbered below `seq`, in order, at most `limit`.
pub fn before(tx: &ReadTx<'_>, session: SessionId, seq: u64, limit: usize) -> Result<Vec<Recorded>, Error> {
    let sql = format!(
        "SELECT * FROM (SELECT {COLUMNS} FROM items WHERE session_id = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3) ORDER BY seq"
    );
    tx.list(&sql, params![session, stored_seq(seq), limit as i64], recorded)
}

/// Returns the messages of a session numbered below `seq`, the newest first, at most `limit`.
pub fn messages_before(tx: &ReadTx<'_>, session: SessionId, seq: u64, limit: usize) -> Result<Vec<Recorded>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM items WHERE session_id = ?1 AND seq < ?2 AND kind = 'message' ORDER BY seq DESC LIMIT ?3"
    );
    tx.list(&sql, params![session, stored_seq(seq), limit as i64], recorded)
}

/// Returns the messages, results and summaries of a session in a range of numbers, the newest first, at most `limit`.
pub fn sources_between(
    tx: &ReadTx<'_>,
    session: SessionId,
    from: u64,
    upto: u64,
    limit: usize,
) -> Result<Vec<Recorded>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM items WHERE session_id = ?1 AND seq BETWEEN ?2 AND ?3 \
         AND kind IN ('message', 'result', 'summary') ORDER BY seq DESC LIMIT ?4"
    );
    tx.list(&sql, params![session, stored_seq(from), stored_seq(upto), limit as i64], recorded)
}

/// Returns the oldest message of a session that the record still has.
pub fn first_message(tx: &ReadTx<'_>, session: SessionId) -> Result<Option<Recorded>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM items WHERE session_id = ?1 AND kind = 'message' ORDER BY seq LIMIT 1");
    tx.find(&sql, [session], recorded)
}

/// Returns the newest items of a session with results of a tool, the newest first, at most `limit`.
pub fn results_of_tool(tx: &ReadTx<'_>, session: SessionId, tool: &str, limit: usize) -> Result<Vec<Recorded>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM items WHERE session_id = ?1 AND tool = ?2 AND kind = 'result' ORDER BY seq DESC LIMIT ?3"
    );
    tx.list(&sql, params![session, tool, limit as i64], recorded)
}

/// Returns whether an item of the session belongs to a turn.
pub fn has_turn(tx: &ReadTx<'_>, session: SessionId) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM items WHERE session_id = ?1 AND turn_id IS NOT NULL)";
    tx.get(sql, [session], |row| row.get(0))
}

/// Returns the number of the session's items.
pub fn count(tx: &ReadTx<'_>, session: SessionId) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM items WHERE session_id = ?1";
    tx.get(sql, [session], |row| row.get(0))
}

/// Calls `each` with the measures of the session's items numbered above `above`, in order, until it returns `false`.
pub fn each_measure(
    tx: &ReadTx<'_>,
    session: SessionId,
    above: i64,
    mut each: impl FnMut(Measure) -> bool,
) -> Result<(), Error> {
    let sql = "SELECT seq, bytes, issued_at FROM items WHERE session_id = ?1 AND seq > ?2 ORDER BY seq";
    tx.each(sql, params![session, above], |row| {
        Ok(each(Measure { seq: row.get(0)?, bytes: row.get(1)?, issued_at: row.get(2)? }))
    })
}

/// Returns the lowest number of an item that a waiting message, an open turn or an open delivery needs, or `i64::MAX` if there is none.
/// The messages of an open turn wait, and its items follow them.
pub fn needed_from(tx: &ReadTx<'_>, session: SessionId) -> Result<i64, Error> {
    let sql = "SELECT min(coalesce((SELECT min(seq) FROM messages WHERE session_id = ?1 AND waits = 1), ?2), \
               coalesce((SELECT min(items.seq) FROM deliveries JOIN items ON items.id = deliveries.item \
                 WHERE deliveries.session_id = ?1 AND deliveries.state IN ('intent','sending')), ?2))";
    tx.get(sql, params![session, i64::MAX], |row| row.get(0))
}

/// Deletes the session's items that are numbered up to `upto`.
pub fn delete_upto(tx: &mut WriteTx<'_>, session: SessionId, upto: i64) -> Result<(), Error> {
    tx.execute("DELETE FROM items WHERE session_id = ?1 AND seq <= ?2", params![session, upto]).map(drop)
}

/// Deletes the summaries whose items are numbered up to `upto` in the session.
pub fn delete_summaries_upto(tx: &mut WriteTx<'_>, session: SessionId, upto: i64) -> Result<(), Error> {
    let sql = "DELETE FROM summaries WHERE session_id = ?1 AND item IN (SELECT id FROM items WHERE session_id = ?1 AND seq <= ?2)";
    tx.execute(sql, params![session, upto]).map(drop)
}

pub fn delete_of(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), Error> {
    tx.execute("DELETE FROM items WHERE session_id = ?1", [session]).map(drop)
}

pub fn delete_summaries_of(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), Error> {
    tx.execute("DELETE FROM summaries WHERE session_id = ?1", [session]).map(drop)
}

/// Inserts a summary, whose last turn is `ordinal`, with the items that it replaces.
pub fn insert_summary(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    summary: ItemId,
    ordinal: i64,
    covered: Covered,
) -> Result<(), Error> {
    let Covered { from, upto, items } = covered;
    let sql = "INSERT INTO summaries (item, session_id, ordinal, from_seq, upto_seq, items) VALUES (?1,?2,?3,?4,?5,?6)";
    tx.execute(sql, params![summary, session, ordinal, from as i64, upto as i64, items as i64]).map(drop)
}

/// Marks an item of the session as replaced by a summary, unless it is a message that still waits for its turn.
pub fn mark_covered(tx: &mut WriteTx<'_>, session: SessionId, item: ItemId, summary: ItemId) -> Result<(), Error> {
    let sql = "UPDATE items SET summary_item = ?2 WHERE id = ?1 AND session_id = ?3 AND NOT EXISTS \
               (SELECT 1 FROM messages WHERE id = ?4 AND trigger = 1 AND waits = 1)";
    tx.execute(sql, params![item, summary, session, item.message()]).map(drop)
}

/// Returns whether a summary replaces this item of the session.
pub fn is_covered(tx: &ReadTx<'_>, session: SessionId, item: ItemId) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM items WHERE id = ?1 AND session_id = ?2 AND summary_item IS NOT NULL";
    tx.exists(sql, params![item, session])
}

/// Returns the ordinal of the last turn that a summary covers.
pub fn summary_ordinal(tx: &ReadTx<'_>, summary: ItemId) -> Result<Option<i64>, Error> {
    tx.find("SELECT ordinal FROM summaries WHERE item = ?1", [summary], |row| row.get(0))
}

/// Returns the items that a summary replaces.
pub fn covered(tx: &ReadTx<'_>, summary: ItemId) -> Result<Option<Covered>, Error> {
    tx.find("SELECT from_seq, upto_seq, items FROM summaries WHERE item = ?1", [summary], Covered::read)
}

/// Returns the state of an item's delivery; `None` if the item was not meant for a person.
pub fn delivery_state(tx: &ReadTx<'_>, item: ItemId) -> Result<Option<DeliveryState>, Error> {
    let sql = "SELECT deliveries.state FROM items JOIN deliveries ON deliveries.turn_id IS items.turn_id AND deliveries.item = items.id \
               WHERE items.id = ?1";
    tx.find(sql, [item], |row| row.get(0))
}
