//! What of two lists of lines goes, comes and stays, in an order in which both can be read.
//!
//! Never leaves a line out: without the marks it is one list, and the other. Next: `shown::tree`, which makes the lines.

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

/// Pairs of lines that are compared; beyond it, what differs is shown as a whole.
const PAIRS_MAX: usize = 4_000_000;

/// Every line of both with its fate.
pub fn of<'a, T: PartialEq>(old: &'a [T], new: &'a [T]) -> Vec<(Fate, &'a T)> {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_middle, new_middle) = (&old_rest[..old_rest.len() - tail], &new_rest[..new_rest.len() - tail]);

    let mut all: Vec<(Fate, &T)> = old[..head].iter().map(|line| (Fate::Stays, line)).collect();
    if old_middle.len().saturating_mul(new_middle.len()) <= PAIRS_MAX {
        aligned(old_middle, new_middle, &mut all);
    } else {
        all.extend(old_middle.iter().map(|line| (Fate::Goes, line)));
        all.extend(new_middle.iter().map(|line| (Fate::Comes, line)));
    }
    all.extend(old_rest[old_rest.len() - tail..].iter().map(|line| (Fate::Stays, line)));
    all
}

/// By the longest common subsequence.
fn aligned<'a, T: PartialEq>(old: &'a [T], new: &'a [T], all: &mut Vec<(Fate, &'a T)>) {
    let width = new.len() + 1;
    // The length of the longest one from here on, for each pair of beginnings.
    let mut longest = vec![0_u32; (old.len() + 1) * width];
    for at in (0..old.len()).rev() {
        for beside in (0..new.len()).rev() {
            longest[at * width + beside] = if old[at] == new[beside] {
                longest[(at + 1) * width + beside + 1] + 1
            } else {
                longest[(at + 1) * width + beside].max(longest[at * width + beside + 1])
            };
        }
    }
    let (mut at, mut beside) = (0, 0);
    while at < old.len() && beside < new.len() {
        if old[at] == new[beside] {
            all.push((Fate::Stays, &old[at]));
            (at, beside) = (at + 1, beside + 1);
        } else if longest[(at + 1) * width + beside] >= longest[at * width + beside + 1] {
            all.push((Fate::Goes, &old[at]));
            at += 1;
        } else {
            all.push((Fate::Comes, &new[beside]));
            beside += 1;
        }
    }
    all.extend(old[at..].iter().map(|line| (Fate::Goes, line)));
    all.extend(new[beside..].iter().map(|line| (Fate::Comes, line)));
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
