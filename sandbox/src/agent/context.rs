//! The choice of the items that the model sees: all items of the turn, the summaries, and the newest earlier items that fit.
//!
//! It also chooses the items that a summary must replace. It has names and sizes, never a body, and leaves out no message of the
//! turn. See [`crate::agent::turn`].

use ironclaw_contract::ids::{ItemId, TurnId};
use ironclaw_contract::seam::limits::REFS_MAX;
use ironclaw_contract::seam::seal::{ItemKind, Ref};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Bound on the known items; older ones would not be chosen again.
const KNOWN_MAX: usize = 2 * REFS_MAX;

/// The difference of the numbers of two items that follow each other.
const ITEM_STEP: u64 = 2;

/// One item, without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its name and seal.
    pub(super) reference: Ref,
    /// Bytes of its body.
    pub(super) bytes: u64,
    /// Its turn, if known.
    pub(super) turn: Option<TurnId>,
}

/// The known items of this session, by number.
#[derive(Debug, Default)]
pub(super) struct KnownItems(BTreeMap<u64, Entry>);

/// The turn alone exceeds the bounds of one request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMuch;

impl KnownItems {
    /// Adds an item from an answer of the host, whose seal is the newest.
    pub(super) fn add(&mut self, entry: Entry) {
        self.0.insert(entry.reference.seq, entry);
    }

    /// Adds an item unless it is known, because its seal may be older than the known one.
    pub(super) fn add_if_new(&mut self, entry: Entry) {
        self.0.entry(entry.reference.seq).or_insert(entry);
    }

    /// Returns whether all of these items are known.
    pub(super) fn hold_all(&self, items: &[ItemId]) -> bool {
        items.iter().all(|item| self.0.values().any(|entry| entry.reference.item == *item))
    }

    /// Returns the number of the newest item, if each item behind `after` is known: the host numbers the items of a session without a gap.
    pub(super) fn complete_after(&self, after: u64) -> Option<u64> {
        let newest = self.0.keys().next_back().map_or(after, |newest| after.max(*newest));
        let known = self.0.range((Bound::Excluded(after), Bound::Unbounded)).count() as u64;
        (known == (newest - after) / ITEM_STEP).then_some(newest)
    }

    /// Drops the oldest items beyond the bound, but no item of `own`.
    pub(super) fn drop_oldest(&mut self, own: &[ItemId]) {
        let surplus = self.0.len().saturating_sub(KNOWN_MAX);
        let old = self.0.iter().filter(|(_, entry)| !own.contains(&entry.reference.item));
        let old: Vec<u64> = old.map(|(seq, _)| *seq).take(surplus).collect();
        for seq in old {
            self.0.remove(&seq);
        }
    }

    /// Returns the refs for one request, in their order: every message in `own`, every item of `turn`, the summaries, and as many of the
    /// newest earlier items as fit into `bytes_max` and [`REFS_MAX`], without a gap.
    ///
    /// # Errors
    /// [`TooMuch`] if the turn alone has too many items, or too many bytes in addition to its messages.
    pub(super) fn choose(&self, own: &[ItemId], turn: TurnId, bytes_max: u64) -> Result<Vec<Ref>, TooMuch> {
        let Parts { required, summaries, earlier } = self.parts(own, turn);
        let mut remaining = Remaining { bytes: bytes_max, refs: REFS_MAX };
        let fits = required.iter().all(|entry| remaining.take(entry));
        if !fits && (required.len() > own.len() || required.len() > REFS_MAX) {
            return Err(TooMuch);
        }
        // The newest summary covers the most recent of the replaced items.
        let summaries: Vec<&Entry> =
            summaries.into_iter().rev().take_while(|entry| fits && remaining.take(entry)).collect();
        let start = if fits { newest_that_fit(&earlier, &mut remaining) } else { earlier.len() };
        // Outputs and results of an earlier attempt at the same messages come after them, so they have their message before them.
        let first_own = required.iter().map(|entry| entry.reference.seq).min().unwrap_or(u64::MAX);
        let kept = earlier[start..]
            .iter()
            .skip_while(|entry| entry.reference.seq < first_own && needs_an_earlier_item(entry.reference.kind));
        let chosen = required.iter().chain(&summaries).chain(kept);
        let mut chosen: Vec<Ref> = chosen.map(|entry| entry.reference.clone()).collect();
        chosen.sort_unstable_by_key(|reference| reference.seq);
        Ok(chosen)
    }

    /// Returns the items that a summary must replace, in their order: the summaries and the oldest other items, together at most
    /// `covered_max` bytes. The rest then leaves room for further turns. Empty while everything fits.
    pub(super) fn items_to_summarize(
        &self,
        own: &[ItemId],
        turn: TurnId,
        bytes_max: u64,
        covered_max: u64,
    ) -> Vec<Ref> {
        let mut remaining = Remaining { bytes: bytes_max, refs: REFS_MAX };
        let Parts { required, summaries, earlier } = self.parts(own, turn);
        // If the turn alone is too large, a summary of earlier items does not help.
        let alone = required.iter().all(|entry| remaining.take(entry));
        if !alone || summaries.iter().chain(&earlier).all(|entry| remaining.take(entry)) {
            return Vec::new();
        }
        let mut kept = Remaining { bytes: bytes_max / 4, refs: REFS_MAX / 4 };
        let start = newest_that_fit(&earlier, &mut kept);
        let tail = earlier[start..].iter().take_while(|entry| needs_an_earlier_item(entry.reference.kind)).count();
        let mut request = Remaining { bytes: covered_max, refs: REFS_MAX };
        let old = earlier[..start + tail].iter().filter(|entry| entry.bytes <= covered_max);
        let mut taken: Vec<&Entry> =
            summaries.iter().chain(old).copied().take_while(|entry| request.take(entry)).collect();
        if taken.len() <= summaries.len() {
            return Vec::new();
        }
        taken.sort_unstable_by_key(|entry| entry.reference.seq);
        taken.into_iter().map(|entry| entry.reference.clone()).collect()
    }

    /// Replaces items with the summary that covers them.
    pub(super) fn replace(&mut self, covered: &[Ref], summary: Ref, bytes: u64) {
        for reference in covered {
            self.0.remove(&reference.seq);
        }
        self.add(Entry { reference: summary, bytes, turn: None });
    }

    /// Returns the bytes of these items.
    pub(super) fn bytes(&self, refs: &[Ref]) -> u64 {
        refs.iter().filter_map(|reference| self.0.get(&reference.seq)).map(|entry| entry.bytes).sum()
    }

    /// Returns the bytes of the items of a turn, which every request names.
    pub(super) fn turn_bytes(&self, own: &[ItemId], turn: TurnId) -> u64 {
        self.parts(own, turn).required.iter().map(|entry| entry.bytes).fold(0, u64::saturating_add)
    }

    fn parts(&self, own: &[ItemId], turn: TurnId) -> Parts<'_> {
        let mut parts = Parts::default();
        for entry in self.0.values() {
            if entry.reference.kind == ItemKind::Summary {
                parts.summaries.push(entry);
            } else if own.contains(&entry.reference.item) || entry.turn == Some(turn) {
                parts.required.push(entry);
            } else {
                parts.earlier.push(entry);
            }
        }
        parts
    }
}

/// The known items in three groups, each in its order.
#[derive(Default)]
struct Parts<'a> {
    /// Items of the turn.
    required: Vec<&'a Entry>,
    /// Summaries of replaced items.
    summaries: Vec<&'a Entry>,
    earlier: Vec<&'a Entry>,
}

/// The rest of the bounds of one request.
struct Remaining {
    bytes: u64,
    refs: usize,
}

impl Remaining {
    /// Subtracts an item if it fits; returns whether it does.
    const fn take(&mut self, entry: &Entry) -> bool {
        if self.refs == 0 || entry.bytes > self.bytes {
            return false;
        }
        self.refs -= 1;
        self.bytes -= entry.bytes;
        true
    }
}

/// Returns the index of the first of the newest entries that fit, without a gap.
fn newest_that_fit(entries: &[&Entry], remaining: &mut Remaining) -> usize {
    entries.len() - entries.iter().rev().take_while(|entry| remaining.take(entry)).count()
}

/// Returns whether an item makes no sense as the first item, such as a result without its call.
const fn needs_an_earlier_item(kind: ItemKind) -> bool {
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

    /// Makes items of ten bytes each, with numbers from 2 on; the last of them is the message of the turn.
    fn known(kinds: &[ItemKind]) -> (KnownItems, Vec<ItemId>) {
        let mut known = KnownItems::default();
        let mut own = Vec::new();
        for (at, kind) in kinds.iter().enumerate() {
            let entry = entry(2 * (at as u64 + 1), *kind, 10, None);
            own = vec![entry.reference.item];
            known.add(entry);
        }
        (known, own)
    }

    fn numbers(chosen: Result<Vec<Ref>, TooMuch>) -> Vec<u64> {
        chosen.expect("fits").iter().map(|reference| reference.seq).collect()
    }

    use ItemKind::{Message, Notice, Output, Result as ToolResult};

    #[test]
    fn a_missing_number_is_a_missing_item() {
        let (mut known, _) = known(&[Message, Output, Message]);
        assert_eq!(known.complete_after(0), Some(6));
        assert_eq!(known.complete_after(4), Some(6));
        assert_eq!(known.complete_after(6), Some(6), "nothing is new");
        assert_eq!(known.complete_after(8), Some(8), "the host has listed more than it keeps");
        known.add(entry(10, Notice, 10, None));
        assert_eq!(known.complete_after(6), None, "8 is missing");
        assert_eq!(known.complete_after(8), Some(10));
        assert_eq!(KnownItems::default().complete_after(0), Some(0));
    }

    #[test]
    fn a_message_of_the_turn_is_never_left_out() {
        let (known, own) = known(&[Message, Output, Message]);
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 0)), [6]);
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 29)), [6], "2 without 4 would be a gap, and 4 needs 2");
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 30)), [2, 4, 6]);
    }

    #[test]
    fn history_does_not_begin_in_the_middle_of_a_turn() {
        let (known, own) = known(&[Message, Output, ToolResult, Output, Notice, Message, Output, Message]);
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 50)), [10, 12, 14, 16]);
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 20)), [16]);
    }

    #[test]
    fn turn_that_is_too_large_is_an_error_and_not_a_gap() {
        let (mut known, own) = known(&[Message]);
        let turn = TurnId::new();
        known.add(entry(4, Output, 10, Some(turn)));
        known.add(entry(6, ToolResult, 10, Some(turn)));
        assert_eq!(numbers(known.choose(&own, turn, 30)), [2, 4, 6]);
        assert_eq!(known.choose(&own, turn, 29), Err(TooMuch));
        for seq in 4..4 + REFS_MAX as u64 {
            known.add(entry(2 * seq, ToolResult, 0, Some(turn)));
        }
        assert_eq!(known.choose(&own, turn, u64::MAX), Err(TooMuch));
    }

    #[test]
    fn summary_precedes_newer_items_and_joins_the_next_summary() {
        let (mut known, own) = known(&[Message, Output, Message, Output, Message, Output, Message]);
        let turn = TurnId::new();
        assert!(known.items_to_summarize(&own, turn, 70, 70).is_empty(), "everything fits");
        let first: Vec<u64> =
            known.items_to_summarize(&own, turn, 60, 30).iter().map(|reference| reference.seq).collect();
        assert_eq!(first, [2, 4, 6], "a shorter summary covers the oldest items");
        let items_to_summarize = known.items_to_summarize(&own, turn, 60, 60);
        let taken: Vec<u64> = items_to_summarize.iter().map(|reference| reference.seq).collect();
        assert_eq!(taken, [2, 4, 6, 8, 10, 12], "a quarter has room only for 12, which needs 10");
        let summary = Entry { turn: None, ..entry(16, ItemKind::Summary, 10, None) };
        known.replace(&items_to_summarize, summary.reference.clone(), 10);
        assert_eq!(numbers(known.choose(&own, turn, 60)), [14, 16]);
        assert!(known.items_to_summarize(&own, turn, 20, 20).is_empty());
        assert!(known.items_to_summarize(&own, turn, 10, 10).is_empty(), "a summary of a summary alone gains nothing");
        assert!(
            known.items_to_summarize(&own, turn, 9, 9).is_empty(),
            "a summary does not help a turn that is too large"
        );

        known.add(entry(18, Message, 10, None));
        known.add(entry(20, Output, 10, None));
        known.add(entry(22, Message, 10, None));
        let own = vec![known.0[&22].reference.item];
        let taken: Vec<u64> =
            known.items_to_summarize(&own, turn, 40, 40).iter().map(|reference| reference.seq).collect();
        assert_eq!(taken, [14, 16, 18, 20]);
    }

    #[test]
    fn turn_has_precedence_over_a_summary() {
        let (mut known, own) = known(&[Message]);
        known.add(entry(4, ItemKind::Summary, 30, None));
        known.add(entry(6, ItemKind::Summary, 10, None));
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 20)), [2, 6]);
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 19)), [2]);
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 0)), [2], "a message of the turn is never left out");
    }

    #[test]
    fn items_of_an_earlier_attempt_follow_its_message() {
        let (mut known, own) = known(&[Message, Output, Message]);
        known.add(entry(8, Output, 10, Some(TurnId::new())));
        known.add(entry(10, ToolResult, 10, Some(TurnId::new())));
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 30)), [6, 8, 10]);
    }

    #[test]
    fn no_request_names_more_refs_than_allowed() {
        let (mut known, own) = known(&[Message]);
        for seq in 2..2 * REFS_MAX as u64 {
            known.add(entry(2 * seq, Message, u64::MAX / 2, None));
        }
        assert_eq!(numbers(known.choose(&own, TurnId::new(), 100)), [2]);
        for entry in known.0.values_mut() {
            entry.bytes = 0;
        }
        let chosen = numbers(known.choose(&own, TurnId::new(), 100));
        assert_eq!((chosen.len(), chosen[0], chosen[1023]), (REFS_MAX, 2, 4 * REFS_MAX as u64 - 2));
    }

    #[test]
    fn oldest_items_are_dropped_but_no_message_of_the_turn() {
        let (mut known, own) = known(&[Message]);
        for seq in 2..=KNOWN_MAX as u64 + 10 {
            known.add(entry(2 * seq, Message, 1, None));
        }
        known.drop_oldest(&own);
        assert_eq!(known.0.len(), KNOWN_MAX);
        assert!(known.hold_all(&own));
        assert!(!known.0.contains_key(&4) && known.0.contains_key(&(2 * (KNOWN_MAX as u64 + 10))));
    }

    #[test]
    fn a_seal_of_the_queue_does_not_replace_one_of_the_host() {
        let mut known = KnownItems::default();
        let fresh = entry(2, Message, 1, None);
        known.add(fresh.clone());
        known.add_if_new(entry(2, Message, 1, None));
        assert_eq!(known.0[&2], fresh);
    }
}
