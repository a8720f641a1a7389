//! How much of a conversation is kept: a bound on its items and their bytes, and an age, if the operator sets one.
//!
//! Never drops what an open turn, a waiting message or an open delivery needs. See `crate::retention_worker`.

use ironclaw_contract::ids::SessionId;
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_ledger::Entry;
use ironclaw_state::{ReadTx, WriteTx};
use rusqlite::params;
use serde::Deserialize;

/// Items that one transaction drops at most: others wait for it.
const DROPPED_AT_ONCE: usize = 256;

/// `[items]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Items of one session.
    pub session_items_max: u32,
    /// Bytes of the bodies of one session.
    pub session_bytes_max: u64,
    /// Items older than this many days are dropped; 0 keeps them for ever.
    pub keep_days: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { session_items_max: 20_000, session_bytes_max: 256 << 20, keep_days: 0 }
    }
}

/// Drops the oldest items of a session that are over its bounds; tells how many, at most 256.
///
/// Cheap when nothing is over: one row is read.
pub fn keep_within(tx: &mut WriteTx<'_>, session: SessionId, config: &Config) -> Result<usize, ironclaw_state::Error> {
    let (now, db) = (tx.wall(), tx.db());
    let bounds = Bounds::of(config, tx.prune_time());
    let (last, pruned, bytes): (i64, i64, i64) = db
        .prepare_cached("SELECT last_seq, pruned_seq, item_bytes FROM sessions WHERE id = ?1")?
        .query_row([session], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut over_items = (last - pruned) / 2 - bounds.items;
    let mut over_bytes = bytes - bounds.bytes;
    if over_items <= 0 && over_bytes <= 0 && config.keep_days == 0 {
        return Ok(0);
    }
    let needed = needed_from(tx, session)?;
    let sql = "SELECT seq, bytes, issued_at FROM items WHERE session_id = ?1 AND seq > ?2 ORDER BY seq";
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query(params![session, pruned])?;
    let (mut upto, mut dropped, mut freed) = (pruned, 0_usize, 0);
    // Items from while the clock was ahead: how old they are, those behind them say.
    let (mut ahead, mut ahead_bytes) = (0_usize, 0);
    while let Some(row) = rows.next()? {
        let (seq, bytes, issued_at): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if seq >= needed || dropped >= DROPPED_AT_ONCE {
            break;
        }
        if over_items <= 0 && over_bytes <= 0 && issued_at >= bounds.oldest {
            if issued_at <= now || config.keep_days == 0 {
                break;
            }
            (ahead, ahead_bytes) = (ahead + 1, ahead_bytes + bytes);
            continue;
        }
        (upto, dropped, freed) = (seq, dropped + 1 + ahead, freed + bytes + ahead_bytes);
        (ahead, ahead_bytes) = (0, 0);
        (over_items, over_bytes) = (over_items - 1, over_bytes - bytes);
    }
    drop(rows);
    if dropped == 0 {
        return Ok(0);
    }
    let gone = "SELECT id FROM items WHERE session_id = ?1 AND seq <= ?2";
    db.prepare_cached(&format!("DELETE FROM calls WHERE session_id = ?1 AND output_item IN ({gone})"))?
        .execute(params![session, upto])?;
    db.prepare_cached(&format!("DELETE FROM summaries WHERE session_id = ?1 AND item IN ({gone})"))?
        .execute(params![session, upto])?;
    db.prepare_cached("DELETE FROM items WHERE session_id = ?1 AND seq <= ?2")?.execute(params![session, upto])?;
    db.prepare_cached("UPDATE sessions SET pruned_seq = ?2, item_bytes = item_bytes - ?3 WHERE id = ?1")?
        .execute(params![session, upto, freed])?;
    Entry::new(LedgerEvent::ItemsDropped).session(session).with("items", dropped).with("upto", upto).append(tx)?;
    Ok(dropped)
}

/// The bounds as the tables compare them.
struct Bounds {
    items: i64,
    bytes: i64,
    /// Milliseconds since the epoch; what is older goes.
    oldest: i64,
}

impl Bounds {
    fn of(config: &Config, now: i64) -> Self {
        let oldest = match config.keep_days {
            0 => i64::MIN,
            days => now - i64::from(days) * 24 * 3600 * 1000,
        };
        let bytes = i64::try_from(config.session_bytes_max).unwrap_or(i64::MAX);
        Self { items: i64::from(config.session_items_max), bytes, oldest }
    }
}

/// Returns the sessions that are over a bound.
pub fn sessions_over(tx: &ReadTx<'_>, config: &Config) -> Result<Vec<SessionId>, ironclaw_state::Error> {
    let Bounds { items, bytes, oldest } = Bounds::of(config, tx.prune_time());
    let sql = "SELECT id FROM sessions WHERE state <> 'removed' AND ((last_seq - pruned_seq) / 2 > ?1 OR item_bytes > ?2 \
               OR (SELECT issued_at FROM items WHERE session_id = sessions.id AND issued_at <= ?4 ORDER BY seq LIMIT 1) < ?3)";
    let mut statement = tx.db().prepare_cached(sql)?;
    let sessions = statement
        .query_map(params![items, bytes, oldest, tx.wall()], |row| row.get("id"))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(sessions)
}

/// Returns the first number that something still needs: a waiting message, an open turn's, one that is being delivered.
fn needed_from(tx: &ReadTx<'_>, session: SessionId) -> Result<i64, ironclaw_state::Error> {
    let sql = "SELECT min(coalesce((SELECT min(seq) FROM messages WHERE session_id = ?1 AND status IN ('queued','processing')), ?2), \
               coalesce((SELECT min(items.seq) FROM turns JOIN items ON items.turn_id = turns.id AND items.session_id = ?1 \
                 WHERE turns.session_id = ?1 AND turns.state = 'open'), ?2), \
               coalesce((SELECT min(items.seq) FROM deliveries JOIN items ON items.id = deliveries.item \
                 WHERE deliveries.session_id = ?1 AND deliveries.state IN ('intent','sending')), ?2))";
    Ok(tx.db().prepare_cached(sql)?.query_row(params![session, i64::MAX], |row| row.get(0))?)
}
