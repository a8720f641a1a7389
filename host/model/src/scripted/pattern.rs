//! A pattern of a script, which is compiled for the first words that it is compared with: each takes about a millisecond and memory, and a
//! host with a model needs none of the built-in ones.

use regex::{Captures, Regex, RegexBuilder};
use std::sync::OnceLock;

/// A regular expression that ignores case.
#[derive(Debug)]
pub(super) struct Pattern {
    text: String,
    compiled: OnceLock<Regex>,
}

impl Pattern {
    /// Returns a pattern that is valid for sure, such as a built-in one that a test compiles.
    pub(super) fn assumed(text: &str) -> Self {
        Self { text: text.to_owned(), compiled: OnceLock::new() }
    }

    /// Compiles a pattern.
    ///
    /// # Errors
    /// The error of an invalid one.
    pub(super) fn checked(text: &str) -> Result<Self, regex::Error> {
        Ok(Self { text: text.to_owned(), compiled: compile(text)?.into() })
    }

    /// Returns the names of its groups, in order.
    pub(super) fn group_names(&self) -> Vec<&str> {
        match self.compiled.get() {
            Some(compiled) => compiled.capture_names().flatten().collect(),
            None => written_names(&self.text),
        }
    }

    /// Returns the groups of the first match.
    pub(super) fn captures<'a>(&self, text: &'a str) -> Option<Captures<'a>> {
        self.compiled.get_or_init(|| compile(&self.text).expect("a test compiles it")).captures(text)
    }
}

fn compile(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).case_insensitive(true).build()
}

/// Returns the names that a pattern without an escaped parenthesis in front of `?P<` gives to its groups.
fn written_names(text: &str) -> Vec<&str> {
    text.split("(?P<").skip(1).filter_map(|rest| Some(rest.split_once('>')?.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_groups_are_those_of_the_compiled_pattern() {
        for text in ["a", "(?P<b>x)(y)(?:z)", "^(?P<one>(?P<two_2>x)|y)$", "(?s)(?P<a>.)"] {
            let (assumed, checked) = (Pattern::assumed(text), Pattern::checked(text).expect("a pattern"));
            assert_eq!(assumed.group_names(), checked.group_names(), "{text}");
            assert_eq!(assumed.captures("xyz").is_some(), checked.captures("xyz").is_some(), "{text}");
        }
        assert!(Pattern::checked("(").is_err());
    }
}
