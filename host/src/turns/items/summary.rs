//! Items that a summary replaces: a sandbox sees the summary instead of those items, which stay in the record.
//!
//! Never writes a summary and never judges one. See [`crate::turns::context::summary`].

pub use ironclaw_store::tables::items::{Covered, covered, is_covered, summary_ordinal as ordinal};

use ironclaw_contract::ids::{ItemId, SessionId};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::tables::{items, sessions};

/// Records that `summary` replaces `covered`, whose last turn is `ordinal`.
pub fn cover(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    summary: ItemId,
    covered: &[(ItemId, u64)],
    ordinal: i64,
) -> Result<(), ironclaw_state::Error> {
    let from = covered.iter().map(|(_, seq)| *seq).min().unwrap_or(0);
    let upto = covered.iter().map(|(_, seq)| *seq).max().unwrap_or(0);
    items::insert_summary(tx, session, summary, ordinal, Covered { from, upto, items: covered.len() as u64 })?;
    // A message that still waits for its turn is summarised as context, and also stays an item of its own.
    for (item, _) in covered {
        items::mark_covered(tx, session, *item, summary)?;
    }
    sessions::settle(tx, session)
}

/// Returns the first of these items that a summary replaces already.
pub fn first_covered(
    tx: &ReadTx<'_>,
    session: SessionId,
    items: impl IntoIterator<Item = ItemId>,
) -> Result<Option<ItemId>, ironclaw_state::Error> {
    for item in items {
        if items::is_covered(tx, session, item)? {
            return Ok(Some(item));
        }
    }
    Ok(None)
}
