//! A cache of the items that earlier requests of an awake session named, so that each request does not read a long conversation again.
//!
//! Keeps only verified data that the record never changes. A ref that differs in any field is checked against the record. See
//! [`crate::turns::context`].

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

/// Cached items: more than one request can name, so that the oldest items can leave the context one by one.
const ITEMS_MAX: usize = 2 * REFS_MAX;

/// Bytes of cached bodies: twice the default bound of one request.
const BODIES_BYTES_MAX: usize = 1 << 20;

/// The item cache of one awake session; dropped when the session sleeps.
#[derive(Default)]
pub struct ItemCache {
    items: HashMap<ItemId, CachedItem>,
    turns: HashMap<TurnId, i64>,
    /// The opening times of turns, by ordinal.
    opened: HashMap<i64, i64>,
    /// Answers of closed turns; true if the answer has a delivery.
    answers: HashMap<ItemId, bool>,
    body_bytes: usize,
}

struct CachedItem {
    reference: Ref,
    recorded: Arc<Recorded>,
    body: Option<Arc<str>>,
    position: Option<Position>,
}

/// The position of an item in its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    /// The ordinal of the turn that made it or showed it first; for a summary, of the last turn that it covers.
    pub(super) ordinal: i64,
    /// Its number; for a retried message, the last number of the session before the retry.
    pub(super) seq: u64,
}

impl ItemCache {
    /// Returns the item of a ref that was verified before and is the same in every field.
    pub(super) fn recall(&self, reference: &Ref) -> Option<Arc<Recorded>> {
        let known = self.items.get(&reference.item)?;
        let same_seal = known.reference.seal.as_bytes().ct_eq(reference.seal.as_bytes());
        (bool::from(same_seal) && known.reference == *reference).then(|| Arc::clone(&known.recorded))
    }

    /// Adds the item of a verified ref. Empties a full cache first.
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

    /// Forgets the positions of messages, because a retry moves a message.
    pub fn forget_positions(&mut self, messages: &[ItemId]) {
        for message in messages {
            if let Some(known) = self.items.get_mut(message) {
                known.position = None;
            }
        }
    }

    /// Returns the body of an item.
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

    /// Returns whether this answer of a closed turn has a delivery for that turn.
    pub(super) fn answered(&mut self, tx: &ReadTx<'_>, item: &Recorded) -> Result<bool, ironclaw_state::Error> {
        let (id, Some(turn)) = (item.tuple.item, item.tuple.turn) else { return Ok(false) };
        if let Some(known) = self.answers.get(&id) {
            return Ok(*known);
        }
        let answered = deliveries::is_of_turn(tx, turn, id)?;
        self.answers.insert(id, answered);
        Ok(answered)
    }

    /// Returns the time when the turn of this ordinal was opened.
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

    /// Returns the position of an item; `None` for a message that no turn has shown, and for an item of no known turn.
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
        // The position of a message that was in a turn does not change until a retry.
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
            scope: String::new(),
            digest,
        };
        let seal = Digest::of(b"seal");
        (
            Ref { item, kind: ItemKind::Message, seq: 2, issued_at: 5, boot, digest, seal },
            Recorded { tuple, bytes: 4, scripted: false },
        )
    }

    #[test]
    fn ref_with_a_changed_field_is_not_recalled() {
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
    fn cached_items_have_a_bound() {
        let mut cache = ItemCache::default();
        for _ in 0..=ITEMS_MAX {
            let (reference, recorded) = example();
            cache.learn(&reference, recorded);
        }
        assert!(cache.items.len() <= ITEMS_MAX);
    }
}
