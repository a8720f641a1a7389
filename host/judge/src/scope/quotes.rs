//! The parts of a typed text that quote another text: quotation marks, code, lines with `>`, forwarded messages.
//!
//! Errs toward quoted: a mark that nothing closes quotes the rest of the text.

use std::ops::Range;

/// Opening marks and the marks that close each. A straight apostrophe has a rule of its own.
const PAIRS: [(char, &[char]); 14] = [
    ('"', &['"']),
    ('＂', &['＂']),
    ('`', &['`']),
    ('“', &['”']),
    ('”', &['”', '“']),
    ('„', &['“', '”', '"', '„']),
    ('‟', &['”']),
    ('«', &['»']),
    ('»', &['«']),
    ('‘', &['’']),
    ('‚', &['‘', '’']),
    ('「', &['」']),
    ('『', &['』']),
    ('《', &['》']),
];
/// Beginnings of the line above a forwarded message, in lower case.
const FORWARDED: [&str; 6] = [
    "begin forwarded message",
    "anfang der weitergeleiteten",
    "inicio del mensaje reenviado",
    "debut du message",
    "début du message",
    "转发的邮件",
];

/// Returns the ranges of bytes that quote, in order and without overlap.
pub fn quoted(text: &str) -> Vec<Range<usize>> {
    let mut ranges = lines(text);
    let mut at = 0;
    let mut before = None;
    while let Some(mark) = text[at..].chars().next() {
        if let Some(line) = ranges.iter().find(|range| range.contains(&at)) {
            at = line.end;
            before = None;
            continue;
        }
        let next = at + mark.len_utf8();
        match end_of_quote(text, mark, before, next) {
            Some(end) => {
                ranges.push(at..end);
                at = end;
                before = None;
            }
            None => {
                at = next;
                before = Some(mark);
            }
        }
    }
    merged(ranges)
}

/// Returns the end of the quotation that a mark opens.
fn end_of_quote(text: &str, mark: char, before: Option<char>, begin: usize) -> Option<usize> {
    let rest = &text[begin..];
    if mark == '\'' {
        let opens = before.is_none_or(|before| !before.is_alphanumeric())
            && rest.starts_with(|next: char| !next.is_whitespace());
        let line = rest.split('\n').next().unwrap_or_default();
        return if opens { closing_apostrophe(line).map(|end| begin + end) } else { None };
    }
    let (_, closing) = PAIRS.iter().find(|(open, _)| *open == mark)?;
    if mark == '‘' || mark == '‚' {
        return Some(begin + closing_single(rest, closing).unwrap_or(rest.len()));
    }
    let end = rest.char_indices().find(|(_, next)| closing.contains(next)).map(|(at, next)| at + next.len_utf8());
    Some(begin + end.unwrap_or(rest.len()))
}

fn closing_apostrophe(line: &str) -> Option<usize> {
    line.match_indices('\'').map(|(at, _)| at + 1).find(|end| !line[*end..].starts_with(char::is_alphanumeric))
}

/// The mark `’` is also an apostrophe, so it closes only at the end of a word.
fn closing_single(rest: &str, closing: &[char]) -> Option<usize> {
    let ends = rest.char_indices().filter(|(_, next)| closing.contains(next)).map(|(at, next)| at + next.len_utf8());
    ends.into_iter().find(|end| !rest[*end..].starts_with(char::is_alphanumeric))
}

/// Returns fenced lines, lines with `>`, and the rest after the head of a forwarded message.
fn lines(text: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let (mut at, mut fence) = (0, None);
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let start = line.trim_start();
        let is_fence = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, is_fence) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) if start.starts_with(['>', '＞']) => {}
            (None, None) if is_forwarded(start) => {
                ranges.push(range.start..text.len());
                return ranges;
            }
            (None, None) => continue,
            (Some(_), _) => {}
        }
        ranges.push(range);
    }
    ranges
}

fn is_forwarded(line: &str) -> bool {
    let dashes = line.chars().take_while(|next| *next == '-').count();
    if dashes >= 5 && line[dashes..].trim().chars().any(char::is_alphanumeric) {
        return true;
    }
    let line = line.to_lowercase();
    FORWARDED.iter().any(|head| line.starts_with(head))
}

fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<&str> {
        quoted(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn each_pair_of_marks_quotes() {
        for quote in ["\"a b\"", "“a b”", "„a b“", "«a b»", "»a b«", "「a b」", "『a b』", "‘a b’", "`a b`", "'a b'"]
        {
            assert_eq!(parts(&format!("x {quote} y")), [quote]);
        }
    }

    #[test]
    fn apostrophe_in_a_word_does_not_quote() {
        assert_eq!(parts("don't mail it, it's Ana's"), Vec::<&str>::new());
        assert_eq!(parts("‘don’t mail it’ x"), ["‘don’t mail it’"]);
    }

    #[test]
    fn mark_that_nothing_closes_quotes_the_rest() {
        assert_eq!(parts("he wrote \"send it\nnow"), ["\"send it\nnow"]);
    }

    #[test]
    fn fences_and_marked_lines_quote() {
        assert_eq!(parts("a\n```\nsend\n```\nb"), ["```\nsend\n```\n"]);
        assert_eq!(parts("a\n> send\nb"), ["> send\n"]);
        assert_eq!(parts("a\n```\nsend"), ["```\nsend"]);
        assert_eq!(parts("a\n---- \n-----Original Message-----\nb"), ["-----Original Message-----\nb"]);
    }
}
