//! A cache of the items that earlier requests of an awake session listed or named, so that each request does not read a long
//! conversation again.
//!
//! Keeps only data that the record never changes. A ref that differs in any field from a verified one is checked against the record. See
//! [`crate::turns::context`].

use super::speakers;
use super::system::Now;
use crate::registry::Mode;
use crate::turns::calls::{OutputBody, ResultBody};
use crate::turns::items::{self, Recorded, parse_body};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{ItemId, MessageId, PersonId, SessionId, TurnId};
use ironclaw_contract::seam::limits::REFS_MAX;
use ironclaw_contract::seam::message::Span;
use ironclaw_contract::seam::seal::{ItemKind, Ref};
use ironclaw_contract::seam::socket::Earlier;
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use ironclaw_store::tables::{deliveries, messages, turns};
use ironclaw_text::lookalike;
use jiff::tz::TimeZone;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock};
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
    /// The opening times of turns in the zone, by ordinal.
    opened: HashMap<i64, Arc<Now>>,
    zone: Option<TimeZone>,
    /// The names of the people whose words were quoted.
    speakers: HashMap<PersonId, Arc<str>>,
    body_bytes: usize,
    /// The newest request that was answered.
    answered: Option<AnsweredRequest>,
    /// The same while the cache rests.
    resting: Option<RestingRequest>,
}

struct CachedItem {
    reference: Ref,
    item: Arc<Item>,
}

/// The items of an answered request, in the order of their numbers.
struct AnsweredRequest {
    output: ItemId,
    items: Vec<Arc<Item>>,
}

/// The items of an answered request by number, in order, each with whether it was verified.
struct RestingRequest {
    output: ItemId,
    items: Vec<(u64, bool)>,
}

/// An item of a context, with its content and its position once a prompt needed them.
pub struct Item {
    recorded: Recorded,
    /// False if its ref had no valid seal and passed in the mode `dangerous_off`.
    is_verified: bool,
    content: OnceLock<Arc<Content>>,
    position: Mutex<Option<Position>>,
    /// For an answer of a closed turn: true if it has a delivery.
    is_delivered: OnceLock<bool>,
    /// The remark on its values, with the digest of the terms by which it was made.
    remark: Mutex<Option<(Digest, Option<String>)>>,
}

impl Item {
    /// Makes an item whose content and position are not read yet.
    pub fn new(recorded: Recorded, is_verified: bool) -> Arc<Self> {
        let (content, position, is_delivered, remark) = Default::default();
        Arc::new(Self { recorded, is_verified, content, position, is_delivered, remark })
    }

    /// Returns the remark on its values by terms of this digest. Keeps one remark, beside a kept content.
    pub(super) fn remark(
        &self,
        terms: Digest,
        make: impl FnOnce() -> Result<Option<String>, Error>,
    ) -> Result<Option<String>, Error> {
        let mut kept = self.remark.lock().expect("no holder panics");
        if let Some((of, remark)) = &*kept
            && *of == terms
        {
            return Ok(remark.clone());
        }
        let remark = make()?;
        *kept = self.content.get().map(|_| (terms, remark.clone()));
        Ok(remark)
    }

    fn position(&self) -> std::sync::MutexGuard<'_, Option<Position>> {
        self.position.lock().expect("no holder panics")
    }
}

impl Deref for Item {
    type Target = Recorded;

    fn deref(&self) -> &Recorded {
        &self.recorded
    }
}

/// The content of an item by its kind.
pub(super) enum Content {
    /// The body of a message, with the authors of its parts.
    Message(String, Vec<Span>),
    /// The text of a summary or a notice.
    Text(String),
    /// An output of a model.
    Output(OutputBody),
    /// The result of a call.
    Result(ResultBody),
}

impl Content {
    fn read(tx: &ReadTx<'_>, item: &Recorded, key: &ContentKey) -> Result<Self, Error> {
        let body = items::body(tx, item, key)?;
        Ok(match item.tuple.kind {
            ItemKind::Message => Self::message(&body, item.spans()),
            ItemKind::Summary | ItemKind::Notice => Self::Text(neutral(&body)),
            ItemKind::Output => {
                let output: OutputBody = parse_body(&body)?;
                Self::Output(OutputBody { text: neutral(&output.text), ..output })
            }
            ItemKind::Result => {
                let result: ResultBody = parse_body(&body)?;
                Self::Result(ResultBody { text: neutral(&result.text), ..result })
            }
        })
    }

    /// Returns the content of a message. Each part has its own author, so each is neutralised alone.
    fn message(body: &str, spans: Vec<Span>) -> Self {
        let (mut text, mut from) = (String::with_capacity(body.len()), 0);
        let spans = spans.into_iter().map(|span| {
            let part = neutral(body.get(from..from + span.bytes).unwrap_or_default());
            from += span.bytes;
            text.push_str(&part);
            Span { bytes: part.len(), ..span }
        });
        let spans = spans.collect();
        Self::Message(text, spans)
    }
}

/// The position of an item in its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    /// The ordinal of the turn that made it or showed it first; for a summary, of the last turn that it covers.
    pub(super) ordinal: i64,
    /// Its number; for a retried message, the last number of the session before the retry.
    pub(super) seq: u64,
}

/// Returns a recorded text for a prompt. It was neutralised before it was sealed, but perhaps by a version that knew fewer look-alikes.
fn neutral(text: &str) -> String {
    lookalike::neutralise(text).into_owned()
}

impl ItemCache {
    /// Returns the item of a ref that was verified before and is the same in every field.
    pub(super) fn recall(&self, reference: &Ref) -> Option<Arc<Item>> {
        let known = self.items.get(&reference.item)?;
        let same_seal = known.reference.seal.as_bytes().ct_eq(reference.seal.as_bytes());
        (bool::from(same_seal) && known.reference == *reference).then(|| Arc::clone(&known.item))
    }

    /// Adds the item of a ref that the host verified or made, unless it is known. Empties a full cache first, except for the answered
    /// request, which the sandbox may name.
    pub fn learn(&mut self, reference: &Ref, recorded: Recorded) -> Arc<Item> {
        if let Some(known) = self.recall(reference) {
            return known;
        }
        if self.items.len() >= ITEMS_MAX {
            let answered = self.answered.take();
            let kept = answered.iter().flat_map(|request| &request.items).filter(|item| item.content.get().is_some());
            let body_bytes = kept.map(|item| bytes_of(item)).sum();
            *self = Self { answered, body_bytes, ..Self::default() };
        }
        let item = Item::new(recorded, true);
        self.items.insert(reference.item, CachedItem { reference: reference.clone(), item: Arc::clone(&item) });
        item
    }

    /// Keeps the items of a request that was answered with this output. Replaces those of the request before it.
    pub fn answer(&mut self, output: ItemId, items: Vec<Arc<Item>>) {
        self.answered = Some(AnsweredRequest { output, items });
    }

    /// Keeps only the numbers of the items of the newest answered request. The next request reads them again.
    pub(super) fn rest(&mut self) {
        let Some(AnsweredRequest { output, items }) = self.answered.take() else { return };
        let items = items.iter().map(|item| (item.tuple.seq, item.is_verified)).collect();
        *self = Self { resting: Some(RestingRequest { output, items }), ..Self::default() };
    }

    /// Reads the items of the newest answered request after a rest. If one was dropped meanwhile, the request is forgotten, as if its
    /// items had been dropped in use.
    pub(super) fn wake(&mut self, tx: &ReadTx<'_>, session: SessionId) -> Result<(), ironclaw_state::Error> {
        let Some(RestingRequest { output, items }) = self.resting.take() else { return Ok(()) };
        let (Some((first, _)), Some((last, _))) = (items.first(), items.last()) else { return Ok(()) };
        let span = usize::try_from(last - first).map_or(usize::MAX, |span| span / 2 + 1);
        let mut recorded = items::after(tx, session, first - 1, span)?.into_iter();
        let mut read = Vec::with_capacity(items.len());
        for (seq, is_verified) in items {
            let Some(found) = recorded.find(|found| found.tuple.seq >= seq).filter(|found| found.tuple.seq == seq)
            else {
                return Ok(());
            };
            read.push(Item::new(found, is_verified));
        }
        self.answered = Some(AnsweredRequest { output, items: read });
        Ok(())
    }

    #[cfg(test)]
    pub(super) const fn is_resting(&self) -> bool {
        self.resting.is_some()
    }

    /// Returns the items of a range of the newest answered request; `None` if that request gave another output, had no item with the
    /// first or the last number, or has an item in the range that is not verified and this mode requires it.
    pub(super) fn earlier(&self, range: &Earlier, mode: Mode) -> Option<&[Arc<Item>]> {
        let request =
            self.answered.as_ref().filter(|request| request.output == range.output && range.from <= range.upto)?;
        let at = |seq: u64| request.items.binary_search_by_key(&seq, |item| item.tuple.seq).ok();
        let items = request.items.get(at(range.from)?..=at(range.upto)?)?;
        (mode == Mode::DangerousOff || items.iter().all(|item| item.is_verified)).then_some(items)
    }

    /// Forgets the positions of messages, because a retry moves a message.
    pub fn forget_positions(&mut self, messages: &[ItemId]) {
        let answered = self.answered.iter().flat_map(|request| &request.items);
        for item in answered.filter(|item| messages.contains(&item.tuple.item)) {
            *item.position() = None;
        }
        for known in messages.iter().filter_map(|message| self.items.get(message)) {
            *known.item.position() = None;
        }
    }

    pub(super) fn content(&mut self, tx: &ReadTx<'_>, item: &Item, key: &ContentKey) -> Result<Arc<Content>, Error> {
        if let Some(content) = item.content.get() {
            return Ok(Arc::clone(content));
        }
        let content = Arc::new(Content::read(tx, item, key)?);
        let bytes = bytes_of(item);
        if bytes <= BODIES_BYTES_MAX.saturating_sub(self.body_bytes) && item.content.set(Arc::clone(&content)).is_ok() {
            self.body_bytes += bytes;
        }
        Ok(content)
    }

    /// Returns whether this answer of a closed turn has a delivery for that turn.
    pub(super) fn is_delivered(&self, tx: &ReadTx<'_>, item: &Item) -> Result<bool, ironclaw_state::Error> {
        let Some(turn) = item.tuple.turn else { return Ok(false) };
        if let Some(known) = item.is_delivered.get() {
            return Ok(*known);
        }
        let found = deliveries::is_of_turn(tx, turn, item.tuple.item)?;
        Ok(*item.is_delivered.get_or_init(|| found))
    }

    /// Returns the name of the sender of a message for a prompt. It stays the same while the session is awake.
    pub(super) fn speaker(
        &mut self,
        tx: &ReadTx<'_>,
        message: MessageId,
        sender: PersonId,
    ) -> Result<Arc<str>, ironclaw_state::Error> {
        if let Some(known) = self.speakers.get(&sender) {
            return Ok(Arc::clone(known));
        }
        let name: Arc<str> = speakers::name(tx, message, sender)?.into();
        self.speakers.insert(sender, Arc::clone(&name));
        Ok(name)
    }

    /// Returns the time when the turn of this ordinal was opened, in this zone.
    pub(super) fn opened_at(
        &mut self,
        tx: &ReadTx<'_>,
        ordinal: i64,
        zone: &TimeZone,
    ) -> Result<Option<Arc<Now>>, ironclaw_state::Error> {
        if self.zone.as_ref() != Some(zone) {
            self.opened.clear();
            self.zone = Some(zone.clone());
        }
        if let Some(at) = self.opened.get(&ordinal) {
            return Ok(Some(Arc::clone(at)));
        }
        let at = turns::opened_at(tx, ordinal)?.map(|at| Arc::new(Now::new(at, zone)));
        if let Some(at) = &at {
            self.opened.insert(ordinal, Arc::clone(at));
        }
        Ok(at)
    }

    /// Returns the position of an item; `None` for a message that no turn has shown, and for an item of no known turn.
    pub(super) fn position(&mut self, tx: &ReadTx<'_>, item: &Item) -> Result<Option<Position>, ironclaw_state::Error> {
        let mut known = item.position();
        if known.is_none() {
            // The position of a message that was in a turn does not change until a retry.
            *known = self.find_position(tx, item)?;
        }
        Ok(*known)
    }

    fn find_position(&mut self, tx: &ReadTx<'_>, item: &Item) -> Result<Option<Position>, ironclaw_state::Error> {
        let seq = item.tuple.seq;
        if item.tuple.kind == ItemKind::Summary {
            return Ok(items::summary::ordinal(tx, item.tuple.item)?.map(|ordinal| Position { ordinal, seq }));
        }
        let Some(turn) = item.tuple.turn else {
            let shown = messages::position(tx, item.tuple.item.message())?;
            return Ok(shown.map(|shown| Position { ordinal: shown.ordinal, seq: shown.moved_seq.unwrap_or(seq) }));
        };
        if let Some(ordinal) = self.turns.get(&turn) {
            return Ok(Some(Position { ordinal: *ordinal, seq }));
        }
        let ordinal = turns::ordinal(tx, turn)?;
        if let Some(ordinal) = ordinal {
            self.turns.insert(turn, ordinal);
        }
        Ok(ordinal.map(|ordinal| Position { ordinal, seq }))
    }
}

fn bytes_of(item: &Item) -> usize {
    usize::try_from(item.bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::canonical::Digest;
    use ironclaw_contract::ids::BootId;
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
    fn range_of_another_request_or_with_an_unnamed_end_is_refused() {
        let mut cache = ItemCache::default();
        let item = |seq| {
            let (_, mut recorded) = example();
            recorded.tuple.seq = seq;
            Item::new(recorded, true)
        };
        let output = ItemId::new();
        let range = |output, from, upto| Earlier { output, from, upto };
        assert!(cache.earlier(&range(output, 2, 2), Mode::Enforce).is_none(), "no request was answered yet");
        cache.answer(output, vec![item(2), item(6), item(8)]);
        for (from, upto) in [(2, 4), (4, 8), (1, 8), (2, 9), (8, 2), (8, 6), (6, 2), (0, u64::MAX)] {
            assert!(cache.earlier(&range(output, from, upto), Mode::Enforce).is_none(), "{from} to {upto}");
        }
        assert!(cache.earlier(&range(ItemId::new(), 2, 8), Mode::Enforce).is_none());
        let seqs: Vec<u64> = cache
            .earlier(&range(output, 2, 6), Mode::Enforce)
            .expect("named")
            .iter()
            .map(|item| item.tuple.seq)
            .collect();
        assert_eq!(seqs, [2, 6]);
        cache.answer(ItemId::new(), vec![item(2)]);
        assert!(cache.earlier(&range(output, 2, 8), Mode::Enforce).is_none(), "a newer request was answered");
    }

    #[test]
    fn unverified_request_is_of_no_use_in_a_mode_that_checks() {
        let mut cache = ItemCache::default();
        let (_, recorded) = example();
        let (output, seq) = (ItemId::new(), recorded.tuple.seq);
        cache.answer(output, vec![Item::new(recorded, false)]);
        let range = Earlier { output, from: seq, upto: seq };
        assert!(cache.earlier(&range, Mode::DangerousOff).is_some());
        for mode in [Mode::Enforce, Mode::DangerousWarn] {
            assert!(cache.earlier(&range, mode).is_none());
        }
    }

    #[test]
    fn known_item_keeps_its_content_when_it_is_listed_again() {
        let mut cache = ItemCache::default();
        let (reference, recorded) = example();
        let item = cache.learn(&reference, recorded.clone());
        assert!(item.content.set(Arc::new(Content::Text("body".to_owned()))).is_ok());
        assert!(Arc::ptr_eq(&item, &cache.learn(&reference, recorded)));
        assert_eq!(cache.items.len(), 1);
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
