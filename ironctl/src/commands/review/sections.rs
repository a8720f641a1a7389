//! The sections of a page: those that a person has to see before a yes, those about the effect, and the details.
//!
//! Only the host writes without an indent, so such a line is the heading of a section. See [`super::ask`].

/// The headings that begin the details of a page, up to its end: only the word `details` shows them.
const DETAILS: [&str; 2] = ["DETAILS", "IDENTIFIERS"];

/// The sections of a page that are repeated above the question if the page does not fit.
const EFFECTS: [&str; 2] = ["EFFECT", "WARNINGS"];

/// The beginnings of the headings above the effect of a call and of several calls.
const CALL_EFFECTS: [&str; 2] = ["APPROVAL REQUEST ", "APPROVAL REQUESTS: "];

/// The sections that a person may leave unread: none has a value that leaves, or that directs the effect.
const OPTIONAL: [&str; 4] =
    ["REASON GIVEN BY THE PERSON (unverified)", "REASON GIVEN BY THE AGENT (unverified)", "REQUESTED BY", "APPROVAL"];

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
        let (mut is_effect, mut is_detail, mut is_optional) = (false, false, false);
        for line in text.lines() {
            if !line.is_empty() && !line.starts_with(' ') {
                is_effect = EFFECTS.contains(&line) || CALL_EFFECTS.iter().any(|begin| line.starts_with(begin));
                is_detail |= DETAILS.contains(&line);
                is_optional = OPTIONAL.contains(&line);
            }
            if is_effect {
                effects.push(line);
            }
            if is_detail {
                details.push(line);
                continue;
            }
            shown.push(line);
            if !is_optional && !line.is_empty() {
                needed = shown.len();
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
