//! Items that a summary replaces: the summary is named to a sandbox in the place of those items, which stay in the record.
//!
//! Never writes a summary and never judges one. See [`crate::turns::context::summary`].

use super::Recorded;
use ironclaw_contract::ids::{ItemId, SessionId};
use ironclaw_state::{ReadTx, WriteTx};
use rusqlite::{OptionalExtension, params};

/// Notes that `summary` replaces `covered`, whose last turn is `ordinal`.
pub fn cover(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    summary: ItemId,
    covered: &[(ItemId, u64)],
    ordinal: i64,
) -> Result<(), ironclaw_state::Error> {
    let db = tx.db();
    let from = covered.iter().map(|(_, seq)| *seq).min().unwrap_or(0);
    let upto = covered.iter().map(|(_, seq)| *seq).max().unwrap_or(0);
    db.prepare_cached(
        "INSERT INTO summaries (item, session_id, ordinal, from_seq, upto_seq, items) VALUES (?1,?2,?3,?4,?5,?6)",
    )?
    .execute(params![summary, session, ordinal, from as i64, upto as i64, covered.len() as i64])?;
    // A message that still waits for its turn was shown as context and is summarised as that; it stays an item of its own.
    let mut mark = db.prepare_cached(
        "UPDATE items SET summary_item = ?2 WHERE id = ?1 AND session_id = ?3 AND NOT EXISTS \
         (SELECT 1 FROM messages WHERE id = ?4 AND trigger = 1 AND status IN ('queued','processing'))",
    )?;
    for (item, _) in covered {
        mark.execute(params![item, summary, session, item.message()])?;
    }
    // Nothing below this mark has to be looked at again, so that the next wake does not read the whole conversation.
    let sql = "UPDATE sessions SET settled_seq = coalesce((SELECT min(seq) - 2 FROM items WHERE session_id = ?1 AND seq > settled_seq \
               AND summary_item IS NULL AND NOT (kind = 'notice' AND turn_id IS NULL)), settled_seq) WHERE id = ?1";
    db.prepare_cached(sql)?.execute([session])?;
    Ok(())
}

/// Returns the first of these items that a summary replaces already.
pub fn first_covered(
    tx: &ReadTx<'_>,
    session: SessionId,
    items: impl IntoIterator<Item = ItemId>,
) -> Result<Option<ItemId>, ironclaw_state::Error> {
    let sql = "SELECT 1 FROM items WHERE id = ?1 AND session_id = ?2 AND summary_item IS NOT NULL";
    let mut look = tx.db().prepare_cached(sql)?;
    for item in items {
        if look.exists(params![item, session])? {
            return Ok(Some(item));
        }
    }
    Ok(None)
}

/// Returns the place of a summary among the turns: behind the last item that it replaces.
pub fn ordinal(tx: &ReadTx<'_>, summary: &Recorded) -> Result<Option<i64>, ironclaw_state::Error> {
    let sql = "SELECT ordinal FROM summaries WHERE item = ?1";
    Ok(tx.db().prepare_cached(sql)?.query_row([summary.tuple.item], |row| row.get(0)).optional()?)
}

/// Returns the first and the last number of the items that a summary replaces, and how many items that are.
pub fn covered(tx: &ReadTx<'_>, summary: ItemId) -> Result<Option<(u64, u64, u64)>, ironclaw_state::Error> {
    let sql = "SELECT from_seq, upto_seq, items FROM summaries WHERE item = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64))
    };
    Ok(tx.db().prepare_cached(sql)?.query_row([summary], read).optional()?)
}
