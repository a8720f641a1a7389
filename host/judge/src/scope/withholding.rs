//! What takes `send` away from a sentence: a condition, a doubt, a report, a pretence, a question, or a taking-back after it.
//!
//! Looks at whole sentences, and never finds a request. See [`super::reading`] and the tables `withholds` of the lexicon.

use super::lexicon::Withholds;

/// What one sentence says of `send`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Verdict {
    /// It has a condition, a doubt, a report or a pretence: neither it nor the sentence before it gives `send`.
    doubts: bool,
    /// It is a question in no polite form: it gives no `send`, and neither does the sentence before it.
    asks: bool,
    /// It takes back what was said before it.
    takes_back: bool,
    /// It tells the reader to see the sentence after it as a story or as the words of others.
    pretends: bool,
}

impl Verdict {
    /// Joins the verdicts of two languages that the sentence may have. A question that is polite in one of them is a request.
    const fn or(self, other: Self) -> Self {
        Self {
            doubts: self.doubts || other.doubts,
            asks: self.asks && other.asks,
            takes_back: self.takes_back || other.takes_back,
            pretends: self.pretends || other.pretends,
        }
    }
}

/// A sentence in its folded text, with marks between its clauses.
pub(super) struct Sentence {
    /// Without the words of a message after a colon.
    pub said: String,
    /// The clauses after the last one that sends.
    pub after: String,
    /// True if a clause with a colon comes before the request: what follows may be the words of others.
    pub is_introduced: bool,
    /// True if it ends with a question mark, which does not belong to a message in it.
    pub is_question: bool,
}

fn verdict(withholds: &Withholds, sentence: &Sentence) -> Verdict {
    let said = sentence.said.as_bytes();
    let plain = |text| withholds.plain.replaced(text);
    let own = plain(said);
    let pretends = withholds.pretends.is_match(&own);
    let is_doubt = withholds.doubts.iter().any(|doubt| doubt.is_match(&own)) || withholds.strong.is_match(said);
    Verdict {
        doubts: is_doubt
            || pretends
            || sentence.is_introduced
            || withholds.back.is_match(&plain(sentence.after.as_bytes())),
        asks: sentence.is_question && !withholds.polite.is_match(said),
        takes_back: withholds.back.is_match(&own),
        pretends,
    }
}

/// Returns whether a sentence gives `send`, by its own verdict and those of its neighbours. Each sentence is in the languages that it
/// may have.
pub(super) fn gives_send(sentences: &[Vec<(&Withholds, Sentence)>], at: usize) -> bool {
    let verdict = |at: Option<usize>| {
        let said = at.and_then(|at| sentences.get(at)).into_iter().flatten();
        said.map(|(withholds, sentence)| verdict(withholds, sentence)).reduce(Verdict::or).unwrap_or_default()
    };
    let own = verdict(Some(at));
    if own.doubts || own.asks {
        return false;
    }
    let next = verdict(at.checked_add(1));
    !next.doubts && !next.asks && !next.takes_back && !verdict(at.checked_sub(1)).pretends
}
