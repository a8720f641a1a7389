//! Numbers of items as ranges.
//!
//! The numbers of the items of a session are even, so two items are neighbours if they differ by two. Pure.

use serde::{Deserialize, Serialize};

/// The distance between the numbers of two neighbours.
const STEP: u64 = 2;

/// The bound on ranges of one prompt. A prompt has a new range where an item is left out of it, which is rare.
const RANGES_MAX: usize = 128;

/// Numbers of items in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ranges {
    /// The first and the last number of each range.
    pub ranges: Vec<[u64; 2]>,
    /// False if the oldest ranges were over the bound.
    pub is_whole: bool,
}

impl Ranges {
    /// Collects numbers that are in order. Over the bound the newest ranges stay.
    pub fn new(numbers: impl IntoIterator<Item = u64>) -> Self {
        let mut ranges: Vec<[u64; 2]> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some([_, last]) if number <= *last + STEP => *last = (*last).max(number),
                Some(_) | None => ranges.push([number, number]),
            }
        }
        let over = ranges.len().saturating_sub(RANGES_MAX);
        Self { ranges: ranges.split_off(over), is_whole: over == 0 }
    }

    /// Joins the numbers of several prompts.
    pub fn joined(all: impl IntoIterator<Item = Self>) -> Self {
        let (mut ranges, mut is_whole) = (Vec::new(), true);
        for one in all {
            is_whole &= one.is_whole;
            ranges.extend(one.ranges);
        }
        ranges.sort_unstable();
        let mut joined: Vec<[u64; 2]> = Vec::new();
        for [from, upto] in ranges {
            match joined.last_mut() {
                Some([_, last]) if from <= *last + STEP => *last = (*last).max(upto),
                Some(_) | None => joined.push([from, upto]),
            }
        }
        Self { ranges: joined, is_whole }
    }

    /// Returns the first number.
    pub fn first(&self) -> Option<u64> {
        self.ranges.first().map(|[from, _]| *from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_make_one_range() {
        let found = Ranges::new([2, 4, 6, 10, 12, 20]);
        assert_eq!(found, Ranges { ranges: vec![[2, 6], [10, 12], [20, 20]], is_whole: true });
        assert_eq!(Ranges::new([]).first(), None);
    }

    #[test]
    fn oldest_ranges_over_the_bound_are_left_out() {
        let found = Ranges::new((1..=RANGES_MAX as u64 + 3).map(|at| at * 4));
        assert_eq!((found.ranges.len(), found.is_whole, found.first()), (RANGES_MAX, false, Some(16)));
    }

    #[test]
    fn ranges_of_several_prompts_are_joined() {
        let parts = [Ranges::new([2, 4, 20]), Ranges::new([6, 8, 20, 22]), Ranges { ranges: vec![], is_whole: false }];
        assert_eq!(Ranges::joined(parts), Ranges { ranges: vec![[2, 8], [20, 22]], is_whole: false });
    }
}
