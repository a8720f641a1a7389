//! Puts the items of a prompt into the order in which they happened.
//!
//! Never moves an item that an earlier prompt showed, but for a message that is asked again, so that a provider finds the
//! beginning of each prompt in its cache. Next: `turns::context::memory` for where the places come from.

use super::Checked;
use super::item_cache::{ItemCache, Position};
use crate::turns::turn::Turn;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_state::ReadTx;

/// What stands where within one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Within {
    /// Before what was said: text without a seal.
    Unsealed,
    /// What was said until the turn was opened, its own messages among it.
    Said,
    /// What the turn made.
    Made,
    /// What stands in for turns up to this one.
    Summary,
    /// What no turn has shown yet.
    Unshown,
}

/// A part of a context, with the ordinal of its turn.
pub(super) type Positioned = (Option<i64>, Checked);

/// The parts in their order, each with the ordinal of its turn, and the ordinal of the last turn among them.
///
/// An item stands in the turn that made it, a message in the turn that answered it or showed it first. Within a turn the messages
/// come first, in the order in which they were said. So an answer never stands behind a later message, and a further attempt at a
/// message goes on behind what the attempt before it did.
pub(super) fn order(
    tx: &ReadTx<'_>,
    turn: &Turn,
    checked: Vec<Checked>,
    cache: &mut ItemCache,
) -> Result<(Vec<Positioned>, i64), ironclaw_state::Error> {
    let mut last = 0;
    let mut keyed = Vec::with_capacity(checked.len());
    for part in checked {
        let (within, position) = match &part {
            Checked::Quoted(_) => (Within::Unsealed, None),
            Checked::Item(item) => match cache.position(tx, item)? {
                Some(position) => (within(item.tuple.kind, item.tuple.turn.is_some()), Some(position)),
                None => (Within::Unshown, None),
            },
        };
        let ordinal = position.map(|position| position.ordinal);
        last = last.max(ordinal.unwrap_or(0));
        let Position { ordinal: by, seq } = position.unwrap_or(Position { ordinal: turn.ordinal, seq: 0 });
        keyed.push(((by, within, seq), ordinal, part));
    }
    // Stable: what has no place of its own keeps the order in which it was named.
    keyed.sort_by_key(|(key, _, _)| *key);
    let shown = keyed.into_iter().map(|(_, ordinal, part)| (ordinal, part)).collect();
    Ok((shown, last))
}

/// A message that a turn made is a quote, and stands where it was made.
const fn within(kind: ItemKind, is_made: bool) -> Within {
    match kind {
        ItemKind::Message if is_made => Within::Made,
        ItemKind::Message => Within::Said,
        ItemKind::Output | ItemKind::Result | ItemKind::Notice => Within::Made,
        ItemKind::Summary => Within::Summary,
    }
}
