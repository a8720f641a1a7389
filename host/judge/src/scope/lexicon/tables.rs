//! The tables of the lexicon, which the build makes from `data/lexicon.toml`.
//!
//! Has no word of its own. See `source.rs` for their making.

use super::needed::Needed;
use super::{Joiner, Words};
use crate::class::Class;

#[derive(Debug)]
pub(super) struct LanguageTable {
    pub(super) code: &'static str,
    pub(super) han: bool,
    pub(super) function: Words,
    pub(super) kept: Words,
    pub(super) abbreviations: Words,
    pub(super) dated: Words,
    /// By word.
    pub(super) joiners: &'static [(&'static str, Joiner)],
    /// By variant.
    pub(super) variants: &'static [(char, char)],
    /// The named parts of the patterns, by name.
    pub(super) named: &'static [(&'static str, &'static str)],
    pub(super) rules: &'static [RuleTable],
    /// In the order of [`super::Marks`].
    pub(super) marks: [PatternTable; 15],
    /// In the order of [`super::Withholds`]: the doubts have six patterns.
    pub(super) withholds: [PatternTable; 11],
}

#[derive(Debug)]
pub(super) struct RuleTable {
    pub(super) class: Class,
    pub(super) when: PatternTable,
    pub(super) unless: Option<PatternTable>,
    pub(super) question: Option<bool>,
    pub(super) name: bool,
    pub(super) fact: bool,
    pub(super) colon: bool,
}

/// A pattern with names in braces.
#[derive(Debug)]
pub(super) struct PatternTable {
    pub(super) text: &'static str,
    pub(super) needed: Needed,
}

include!(concat!(env!("OUT_DIR"), "/lexicon_tables.rs"));
