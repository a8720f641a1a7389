//! The clauses of a sentence, in the folded text that the patterns of a lexicon read.
//!
//! Knows the joiners of a language, and nothing of what a clause asks for. See [`super::reading`].

use super::lexicon::{Joiner, Language};
use super::words::{Kind, Token};
use std::ops::Range;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Words of an item of a list, and items of a list, in a request such as "invite Ana, Ben and Karl to dinner".
const ITEM_WORDS_MAX: usize = 3;
const ITEMS_MAX: usize = 6;

/// The text of a clause, with the place of each word.
pub(super) struct Clause {
    pub text: String,
    places: Vec<Place>,
    pub joiner: Joiner,
    pub colon: bool,
}

/// The place of a word in its clause and in the typed text.
#[derive(Clone)]
struct Place {
    own: Range<usize>,
    typed: Range<usize>,
    capital: bool,
}

pub(super) fn clauses(language: &Language, sentence: &[Token]) -> Vec<Clause> {
    let mut clauses = Vec::new();
    let mut clause = Clause::new(Joiner::Start);
    let mut tokens = sentence.iter().peekable();
    while let Some(token) = tokens.next() {
        let joiner = match token.kind {
            // The end of an abbreviation.
            Kind::Stop(_) => continue,
            Kind::Comma | Kind::Colon | Kind::Line => Some(Joiner::Comma),
            Kind::Word => joiner(language, token, tokens.peek().copied()),
        };
        // A joiner of two Han characters.
        if language.han && token.kind == Kind::Word && joiner.is_some() {
            tokens.next();
        }
        let Some(joiner) = joiner else {
            clause.push(token, language);
            continue;
        };
        if clause.places.is_empty() {
            // A joiner after a comma counts: ", and send".
            if joiner != Joiner::Comma && clause.joiner != Joiner::Start {
                clause.joiner = joiner;
            }
            continue;
        }
        clause.colon = token.kind == Kind::Colon;
        clauses.push(std::mem::replace(&mut clause, Clause::new(joiner)).closed(language));
    }
    if !clause.places.is_empty() {
        clauses.push(clause.closed(language));
    }
    clauses
}

/// Returns the text of clauses. Between them is `,`, `:`, or the mark of the word that joins them: `&` and, `|` or, `/` but, `~` so.
pub(super) fn said(language: &Language, clauses: &[Clause]) -> String {
    let mut said = String::new();
    let mut before = false;
    for clause in clauses {
        said.push_str(match clause.joiner {
            _ if before => ":",
            Joiner::Start => "",
            Joiner::Comma if language.han => "，",
            Joiner::Comma => ",",
            Joiner::And => "&",
            Joiner::Or => "|",
            Joiner::But => "/",
            Joiner::So => "~",
        });
        said.push_str(&clause.text);
        before = clause.colon;
    }
    said
}

/// Returns whether a "but not" after the first clause takes its request away: "publish it, but not yet".
pub(super) fn is_revoked(language: &Language, rest: &[Clause]) -> bool {
    let [first, next, ..] = rest else { return false };
    if next.joiner != Joiner::But || next.places.len() > 2 {
        return false;
    }
    let mut whole = Clause::new(first.joiner);
    whole.append(first);
    whole.append(next);
    language.marks.withheld.is_match(whole.text.as_bytes())
}

/// Returns the first clause with the clauses that continue it: the rest of a list, or what the message says.
pub(super) fn joined(language: &Language, rest: &[Clause]) -> Option<Clause> {
    let (first, others) = rest.split_first()?;
    let is_item = |clause: &&Clause| clause.joiner == Joiner::Comma && clause.places.len() <= ITEM_WORDS_MAX;
    let items = others.iter().take(ITEMS_MAX).take_while(is_item).count();
    let ends_list = others.get(items).is_some_and(|next| matches!(next.joiner, Joiner::And | Joiner::Or));
    let continues = |next: &Clause| {
        matches!(next.joiner, Joiner::Comma | Joiner::And) && language.marks.continues.is_match(next.text.as_bytes())
    };
    let end = match others.first() {
        _ if first.colon => return None,
        _ if ends_list => items + 1,
        Some(next) if continues(next) => 1,
        _ => return None,
    };
    let mut joined = Clause::new(first.joiner);
    for clause in &rest[..=end] {
        joined.append(clause);
    }
    Some(joined)
}

fn joiner(language: &Language, token: &Token, next: Option<&Token>) -> Option<Joiner> {
    match (language.han, next) {
        (false, _) => language.joiner(&token.text).filter(|_| !token.joined),
        (true, Some(next)) if next.kind == Kind::Word => language.joiner(&format!("{}{}", token.text, next.text)),
        (true, _) => None,
    }
}

/// Returns a word without accents.
pub(super) fn folded(word: &str) -> String {
    word.nfd()
        .filter(|next| !is_combining_mark(*next))
        .flat_map(|next| if next == 'ß' { vec!['s', 's'] } else { vec![next] })
        .collect()
}

impl Clause {
    fn new(joiner: Joiner) -> Self {
        Self { text: String::new(), places: Vec::new(), joiner, colon: false }
    }

    fn push(&mut self, token: &Token, language: &Language) {
        if !language.han {
            self.text.push(if token.joined && !self.places.is_empty() { '-' } else { ' ' });
        }
        let begin = self.text.len();
        if language.han {
            self.text.extend(token.text.chars().map(|next| language.usual(next)));
        } else if language.kept.contain(&token.text) {
            self.text.push_str(&token.text);
        } else {
            self.text.push_str(&folded(&token.text));
        }
        self.places.push(Place { own: begin..self.text.len(), typed: token.bytes.clone(), capital: token.capital });
    }

    /// Adds the words of the clause after it.
    fn append(&mut self, next: &Self) {
        self.text.truncate(self.text.trim_end().len());
        let moved = self.text.len();
        let places = next.places.iter().cloned();
        self.places.extend(places.map(|place| Place { own: place.own.start + moved..place.own.end + moved, ..place }));
        self.text.push_str(&next.text);
        self.colon = next.colon;
    }

    /// Returns whether words of the typed text are in the clause.
    pub fn has(&self, words: &Range<usize>) -> bool {
        self.places.iter().any(|place| place.typed.start < words.end && words.start < place.typed.end)
    }

    /// Returns the clause without the words of the message that it sends.
    pub fn head(&self, language: &Language) -> &[u8] {
        let text = self.text.as_bytes();
        let content = language
            .marks
            .content
            .groups_of(text)
            .and_then(|captures| captures.name("c").or_else(|| captures.name("d")));
        content.map_or(text, |content| &text[..content.start()])
    }

    fn closed(mut self, language: &Language) -> Self {
        if !language.han {
            self.text.push(' ');
        }
        self
    }

    /// Returns the range in the typed text of a range of the clause.
    pub fn place(&self, words: Range<usize>) -> Range<usize> {
        let touched = self.places.iter().filter(|place| place.own.start < words.end && words.start < place.own.end);
        touched.map(|place| place.typed.clone()).reduce(|all, next| all.start..next.end).unwrap_or(0..0)
    }

    /// Returns whether the word after this place begins with a capital letter.
    pub fn is_name_after(&self, end: usize) -> bool {
        self.places.iter().find(|place| place.own.start >= end).is_some_and(|place| place.capital)
    }
}
