//! The phrases of a language that take `send` away from whole sentences.
//!
//! Holds no phrase of its own. See [`crate::scope::withholding`].

use super::{LexiconError, NEVER, Pattern, Patterns, list};
use serde::Deserialize;

/// Patterns of whole sentences that take `send` away.
#[derive(Debug)]
pub struct Withholds {
    /// Phrases that take nothing away, although they have words of the others, and the words of messages.
    pub plain: Pattern,
    /// Conditions that count even there.
    pub strong: Pattern,
    /// Conditions, doubts, reports and refusals.
    pub doubts: Vec<Pattern>,
    /// Stories and examples, also in the sentence before.
    pub pretends: Pattern,
    /// Words at the start of a clause that take back what was said.
    pub back: Pattern,
    /// The forms of a question that is a request.
    pub polite: Pattern,
    /// Whole clauses that may stand before a colon and a request.
    pub salutes: Pattern,
}

/// The lists of a language, with semicolons; the head of the lexicon explains them.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
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

impl Withholds {
    /// Reads the lists of a language.
    pub(super) fn read(file: &File, patterns: &Patterns) -> Result<Self, LexiconError> {
        let han = patterns.han;
        let pattern = |words: &str, text: String| match words.trim() {
            "" => patterns.pattern(NEVER),
            _ => patterns.pattern(&text),
        };
        let any = |words: &str| pattern(words, anywhere(han, words));
        let at_start = |words: &str| pattern(words, at_start(han, &file.hesitates, words));
        let doubts = [&file.condition, &file.doubt, &file.report, &file.refusal, &file.pretence];
        let doubts = doubts.into_iter().map(|words| any(words)).chain([at_start(&file.inverted)]);
        Ok(Self {
            plain: any(&file.plain)?,
            strong: any(&file.strong)?,
            doubts: doubts.collect::<Result<_, _>>()?,
            pretends: any(&file.pretence)?,
            back: at_start(&file.back)?,
            polite: at_start(&file.polite)?,
            salutes: pattern(&file.salutes, format!("^ ?{} ?$", list(&file.salutes, ';')))?,
        })
    }
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
