//! The text of a lexicon, `data/lexicon.toml`: its shape, its checks, and the tables of the program that are made from it.
//!
//! Only the build and the tests read it. See `tables.rs` for the tables.

use super::names;
use super::required::{packed, required};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Classes that a lexicon can give. The others are always declared.
const GIVEN: [&str; 3] = ["read", "write", "send"];
/// A pattern that matches nothing.
const NEVER: &str = "[^\\s\\S]";

/// The names of the marks of a language, in the order of the table.
const MARKS: [&str; 15] = [
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
    Class(String, String),
}

/// A lexicon that was checked.
pub(super) struct Source {
    pub(super) others: Vec<Vec<String>>,
    pub(super) languages: Vec<Language>,
}

/// A language in the order of its table.
pub(super) struct Language {
    pub(super) file: LanguageFile,
    /// The named parts of its patterns, by name.
    pub(super) named: BTreeMap<String, String>,
    pub(super) rules: Vec<Rule>,
    pub(super) marks: Vec<Pattern>,
    pub(super) withholds: Vec<Pattern>,
}

pub(super) struct Rule {
    pub(super) file: RuleFile,
    pub(super) when: Pattern,
    pub(super) unless: Option<Pattern>,
}

/// A pattern with names in braces, and the texts of which each match has one.
pub(super) struct Pattern {
    pub(super) text: String,
    pub(super) needed: Vec<Vec<u8>>,
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
pub(super) struct LanguageFile {
    pub(super) code: String,
    #[serde(default)]
    pub(super) han: bool,
    #[serde(default)]
    pub(super) function: String,
    #[serde(default)]
    pub(super) kept: String,
    #[serde(default)]
    pub(super) abbreviations: String,
    #[serde(default)]
    pub(super) dated: String,
    #[serde(default)]
    pub(super) joiners: BTreeMap<String, Joiner>,
    #[serde(default)]
    pub(super) variants: String,
    #[serde(default)]
    words: BTreeMap<String, String>,
    #[serde(default)]
    patterns: BTreeMap<String, String>,
    #[serde(default)]
    marks: BTreeMap<String, String>,
    #[serde(default)]
    withholds: Withholds,
    rule: Vec<RuleFile>,
}

/// A word between two clauses, by the name of its variant in the table.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Joiner {
    Start,
    Comma,
    And,
    Or,
    But,
    So,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleFile {
    pub(super) class: String,
    when: String,
    #[serde(default)]
    unless: Option<String>,
    #[serde(default)]
    pub(super) question: Option<bool>,
    #[serde(default)]
    pub(super) name: bool,
    #[serde(default)]
    pub(super) fact: bool,
    #[serde(default)]
    pub(super) colon: bool,
}

/// The lists of a language, with semicolons; the head of the lexicon explains them.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Withholds {
    plain: String,
    strong: String,
    condition: String,
    inverted: String,
    doubt: String,
    report: String,
    refusal: String,
    pretence: String,
    back: String,
    hesitates: String,
    salutes: String,
    polite: String,
}

impl Source {
    /// Reads a lexicon, and checks its names and patterns.
    ///
    /// # Errors
    /// The first part that is no lexicon.
    pub(super) fn parse(text: &str) -> Result<Self, LexiconError> {
        let file: File = toml::from_str(text)?;
        let others = file.others.values().map(|words| sorted(words)).collect();
        let languages = file.language.into_iter().map(Language::new).collect::<Result<_, _>>()?;
        Ok(Self { others, languages })
    }

    /// Returns the tables as Rust.
    pub(super) fn to_rust(&self) -> String {
        let mut rust = format!("pub(super) static OTHERS: &[Words] = &[{}];\n", each(&self.others, |words| set(words)));
        let languages = each(&self.languages, Language::to_rust);
        write!(rust, "pub(super) static LANGUAGES: &[LanguageTable] = &[{languages}];").expect("a string takes it");
        rust
    }
}

impl Language {
    fn new(mut file: LanguageFile) -> Result<Self, LexiconError> {
        let words = file.words.iter().map(|(name, text)| (name.clone(), list(text, ',')));
        let patterns = file.patterns.iter().map(|(name, text)| (name.clone(), format!("(?:{})", tight(text))));
        let patterns = Patterns { language: file.code.clone(), han: file.han, named: words.chain(patterns).collect() };
        let rules = std::mem::take(&mut file.rule);
        if let Some(rule) = rules.iter().find(|rule| !GIVEN.contains(&rule.class.as_str())) {
            return Err(LexiconError::Class(file.code, rule.class.clone()));
        }
        let rule = |file: RuleFile| {
            let unless = file.unless.as_deref().map(|text| patterns.pattern(text)).transpose()?;
            Ok(Rule { when: patterns.pattern(&file.when)?, unless, file })
        };
        let rules = rules.into_iter().map(rule).collect::<Result<_, LexiconError>>()?;
        if let Some(name) = file.marks.keys().find(|name| !MARKS.contains(&name.as_str())) {
            return Err(patterns.error(name, format!("it is none of {}", MARKS.join(", "))));
        }
        let mark = |name: &str| patterns.pattern(file.marks.get(name).map_or(NEVER, String::as_str));
        let marks = MARKS.into_iter().map(mark).collect::<Result<_, _>>()?;
        let withholds = withholds(&file.withholds, &patterns)?;
        Ok(Self { file, named: patterns.named, rules, marks, withholds })
    }

    fn to_rust(&self) -> String {
        let file = &self.file;
        let set_of = |words: &String| set(&sorted(words));
        format!(
            "LanguageTable {{ code: {:?}, han: {}, function: {}, kept: {}, abbreviations: {}, dated: {}, joiners: &[{}], \
             variants: &[{}], named: &[{}], rules: &[{}], marks: [{}], withholds: [{}] }}",
            file.code,
            file.han,
            set_of(&file.function),
            set_of(&file.kept),
            set_of(&file.abbreviations),
            set_of(&file.dated),
            each(&file.joiners, |(word, joiner)| format!("({word:?}, Joiner::{joiner:?})")),
            each(self.variants(), |pair| format!("{pair:?}")),
            each(&self.named, |pair| format!("{pair:?}")),
            each(&self.rules, Rule::to_rust),
            each(&self.marks, Pattern::to_rust),
            each(&self.withholds, Pattern::to_rust),
        )
    }

    /// Returns the pairs of a variant of a character and the usual one, sorted.
    pub(super) fn variants(&self) -> BTreeMap<char, char> {
        let pairs = self.file.variants.split_whitespace().map(|pair| pair.chars());
        pairs.filter_map(|mut pair| Some((pair.next()?, pair.next()?))).collect()
    }
}

impl Rule {
    fn to_rust(&self) -> String {
        let RuleFile { class, question, name, fact, colon, .. } = &self.file;
        let (first, rest) = class.split_at(1);
        let class = format!("{}{rest}", first.to_uppercase());
        let unless =
            self.unless.as_ref().map_or_else(|| "None".to_owned(), |unless| format!("Some({})", unless.to_rust()));
        format!(
            "RuleTable {{ class: Class::{class}, when: {}, unless: {unless}, question: {question:?}, name: {name}, \
             fact: {fact}, colon: {colon} }}",
            self.when.to_rust()
        )
    }
}

impl Pattern {
    fn to_rust(&self) -> String {
        let (beginnings, texts) = packed(&self.needed);
        let needed = format!("Needed {{ beginnings: {beginnings:?}, texts: b\"{}\" }}", texts.escape_ascii());
        format!("PatternTable {{ text: {:?}, needed: {needed} }}", self.text)
    }
}

fn each<T>(all: impl IntoIterator<Item = T>, shown: impl Fn(T) -> String) -> String {
    all.into_iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn set(words: &[String]) -> String {
    format!("Words(&[{}])", each(words, |word| format!("{word:?}")))
}

/// Returns the words of a text, sorted, each once.
pub(super) fn sorted(words: &str) -> Vec<String> {
    let mut words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// The named parts of the patterns of a language.
struct Patterns {
    language: String,
    han: bool,
    named: BTreeMap<String, String>,
}

impl Patterns {
    fn pattern(&self, text: &str) -> Result<Pattern, LexiconError> {
        let unknown = |name: String| self.error(&name, "there is no such name".to_owned());
        let text_of = |name: &str| self.named.get(name).map(String::as_str);
        let whole = names::expand(&tight(text), text_of).map_err(unknown)?;
        // Bytes are enough where a space ends each word, and they keep the patterns small.
        let needed = required(&whole, self.han).map_err(|reason| self.error(text, reason))?;
        Ok(Pattern { text: tight(text), needed })
    }

    fn error(&self, pattern: &str, reason: String) -> LexiconError {
        LexiconError::Pattern { language: self.language.clone(), pattern: pattern.to_owned(), reason }
    }
}

/// Returns the phrases of a language that take `send` away from whole sentences, in the order of the table.
fn withholds(file: &Withholds, patterns: &Patterns) -> Result<Vec<Pattern>, LexiconError> {
    let han = patterns.han;
    let pattern = |words: &str, text: String| match words.trim() {
        "" => patterns.pattern(NEVER),
        _ => patterns.pattern(&text),
    };
    let any = |words: &str| pattern(words, anywhere(han, words));
    let at_start = |words: &str| pattern(words, at_start(han, &file.hesitates, words));
    Ok(vec![
        any(&file.plain)?,
        any(&file.strong)?,
        any(&file.condition)?,
        any(&file.doubt)?,
        any(&file.report)?,
        any(&file.refusal)?,
        any(&file.pretence)?,
        at_start(&file.inverted)?,
        at_start(&file.back)?,
        at_start(&file.polite)?,
        pattern(&file.salutes, format!("^ ?{} ?$", list(&file.salutes, ';')))?,
    ])
}

/// Returns the pattern for any of the items of a list, as whole words if spaces are between words.
fn anywhere(han: bool, words: &str) -> String {
    let list = list(words, ';');
    if han { list } else { format!("(?:^| ){list}(?: |$)") }
}

/// Returns the pattern for any of the items at the start of a clause, after any number of words that hesitate.
fn at_start(han: bool, hesitates: &str, words: &str) -> String {
    let (hesitates, words) = (list(hesitates, ';'), list(words, ';'));
    match han {
        true => format!("(?:^|[，:&|/~])(?:{hesitates})*{words}"),
        false => format!("(?:^|[,:&|/~])(?: {hesitates})*(?: ,)? {words}(?: |$)"),
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
