//! The lines of a page on a terminal: those that a person has to see before a yes, those about the effect, and the details.
//!
//! See [`ironclaw_operator::sections`] for the sections, [`super::ask`] for the question.

use ironclaw_operator::{Weight, sections};

/// The parts of a review page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sections<'a> {
    /// The page without the details.
    pub(super) shown: Vec<&'a str>,
    /// The first lines of `shown` that a person has to see before a yes.
    pub(super) needed: usize,
    /// The sections of `shown` about the effect.
    pub(super) effects: Vec<&'a str>,
    pub(super) details: Vec<&'a str>,
}

impl<'a> From<&'a str> for Sections<'a> {
    fn from(text: &'a str) -> Self {
        let (mut shown, mut needed, mut effects, mut details) = (Vec::new(), 0, Vec::new(), Vec::new());
        for section in sections(text) {
            match section.weight {
                Weight::Details => {
                    details.extend(section.lines);
                    continue;
                }
                Weight::Effect => effects.extend(section.lines.iter().copied()),
                Weight::Needed | Weight::Optional => {}
            }
            let is_needed = section.weight != Weight::Optional;
            for line in section.lines {
                shown.push(line);
                if is_needed && !line.is_empty() {
                    needed = shown.len();
                }
            }
        }
        if shown.is_empty() {
            return Self { needed: details.len(), shown: details, effects, details: Vec::new() };
        }
        for section in [&mut shown, &mut effects, &mut details] {
            while section.last().is_some_and(|line| line.is_empty()) {
                section.pop();
            }
        }
        Self { shown, needed, effects, details }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_have_the_ids_and_no_line_is_lost() {
        let text = "EFFECT\n  Much.\n\nWARNINGS\n  !! all of it\n\nREQUESTED BY\n  person\n    | IDENTIFIERS\n\nIDENTIFIERS\n  change: chg_1\n";
        let page = Sections::from(text);
        assert_eq!(page.details, ["IDENTIFIERS", "  change: chg_1"]);
        assert_eq!(page.effects, ["EFFECT", "  Much.", "", "WARNINGS", "  !! all of it"]);
        assert_eq!(page.shown[..6], [&page.effects[..], &[""]].concat());
        assert_eq!(page.needed, 5, "the requester may stay unread");
        assert_eq!(page.shown.last(), Some(&"    | IDENTIFIERS"), "an indented line is not a heading");
        let call = Sections::from("APPROVAL REQUEST req_1\n  Much.\n\nALL ARGUMENTS\n  none\n");
        assert_eq!(call.effects, ["APPROVAL REQUEST req_1", "  Much."]);
        assert_eq!(call.needed, 5);
        assert_eq!(Sections::from("IDENTIFIERS\n  id\n").needed, 2, "a page is never empty");
    }

    #[test]
    fn unknown_section_below_an_optional_one_is_needed() {
        let page =
            Sections::from("EFFECT\n  Much.\n\nREQUESTED BY\n  person\n\nHOSTS\n  a.example\n\nAPPROVAL\n  one\n");
        assert_eq!(page.shown[page.needed - 1], "  a.example");
        let page = Sections::from("EFFECT\n  Much.\n    | REQUESTED BY\n  more\n");
        assert_eq!(page.needed, 4, "an indented line is not a heading");
    }
}
