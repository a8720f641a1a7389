//! The order of the items in a prompt: the order in which they happened.
//!
//! Never moves an item of an earlier prompt, except for a message that is retried, so that a provider finds the beginning of each prompt
//! in its cache. The positions come from `turns::context::item_cache`.

use super::checked::Checked;
use super::item_cache::{ItemCache, Position};
use crate::turns::turn::Turn;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_state::ReadTx;

/// The order within one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Within {
    /// Text without a seal, before all messages.
    Unsealed,
    /// Messages from before the opening of the turn, including its own.
    Said,
    /// Items that the turn made.
    Made,
    /// Summaries of turns up to this one.
    Summary,
    /// Messages that no turn has shown yet.
    Unshown,
}

/// A part of a context, with the ordinal of its turn.
pub(super) type Positioned = (Option<i64>, Checked);

/// Returns the parts in their order, each with the ordinal of its turn, and the ordinal of the last turn among them.
///
/// An item belongs to the turn that made it, and a message to the turn that answered it or showed it first. Within a turn the messages
/// come first, in the order of their arrival. So an answer never follows a later message, and another attempt at a message continues
/// after the items of the previous attempt.
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
    // A stable sort: parts without a position keep the order of the request.
    keyed.sort_by_key(|(key, _, _)| *key);
    let shown = keyed.into_iter().map(|(_, ordinal, part)| (ordinal, part)).collect();
    Ok((shown, last))
}

/// Returns the position within a turn. A message that a turn made is a quote, and keeps the position where it was made.
const fn within(kind: ItemKind, is_made: bool) -> Within {
    match kind {
        ItemKind::Message if is_made => Within::Made,
        ItemKind::Message => Within::Said,
        ItemKind::Output | ItemKind::Result | ItemKind::Notice => Within::Made,
        ItemKind::Summary => Within::Summary,
    }
}
