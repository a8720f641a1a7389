//! What of two lists of lines goes, comes and stays, in an order in which both can be read.
//!
//! Never leaves a line out: without the marks it is one list, and the other. Next: `shown::tree`, which makes the lines.

use similar::{Algorithm, ChangeTag, DiffOp};
use std::hash::Hash;

/// What becomes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It stands in the first only.
    Goes,
    /// It stands in the second only.
    Comes,
    /// It stands in both.
    Stays,
}

/// Returns every line of both with its fate. Where lines are replaced, those that go are before those that come.
pub fn of<'a, T: Eq + Hash>(old: &'a [T], new: &'a [T]) -> Vec<(Fate, &'a T)> {
    // It bounds its work where the two have little in common, by the input alone and never by a clock: two that are shown the
    // same two lists see the same lines.
    let parts = similar::capture_diff_slices(Algorithm::Myers, old, new);
    let lines = |part: &DiffOp| part.iter_slices(old, new).map(|(tag, lines)| (fate(tag), lines)).collect::<Vec<_>>();
    parts.iter().flat_map(lines).flat_map(|(fate, lines)| lines.iter().map(move |line| (fate, line))).collect()
}

fn fate(tag: ChangeTag) -> Fate {
    match tag {
        ChangeTag::Delete => Fate::Goes,
        ChangeTag::Insert => Fate::Comes,
        ChangeTag::Equal => Fate::Stays,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn side(all: &[(Fate, &u8)], without: Fate) -> Vec<u8> {
        all.iter().filter(|(fate, _)| *fate != without).map(|(_, line)| **line).collect()
    }

    proptest! {
        #[test]
        fn both_sides_can_be_read_from_it(
            old in prop::collection::vec(0_u8..4, 0..20),
            new in prop::collection::vec(0_u8..4, 0..20),
        ) {
            let all = of(&old, &new);
            prop_assert_eq!(side(&all, Fate::Comes), old.clone());
            prop_assert_eq!(side(&all, Fate::Goes), new.clone());
        }
    }

    #[test]
    fn a_line_in_the_middle_is_all_that_goes_and_comes() {
        let fates: Vec<Fate> = of(&[1, 2, 3], &[1, 9, 3]).into_iter().map(|(fate, _)| fate).collect();
        assert_eq!(fates, [Fate::Stays, Fate::Goes, Fate::Comes, Fate::Stays]);
    }

    #[test]
    fn two_texts_too_long_to_compare_are_both_shown_whole() {
        let (old, new): (Vec<u32>, Vec<u32>) = ((0..3_000).collect(), (10_000..13_000).collect());
        assert_eq!(of(&old, &new).len(), 6_000);
    }
}
