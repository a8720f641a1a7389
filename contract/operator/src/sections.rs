//! The sections of a review page: what a person has to see before a yes, what they may leave unread, and the details.
//!
//! Only the host writes without an indent, so such a line is the heading of a section. Reads no page for its meaning: a face shows the
//! lines as they are. See [`crate::waiting::Waiting`].

/// The headings that begin the details of a page, up to its end.
const DETAILS: [&str; 2] = ["DETAILS", "IDENTIFIERS"];

/// The headings of the sections about the effect.
const EFFECTS: [&str; 2] = ["EFFECT", "WARNINGS"];

/// The beginnings of the headings above the effect of a call and of several calls.
const CALL_EFFECTS: [&str; 2] = ["APPROVAL REQUEST ", "APPROVAL REQUESTS: "];

/// The sections that a person may leave unread: none has a value that leaves, or that directs the effect.
const OPTIONAL: [&str; 4] =
    ["REASON GIVEN BY THE PERSON (unverified)", "REASON GIVEN BY THE AGENT (unverified)", "REQUESTED BY", "APPROVAL"];

/// How much a decision needs a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// It is about the effect: a face shows it again beside the question.
    Effect,
    /// A person has to see it before a yes.
    Needed,
    /// A person may leave it unread.
    Optional,
    /// A face shows it on request.
    Details,
}

/// A section of a review page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section<'a> {
    /// How much a decision needs it.
    pub weight: Weight,
    /// Its lines with the heading, and with empty lines.
    pub lines: Vec<&'a str>,
}

impl<'a> Section<'a> {
    /// Returns the heading, if the section has one.
    #[must_use]
    pub fn heading(&self) -> Option<&'a str> {
        self.lines.first().copied().filter(|line| is_heading(line))
    }
}

/// Returns the sections of a page in their order. No line is lost.
#[must_use]
pub fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in text.lines() {
        let before = sections.last().map(|section| section.weight);
        match (is_heading(line), before) {
            (true, _) | (false, None) => {
                let weight = if before == Some(Weight::Details) { Weight::Details } else { weight(line) };
                sections.push(Section { weight, lines: vec![line] });
            }
            (false, Some(_)) => sections.last_mut().expect("there is one before this line").lines.push(line),
        }
    }
    sections
}

fn is_heading(line: &str) -> bool {
    !line.is_empty() && !line.starts_with(' ')
}

/// Returns the weight of the section with this heading. A section that is not known is needed.
fn weight(heading: &str) -> Weight {
    if DETAILS.contains(&heading) {
        Weight::Details
    } else if OPTIONAL.contains(&heading) {
        Weight::Optional
    } else if EFFECTS.contains(&heading) || CALL_EFFECTS.iter().any(|begin| heading.starts_with(begin)) {
        Weight::Effect
    } else {
        Weight::Needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_in_one_section_and_unknown_ones_are_needed() {
        let text = "EFFECT\n  Much.\n\nWARNINGS\n  !! all\n\nREQUESTED BY\n  person\n    | IDENTIFIERS\n\nHOSTS\n  a.example\n\nIDENTIFIERS\n  id\n\nAPPROVAL\n";
        let found = sections(text);
        let weights: Vec<Weight> = found.iter().map(|section| section.weight).collect();
        use Weight::{Details, Effect, Needed, Optional};
        assert_eq!(weights, [Effect, Effect, Optional, Needed, Details, Details], "details go on to the end");
        let lines: Vec<&str> = found.iter().flat_map(|section| section.lines.clone()).collect();
        assert_eq!(lines, text.lines().collect::<Vec<_>>());
        assert_eq!(found[2].lines[2], "    | IDENTIFIERS", "an indented line is no heading");
        assert_eq!((found[3].heading(), sections("  x\n")[0].heading()), (Some("HOSTS"), None));
    }
}
