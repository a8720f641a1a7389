//! The values that calls took from what a person typed. Table: `call_inputs`.
//!
//! Never has a value: the record of a call has its bytes. See [`ironclaw_judge::inputs`].

use crate::rows::rows;
use ironclaw_contract::ids::{CallId, SessionId};
use ironclaw_judge::inputs::HandleId;
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;

/// Records that a call uses the value of a handle.
pub fn insert_input(tx: &mut WriteTx<'_>, session: SessionId, call: CallId, handle: HandleId) -> Result<(), Error> {
    let sql = "INSERT INTO call_inputs (call_id, session_id, handle) VALUES (?1, ?2, ?3)";
    tx.execute(sql, params![call, session, handle.to_string()]).map(drop)
}

/// The handles whose use is read: a conversation can have used many values of messages that no call can name now.
#[derive(Debug, Clone, Copy)]
pub enum UsedOf {
    /// Of all results.
    Results,
    /// Of the messages from this number on.
    Messages { from: u64 },
}

rows! {
    /// A use of a handle, as the record has it.
    struct Used {
        handle: String,
        at: u64,
    }
}

/// A handle that a call used.
#[derive(Debug, Clone, Copy)]
pub struct UsedHandle {
    pub id: HandleId,
    /// The number of the newest output with such a call.
    pub at: u64,
}

/// Returns the handles of a session that calls used: those that ran or may have run, and permitted ones recorded before `call`. Without
/// `call`, each permitted one counts. A call that waits for people counts once it ran, so an equal one is the same request.
pub fn used_handles(
    tx: &ReadTx<'_>,
    session: SessionId,
    call: Option<CallId>,
    of: UsedOf,
) -> Result<Vec<UsedHandle>, Error> {
    // The number of the item is behind the letter of an id.
    let (which, from) = match of {
        UsedOf::Results => ("i.handle GLOB 'r*'", 0),
        UsedOf::Messages { from } => ("i.handle GLOB 'm*'", from),
    };
    let sql = format!(
        "SELECT i.handle, max(coalesce(o.seq, ?4)) AS at FROM call_inputs i JOIN calls c ON c.id = i.call_id \
         LEFT JOIN items o ON o.id = c.output_item \
         WHERE i.session_id = ?1 AND {which} AND CAST(substr(i.handle, 2) AS INTEGER) >= ?3 AND i.call_id IS NOT ?2 \
         AND (c.state IN ('running', 'done', 'queued', 'unknown') OR c.state = 'permitted' \
         AND i.id < coalesce((SELECT min(id) FROM call_inputs WHERE call_id = ?2), i.id + 1)) GROUP BY i.handle"
    );
    // Of an output that was dropped, each message is as if it came before.
    let found: Vec<Used> = tx.list(&sql, params![session, call, from, i64::MAX], Used::read)?;
    let parsed = |used: Used| match used.handle.parse() {
        Ok(id) => Ok(UsedHandle { id, at: used.at }),
        Err(_) => Err(Error::Stored(format!("the value {} of a call", used.handle))),
    };
    found.into_iter().map(parsed).collect()
}
