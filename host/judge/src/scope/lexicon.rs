//! The lexicon: words and patterns of each language that ask for something, from the data file `data/lexicon.toml`.
//!
//! Holds no rule of its own about a language; the head of the file explains the format. See [`super::reading`].

mod names;
mod needed;
#[cfg(test)]
mod required;
#[cfg(test)]
mod source;
mod tables;
#[cfg(test)]
mod tests;
mod withholds;

use crate::class::Class;
use regex::bytes::{Captures, Regex, RegexBuilder};
use std::borrow::Cow;
use std::sync::OnceLock;
use tables::{LanguageTable, PatternTable, RuleTable};
pub(super) use withholds::Withholds;

/// Bytes that a search with one pattern may keep for later searches: a host keeps hundreds of patterns.
const CACHE_BYTES_MAX: usize = 128 << 10;

/// A lexicon that was checked.
#[derive(Debug)]
pub struct Lexicon {
    pub(super) languages: Vec<Language>,
    /// Function words of languages without rules.
    pub(super) others: &'static [Words],
}

/// The words and rules of one language.
#[derive(Debug)]
pub(super) struct Language {
    pub code: &'static str,
    /// True if it is written in Han characters, without spaces.
    pub han: bool,
    pub function: Words,
    /// Words whose accents carry meaning.
    pub kept: Words,
    pub abbreviations: Words,
    /// Words after a number with a full stop that ends no sentence: "4. August".
    pub dated: Words,
    joiners: &'static [(&'static str, Joiner)],
    variants: &'static [(char, char)],
    pub rules: Vec<Rule>,
    pub marks: Marks,
    pub withholds: Withholds,
}

/// A set of words, in their order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words(&'static [&'static str]);

impl Words {
    pub(super) fn contain(&self, word: &str) -> bool {
        self.0.binary_search(&word).is_ok()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A word between two clauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joiner {
    Start,
    Comma,
    And,
    Or,
    But,
    So,
}

impl Language {
    fn new(table: &'static LanguageTable) -> Self {
        Self {
            code: table.code,
            han: table.han,
            function: table.function,
            kept: table.kept,
            abbreviations: table.abbreviations,
            dated: table.dated,
            joiners: table.joiners,
            variants: table.variants,
            rules: table.rules.iter().map(|rule| Rule::new(table, rule)).collect(),
            marks: Marks::new(table),
            withholds: Withholds::new(table),
        }
    }

    pub(super) fn joiner(&self, word: &str) -> Option<Joiner> {
        found(self.joiners, &word)
    }

    /// Returns the usual form of a character, such as the simplified one.
    pub(super) fn usual(&self, variant: char) -> char {
        found(self.variants, &variant).unwrap_or(variant)
    }
}

/// Returns the second of a pair, among pairs in the order of their first.
fn found<K: Ord, V: Copy>(pairs: &[(K, V)], key: &K) -> Option<V> {
    pairs.binary_search_by(|(known, _)| known.cmp(key)).ok().map(|at| pairs[at].1)
}

/// A pattern that is compiled for the first text that may match it: each takes a millisecond, and most messages need few.
#[derive(Debug)]
pub(super) struct Pattern {
    table: &'static PatternTable,
    named: &'static [(&'static str, &'static str)],
    is_unicode: bool,
    compiled: OnceLock<Regex>,
}

impl Pattern {
    fn new(language: &'static LanguageTable, table: &'static PatternTable) -> Self {
        Self { table, named: language.named, is_unicode: language.han, compiled: OnceLock::new() }
    }

    fn compile(&self) -> Result<Regex, regex::Error> {
        let text = names::expand(self.table.text, |name| found(self.named, &name));
        let text = text.expect("the build expanded the same names");
        // Bytes are enough where a space ends each word, and they keep the patterns small.
        RegexBuilder::new(&text).dfa_size_limit(CACHE_BYTES_MAX).unicode(self.is_unicode).build()
    }

    /// Returns the pattern for a text that may match it.
    fn for_text(&self, text: &[u8]) -> Option<&Regex> {
        let compile = || self.compile().expect("a test compiles each pattern");
        self.table.needed.may_be_in(text).then(|| self.compiled.get_or_init(compile))
    }

    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        self.for_text(text).is_some_and(|pattern| pattern.is_match(text))
    }

    /// Returns the groups of the first match. A search without groups goes first: it is much cheaper, and most texts do not match.
    pub(super) fn groups_of<'a>(&self, text: &'a [u8]) -> Option<Captures<'a>> {
        let pattern = self.for_text(text)?;
        pattern.is_match(text).then(|| pattern.captures(text)).flatten()
    }

    /// Returns the text with a space in place of each match.
    pub(super) fn replaced<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        match self.for_text(text) {
            Some(pattern) => pattern.replace_all(text, b" ".as_slice()),
            None => Cow::Borrowed(text),
        }
    }
}

#[derive(Debug)]
pub(super) struct Rule {
    pub class: Class,
    pub when: Pattern,
    pub unless: Option<Pattern>,
    pub question: Option<bool>,
    /// True if the word after the trigger must begin with a capital letter.
    pub name: bool,
    /// True for a question about a fact, which no "and send it" continues.
    pub fact: bool,
    /// True if a colon must follow the clause.
    pub colon: bool,
}

impl Rule {
    fn new(language: &'static LanguageTable, table: &'static RuleTable) -> Self {
        let RuleTable { class, when, unless, question, name, fact, colon } = table;
        Self {
            class: *class,
            when: Pattern::new(language, when),
            unless: unless.as_ref().map(|unless| Pattern::new(language, unless)),
            question: *question,
            name: *name,
            fact: *fact,
            colon: *colon,
        }
    }
}

/// Patterns that take a meaning away, or carry it from clause to clause.
#[derive(Debug)]
pub(super) struct Marks {
    pub conditional: Pattern,
    pub spared: Pattern,
    pub blocked: Pattern,
    pub negated: Pattern,
    pub withheld: Pattern,
    pub contrast: Pattern,
    pub embeds: Pattern,
    pub introduces: Pattern,
    pub ability: Pattern,
    pub subject: Pattern,
    pub framed: Pattern,
    pub points: Pattern,
    /// Negations that take nothing away.
    pub pleads: Pattern,
    /// A clause that belongs to the one before it.
    pub continues: Pattern,
    /// The words of a message within the clause that sends it.
    pub content: Pattern,
}

impl Marks {
    fn new(table: &'static LanguageTable) -> Self {
        let pattern = |pattern| Pattern::new(table, pattern);
        let [
            conditional,
            spared,
            blocked,
            negated,
            withheld,
            contrast,
            embeds,
            introduces,
            ability,
            subject,
            framed,
            points,
            pleads,
            continues,
            content,
        ] = table.marks.each_ref().map(pattern);
        Self {
            conditional,
            spared,
            blocked,
            negated,
            withheld,
            contrast,
            embeds,
            introduces,
            ability,
            subject,
            framed,
            points,
            pleads,
            continues,
            content,
        }
    }
}

impl Lexicon {
    /// Returns the lexicon of this version.
    pub fn embedded() -> &'static Self {
        static LEXICON: OnceLock<Lexicon> = OnceLock::new();
        LEXICON.get_or_init(|| Self::new(tables::LANGUAGES, tables::OTHERS))
    }

    fn new(languages: &'static [LanguageTable], others: &'static [Words]) -> Self {
        Self { languages: languages.iter().map(Language::new).collect(), others }
    }

    /// Returns the codes of its languages.
    pub fn languages(&self) -> impl Iterator<Item = &str> {
        self.languages.iter().map(|language| language.code)
    }
}
