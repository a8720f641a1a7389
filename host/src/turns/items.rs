//! The seal index: every sealed item of every session, with its tuple and its encrypted body.
//!
//! A ref is worth something only if its tuple is in the index; an equal body is not enough. See [`crate::turns::turn`] and
//! [`crate::turns::context`].

mod retention;
mod rows;
pub mod summary;

pub use retention::{Config, keep_within, sessions_over};
pub use rows::FORGETTABLE;

use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{CallId, ItemId, SessionId, TurnId};
use ironclaw_contract::seam::message::Span;
use ironclaw_contract::seam::seal::{ItemKind, Label, Ref, Tuple};
use ironclaw_state::keys::{self, ContentKey};
use ironclaw_state::seal::Sealer;
use ironclaw_state::{ReadTx, WriteTx, stored_json};
use rusqlite::{OptionalExtension, Row, params};

/// A body that is about to become an item. Encrypting it is done before the transaction, numbering inside.
pub struct Draft {
    id: ItemId,
    kind: ItemKind,
    turn: Option<TurnId>,
    call: Option<CallId>,
    tool: Option<String>,
    hop: u32,
    spans: Vec<Span>,
    labels: Vec<Label>,
    scripted: bool,
    digest: Digest,
    bytes: usize,
    stored: Vec<u8>,
}

impl Draft {
    /// Encrypts a body for this item.
    pub fn new(
        id: ItemId,
        kind: ItemKind,
        body: &str,
        spans: Vec<Span>,
        labels: Vec<Label>,
        key: &ContentKey,
    ) -> Result<Self, keys::Error> {
        Ok(Self {
            id,
            kind,
            turn: None,
            call: None,
            tool: None,
            hop: 0,
            spans,
            labels,
            scripted: false,
            digest: Digest::of(body.as_bytes()),
            bytes: body.len(),
            stored: key.seal(id, body.as_bytes())?,
        })
    }

    /// Says which turn made it.
    pub const fn turn(mut self, turn: TurnId) -> Self {
        self.turn = Some(turn);
        self
    }

    /// Says whose result it is.
    pub fn call(mut self, call: CallId, tool: &str) -> Self {
        self.call = Some(call);
        self.tool = Some(tool.to_owned());
        self
    }

    /// Says whether the built-in script made it, and no model.
    pub const fn scripted(mut self, scripted: bool) -> Self {
        self.scripted = scripted;
        self
    }

    /// Returns its id.
    pub const fn id(&self) -> ItemId {
        self.id
    }

    /// Returns its digest.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Numbers the item and records it.
    pub fn record(
        self,
        tx: &mut WriteTx<'_>,
        session: SessionId,
        sealer: &Sealer,
    ) -> Result<Recorded, ironclaw_state::Error> {
        let db = tx.db();
        let seq: i64 = db
            .prepare_cached(
                "UPDATE sessions SET last_seq = last_seq + 2, item_bytes = item_bytes + ?2 \
                 WHERE id = ?1 AND state <> 'removed' RETURNING last_seq",
            )?
            .query_row(params![session, self.bytes as i64], |row| row.get(0))?;
        let tuple = Tuple {
            session,
            item: self.id,
            kind: self.kind,
            seq: seq as u64,
            issued_at: tx.wall(),
            boot: sealer.boot(),
            turn: self.turn,
            call: self.call,
            tool: self.tool,
            hop: self.hop,
            authors: canonical::to_string(&self.spans),
            labels: self.labels,
            digest: self.digest,
        };
        db.prepare_cached(
            "INSERT INTO items (id, session_id, seq, kind, issued_at, boot, turn_id, call_id, tool, hop, authors, labels, digest, bytes, body, scripted) \
             VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)",
        )?
        .execute(params![
            tuple.item,
            session,
            seq,
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
            self.bytes as i64,
            self.stored,
            self.scripted,
        ])?;
        Ok(Recorded { bytes: self.bytes as u64, scripted: self.scripted, tuple })
    }
}

/// An item in the index.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The tuple that its seal binds.
    pub tuple: Tuple,
    /// Bytes of its body.
    pub bytes: u64,
    /// Whether the built-in script made it, and no model.
    pub scripted: bool,
}

impl Recorded {
    /// Seals its ref under this start of the daemon.
    pub fn seal(&self, sealer: &Sealer) -> Ref {
        sealer.seal(&self.tuple)
    }

    /// Returns its spans.
    pub fn spans(&self) -> Vec<Span> {
        serde_json::from_str(&self.tuple.authors).unwrap_or_default()
    }
}

const COLUMNS: &str =
    "id, session_id, seq, kind, issued_at, boot, turn_id, call_id, tool, hop, authors, labels, digest, bytes, scripted";

fn recorded(row: &Row<'_>) -> rusqlite::Result<Recorded> {
    let tuple = Tuple {
        session: row.get("session_id")?,
        item: row.get("id")?,
        kind: row.get("kind")?,
        seq: row.get::<_, i64>("seq")? as u64,
        issued_at: row.get("issued_at")?,
        boot: row.get("boot")?,
        turn: row.get("turn_id")?,
        call: row.get("call_id")?,
        tool: row.get("tool")?,
        hop: row.get("hop")?,
        authors: row.get("authors")?,
        labels: stored_json(row, "labels")?,
        digest: row.get("digest")?,
    };
    Ok(Recorded { tuple, bytes: row.get::<_, i64>("bytes")? as u64, scripted: row.get("scripted")? })
}

/// Returns the item of this id, whatever session it belongs to.
pub fn find(tx: &ReadTx<'_>, item: ItemId) -> Result<Option<Recorded>, ironclaw_state::Error> {
    let sql = format!("SELECT {COLUMNS} FROM items WHERE id = ?1");
    Ok(tx.db().prepare_cached(&sql)?.query_row([item], recorded).optional()?)
}

/// Returns the session's items numbered above `after_seq`, in order, at most `limit`.
pub fn after(
    tx: &ReadTx<'_>,
    session: SessionId,
    after_seq: u64,
    limit: usize,
) -> Result<Vec<Recorded>, ironclaw_state::Error> {
    let sql = format!("SELECT {COLUMNS} FROM items WHERE session_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
    several(tx, &sql, params![session, stored_seq(after_seq), limit as i64])
}

/// Returns the items that a sandbox is told of: the session's items numbered above `after_seq`, in order, at most `limit`. Left
/// out are items that a summary replaces, messages that wait for a turn or that no turn has shown yet, and notices outside of
/// every turn, which are for people alone.
pub fn live_after(
    tx: &ReadTx<'_>,
    session: SessionId,
    after_seq: u64,
    limit: usize,
) -> Result<Vec<Recorded>, ironclaw_state::Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM items WHERE session_id = ?1 AND seq > max(?2, (SELECT settled_seq FROM sessions WHERE id = ?1)) \
         AND summary_item IS NULL AND NOT (kind = 'notice' AND turn_id IS NULL) AND seq NOT IN \
         (SELECT seq FROM messages WHERE session_id = ?1 AND status IN ('queued','processing') AND status = 'queued' \
         AND trigger = 1 UNION ALL SELECT seq FROM messages WHERE session_id = ?1 AND first_ordinal IS NULL) \
         ORDER BY seq LIMIT ?3"
    );
    several(tx, &sql, params![session, stored_seq(after_seq), limit as i64])
}

/// Returns the number up to which the session's items were dropped.
pub fn dropped_upto(tx: &ReadTx<'_>, session: SessionId) -> Result<u64, ironclaw_state::Error> {
    let sql = "SELECT pruned_seq FROM sessions WHERE id = ?1";
    Ok(tx.db().prepare_cached(sql)?.query_row([session], |row| row.get::<_, i64>(0))? as u64)
}

/// Returns whether an item of the session belongs to a turn.
pub fn has_turn(tx: &ReadTx<'_>, session: SessionId) -> Result<bool, ironclaw_state::Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM items WHERE session_id = ?1 AND turn_id IS NOT NULL)";
    Ok(tx.db().prepare_cached(sql)?.query_row([session], |row| row.get(0))?)
}

/// Returns the last `limit` items of the session, in order.
pub fn last(tx: &ReadTx<'_>, session: SessionId, limit: usize) -> Result<Vec<Recorded>, ironclaw_state::Error> {
    let sql = format!(
        "SELECT * FROM (SELECT {COLUMNS} FROM items WHERE session_id = ?1 ORDER BY seq DESC LIMIT ?2) ORDER BY seq"
    );
    several(tx, &sql, params![session, limit as i64])
}

fn several(tx: &ReadTx<'_>, sql: &str, values: impl rusqlite::Params) -> Result<Vec<Recorded>, ironclaw_state::Error> {
    let mut statement = tx.db().prepare_cached(sql)?;
    let items = statement.query_map(values, recorded)?.collect::<rusqlite::Result<_>>()?;
    Ok(items)
}

/// Returns a requested number as far as the table can have it.
fn stored_seq(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

/// Returns how many items the session has.
pub fn count(tx: &ReadTx<'_>, session: SessionId) -> Result<u64, ironclaw_state::Error> {
    let sql = "SELECT count(*) FROM items WHERE session_id = ?1";
    Ok(tx.db().prepare_cached(sql)?.query_row([session], |row| row.get::<_, i64>(0))? as u64)
}

/// Returns the body of an item, after its digest was compared with the recorded one.
pub fn body(tx: &ReadTx<'_>, item: &Recorded, key: &ContentKey) -> Result<String, BodyError> {
    let id = item.tuple.item;
    let stored: Vec<u8> =
        tx.db().prepare_cached("SELECT body FROM items WHERE id = ?1")?.query_row([id], |row| row.get(0))?;
    let bytes = key.open(id, &stored)?;
    if Digest::of(&bytes) != item.tuple.digest {
        return Err(keys::Error::Sealed("the body of an item").into());
    }
    String::from_utf8(bytes).map_err(|_| keys::Error::Sealed("the body of an item").into())
}

/// The reason that a body is not available.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The state.
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    /// The key, or the stored bytes.
    #[error(transparent)]
    Key(#[from] keys::Error),
}

impl From<rusqlite::Error> for BodyError {
    fn from(error: rusqlite::Error) -> Self {
        Self::State(error.into())
    }
}
