//! The marks `[G]` and `[I]` of a model at its claims: its own words, and no evidence.
//!
//! Pure. A reply that rests on no result has no claim with a ground, so `[G]` is shown as `[I]`.

use ironclaw_operator::ClaimMark;
use std::ops::Range;

/// The mark for a claim with a ground, and the one for an inference.
const GROUNDED: &str = "[G]";
const INFERRED: &str = "[I]";

/// The bound on marks in a list.
pub(super) const MARKS_MAX: usize = 64;

/// The reason for `[I]` in place of `[G]`.
pub(super) const NO_RESULT: &str = "the reply rests on no result";
pub(super) const NOT_RECORDED: &str = "the record does not have what the reply rests on";

/// Returns the ranges of bytes of the marks in a text.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let is_mark = |at: &usize| {
        let mark = text.get(*at..*at + GROUNDED.len());
        mark.is_some_and(|mark| [GROUNDED, INFERRED].iter().any(|known| mark.eq_ignore_ascii_case(known)))
    };
    let places = text.match_indices('[').map(|(at, _)| at).filter(is_mark);
    places.map(|at| at..at + GROUNDED.len()).collect()
}

/// Returns whether a mark says that its claim has a ground.
pub(super) fn is_grounded(mark: &str) -> bool {
    mark.eq_ignore_ascii_case(GROUNDED)
}

/// Returns the marks of a text for a reply with this number of results.
pub(super) fn shown(text: &str, results: Option<u64>) -> Vec<ClaimMark> {
    let reason = match results {
        Some(0) => Some(NO_RESULT),
        Some(_) => None,
        None => Some(NOT_RECORDED),
    };
    let marks = find(text).into_iter().map(|range| {
        let written = &text[range.clone()];
        let reason = reason.filter(|_| is_grounded(written)).map(str::to_owned);
        let shown = if reason.is_some() { INFERRED } else { written }.to_owned();
        ClaimMark { at: range.start as u64, written: written.to_owned(), shown, reason }
    });
    marks.collect()
}

/// Returns the lines of the host about the marks of a reply.
pub(super) fn remarks(marks: &[ClaimMark]) -> Vec<String> {
    if marks.is_empty() {
        return Vec::new();
    }
    let replaced = marks.iter().filter(|mark| mark.reason.is_some()).count();
    let reason = marks.iter().find_map(|mark| mark.reason.as_deref());
    let own = "[G] and [I] are the agent's own words, and no statement of the host".to_owned();
    let replaced = reason.map(|reason| match replaced {
        1 => format!("the agent wrote [G] at 1 place; it is shown as [I], because {reason}"),
        more => format!("the agent wrote [G] at {more} places; they are shown as [I], because {reason}"),
    });
    std::iter::once(own).chain(replaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ground_without_a_result_is_shown_as_an_inference() {
        let text = "The sky [G] is blue [i], and é[g] [H] [G";
        for (results, first) in [(Some(0), "[I]"), (None, "[I]"), (Some(1), "[G]")] {
            let marks = shown(text, results);
            let all: Vec<_> = marks.iter().map(|mark| (mark.written.as_str(), mark.shown.as_str())).collect();
            let last = if results == Some(1) { "[g]" } else { "[I]" };
            assert_eq!(all, [("[G]", first), ("[i]", "[i]"), ("[g]", last)], "{results:?}");
            assert_eq!(marks[0].reason.is_some(), results != Some(1));
            assert_eq!(remarks(&marks).len(), if results == Some(1) { 1 } else { 2 });
        }
        assert!(shown("no mark [x] [GI]", Some(0)).is_empty() && remarks(&[]).is_empty());
    }
}
