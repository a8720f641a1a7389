//! The lexicon: words and patterns of each language that ask for something, from the data file `data/lexicon.toml`.
//!
//! Holds no rule of its own about a language; its head explains the format. See [`super::reading`].

mod triggers;
mod withholds;

use crate::class::Class;
use regex::bytes::{Captures, Regex, RegexBuilder};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Deref;
use std::sync::OnceLock;
use triggers::{Triggers, triggers};
pub(super) use withholds::Withholds;

const EMBEDDED: &str = include_str!("../../data/lexicon.toml");
/// Classes that a lexicon can give. The others are always declared.
const GIVEN: [Class; 3] = [Class::Read, Class::Write, Class::Send];
/// Names within names of a pattern.
const DEPTH_MAX: usize = 12;
/// A pattern that matches nothing.
const NEVER: &str = "[^\\s\\S]";

/// A lexicon that was checked.
#[derive(Debug)]
pub struct Lexicon {
    pub(super) languages: Vec<Language>,
    /// Function words of languages without rules.
    pub(super) others: Vec<HashSet<String>>,
}

/// The words and rules of one language.
#[derive(Debug)]
pub(super) struct Language {
    pub code: String,
    /// True if it is written in Han characters, without spaces.
    pub han: bool,
    pub function: HashSet<String>,
    /// Words whose accents carry meaning.
    pub kept: HashSet<String>,
    pub abbreviations: HashSet<String>,
    /// Words after a number with a full stop that ends no sentence: "4. August".
    pub dated: HashSet<String>,
    pub joiners: HashMap<String, Joiner>,
    /// Variants of characters, such as traditional ones.
    pub variants: HashMap<char, char>,
    rules: Vec<Rule>,
    triggers: Triggers,
    pub marks: Marks,
    pub withholds: Withholds,
}

/// A word between two clauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Joiner {
    Start,
    Comma,
    And,
    Or,
    But,
    So,
}

impl Language {
    /// Returns the rules that may match a clause.
    pub(super) fn rules_for(&self, clause: &[u8]) -> impl Iterator<Item = &Rule> {
        let found = self.triggers.find(clause);
        self.rules.iter().filter(move |rule| rule.trigger.is_none_or(|trigger| found.matched(trigger)))
    }
}

/// A pattern that is compiled at its first use: most messages need those of one language, and Chinese ones take long.
#[derive(Debug)]
pub(super) struct Pattern {
    text: String,
    is_unicode: bool,
    compiled: OnceLock<Regex>,
}

impl Pattern {
    fn compile(&self) -> Result<Regex, regex::Error> {
        RegexBuilder::new(&self.text).unicode(self.is_unicode).build()
    }

    /// Returns the groups of the first match. A search without groups goes first: it is much cheaper, and most texts do not match.
    pub(super) fn groups_of<'a>(&self, text: &'a [u8]) -> Option<Captures<'a>> {
        self.is_match(text).then(|| self.captures(text)).flatten()
    }
}

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        self.compiled.get_or_init(|| self.compile().expect("the reader of the lexicon or its test compiled it"))
    }
}

#[derive(Debug)]
pub(super) struct Rule {
    pub class: Class,
    /// The place of its words in [`Triggers`]; `None` if a match needs none of them.
    trigger: Option<usize>,
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

/// A lexicon that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LexiconError {
    /// The file has another shape.
    #[error("cannot read the lexicon: {0}")]
    Shape(#[from] toml::de::Error),
    /// A pattern is no regular expression.
    #[error("cannot read pattern {pattern} of {language} in the lexicon: {reason}")]
    Pattern {
        /// The code of the language.
        language: String,
        /// The name of the pattern, or its text.
        pattern: String,
        reason: String,
    },
    /// A rule gives a class that is always declared.
    #[error("a rule of {0} in the lexicon gives {1}: a lexicon can give read, write and send only")]
    Class(String, Class),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    others: BTreeMap<String, String>,
    language: Vec<LanguageFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LanguageFile {
    code: String,
    #[serde(default)]
    han: bool,
    #[serde(default)]
    function: String,
    #[serde(default)]
    kept: String,
    #[serde(default)]
    abbreviations: String,
    #[serde(default)]
    dated: String,
    #[serde(default)]
    joiners: HashMap<String, Joiner>,
    #[serde(default)]
    variants: String,
    #[serde(default)]
    words: BTreeMap<String, String>,
    #[serde(default)]
    patterns: BTreeMap<String, String>,
    #[serde(default)]
    marks: BTreeMap<String, String>,
    #[serde(default)]
    withholds: withholds::File,
    rule: Vec<RuleFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    class: Class,
    when: String,
    #[serde(default)]
    unless: Option<String>,
    #[serde(default)]
    question: Option<bool>,
    #[serde(default)]
    name: bool,
    #[serde(default)]
    fact: bool,
    #[serde(default)]
    colon: bool,
}

impl Lexicon {
    /// Returns the lexicon of this version. Each pattern is compiled at its first use.
    pub fn embedded() -> &'static Self {
        static LEXICON: OnceLock<Lexicon> = OnceLock::new();
        LEXICON.get_or_init(|| {
            Self::read(EMBEDDED, Check::Names).expect("the test `embedded_lexicon_is_readable` reads the same text")
        })
    }

    /// Reads a lexicon, and compiles each of its patterns once to check it.
    ///
    /// # Errors
    /// The first part that is no lexicon.
    pub fn parse(text: &str) -> Result<Self, LexiconError> {
        Self::read(text, Check::Patterns)
    }

    fn read(text: &str, check: Check) -> Result<Self, LexiconError> {
        let file: File = toml::from_str(text)?;
        let others = file.others.values().map(|words| set(words)).collect();
        let languages = file.language.into_iter().map(|file| language(file, check)).collect::<Result<_, _>>()?;
        Ok(Self { languages, others })
    }

    /// Returns the codes of its languages.
    pub fn languages(&self) -> impl Iterator<Item = &str> {
        self.languages.iter().map(|language| language.code.as_str())
    }
}

/// The part of the patterns that a reader checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    /// The names in them; a test has compiled the patterns.
    Names,
    /// The names, and the patterns themselves.
    Patterns,
}

fn set(words: &str) -> HashSet<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

fn language(file: LanguageFile, check: Check) -> Result<Language, LexiconError> {
    let patterns = Patterns::new(&file, check);
    if let Some(rule) = file.rule.iter().find(|rule| !GIVEN.contains(&rule.class)) {
        return Err(LexiconError::Class(file.code, rule.class));
    }
    let mut texts = Vec::new();
    let rule = |rule: &RuleFile| {
        let unless = rule.unless.as_deref().map(|text| patterns.pattern(text)).transpose()?;
        let when = patterns.pattern(&rule.when)?;
        let trigger = triggers(&when.text).map(|words| {
            texts.push(words);
            texts.len() - 1
        });
        Ok(Rule {
            class: rule.class,
            trigger,
            when,
            unless,
            question: rule.question,
            name: rule.name,
            fact: rule.fact,
            colon: rule.colon,
        })
    };
    let rules = file.rule.iter().map(rule).collect::<Result<_, LexiconError>>()?;
    let triggers = Triggers::new(texts, file.han);
    let marks = marks(&file.marks, &patterns)?;
    let withholds = Withholds::read(&file.withholds, &patterns)?;
    let variants = file.variants.split_whitespace().filter_map(|pair| {
        let mut pair = pair.chars();
        Some((pair.next()?, pair.next()?))
    });
    Ok(Language {
        han: file.han,
        function: set(&file.function),
        kept: set(&file.kept),
        abbreviations: set(&file.abbreviations),
        dated: set(&file.dated),
        joiners: file.joiners.clone(),
        variants: variants.collect(),
        rules,
        triggers,
        marks,
        withholds,
        code: file.code,
    })
}

fn marks(texts: &BTreeMap<String, String>, patterns: &Patterns) -> Result<Marks, LexiconError> {
    const NAMES: [&str; 15] = [
        "conditional",
        "spared",
        "blocked",
        "negated",
        "withheld",
        "contrast",
        "embeds",
        "introduces",
        "ability",
        "subject",
        "framed",
        "points",
        "pleads",
        "continues",
        "content",
    ];
    if let Some(name) = texts.keys().find(|name| !NAMES.contains(&name.as_str())) {
        return Err(patterns.error(name, format!("it is none of {}", NAMES.join(", "))));
    }
    let mark = |name: &str| patterns.pattern(texts.get(name).map_or(NEVER, String::as_str));
    Ok(Marks {
        conditional: mark("conditional")?,
        spared: mark("spared")?,
        blocked: mark("blocked")?,
        negated: mark("negated")?,
        withheld: mark("withheld")?,
        contrast: mark("contrast")?,
        embeds: mark("embeds")?,
        introduces: mark("introduces")?,
        ability: mark("ability")?,
        subject: mark("subject")?,
        framed: mark("framed")?,
        points: mark("points")?,
        pleads: mark("pleads")?,
        continues: mark("continues")?,
        content: mark("content")?,
    })
}

/// The named parts of the patterns of a language.
struct Patterns {
    language: String,
    han: bool,
    check: Check,
    named: BTreeMap<String, String>,
}

impl Patterns {
    fn new(file: &LanguageFile, check: Check) -> Self {
        let words = file.words.iter().map(|(name, text)| (name.clone(), list(text, ',')));
        let patterns = file.patterns.iter().map(|(name, text)| (name.clone(), format!("(?:{})", tight(text))));
        Self { language: file.code.clone(), han: file.han, check, named: words.chain(patterns).collect() }
    }

    fn pattern(&self, text: &str) -> Result<Pattern, LexiconError> {
        let mut pattern = tight(text);
        for _ in 0..DEPTH_MAX {
            let Some(expanded) = self.expand(&pattern)? else { break };
            pattern = expanded;
        }
        // Bytes are enough where a space ends each word, and they keep the patterns small.
        let pattern = Pattern { text: pattern, is_unicode: self.han, compiled: OnceLock::new() };
        if self.check == Check::Patterns {
            pattern.compile().map_err(|error| self.error(text, error.to_string()))?;
        }
        Ok(pattern)
    }

    /// Replaces each name in braces; returns `None` if there is none.
    fn expand(&self, pattern: &str) -> Result<Option<String>, LexiconError> {
        let (mut expanded, mut rest, mut found) = (String::new(), pattern, false);
        while let Some(at) = rest.find('{') {
            let (before, after) = rest.split_at(at);
            let name = after[1..].split('}').next().unwrap_or_default();
            expanded.push_str(before);
            if name.starts_with(|next: char| next.is_ascii_lowercase()) {
                let part = self.named.get(name).ok_or_else(|| self.error(name, "there is no such name".into()))?;
                expanded.push_str(part);
                rest = &after[name.len() + 2..];
                found = true;
            } else {
                expanded.push('{');
                rest = &after[1..];
            }
        }
        expanded.push_str(rest);
        Ok(found.then_some(expanded))
    }

    fn error(&self, pattern: &str, reason: String) -> LexiconError {
        LexiconError::Pattern { language: self.language.clone(), pattern: pattern.to_owned(), reason }
    }
}

/// Returns the pattern of a list with separators.
fn list(text: &str, separator: char) -> String {
    let words: Vec<_> =
        text.split(separator).map(|word| word.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    format!("(?:{})", words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("|"))
}

/// Returns a pattern without its line breaks.
fn tight(text: &str) -> String {
    text.lines().collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_lexicon_is_readable() {
        let lexicon = Lexicon::parse(EMBEDDED).expect("the embedded lexicon");
        assert_eq!(lexicon.languages().collect::<Vec<_>>(), ["en", "de", "es", "fr", "zh"]);
    }

    #[test]
    fn most_rules_are_found_by_their_words() {
        let counts =
            Lexicon::embedded().languages.iter().map(|language| (language.rules.len(), language.triggers.len()));
        let (rules, with_words) = counts.fold((0, 0), |all, own| (all.0 + own.0, all.1 + own.1));
        assert!(with_words * 10 > rules * 9, "{with_words} of {rules} rules are found by their words");
    }

    fn error(rule: &str) -> String {
        let text = format!("[[language]]\ncode = \"xx\"\n[[language.rule]]\n{rule}");
        Lexicon::parse(&text).expect_err("an error").to_string()
    }

    #[test]
    fn rule_for_exec_or_trade_is_refused() {
        for class in ["exec", "trade", "ask"] {
            assert!(
                error(&format!("class = \"{class}\"\nwhen = 'x'")).contains("read, write and send only"),
                "{class}"
            );
        }
    }

    #[test]
    fn wrong_pattern_is_refused_by_name() {
        assert!(error("class = \"send\"\nwhen = '{nothing}'").contains("pattern nothing of xx"));
        assert!(error("class = \"send\"\nwhen = '('").contains("of xx"));
        assert!(error("class = \"send\"\nwhen = 'x'\nif = 1").contains("unknown field"));
    }
}
