//! The items of the newest answered request, so that the next request names them by ranges and not one by one.
//!
//! Only the host decides whether a range is valid; it remembers the same request. See [`crate::agent::turn`].

use ironclaw_contract::ids::ItemId;
use ironclaw_contract::seam::seal::Ref;
use ironclaw_contract::seam::socket::{Context, Earlier};

/// Items from which on a range is shorter than their refs.
const RANGE_MIN: usize = 2;

/// The numbers of the items of the newest answered request, in their order.
#[derive(Debug, Default)]
pub(super) struct NamedItems {
    output: Option<ItemId>,
    numbers: Vec<u64>,
}

impl NamedItems {
    /// Returns the items of a request that was answered with this output.
    pub(super) fn new(output: ItemId, refs: &[Ref]) -> Self {
        Self { output: Some(output), numbers: refs.iter().map(|reference| reference.seq).collect() }
    }

    /// Returns the parts of a request for these items, which are in the order of their numbers: ranges for items that follow each other
    /// in the earlier request too, and refs for the others.
    pub(super) fn parts(&self, refs: &[Ref]) -> Vec<Context> {
        let Some(output) = self.output else { return refs.iter().cloned().map(Context::Ref).collect() };
        let (mut parts, mut rest) = (Vec::new(), refs);
        while let Some(first) = rest.first() {
            let known = self.numbers.binary_search(&first.seq).map_or(&[][..], |at| &self.numbers[at..]);
            let length = known.iter().zip(rest).take_while(|(number, reference)| **number == reference.seq).count();
            let (taken, others) = rest.split_at(length.max(1));
            match taken {
                [from, .., upto] if taken.len() >= RANGE_MIN => {
                    parts.push(Context::Earlier(Earlier { output, from: from.seq, upto: upto.seq }));
                }
                _ => parts.extend(taken.iter().cloned().map(Context::Ref)),
            }
            rest = others;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::canonical::Digest;
    use ironclaw_contract::ids::BootId;
    use ironclaw_contract::seam::seal::ItemKind;

    fn refs(numbers: &[u64]) -> Vec<Ref> {
        let (kind, boot, digest) = (ItemKind::Message, BootId::new(), Digest::of(b"body"));
        let reference =
            |seq: &u64| Ref { item: ItemId::new(), kind, seq: *seq, issued_at: 1, boot, digest, seal: digest };
        numbers.iter().map(reference).collect()
    }

    fn bounds(parts: Vec<Context>) -> Vec<(u64, u64)> {
        let bounds = |part| match part {
            Context::Ref(reference) => (reference.seq, reference.seq),
            Context::Earlier(range) => (range.from, range.upto),
            Context::Text(text) => panic!("{text:?}"),
        };
        parts.into_iter().map(bounds).collect()
    }

    #[test]
    fn items_that_follow_each_other_in_both_requests_form_a_range() {
        let named = NamedItems::new(ItemId::new(), &refs(&[2, 4, 6, 10, 12]));
        let of = |numbers: &[u64]| bounds(named.parts(&refs(numbers)));
        assert_eq!(of(&[2, 4, 6, 10, 12, 14, 16]), [(2, 12), (14, 14), (16, 16)]);
        assert_eq!(of(&[6, 10, 12]), [(6, 12)]);
        assert_eq!(of(&[2, 4, 10, 12]), [(2, 4), (10, 12)], "6 is left out");
        assert_eq!(of(&[2, 4, 6, 8, 10, 12]), [(2, 6), (8, 8), (10, 12)], "8 is new");
        assert_eq!(of(&[4, 14]), [(4, 4), (14, 14)]);
        assert!(of(&[]).is_empty());
    }

    #[test]
    fn first_request_names_each_item() {
        assert_eq!(bounds(NamedItems::default().parts(&refs(&[2, 4]))), [(2, 2), (4, 4)]);
    }
}
