//! Retention of items: a session keeps a bounded number of items and bytes, and drops old items if the operator sets an age.
//!
//! Never drops an item that an open turn, a waiting message or an open delivery needs. See [`crate::upkeep::retention_worker`].

use ironclaw_contract::ids::SessionId;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::record::ItemsConfig as Config;
use ironclaw_store::tables::items::{self, Measure};
use ironclaw_store::tables::sessions::{self, Bounds, Extent};
use ironclaw_store::tables::turns;

/// Items that one transaction drops at most, because other transactions wait for it.
const DROPPED_AT_ONCE: usize = 256;

/// Drops the oldest items of a session that are over its bounds. Returns their number, at most 256.
///
/// Reads only one row if the session is within its bounds.
pub fn enforce_retention(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    config: &Config,
) -> Result<usize, ironclaw_state::Error> {
    enforce_before(tx, session, config, u64::MAX)
}

/// Drops items as [`enforce_retention`] does, but none from this number on: a reply that was received in this transaction stays until its
/// client could read it.
pub fn enforce_before(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    config: &Config,
    seq: u64,
) -> Result<usize, ironclaw_state::Error> {
    let now = tx.wall();
    let bounds = bounds(config, tx.prune_time());
    let Extent { last_seq, pruned_seq, item_bytes } = sessions::extent(tx, session)?;
    let mut over_items = (last_seq - pruned_seq) / 2 - bounds.items;
    let mut over_bytes = item_bytes - bounds.bytes;
    if over_items <= 0 && over_bytes <= 0 && config.keep_days == 0 {
        return Ok(0);
    }
    let needed = items::needed_from(tx, session)?.min(i64::try_from(seq).unwrap_or(i64::MAX));
    let (mut upto, mut dropped, mut freed) = (pruned_seq, 0_usize, 0);
    // Items that were recorded while the clock was ahead. Their age follows from the items after them.
    let (mut ahead, mut ahead_bytes) = (0_usize, 0);
    items::each_measure(tx, session, pruned_seq, |Measure { seq, bytes, issued_at }| {
        if seq >= needed || dropped >= DROPPED_AT_ONCE {
            return false;
        }
        if over_items <= 0 && over_bytes <= 0 && issued_at >= bounds.oldest {
            if issued_at <= now || config.keep_days == 0 {
                return false;
            }
            (ahead, ahead_bytes) = (ahead + 1, ahead_bytes + bytes);
            return true;
        }
        (upto, dropped, freed) = (seq, dropped + 1 + ahead, freed + bytes + ahead_bytes);
        (ahead, ahead_bytes) = (0, 0);
        (over_items, over_bytes) = (over_items - 1, over_bytes - bytes);
        true
    })?;
    if dropped == 0 {
        return Ok(0);
    }
    turns::delete_calls_upto(tx, session, upto)?;
    items::delete_summaries_upto(tx, session, upto)?;
    items::delete_upto(tx, session, upto)?;
    sessions::record_dropped(tx, session, upto, freed)?;
    Entry::new(LedgerEvent::ItemsDropped).session(session).with("items", dropped).with("upto", upto).append(tx)?;
    Ok(dropped)
}

/// Returns the bounds in the units of the tables.
fn bounds(config: &Config, now: i64) -> Bounds {
    let oldest = match config.keep_days {
        0 => i64::MIN,
        days => now - i64::from(days) * 24 * 3600 * 1000,
    };
    let bytes = i64::try_from(config.session_bytes_max).unwrap_or(i64::MAX);
    Bounds { items: i64::from(config.session_items_max), bytes, oldest }
}

/// Returns the sessions that are over a bound.
pub fn sessions_over(tx: &ReadTx<'_>, config: &Config) -> Result<Vec<SessionId>, ironclaw_state::Error> {
    sessions::over(tx, bounds(config, tx.prune_time()))
}
