//! The words that ask in the rules of a language: a rule is compiled only for a clause that has its words.
//!
//! Reads a pattern as text: its named groups, which each match of the rule has. See [`super::Language::rules_for`].

use regex::bytes::{RegexSet, RegexSetBuilder, SetMatches};
use std::sync::OnceLock;

/// The words that ask, of all rules of a language. A rule whose words a clause does not have cannot match it, and is not compiled for it.
#[derive(Debug)]
pub(super) struct Triggers {
    texts: Vec<String>,
    is_unicode: bool,
    compiled: OnceLock<RegexSet>,
}

impl Triggers {
    pub(super) fn new(texts: Vec<String>, is_unicode: bool) -> Self {
        Self { texts, is_unicode, compiled: OnceLock::new() }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns the places of those that a clause has.
    pub(super) fn find(&self, clause: &[u8]) -> SetMatches {
        let build = || RegexSetBuilder::new(&self.texts).unicode(self.is_unicode).build();
        self.compiled.get_or_init(|| build().expect("parts of patterns that were compiled")).matches(clause)
    }
}

/// Returns the words that ask in a pattern: the groups with names. `None` if a match needs none of them.
pub(super) fn triggers(pattern: &str) -> Option<String> {
    let groups: Option<Vec<&str>> = alternatives(pattern).into_iter().map(trigger).collect();
    groups.map(|groups| groups.join("|"))
}

/// Returns the alternatives of a pattern.
fn alternatives(pattern: &str) -> Vec<&str> {
    let (mut parts, mut begin) = (Vec::new(), 0);
    for (at, byte, depth) in places(pattern) {
        if byte == b'|' && depth == 0 {
            parts.push(&pattern[begin..at]);
            begin = at + 1;
        }
    }
    parts.push(&pattern[begin..]);
    parts
}

/// Returns the text of the named group that each match of an alternative has.
fn trigger(alternative: &str) -> Option<&str> {
    let mut begun = None;
    for (at, byte, depth) in places(alternative) {
        match (byte, depth, begun) {
            (b'(', 0, None) if alternative[at..].starts_with("(?<") => {
                begun = Some(at + alternative[at..].find('>')? + 1);
            }
            (b')', 0, Some(from)) => {
                let is_needed = !alternative[at + 1..].starts_with(['?', '*', '{']);
                return is_needed.then(|| &alternative[from..at]);
            }
            _ => {}
        }
    }
    None
}

/// Returns the marks of a pattern outside of sets, each with its place and the number of groups around it.
fn places(pattern: &str) -> impl Iterator<Item = (usize, u8, usize)> {
    let (mut depth, mut is_set, mut is_escaped) = (0_usize, false, false);
    pattern.bytes().enumerate().filter_map(move |(at, byte)| {
        let was_escaped = is_escaped;
        is_escaped = byte == b'\\' && !was_escaped;
        match byte {
            _ if was_escaped => None,
            b'[' if !is_set => {
                is_set = true;
                None
            }
            b']' if is_set => {
                is_set = false;
                None
            }
            _ if is_set => None,
            b'(' => {
                depth += 1;
                Some((at, byte, depth - 1))
            }
            b')' => {
                depth = depth.saturating_sub(1);
                Some((at, byte, depth))
            }
            b'|' => Some((at, byte, depth)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_rule_are_the_groups_that_each_match_has() {
        for (pattern, words) in [
            ("^(?: a)* (?<v>send|mail) [^ ]+ ", Some("send|mail")),
            ("x (?<v>a(?:b|c)?) |y (?<w>d) ", Some("a(?:b|c)?|d")),
            ("x (?<v>a) |y b ", None),
            ("x(?: (?<v>a))? ", None),
            ("x (?<v>a)? ", None),
            ("[(|] (?<v>a[)|]b) ", Some("a[)|]b")),
            (r"\( (?<v>a\|b\)) ", Some(r"a\|b\)")),
            ("x", None),
        ] {
            assert_eq!(triggers(pattern).as_deref(), words, "{pattern}");
        }
    }
}
