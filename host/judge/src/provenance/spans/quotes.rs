//! The quotations of a typed text, by their marks.
//!
//! Errs toward quoted: a mark that nothing closes quotes the rest of the text, and so does an odd number of straight marks from the
//! first of them on, because a text inside of the quotation may have one of its own. See [`super::lines`].

use std::ops::Range;

/// Marks with a direction, and the marks that close each.
const PAIRS: [(char, &[char]); 16] = [
    ('“', &['”']),
    ('„', &['“', '”', '"', '„', '‟']),
    ('‟', &['”', '„']),
    ('〝', &['〞', '〟']),
    ('«', &['»']),
    ('»', &['«', '»']),
    ('‹', &['›']),
    ('›', &['‹', '›']),
    ('「', &['」']),
    ('『', &['』']),
    ('《', &['》']),
    ('〈', &['〉']),
    ('｢', &['｣']),
    ('”', &['”', '“']),
    ('‘', &['’']),
    ('‚', &['‘', '’']),
];
/// Marks that look the same at both ends.
const STRAIGHT: [char; 4] = ['"', '＂', '″', 'ʺ'];
/// Marks that are also apostrophes: they open before a word only, and close after one.
const APOSTROPHES: [char; 8] = ['\'', '’', '‛', '´', '′', '＇', 'ʼ', 'ʹ'];

pub struct Quotation {
    /// Its range of bytes, with its marks.
    pub bytes: Range<usize>,
    /// True if its marks are in pairs. Otherwise it is the rest of the text.
    pub is_closed: bool,
}

/// Returns the quotations in order and without overlap. `lines` are quoted already.
pub fn quotations(text: &str, lines: &[Range<usize>]) -> Vec<Quotation> {
    let mut scan = Scan { text, has_closing_apostrophe: true, straight: Vec::new() };
    let mut lines = lines.iter().peekable();
    let mut found: Vec<Quotation> = Vec::new();
    let (mut at, mut before) = (0, None);
    while let Some(mark) = text[at..].chars().next() {
        while lines.next_if(|line| line.end <= at).is_some() {}
        if let Some(line) = lines.peek().filter(|line| line.start <= at) {
            (at, before) = (line.end, None);
            continue;
        }
        match scan.end_of_quotation(at, mark, before) {
            End::None => (at, before) = (at + mark.len_utf8(), Some(mark)),
            End::Closed(length) => {
                found.push(Quotation { bytes: at..at + length, is_closed: true });
                (at, before) = (at + length, None);
            }
            End::Open => {
                found.push(Quotation { bytes: at..text.len(), is_closed: false });
                break;
            }
        }
    }
    if let Some(first) = scan.first_of_odd() {
        found.retain(|quotation| quotation.bytes.end <= first);
        found.push(Quotation { bytes: first..text.len(), is_closed: false });
    }
    found
}

enum End {
    /// The mark opens none.
    None,
    /// Bytes from the opening mark to the end of the closing one.
    Closed(usize),
    Open,
}

impl From<Option<usize>> for End {
    fn from(length: Option<usize>) -> Self {
        length.map_or(Self::Open, Self::Closed)
    }
}

/// A pass over a text; its time is linear in the length.
struct Scan<'a> {
    text: &'a str,
    /// False once no apostrophe after the current place ends a quotation.
    has_closing_apostrophe: bool,
    /// The quotations between straight marks, with the number of runs of marks that each has.
    straight: Vec<(usize, usize)>,
}

impl Scan<'_> {
    /// Returns the end of the quotation that the mark at this place opens.
    fn end_of_quotation(&mut self, at: usize, mark: char, before: Option<char>) -> End {
        let rest = &self.text[at..];
        let is_after_word = before.is_some_and(char::is_alphanumeric);
        if mark == '`' {
            return end_of_code(rest).into();
        }
        if STRAIGHT.contains(&mark) {
            let end = end_of_straight(rest, mark);
            self.straight.push((at, if end.is_some() { 2 } else { 1 }));
            return end.into();
        }
        if !is_after_word && (rest.starts_with("<<") || rest.starts_with(",,")) {
            let closing: &[&str] = if mark == '<' { &[">>"] } else { &["''", "``", "“", "”", "\"", ",,"] };
            let is_open = rest[2..].starts_with(|next: char| !next.is_whitespace());
            return if is_open { end_at(rest, 2, closing).into() } else { End::None };
        }
        if APOSTROPHES.contains(&mark) {
            let opens = !is_after_word && rest[mark.len_utf8()..].starts_with(|next: char| !next.is_whitespace());
            if !opens || !self.has_closing_apostrophe {
                return End::None;
            }
            let end = closing_single(rest, mark.len_utf8(), &APOSTROPHES);
            self.has_closing_apostrophe = end.is_some();
            // Without an end it is an elision.
            return end.map_or(End::None, End::Closed);
        }
        match PAIRS.iter().find(|(open, _)| *open == mark) {
            None => End::None,
            Some((_, closing)) if matches!(mark, '‘' | '‚') => {
                closing_single(rest, mark.len_utf8(), closing).into()
            }
            Some((_, closing)) => end_of_pair(rest, mark, closing).into(),
        }
    }

    /// Returns the place of the first straight mark if their number is odd.
    fn first_of_odd(&self) -> Option<usize> {
        let runs: usize = self.straight.iter().map(|(_, runs)| runs).sum();
        self.straight.first().filter(|_| runs % 2 == 1).map(|(at, _)| *at)
    }
}

/// Returns the bytes of a run of backquotes with its text: up to another run of the same length, or to `''` as in TeX.
fn end_of_code(rest: &str) -> Option<usize> {
    let length = rest.len() - rest.trim_start_matches('`').len();
    let run = "`".repeat(length);
    let is_run = |end: usize| {
        let inner = rest[..end].strip_suffix(&run);
        inner.is_some_and(|inner| !inner.ends_with('`')) && !rest[end..].starts_with('`')
    };
    let of_code = rest.match_indices('`').map(|(at, _)| at + 1).find(|end| *end >= 2 * length && is_run(*end));
    let of_tex = (length == 2).then(|| rest.find("''").map(|at| at + 2)).flatten();
    [of_code, of_tex].into_iter().flatten().min()
}

/// Returns the bytes of a quotation between straight marks. A run is one mark; two marks with nothing to quote are empty.
fn end_of_straight(rest: &str, mark: char) -> Option<usize> {
    let inner = rest.trim_start_matches(mark);
    let open = rest.len() - inner.len();
    if open == 2 * mark.len_utf8() && !inner.starts_with(char::is_alphanumeric) {
        return Some(open);
    }
    let after = &inner[inner.find(mark)?..];
    Some(rest.len() - after.trim_start_matches(mark).len())
}

fn end_at(rest: &str, from: usize, closing: &[&str]) -> Option<usize> {
    closing.iter().filter_map(|close| rest[from..].find(close).map(|at| from + at + close.len())).min()
}

/// Returns the bytes of a quotation between marks with a direction, over quotations of the same kind inside of it.
fn end_of_pair(rest: &str, open: char, closing: &[char]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, next) in rest.char_indices() {
        if closing.contains(&next) && at > 0 {
            depth -= 1;
        } else if next == open {
            depth += 1;
        }
        if depth == 0 {
            return Some(at + next.len_utf8());
        }
    }
    None
}

/// Returns the bytes of a quotation whose closing mark is also an apostrophe: it closes only at the end of a word.
fn closing_single(rest: &str, open: usize, closing: &[char]) -> Option<usize> {
    let mut ends = rest.match_indices(closing).filter(|(at, _)| *at >= open).map(|(at, mark)| at + mark.len());
    ends.find(|end| !rest[*end..].starts_with(char::is_alphanumeric))
}
