//! What earlier requests of an awake session named, so that a long conversation is not read from the record again each time.
//!
//! Remembers only what the record never changes and a seal has vouched for; a ref it does not know word for word is
//! checked against the record as ever. Next: `turns::context`.

use crate::tables::{deliveries, messages, turns};
use crate::turns::items::{self, BodyError, Recorded};
use ironclaw_contract::ids::{ItemId, TurnId};
use ironclaw_contract::seam::limits::REFS_MAX;
use ironclaw_contract::seam::seal::{ItemKind, Ref};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use std::collections::HashMap;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// Items that are remembered; more than one request can name, so that the oldest may fall out of it one by one.
const ITEMS_MAX: usize = 2 * REFS_MAX;

/// Bytes of bodies that are remembered, twice what a request may name by default.
const BODIES_BYTES_MAX: usize = 1 << 20;

/// Belongs to one session under one start of the daemon, and goes when the session falls asleep.
#[derive(Default)]
pub struct ItemCache {
    items: HashMap<ItemId, CachedItem>,
    turns: HashMap<TurnId, i64>,
    /// When turns were opened, by ordinal.
    opened: HashMap<i64, i64>,
    /// Answers of turns that are over, and whether they were meant for anybody.
    answers: HashMap<ItemId, bool>,
    body_bytes: usize,
}

struct CachedItem {
    reference: Ref,
    recorded: Arc<Recorded>,
    body: Option<Arc<str>>,
    position: Option<Position>,
}

/// Where an item is among the others of its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    /// The turn that it belongs to or is shown in first; of a summary, the last that it covers.
    pub(super) ordinal: i64,
    /// Its number; of a message that is asked again, the last number before that.
    pub(super) seq: u64,
}

impl ItemCache {
    /// The item of a ref that was verified before and is the same in every field.
    pub(super) fn recall(&self, reference: &Ref) -> Option<Arc<Recorded>> {
        let known = self.items.get(&reference.item)?;
        let same_seal = known.reference.seal.as_bytes().ct_eq(reference.seal.as_bytes());
        (bool::from(same_seal) && known.reference == *reference).then(|| Arc::clone(&known.recorded))
    }

    /// Remembers a ref that was verified now.
    pub(super) fn learn(&mut self, reference: &Ref, recorded: Recorded) -> Arc<Recorded> {
        if self.items.len() >= ITEMS_MAX {
            *self = Self::default();
        }
        let recorded = Arc::new(recorded);
        let known =
            CachedItem { reference: reference.clone(), recorded: Arc::clone(&recorded), body: None, position: None };
        self.items.insert(reference.item, known);
        recorded
    }

    /// Forgets where messages are: one that is tried again has moved.
    pub fn forget_positions(&mut self, messages: &[ItemId]) {
        for message in messages {
            if let Some(known) = self.items.get_mut(message) {
                known.position = None;
            }
        }
    }

    /// The body of an item.
    pub(super) fn body(&mut self, tx: &ReadTx<'_>, item: &Recorded, key: &ContentKey) -> Result<Arc<str>, BodyError> {
        let known = self.items.get_mut(&item.tuple.item);
        if let Some(body) = known.as_ref().and_then(|known| known.body.as_ref()) {
            return Ok(Arc::clone(body));
        }
        let body: Arc<str> = items::body(tx, item, key)?.into();
        if let Some(known) = known
            && self.body_bytes + body.len() <= BODIES_BYTES_MAX
        {
            self.body_bytes += body.len();
            known.body = Some(Arc::clone(&body));
        }
        Ok(body)
    }

    /// Returns whether an answer of a turn that is over was taken as that turn's answer.
    pub(super) fn answered(&mut self, tx: &ReadTx<'_>, item: &Recorded) -> Result<bool, ironclaw_state::Error> {
        let (id, Some(turn)) = (item.tuple.item, item.tuple.turn) else { return Ok(false) };
        if let Some(known) = self.answers.get(&id) {
            return Ok(*known);
        }
        let answered = deliveries::is_of_turn(tx, turn, id)?;
        self.answers.insert(id, answered);
        Ok(answered)
    }

    /// Returns when the turn of this ordinal was opened.
    pub(super) fn opened_at(&mut self, tx: &ReadTx<'_>, ordinal: i64) -> Result<Option<i64>, ironclaw_state::Error> {
        if let Some(at) = self.opened.get(&ordinal) {
            return Ok(Some(*at));
        }
        let at = turns::opened_at(tx, ordinal)?;
        if let Some(at) = at {
            self.opened.insert(ordinal, at);
        }
        Ok(at)
    }

    /// Returns where an item is; `None` for a message that no turn has shown, and for what belongs to no turn.
    pub(super) fn position(
        &mut self,
        tx: &ReadTx<'_>,
        item: &Recorded,
    ) -> Result<Option<Position>, ironclaw_state::Error> {
        let seq = item.tuple.seq;
        if let Some(turn) = item.tuple.turn
            && item.tuple.kind != ItemKind::Summary
        {
            if let Some(ordinal) = self.turns.get(&turn) {
                return Ok(Some(Position { ordinal: *ordinal, seq }));
            }
            let ordinal = turns::ordinal(tx, turn)?;
            if let Some(ordinal) = ordinal {
                self.turns.insert(turn, ordinal);
            }
            return Ok(ordinal.map(|ordinal| Position { ordinal, seq }));
        }
        let known = self.items.get_mut(&item.tuple.item);
        if let Some(position) = known.as_ref().and_then(|known| known.position) {
            return Ok(Some(position));
        }
        let found = if item.tuple.kind == ItemKind::Summary {
            items::summary::ordinal(tx, item.tuple.item)?.map(|ordinal| Position { ordinal, seq })
        } else {
            let shown = messages::position(tx, item.tuple.item.message())?;
            shown.map(|shown| Position { ordinal: shown.ordinal, seq: shown.moved_seq.unwrap_or(seq) })
        };
        // Once a message was in a turn, its place stays until it is tried again.
        if let (Some(known), Some(position)) = (known, found) {
            known.position = Some(position);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::canonical::Digest;
    use ironclaw_contract::ids::{BootId, SessionId};
    use ironclaw_contract::seam::seal::Tuple;

    fn example() -> (Ref, Recorded) {
        let (item, boot, digest) = (ItemId::new(), BootId::new(), Digest::of(b"body"));
        let tuple = Tuple {
            session: SessionId::new(),
            item,
            kind: ItemKind::Message,
            seq: 2,
            issued_at: 5,
            boot,
            turn: None,
            call: None,
            tool: None,
            hop: 0,
            authors: "[]".into(),
            labels: Vec::new(),
            digest,
        };
        let seal = Digest::of(b"seal");
        (
            Ref { item, kind: ItemKind::Message, seq: 2, issued_at: 5, boot, digest, seal },
            Recorded { tuple, bytes: 4, scripted: false },
        )
    }

    #[test]
    fn a_remembered_item_with_one_changed_field_is_not_recalled() {
        let mut cache = ItemCache::default();
        let (good, recorded) = example();
        assert!(cache.recall(&good).is_none(), "nothing was verified yet");
        cache.learn(&good, recorded);
        assert!(cache.recall(&good).is_some());
        for bad in [
            Ref { kind: ItemKind::Notice, ..good.clone() },
            Ref { seq: 4, ..good.clone() },
            Ref { issued_at: 6, ..good.clone() },
            Ref { boot: BootId::new(), ..good.clone() },
            Ref { digest: Digest::of(b"x"), ..good.clone() },
            Ref { seal: Digest::of(b"x"), ..good.clone() },
        ] {
            assert!(cache.recall(&bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let mut cache = ItemCache::default();
        for _ in 0..=ITEMS_MAX {
            let (reference, recorded) = example();
            cache.learn(&reference, recorded);
        }
        assert!(cache.items.len() <= ITEMS_MAX);
    }
}
