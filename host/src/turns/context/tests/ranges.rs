//! Ranges of items of an earlier request: the same rules as for refs.

use super::super::{Checked, ItemCache, items};
use super::fixture::{ANN, Fixture, with_fixture};
use crate::registry::Mode;
use ironclaw_contract::ids::ItemId;
use ironclaw_contract::seam::limits::REFS_MAX;
use ironclaw_contract::seam::socket::{Context, Earlier, RefusalCode, Text};

const ANY_BYTES: u64 = 1 << 30;

/// The range of all items but the last `left_out`.
fn range(output: ItemId, checked: &[Checked], left_out: usize) -> Context {
    let seq = |part: Option<&Checked>| part.and_then(Checked::item).expect("an item").tuple.seq;
    let (from, upto) = (seq(checked.first()), seq(checked.iter().rev().nth(left_out)));
    Context::Earlier(Earlier { output, from, upto })
}

/// Calls `test` with an open turn after an answered one, the checked parts of a request, its output, and the cache of both.
fn with_answered(test: impl FnOnce(Fixture<'_, '_>, Vec<Checked>, ItemId, ItemCache) + Send + 'static) {
    with_fixture(|mut fixture| {
        fixture.ask(ANN, "!ask1");
        fixture.answer("answer");
        fixture.ask(ANN, "!ask2");
        let (checked, mut cache) = fixture.checked();
        let output = ItemId::new();
        cache.answer(output, items(&checked));
        test(fixture, checked, output, cache);
    });
}

#[test]
fn range_has_the_items_that_were_named() {
    with_answered(|fixture, checked, output, mut cache| {
        let ids = |parts: &[Checked]| -> Vec<ItemId> { items(parts).iter().map(|item| item.tuple.item).collect() };
        for rests in [false, true] {
            if rests {
                cache.rest();
            }
            let again = fixture.check(&[range(output, &checked, 0)], (Mode::Enforce, ANY_BYTES), &mut cache);
            assert_eq!(ids(&again.expect("a context")), ids(&checked), "rests: {rests}");
        }
        assert!(!cache.is_resting());
    });
}

#[test]
fn range_that_is_dropped_while_its_cache_rests_is_unknown() {
    with_answered(|mut fixture, checked, output, mut cache| {
        cache.rest();
        fixture.drop_items();
        let refused = fixture.check(&[range(output, &checked, 0)], (Mode::Enforce, ANY_BYTES), &mut cache);
        assert_eq!(refused.err(), Some(RefusalCode::Unknown));
    });
}

#[test]
fn range_obeys_the_rules_of_refs() {
    with_answered(|mut fixture, checked, output, mut cache| {
        let all = range(output, &checked, 0);
        let mut refused = |parts: &[Context], mode, bytes_max| {
            fixture.check(parts, (mode, bytes_max), &mut cache).err().expect("a refusal")
        };
        let own_left_out = range(output, &checked, 1);
        assert_eq!(refused(&[own_left_out], Mode::Enforce, ANY_BYTES), RefusalCode::Order);
        assert_eq!(refused(&[all.clone(), all.clone()], Mode::Enforce, ANY_BYTES), RefusalCode::Order);
        assert_eq!(refused(std::slice::from_ref(&all), Mode::Enforce, 0), RefusalCode::Budget);
        let unknown = range(ItemId::new(), &checked, 0);
        for mode in [Mode::Enforce, Mode::DangerousWarn, Mode::DangerousOff] {
            assert_eq!(refused(std::slice::from_ref(&unknown), mode, ANY_BYTES), RefusalCode::Unknown, "{mode:?}");
        }
        let text = Context::Text(Text { text: "words".to_owned() });
        let parts: Vec<Context> = std::iter::once(all.clone()).chain(vec![text; REFS_MAX - 1]).collect();
        assert_eq!(refused(&parts, Mode::DangerousOff, ANY_BYTES), RefusalCode::Frame);
        fixture.drop_items();
        let dropped = fixture.check(&[all], (Mode::Enforce, ANY_BYTES), &mut cache);
        assert_eq!(dropped.err(), Some(RefusalCode::Unknown));
    });
}
