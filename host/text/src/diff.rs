//! The difference between two lists of lines: each line with a mark that it is removed, added or unchanged.
//!
//! Never leaves a line out: both lists can be read from the result. `gateway/review_page` shows it.

use similar::{Algorithm, ChangeTag, DiffOp};
use std::collections::HashMap;
use std::hash::Hash;
use std::iter;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineMark {
    /// Removed: only the first list has it.
    Removed,
    /// Added: only the second list has it.
    Added,
    /// Unchanged: both lists have it.
    Unchanged,
}

/// Returns all lines of both lists with their marks. In a replacement, removed lines come before added ones.
pub fn lines<'a, T: Eq + Hash>(old: &'a [T], new: &'a [T]) -> Vec<(LineMark, &'a T)> {
    let mut numbers = HashMap::new();
    let mut numbered = |lines: &'a [T]| -> Vec<usize> {
        let number = |line| {
            let next = numbers.len();
            *numbers.entry(line).or_insert(next)
        };
        lines.iter().map(number).collect()
    };
    let marks = marks(&numbered(old), &numbered(new));
    let (mut old, mut new) = (old.iter(), new.iter());
    let marked = |mark| {
        let line = match mark {
            LineMark::Removed => old.next(),
            LineMark::Added => new.next(),
            LineMark::Unchanged => new.next().and(old.next()),
        };
        (mark, line.expect("each line of both lists has its mark"))
    };
    marks.into_iter().map(marked).collect()
}

/// Returns the marks of all lines, of which equal ones have the same number. Not generic, so that the algorithm is compiled once.
fn marks(old: &[usize], new: &[usize]) -> Vec<LineMark> {
    // The algorithm bounds its work on lists with little in common by the input alone and never by a clock: two people with
    // the same lists see the same lines.
    let parts = similar::capture_diff_slices(Algorithm::Myers, old, new);
    let marks = |part: &DiffOp| {
        part.iter_slices(old, new).flat_map(|(tag, lines)| iter::repeat_n(fate(tag), lines.len())).collect::<Vec<_>>()
    };
    parts.iter().flat_map(marks).collect()
}

fn fate(tag: ChangeTag) -> LineMark {
    match tag {
        ChangeTag::Delete => LineMark::Removed,
        ChangeTag::Insert => LineMark::Added,
        ChangeTag::Equal => LineMark::Unchanged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn side(all: &[(LineMark, &u8)], without: LineMark) -> Vec<u8> {
        all.iter().filter(|(fate, _)| *fate != without).map(|(_, line)| **line).collect()
    }

    proptest! {
        #[test]
        fn both_lists_can_be_read_from_the_difference(
            old in prop::collection::vec(0_u8..4, 0..20),
            new in prop::collection::vec(0_u8..4, 0..20),
        ) {
            let all = lines(&old, &new);
            prop_assert_eq!(side(&all, LineMark::Added), old.clone());
            prop_assert_eq!(side(&all, LineMark::Removed), new.clone());
        }
    }

    #[test]
    fn only_a_changed_line_is_removed_and_added() {
        let fates: Vec<LineMark> = lines(&[1, 2, 3], &[1, 9, 3]).into_iter().map(|(fate, _)| fate).collect();
        assert_eq!(fates, [LineMark::Unchanged, LineMark::Removed, LineMark::Added, LineMark::Unchanged]);
    }

    #[test]
    fn lists_too_long_to_compare_are_both_shown_whole() {
        let (old, new): (Vec<u32>, Vec<u32>) = ((0..3_000).collect(), (10_000..13_000).collect());
        assert_eq!(lines(&old, &new).len(), 6_000);
    }
}
