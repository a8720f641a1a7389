//! The reading of typed text with a lexicon: sentences, clauses, and the classes that each clause asks for.
//!
//! A clause counts only if a rule explains it from its beginning; every other clause gives nothing. See [`super::lexicon`].

use super::clauses::{Clause, clauses, folded, is_revoked, joined, said};
use super::lexicon::{Joiner, Language, Lexicon, Rule, Words};
use super::withholding::{self, Sentence};
use super::words::{self, Kind, Token};
use crate::class::Class;
use crate::provenance::spans::TypedSpan;
use std::ops::Range;

/// Bytes of a span that the lexicon reads. A longer text is hardly typed, and its rest gives nothing.
pub const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Function words that show a language without rules.
const FOREIGN_WORDS_MIN: usize = 2;
/// Groups of a rule that hold the words that ask.
const TRIGGERS: [&str; 3] = ["v", "w", "x"];
/// A class that a clause asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub class: Class,
    /// The range of bytes of the words that ask.
    pub bytes: Range<usize>,
}

/// The reading of one text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Read {
    /// The classes, in the order of the text.
    pub found: Vec<Found>,
    /// True if the text says that something must not be sent, so no other text of the message gives `send`.
    pub withheld: bool,
}

pub fn read(span: &TypedSpan<'_>, lexicon: &Lexicon) -> Read {
    let tokens = words::tokens(bounded(span.text), &span.marked);
    let mut read = Read::default();
    Reader { languages: languages_of(&tokens, lexicon), read: &mut read }.text(&tokens);
    if read.withheld {
        read.found.retain(|found| found.class != Class::Send);
    }
    read.found.sort_by_key(|found| (found.bytes.start, found.class));
    read.found.dedup();
    read
}

fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

/// Returns the languages to try: Chinese by its script, the others by the number of their function words.
fn languages_of<'a>(tokens: &[Token], lexicon: &'a Lexicon) -> Vec<&'a Language> {
    let words: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
    let folded: Vec<String> = words.iter().map(|word| folded(word)).collect();
    let count = |set: &Words| {
        words.iter().zip(&folded).filter(|(word, folded)| set.contain(word) || set.contain(folded)).count()
    };
    let other = lexicon.others.iter().map(count).max().unwrap_or(0);
    let scores: Vec<usize> = lexicon.languages.iter().map(|language| count(&language.function)).collect();
    let best = scores.iter().copied().max().unwrap_or(0);
    let is_japanese = words.iter().any(|word| word.contains(|next| matches!(next, '\u{3040}'..='\u{30ff}')));
    let fits = |(language, score): (&'a Language, usize)| match language.han {
        true => !is_japanese,
        false => score == best && (other <= best || other < FOREIGN_WORDS_MIN),
    };
    lexicon.languages.iter().zip(scores).filter(|pair| fits(*pair)).map(|(language, _)| language).collect()
}

/// The role of a clause for the clause that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Request,
    /// A clause that no rule explains.
    Plain,
    /// A plain clause with a subject: a statement or a question.
    Statement,
    /// A condition, reported speech, a habit.
    Blocked,
    Negated,
    /// A request that contains another one, such as a reminder.
    Embeds,
}

struct Reader<'a> {
    languages: Vec<&'a Language>,
    read: &'a mut Read,
}

/// The way to continue after a sentence; the last one of all languages counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Sentence,
    /// The text after this line is content.
    LineThenEnd,
    /// The rest of this line is content.
    SkipLine,
    End,
}

impl Reader<'_> {
    fn text(&mut self, tokens: &[Token]) {
        let (mut begin, mut next) = (0, Next::Sentence);
        let (mut sentences, mut ends) = (Vec::new(), Vec::new());
        while begin < tokens.len() {
            let end = self.end_of_sentence(tokens, begin);
            let (sentence, stop) = (&tokens[begin..end], tokens.get(end).map(|token| token.kind));
            begin = end + 1;
            if next < Next::SkipLine {
                let mut said = Vec::new();
                for language in self.languages.clone() {
                    let Some((after, own)) = self.sentence(language, sentence, stop) else { continue };
                    next = next.max(after);
                    said.push((&language.withholds, own));
                }
                // A line break, or the number of an item in a list, is no sentence.
                if sentence.iter().any(|token| token.text.contains(char::is_alphabetic)) {
                    sentences.push(said);
                    ends.push(self.read.found.len());
                }
            }
            match (next, stop) {
                (Next::End, _) | (Next::LineThenEnd, Some(Kind::Line)) => break,
                (Next::SkipLine, Some(Kind::Line)) => next = Next::Sentence,
                _ => {}
            }
        }
        // Most texts send nothing, and their sentences are not looked at again.
        let mut at = 0;
        self.read.found.retain(|found| {
            let sentence = ends.partition_point(|end| *end <= at);
            at += 1;
            found.class != Class::Send || withholding::gives_send(&sentences, sentence)
        });
    }

    fn end_of_sentence(&self, tokens: &[Token], begin: usize) -> usize {
        let is_abbreviation =
            |word: &Token| self.languages.iter().any(|language| language.abbreviations.contain(&word.text));
        let is_end = |at: usize| match tokens[at].kind {
            Kind::Line => true,
            Kind::Stop(_) => at == begin || !is_abbreviation(&tokens[at - 1]) && !self.is_ordinal(&tokens[at - 1..]),
            Kind::Word | Kind::Comma | Kind::Colon => false,
        };
        (begin..tokens.len()).find(|at| is_end(*at)).unwrap_or(tokens.len())
    }

    /// Returns whether tokens begin with a number whose full stop ends no sentence.
    fn is_ordinal(&self, tokens: &[Token]) -> bool {
        let [number, _, next, ..] = tokens else { return false };
        let is_number = number.text.len() <= 2 && number.text.bytes().all(|byte| byte.is_ascii_digit());
        let is_dated =
            |language: &&Language| language.dated.contain(&next.text) || !language.dated.is_empty() && !next.capital;
        is_number && next.kind == Kind::Word && self.languages.iter().any(is_dated)
    }

    fn sentence(&mut self, language: &Language, sentence: &[Token], stop: Option<Kind>) -> Option<(Next, Sentence)> {
        let has_han = sentence.iter().any(|token| token.text.chars().any(words::is_han));
        if has_han != language.han {
            return None;
        }
        let clauses = clauses(language, sentence);
        let begun = self.read.found.len();
        let next = self.requests(language, &clauses, stop);
        let sends = |clause: &Clause| {
            let mut found = self.read.found[begun..].iter();
            found.any(|found| found.class == Class::Send && clause.has(&found.bytes))
        };
        let last = clauses.iter().rposition(sends);
        let salutes = &language.withholds.salutes;
        let introduces = |clause: &Clause| clause.colon && !salutes.is_match(clause.text.as_bytes());
        // After the colon of a request are the words of a message.
        let colon = last.filter(|last| clauses[*last].colon && next >= Next::SkipLine);
        let sentence = Sentence {
            said: said(language, &clauses[..colon.map_or(clauses.len(), |colon| colon + 1)]),
            after: last
                .filter(|_| colon.is_none())
                .map_or_else(String::new, |last| said(language, &clauses[last + 1..])),
            is_introduced: last.is_some_and(|last| clauses[..last].iter().any(introduces)),
            is_question: stop == Some(Kind::Stop(true)) && colon.is_none(),
        };
        Some((next, sentence))
    }

    /// Adds the classes of the clauses of a sentence.
    fn requests(&mut self, language: &Language, clauses: &[Clause], stop: Option<Kind>) -> Next {
        let marks = &language.marks;
        let contrast = clauses.iter().any(|clause| marks.contrast.is_match(clause.text.as_bytes()));
        let (mut before, mut points) = (None, false);
        for (index, clause) in clauses.iter().enumerate() {
            let firm = marks.pleads.replaced(clause.text.as_bytes());
            self.read.withheld |=
                !contrast && (marks.withheld.is_match(&firm) || is_revoked(language, &clauses[index..]));
            points |= marks.points.is_match(clause.text.as_bytes());
            let is_question = stop == Some(Kind::Stop(true));
            let begun = self.read.found.len();
            let mut state = self.clause(language, clause, before, is_question);
            if self.continued(language, &clauses[index..], before, is_question, begun) {
                state = State::Request;
            }
            let is_head =
                matches!(state, State::Request | State::Embeds) || marks.introduces.is_match(clause.text.as_bytes());
            if clause.colon && is_head {
                let ends_line = index + 1 == clauses.len() && matches!(stop, Some(Kind::Line) | None);
                return if ends_line { Next::End } else { Next::SkipLine };
            }
            before = Some(state);
        }
        if points { Next::LineThenEnd } else { Next::Sentence }
    }

    /// Adds the classes of a clause, and returns its role for the next one.
    fn clause(&mut self, language: &Language, clause: &Clause, before: Option<State>, is_question: bool) -> State {
        let marks = &language.marks;
        let whole = clause.text.as_bytes();
        let spared = marks.spared.replaced(whole);
        let is_negated = |text| marks.negated.is_match(&marks.pleads.replaced(text));
        let is_conditional = |text| marks.conditional.is_match(&marks.spared.replaced(text));
        let is_statement = marks.subject.is_match(whole) && !marks.framed.is_match(whole);
        let begun = self.read.found.len();
        let mut asked = false;
        if may_ask(clause.joiner, before) {
            for rule in &language.rules {
                let Some((words, text)) = matched(rule, clause, language, is_question) else { continue };
                // Reading has no effect that a negation could take away.
                if rule.class != Class::Read
                    && (before == Some(State::Negated) && clause.joiner == Joiner::Comma || is_negated(text))
                {
                    continue;
                }
                if rule.class == Class::Send
                    && (before == Some(State::Embeds) || is_conditional(text) || marks.ability.is_match(text))
                {
                    continue;
                }
                asked |= !rule.fact;
                self.read.found.push(Found { class: rule.class, bytes: clause.place(words) });
            }
        }
        self.keep_send(begun);
        if is_negated(if asked { clause.head(language) } else { whole }) {
            return State::Negated;
        }
        if asked {
            let embeds = before == Some(State::Embeds) || marks.embeds.is_match(whole);
            return if embeds { State::Embeds } else { State::Request };
        }
        if marks.blocked.is_match(&spared) {
            return State::Blocked;
        }
        match before {
            Some(state) if !matches!(clause.joiner, Joiner::Start | Joiner::So | Joiner::But) => state,
            _ if is_statement => State::Statement,
            _ => State::Plain,
        }
    }

    /// Adds `send` if a clause asks for it only together with the clauses that continue it, and returns whether it does.
    fn continued(
        &mut self,
        language: &Language,
        rest: &[Clause],
        before: Option<State>,
        is_question: bool,
        begun: usize,
    ) -> bool {
        if self.read.found[begun..].iter().any(|found| found.class == Class::Send) {
            return false;
        }
        let Some(joined) = joined(language, rest) else { return false };
        let own = self.read.found.len();
        self.clause(language, &joined, before, is_question);
        let found = self.read.found.split_off(own);
        self.read.found.extend(found.into_iter().filter(|found| found.class == Class::Send));
        let sends = self.read.found.len() > own;
        self.keep_send(begun);
        sends
    }

    /// Drops `write` of a clause where the same words also send: "write to Ana".
    fn keep_send(&mut self, begun: usize) {
        let clause = self.read.found.split_off(begun);
        let sends = |own: &Range<usize>| {
            let overlaps = |found: &Found| found.bytes.start < own.end && own.start < found.bytes.end;
            clause.iter().any(|found| found.class == Class::Send && overlaps(found))
        };
        let kept = clause.iter().filter(|found| found.class != Class::Write || !sends(&found.bytes));
        self.read.found.extend(kept.cloned());
    }
}

/// Returns whether a clause may ask for something after the clause before it.
fn may_ask(joiner: Joiner, before: Option<State>) -> bool {
    let Some(before) = before else { return true };
    match (joiner, before) {
        (Joiner::Start, _) => true,
        (Joiner::Comma | Joiner::So, State::Request | State::Plain | State::Statement | State::Embeds) => true,
        (Joiner::And | Joiner::Or, State::Request | State::Plain | State::Embeds) => true,
        (Joiner::But, State::Request | State::Plain | State::Statement | State::Negated | State::Embeds) => true,
        (Joiner::So | Joiner::Comma, State::Negated) => true,
        (Joiner::And | Joiner::Or, State::Statement | State::Negated)
        | (Joiner::Comma | Joiner::And | Joiner::Or | Joiner::But | Joiner::So, State::Blocked) => false,
    }
}

/// Returns the range of the words that ask, and the text that can take their request away.
fn matched<'a>(
    rule: &Rule,
    clause: &'a Clause,
    language: &Language,
    is_question: bool,
) -> Option<(Range<usize>, &'a [u8])> {
    if rule.question.is_some_and(|question| question != is_question) || rule.colon && !clause.colon {
        return None;
    }
    let captures = rule.when.groups_of(clause.text.as_bytes())?;
    let trigger = TRIGGERS.iter().find_map(|name| captures.name(name)).or_else(|| captures.get(0))?.range();
    // Words that ask within a message or reported speech are no content of their own request.
    let text = match clause.head(language) {
        head if trigger.end <= head.len() => head,
        _ => clause.text.as_bytes(),
    };
    let is_excepted = rule.unless.as_ref().is_some_and(|unless| unless.is_match(text));
    (!is_excepted && (!rule.name || clause.is_name_after(trigger.end))).then_some((trigger, text))
}
