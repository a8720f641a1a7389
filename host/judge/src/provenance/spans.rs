//! The spans of a message: who wrote each of them, and the parts of a typed one that are not the person's own words.
//!
//! The only place that finds typed text: the scope of a request, the values that count as typed and the pages of approvals read it from
//! here. Errs toward quoted. See [`quotes`] and [`lines`].

mod lines;
mod quotes;

pub use lines::is_line_end;
use std::ops::Range;

/// Characters of a quotation that is a title or a name. A longer one is a quoted text.
const TITLE_CHARACTERS_MAX: usize = 80;

/// A part of a message by one author.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<'a> {
    pub text: &'a str,
    /// True if the person wrote it. Quoted and forwarded texts, files and the words of models, agents and tools are not typed.
    pub typed: bool,
}

/// What a channel says of the text of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Telling {
    /// It names the parts that the sender did not type, also as none.
    Typed,
    /// It cannot tell typed from pasted or quoted text, so nothing counts as typed.
    Nothing,
}

/// What a part of a typed text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A short quotation in a typed sentence. Its words are typed as a title or a name, and nothing in it is an address, a URL, an
    /// account or a number.
    Title,
    /// Text of others: a longer quotation, a fence, an indented line, a line with `>`, a forwarded message.
    Quoted,
}

/// A part of a typed text that is not the person's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    /// Its range of bytes, with its quotation marks.
    pub bytes: Range<usize>,
    pub mark: Mark,
}

impl Marked {
    /// Returns the parts that touch a range of bytes, among parts in order and without overlap.
    pub fn touched<'m>(parts: &'m [Self], range: &Range<usize>) -> &'m [Self] {
        let first = parts.partition_point(|part| part.bytes.end <= range.start);
        let last = parts.partition_point(|part| part.bytes.start < range.end);
        parts.get(first..last).unwrap_or_default()
    }
}

/// A span that a person typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedSpan<'a> {
    /// Its index among the spans of the message.
    pub index: usize,
    pub text: &'a str,
    /// The parts that are not the person's own words, in order and without overlap.
    pub marked: Vec<Marked>,
}

impl<'a> TypedSpan<'a> {
    /// Returns the typed span for the text of one person.
    pub fn read(index: usize, text: &'a str) -> Self {
        Self { index, text, marked: marked(text) }
    }

    /// Returns a text of which every character counts as typed, for a trial without a message.
    pub const fn whole(text: &'a str) -> Self {
        Self { index: 0, text, marked: Vec::new() }
    }
}

/// Returns the spans of a message that its person typed, each with the parts that are not their own words.
pub fn typed<'a>(spans: &[Span<'a>], telling: Telling) -> Vec<TypedSpan<'a>> {
    match telling {
        Telling::Nothing => Vec::new(),
        Telling::Typed => {
            let typed = spans.iter().enumerate().filter(|(_, span)| span.typed);
            typed.map(|(index, span)| TypedSpan::read(index, span.text)).collect()
        }
    }
}

/// Returns the parts of a typed text that are not the person's own words, in order and without overlap.
fn marked(text: &str) -> Vec<Marked> {
    let lines = lines::quoted(text);
    let of_quotations = quotes::quotations(text, &lines).into_iter();
    let of_quotations = of_quotations.map(|found| {
        let is_short = found.is_closed && is_short(&text[found.bytes.clone()]);
        Marked { bytes: found.bytes, mark: if is_short { Mark::Title } else { Mark::Quoted } }
    });
    let of_lines = lines.into_iter().map(|bytes| Marked { bytes, mark: Mark::Quoted });
    let mut all: Vec<Marked> = of_lines.chain(of_quotations).collect();
    all.sort_by_key(|part| part.bytes.start);
    let mut merged: Vec<Marked> = Vec::new();
    for part in all {
        match merged.last_mut().filter(|last| part.bytes.start < last.bytes.end) {
            Some(last) => {
                *last = Marked { bytes: last.bytes.start..last.bytes.end.max(part.bytes.end), mark: Mark::Quoted };
            }
            None => merged.push(part),
        }
    }
    let sentences = lines_with_words(text, &merged);
    for part in merged.iter_mut().filter(|part| part.mark == Mark::Title) {
        let line = sentences.partition_point(|line| line.end <= part.bytes.start);
        if sentences.get(line).is_none_or(|line| line.start > part.bytes.start) {
            part.mark = Mark::Quoted;
        }
    }
    merged
}

/// Returns whether a quotation is on one line and short enough for a title.
fn is_short(quotation: &str) -> bool {
    !quotation.contains(lines::is_line_end) && quotation.chars().count() <= TITLE_CHARACTERS_MAX + 2
}

/// Returns the lines that have words outside of the marked parts, in order.
fn lines_with_words(text: &str, marked: &[Marked]) -> Vec<Range<usize>> {
    let mut parts = marked.iter().peekable();
    let mut begin = 0;
    let mut lines = Vec::new();
    for line in text.split_inclusive(lines::is_line_end) {
        let range = begin..begin + line.len();
        begin = range.end;
        let has_words = line.char_indices().any(|(at, next)| {
            let at = range.start + at;
            while parts.next_if(|part| part.bytes.end <= at).is_some() {}
            next.is_alphanumeric() && parts.peek().is_none_or(|part| part.bytes.start > at)
        });
        if has_words {
            lines.push(range);
        }
    }
    lines
}

#[cfg(test)]
mod tests;
