//! The words and marks of a text, with their places, and its sentences.
//!
//! Knows no language: folding and clauses are in [`super::reading`].

use crate::provenance::spans::Marked;
use std::ops::Range;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// A word or a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: Kind,
    /// The word in lower case and NFKC, or the stand-in of a quotation, an address or a file.
    pub text: String,
    pub bytes: Range<usize>,
    /// True if a hyphen joins it to the word before.
    pub joined: bool,
    /// True if it begins with a capital letter.
    pub capital: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word, a number, an address, a file or a quotation.
    Word,
    Comma,
    Colon,
    /// The end of a sentence; `true` for a question.
    Stop(bool),
    /// The end of a line that also ends a sentence.
    Line,
}

/// Returns the tokens of a text. A part that is not the person's own words is one token.
pub(super) fn tokens(text: &str, marked: &[Marked]) -> Vec<Token> {
    let mut quotes = marked.iter().map(|part| part.bytes.clone()).peekable();
    let mut tokens: Vec<Token> = Vec::new();
    let (mut at, mut hyphen) = (0, false);
    while let Some(next) = text[at..].chars().next() {
        if let Some(quote) = quotes.next_if(|quote| quote.start <= at) {
            tokens.push(token(Kind::Word, "<q>".into(), quote.clone()));
            at = quote.end.min(text.len());
            continue;
        }
        let limit = quotes.peek().map_or(text.len(), |quote| quote.start.min(text.len()));
        let rest = &text[at..limit];
        let length = word_length(rest);
        if length == 0 {
            hyphen =
                is_hyphen(next) && tokens.last().is_some_and(|last| last.kind == Kind::Word && last.bytes.end == at);
            if let Some(kind) = mark(next, &text[at + next.len_utf8()..]) {
                tokens.push(token(kind, String::new(), at..at + next.len_utf8()));
            } else if is_hyphen(next) && !hyphen && next != '\u{2011}' {
                tokens.push(token(Kind::Comma, String::new(), at..at + next.len_utf8()));
            }
            at += next.len_utf8();
            continue;
        }
        let word = &rest[..length];
        let joined = hyphen && tokens.last().is_some_and(|last| last.kind == Kind::Word && last.bytes.end < at);
        hyphen = false;
        tokens.push(Token { joined, capital: next.is_uppercase(), ..token(Kind::Word, shown(word), at..at + length) });
        at += length;
    }
    tokens
}

fn token(kind: Kind, text: String, bytes: Range<usize>) -> Token {
    Token { kind, text, bytes, joined: false, capital: false }
}

/// Returns the bytes of the word at the start of a text; 0 if there is none. Each Han character is a word.
fn word_length(text: &str) -> usize {
    let run =
        text.find(|next: char| !(next.is_ascii_alphanumeric() || "._%+/@:#~&=?-".contains(next))).unwrap_or(text.len());
    let run = text[..run].trim_end_matches(['.', ':', '?', '-', '/', '+', '=', '%', '~', '&', '#', '@']);
    if is_address(run) || is_file(run) {
        return run.len();
    }
    let Some(first) = text.chars().next() else { return 0 };
    if is_han(first) || is_mention(first, &text[first.len_utf8()..]) {
        return first.len_utf8();
    }
    let is_part = |next: char| (next.is_alphanumeric() || is_combining_mark(next)) && !is_han(next);
    text.find(|next: char| !is_part(next)).unwrap_or(text.len())
}

/// Returns whether a character is a Han character.
pub(super) fn is_han(next: char) -> bool {
    matches!(next, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Returns whether an at sign begins the mention of a name in Han characters.
fn is_mention(first: char, rest: &str) -> bool {
    matches!(first, '@' | '＠') && rest.trim_start().starts_with(is_han)
}

fn is_address(run: &str) -> bool {
    let name = run.strip_prefix(['@', '#']);
    name.is_some_and(|name| name.starts_with(|next: char| next.is_ascii_alphanumeric()))
        || run.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.contains('.'))
}

fn is_file(run: &str) -> bool {
    let inner = |mark: char| {
        run.split_once(mark).is_some_and(|(a, b)| !a.is_empty() && b.starts_with(|c: char| c.is_ascii_alphanumeric()))
    };
    run.starts_with(|next: char| next.is_ascii_alphanumeric() || "/~.".contains(next))
        && (run.contains("://") || inner('.') || inner('/') && run.len() > 3)
}

fn shown(word: &str) -> String {
    if is_address(word) {
        "<h>".into()
    } else if word.len() > 1 && word.is_ascii() && is_file(word) {
        "<f>".into()
    } else {
        word.nfkc().flat_map(char::to_lowercase).nfkc().collect()
    }
}

fn is_hyphen(next: char) -> bool {
    matches!(next, '-' | '\u{2010}' | '\u{2011}' | '–' | '—')
}

fn mark(next: char, after: &str) -> Option<Kind> {
    match next {
        '.' | '!' | ';' | '。' | '！' | '；' | '…' | '．' | '｡' | '¡' => Some(Kind::Stop(false)),
        '?' | '？' => Some(Kind::Stop(true)),
        ',' | '，' | '、' | '(' | ')' | '（' | '）' | '[' | ']' | '|' | '¿' | '•' | '*' | '&' => {
            Some(Kind::Comma)
        }
        ':' | '：' => Some(Kind::Colon),
        // A line that continues in lower case is one that a program wrapped.
        '\n' | '\r' | '\u{2028}' | '\u{2029}' if !after.starts_with(|next: char| next.is_lowercase()) => {
            Some(Kind::Line)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provenance::spans::TypedSpan;

    fn words(text: &str) -> Vec<String> {
        tokens(text, &TypedSpan::read(0, text).marked)
            .into_iter()
            .map(|token| if token.kind == Kind::Word { token.text } else { format!("{:?}", token.kind) })
            .collect()
    }

    #[test]
    fn addresses_files_and_quotations_are_one_word_each() {
        assert_eq!(words("Send docs/a.md to bob@x.org."), ["send", "<f>", "to", "<h>", "Stop(false)"]);
        assert_eq!(words("Post \"a b\" in #general"), ["post", "<q>", "in", "<h>"]);
        assert_eq!(words("at 12:30: go"), ["at", "12", "Colon", "30", "Colon", "go"]);
    }

    #[test]
    fn han_characters_are_words_and_full_width_is_folded() {
        assert_eq!(words("发给Ｔom。"), ["发", "给", "tom", "Stop(false)"]);
        assert_eq!(words("＠小李 see @ 5"), ["@", "小", "李", "see", "5"]);
    }

    #[test]
    fn wrapped_line_does_not_end_a_sentence() {
        assert_eq!(words("do not\nsend"), ["do", "not", "send"]);
        assert_eq!(words("do not\nSend"), ["do", "not", "Line", "send"]);
    }
}
