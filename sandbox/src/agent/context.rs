//! Which earlier items the model sees: all of the turn, and of what was before it the newest that fits.
//!
//! Holds names and sizes, never a body, and leaves out no message of the turn. Next: `turn`.

use ironclaw_contract::ids::{ItemId, TurnId};
use ironclaw_contract::seam::limits::REFS_MAX;
use ironclaw_contract::seam::seal::{ItemKind, Ref};
use std::collections::BTreeMap;

/// Items that are remembered; older ones would not be chosen again.
const KNOWN_MAX: usize = 2 * REFS_MAX;

/// One item, without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its name and seal.
    pub(super) reference: Ref,
    /// Bytes of its body.
    pub(super) bytes: u64,
    /// The turn that it belongs to, if that is known.
    pub(super) turn: Option<TurnId>,
}

/// The items of this session that this process knows, by their number.
#[derive(Debug, Default)]
pub(super) struct Known(BTreeMap<u64, Entry>);

/// The turn alone is more than one request may name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMuch;

impl Known {
    /// Learns an item from an answer of the host, whose seal is the newest.
    pub(super) fn learn(&mut self, entry: Entry) {
        self.0.insert(entry.reference.seq, entry);
    }

    /// Learns an item whose seal may be older than one that is known.
    pub(super) fn learn_if_new(&mut self, entry: Entry) {
        self.0.entry(entry.reference.seq).or_insert(entry);
    }

    /// Whether all of these items are known.
    pub(super) fn hold_all(&self, items: &[ItemId]) -> bool {
        items.iter().all(|item| self.0.values().any(|entry| entry.reference.item == *item))
    }

    /// Drops the oldest items beyond the bound, but none of `own`.
    pub(super) fn forget_oldest(&mut self, own: &[ItemId]) {
        let surplus = self.0.len().saturating_sub(KNOWN_MAX);
        let old = self.0.iter().filter(|(_, entry)| !own.contains(&entry.reference.item));
        let old: Vec<u64> = old.map(|(seq, _)| *seq).take(surplus).collect();
        for seq in old {
            self.0.remove(&seq);
        }
    }

    /// The refs for one request, in their order: every message in `own`, every item of `turn`, and as many of the
    /// newest earlier items as fit into `bytes_max` and [`REFS_MAX`], without a gap.
    ///
    /// # Errors
    /// [`TooMuch`] if the turn alone has too many items, or too many bytes that are not the messages themselves.
    pub(super) fn choose(&self, own: &[ItemId], turn: TurnId, bytes_max: u64) -> Result<Vec<Ref>, TooMuch> {
        let of_the_turn = |entry: &&Entry| own.contains(&entry.reference.item) || entry.turn == Some(turn);
        let (required, earlier): (Vec<&Entry>, Vec<&Entry>) = self.0.values().partition(of_the_turn);
        let mut bytes: u64 = required.iter().map(|entry| entry.bytes).sum();
        let only_messages = required.len() == own.len();
        if required.len() > REFS_MAX || (bytes > bytes_max && !only_messages) {
            return Err(TooMuch);
        }
        let mut room = REFS_MAX - required.len();
        let mut start = earlier.len();
        while start > 0 && room > 0 && bytes.saturating_add(earlier[start - 1].bytes) <= bytes_max {
            start -= 1;
            room -= 1;
            bytes += earlier[start].bytes;
        }
        let kept = earlier[start..].iter().skip_while(|entry| is_tail_of_a_turn(entry.reference.kind));
        let mut chosen: Vec<Ref> = required.iter().chain(kept).map(|entry| entry.reference.clone()).collect();
        chosen.sort_unstable_by_key(|reference| reference.seq);
        Ok(chosen)
    }
}

/// Whether an item makes no sense as the first thing that is seen: a result without the call that it answers.
const fn is_tail_of_a_turn(kind: ItemKind) -> bool {
    match kind {
        ItemKind::Output | ItemKind::Result => true,
        ItemKind::Message | ItemKind::Summary | ItemKind::Notice => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::canonical::Digest;
    use ironclaw_contract::ids::BootId;

    fn entry(seq: u64, kind: ItemKind, bytes: u64, turn: Option<TurnId>) -> Entry {
        let (digest, seal) = (Digest::of(b"body"), Digest::of(b"seal"));
        let reference = Ref { item: ItemId::new(), kind, seq, issued_at: 1, boot: BootId::new(), digest, seal };
        Entry { reference, bytes, turn }
    }

    /// Items of ten bytes each: `kinds` from number 2 on, the last of them the message of the turn.
    fn known(kinds: &[ItemKind]) -> (Known, Vec<ItemId>) {
        let mut known = Known::default();
        let mut own = Vec::new();
        for (at, kind) in kinds.iter().enumerate() {
            let entry = entry(2 * (at as u64 + 1), *kind, 10, None);
            own = vec![entry.reference.item];
            known.learn(entry);
        }
        (known, own)
    }

    fn numbers(chosen: Result<Vec<Ref>, TooMuch>) -> Vec<u64> {
        chosen.expect("fits").iter().map(|reference| reference.seq).collect()
    }

    use ItemKind::{Message, Notice, Output, Result as ToolResult};

    #[test]
    fn a_message_of_the_turn_is_never_left_out() {
        let (known, own) = known(&[Message, Output, Message]);
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 0)), [6]);
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 29)), [6], "2 without 4 would be a gap, 4 alone a tail");
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 30)), [2, 4, 6]);
    }

    #[test]
    fn history_does_not_begin_in_the_middle_of_a_turn() {
        let (known, own) = known(&[Message, Output, ToolResult, Output, Notice, Message, Output, Message]);
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 50)), [10, 12, 14, 16]);
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 20)), [16]);
    }

    #[test]
    fn a_turn_that_is_too_much_is_an_error_and_not_a_gap() {
        let (mut known, own) = known(&[Message]);
        let turn = TurnId::new();
        known.learn(entry(4, Output, 10, Some(turn)));
        known.learn(entry(6, ToolResult, 10, Some(turn)));
        assert_eq!(numbers(known.choose(&own, turn, 30)), [2, 4, 6]);
        assert_eq!(known.choose(&own, turn, 29), Err(TooMuch));
        for seq in 4..4 + REFS_MAX as u64 {
            known.learn(entry(2 * seq, ToolResult, 0, Some(turn)));
        }
        assert_eq!(known.choose(&own, turn, u64::MAX), Err(TooMuch));
    }

    #[test]
    fn no_request_names_more_refs_than_allowed() {
        let (mut known, own) = known(&[Message]);
        for seq in 2..2 * REFS_MAX as u64 {
            known.learn(entry(2 * seq, Message, u64::MAX / 2, None));
        }
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 100)), [2]);
        for entry in known.0.values_mut() {
            entry.bytes = 0;
        }
        let chosen = numbers(known.choose(&own, TurnId::new(), 100));
        assert_eq!((chosen.len(), chosen[0], chosen[1023]), (REFS_MAX, 2, 4 * REFS_MAX as u64 - 2));
    }

    #[test]
    fn the_oldest_are_forgotten_but_not_the_messages_of_the_turn() {
        let (mut known, own) = known(&[Message]);
        for seq in 2..=KNOWN_MAX as u64 + 10 {
            known.learn(entry(2 * seq, Message, 1, None));
        }
        known.forget_oldest(&own);
        assert_eq!(known.0.len(), KNOWN_MAX);
        assert!(known.hold_all(&own));
        assert!(!known.0.contains_key(&4) && known.0.contains_key(&(2 * (KNOWN_MAX as u64 + 10))));
    }

    #[test]
    fn a_seal_of_the_queue_does_not_replace_one_of_the_host() {
        let mut known = Known::default();
        let fresh = entry(2, Message, 1, None);
        known.learn(fresh.clone());
        known.learn_if_new(entry(2, Message, 1, None));
        assert_eq!(known.0[&2], fresh);
    }
}
