//! Tests of the making of a lexicon: its checks, and the texts that its patterns need.

use super::needed::Needed;
use super::source::{self, LexiconError, Source};
use super::tables::{LanguageTable, PatternTable, RuleTable};
use super::{Joiner, Language, Lexicon, Pattern, Words};

/// Texts of the cases of scopes, in each language.
const CASES: &str = include_str!("../../../data/polite_cases.toml");

impl Lexicon {
    /// Reads a lexicon for a test.
    pub(in crate::scope) fn parse(text: &str) -> Result<Self, LexiconError> {
        let source = Source::parse(text)?;
        let languages: Vec<LanguageTable> = source.languages.into_iter().map(language).collect();
        let others: Vec<Words> = source.others.into_iter().map(words).collect();
        Ok(Self::new(languages.leak(), others.leak()))
    }
}

fn words(words: Vec<String>) -> Words {
    Words(words.into_iter().map(|word| &*word.leak()).collect::<Vec<&str>>().leak())
}

fn language(source: source::Language) -> LanguageTable {
    let variants: Vec<_> = source.variants().into_iter().collect();
    let source::Language { file, named, rules, marks, withholds } = source;
    let set = |text: &str| words(source::sorted(text));
    let named: Vec<(&str, &str)> = named.into_iter().map(|(name, text)| (&*name.leak(), &*text.leak())).collect();
    let joiners: Vec<(&str, Joiner)> =
        file.joiners.into_iter().map(|(word, own)| (&*word.leak(), joiner(own))).collect();
    let all = |patterns: Vec<source::Pattern>| patterns.into_iter().map(pattern).collect::<Vec<_>>();
    LanguageTable {
        code: file.code.leak(),
        han: file.han,
        function: set(&file.function),
        kept: set(&file.kept),
        abbreviations: set(&file.abbreviations),
        dated: set(&file.dated),
        joiners: joiners.leak(),
        variants: variants.leak(),
        named: named.leak(),
        rules: rules.into_iter().map(rule).collect::<Vec<_>>().leak(),
        marks: all(marks).try_into().expect("each mark"),
        withholds: all(withholds).try_into().expect("each list"),
    }
}

const fn joiner(own: source::Joiner) -> Joiner {
    match own {
        source::Joiner::Start => Joiner::Start,
        source::Joiner::Comma => Joiner::Comma,
        source::Joiner::And => Joiner::And,
        source::Joiner::Or => Joiner::Or,
        source::Joiner::But => Joiner::But,
        source::Joiner::So => Joiner::So,
    }
}

fn rule(rule: source::Rule) -> RuleTable {
    let source::Rule { file, when, unless } = rule;
    let source::RuleFile { class, question, name, fact, colon, .. } = file;
    let class = class.parse().expect("a class that a lexicon gives");
    RuleTable { class, when: pattern(when), unless: unless.map(pattern), question, name, fact, colon }
}

fn pattern(pattern: source::Pattern) -> PatternTable {
    let (beginnings, texts) = super::required::packed(&pattern.needed);
    PatternTable { text: pattern.text.leak(), needed: Needed { beginnings, texts: texts.leak() } }
}

fn patterns(language: &Language) -> impl Iterator<Item = &Pattern> {
    let super::Marks {
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
    } = &language.marks;
    let marks = [
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
    ];
    let super::Withholds { plain, strong, doubts, pretends, back, polite, salutes } = &language.withholds;
    let withholds = [plain, strong, pretends, back, polite, salutes].into_iter().chain(doubts);
    let rules = language.rules.iter().flat_map(|rule| std::iter::once(&rule.when).chain(&rule.unless));
    rules.chain(marks).chain(withholds)
}

#[test]
fn no_match_is_without_a_text_that_its_pattern_needs() {
    let lexicon = Lexicon::embedded();
    assert_eq!(lexicon.languages().collect::<Vec<_>>(), ["en", "de", "es", "fr", "zh"]);
    let texts = CASES.lines().filter_map(|line| line.split_once("text = ")).map(|(_, text)| text);
    let texts: Vec<String> = texts.map(|text| format!(" {} ", text.trim_matches(['"', '\'']).to_lowercase())).collect();
    assert!(texts.len() > 50, "{}", texts.len());
    for language in &lexicon.languages {
        for pattern in patterns(language) {
            let compiled = pattern.compile().unwrap_or_else(|error| panic!("{}: {error}", pattern.table.text));
            for text in texts.iter().filter(|text| compiled.is_match(text.as_bytes())) {
                assert!(pattern.is_match(text.as_bytes()), "{}: {text}", pattern.table.text);
            }
        }
    }
}

#[test]
fn most_patterns_are_compiled_for_few_texts() {
    let all = || Lexicon::embedded().languages.iter().flat_map(patterns);
    let told = all().filter(|pattern| !pattern.table.needed.texts.is_empty()).count();
    assert!(told * 10 > all().count() * 9, "{told} of {} patterns need a text", all().count());
    // A greeting in a new host.
    let lexicon = Lexicon::new(super::tables::LANGUAGES, super::tables::OTHERS);
    crate::scope::lexicon_scope(&[crate::provenance::spans::Span { text: "hello", typed: true }], &lexicon);
    let compiled = lexicon.languages.iter().flat_map(patterns).filter(|pattern| pattern.compiled.get().is_some());
    let sizes: Vec<usize> = compiled.map(|pattern| pattern.table.text.len()).collect();
    assert!(sizes.iter().sum::<usize>() < 8 << 10, "{sizes:?}");
}

#[test]
fn build_writes_the_tables_as_rust() {
    let text = "[others]\npt = 'o a'\n[[language]]\ncode = 'xx'\n[[language.rule]]\nclass = 'send'\nwhen = '^ send '\n";
    let rust = Source::parse(text).expect("a lexicon").to_rust();
    assert!(rust.contains(r#"OTHERS: &[Words] = &[Words(&["a", "o"])]"#), "{rust}");
    assert!(rust.contains(r#"RuleTable { class: Class::Send, when: PatternTable { text: "^ send ""#), "{rust}");
}

fn error(rule: &str) -> String {
    let text = format!("[[language]]\ncode = \"xx\"\n[[language.rule]]\n{rule}");
    Lexicon::parse(&text).expect_err("an error").to_string()
}

#[test]
fn rule_for_exec_or_trade_is_refused() {
    for class in ["exec", "trade", "ask"] {
        assert!(error(&format!("class = \"{class}\"\nwhen = 'x'")).contains("read, write and send only"), "{class}");
    }
}

#[test]
fn wrong_pattern_is_refused_by_name() {
    assert!(error("class = \"send\"\nwhen = '{nothing}'").contains("pattern nothing of xx"));
    assert!(error("class = \"send\"\nwhen = '('").contains("of xx"));
    assert!(error("class = \"send\"\nwhen = 'x'\nif = 1").contains("unknown field"));
}
