//! The text of a page. A long line is wrapped here, with a mark, so that no terminal has to wrap it.
//!
//! Never cuts anything off, and never breaks a mark. See [`ironclaw_text::visible`], which makes the text of the lines safe.

use ironclaw_text::visible::{CLOSE, OPEN, columns, is_combining};

/// The largest number of columns of a line.
pub const WIDTH: usize = 78;

/// The end of a line that continues below; only the host can write it.
pub const CONTINUES: &str = "⟦+⟧";

/// Columns of [`CONTINUES`].
const CONTINUES_COLUMNS: usize = 3;

/// A line is wrapped at a space if one is among so many last columns, so that most names and paths stay whole.
const SPACE_WITHIN: usize = 48;

/// Columns by which a sentence is indented where it continues.
const HANGING: usize = 2;

/// The text written so far.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
}

impl Page {
    /// Writes a heading at the edge, below an empty line unless it is the first.
    pub fn heading(&mut self, words: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.put("", words);
    }

    /// Writes a heading at the edge, directly below the line before it.
    pub fn close_heading(&mut self, words: &str) {
        self.put("", words);
    }

    /// Writes safe text on as many lines as it needs; each begins with `prefix`.
    pub fn put(&mut self, prefix: &str, body: &str) {
        let room = WIDTH.saturating_sub(width(prefix));
        for piece in wrapped(body, room) {
            self.line(prefix, &piece);
        }
    }

    /// Writes a sentence of the host. Its lines after the first have a deeper indent.
    ///
    /// A line ends between two words, and never in a name. A name that is longer than a line is broken as in [`Page::put`].
    pub fn sentence(&mut self, prefix: &str, body: &str) {
        let room = WIDTH.saturating_sub(width(prefix) + HANGING);
        let mut lines: Vec<String> = Vec::new();
        for word in words(body) {
            match lines.last_mut() {
                Some(line) if width(line) + 1 + width(word) <= room => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.extend(wrapped(word, room)),
            }
        }
        for (at, line) in lines.iter().enumerate() {
            let indent = if at == 0 { 0 } else { HANGING };
            self.line(&format!("{prefix}{}", " ".repeat(indent)), line);
        }
    }

    fn line(&mut self, prefix: &str, piece: &str) {
        let line = format!("{prefix}{piece}");
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Returns the whole text.
    pub fn finish(self) -> String {
        self.text
    }
}

fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Splits a sentence at the spaces that are neither in quotes nor in a mark.
fn words(body: &str) -> Vec<&str> {
    let (mut words, mut begin, mut at, mut is_quoted) = (Vec::new(), 0, 0, false);
    for atom in atoms(body) {
        match atom {
            "\"" => is_quoted = !is_quoted,
            " " if !is_quoted => {
                words.push(&body[begin..at]);
                begin = at + atom.len();
            }
            _ => {}
        }
        at += atom.len();
    }
    words.push(&body[begin..]);
    words
}

/// Splits a line into pieces that fit.
fn wrapped(body: &str, room: usize) -> Vec<String> {
    let atoms: Vec<(&str, usize)> = atoms(body).into_iter().map(|atom| (atom, width(atom))).collect();
    let mut left: usize = atoms.iter().map(|(_, wide)| wide).sum();
    let mut rest = &atoms[..];
    let mut pieces = Vec::new();
    while left > room {
        let (mut taken, mut used) = (0, 0);
        while taken < rest.len() && used + rest[taken].1 + CONTINUES_COLUMNS <= room {
            used += rest[taken].1;
            taken += 1;
        }
        // No atom is wider than a line; if one were, showing it is better than an endless loop.
        let taken = taken.max(1);
        let space = rest[..taken].iter().rposition(|(atom, _)| *atom == " ").filter(|at| taken - at <= SPACE_WITHIN);
        let (piece, others) = rest.split_at(space.map_or(taken, |at| at + 1));
        left -= piece.iter().map(|(_, wide)| wide).sum::<usize>();
        pieces.push(piece.iter().map(|(atom, _)| *atom).collect::<String>() + CONTINUES);
        rest = others;
    }
    pieces.push(rest.iter().map(|(atom, _)| *atom).collect());
    pieces
}

/// Splits a line into parts that are never broken: a mark, or a character with its combining marks.
fn atoms(body: &str) -> Vec<&str> {
    let mut atoms = Vec::new();
    let mut rest = body;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            OPEN => rest.find(CLOSE).map_or(rest.len(), |at| at + CLOSE.len_utf8()),
            _ => rest.char_indices().skip(1).find(|(_, next)| !is_combining(*next)).map_or(rest.len(), |(at, _)| at),
        };
        atoms.push(&rest[..end]);
        rest = &rest[end..];
    }
    atoms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_line_is_wrapped_with_a_mark_and_can_be_rejoined() {
        for body in ["x".repeat(500), "one two three ".repeat(40), "⟦U+202E⟧".repeat(60), "語".repeat(200)] {
            let mut page = Page::default();
            page.put("    | ", &body);
            let text = page.finish();
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines.len() > 1);
            let again: String = lines
                .iter()
                .map(|line| {
                    assert!(line.chars().map(columns).sum::<usize>() <= WIDTH, "{line}");
                    let line = line.strip_prefix("    |").expect("each has the prefix");
                    let line = line.strip_prefix(' ').unwrap_or(line);
                    line.strip_suffix(CONTINUES).unwrap_or(line).to_owned()
                })
                .collect();
            assert_eq!(again.trim_end(), body.trim_end());
        }
    }

    #[test]
    fn sentence_is_broken_between_words_and_never_in_a_name() {
        let (name, mark) = (format!("\"{}\"", "a b".repeat(12)), "⟦looks like another name on this page⟧");
        let mut page = Page::default();
        page.sentence("  !! ", &format!("One two three {name} four five six {name} {mark} seven eight nine."));
        let text = page.finish();
        assert!(text.lines().count() > 2 && text.lines().all(|line| width(line) <= WIDTH), "{text}");
        assert!(text.starts_with("  !! One") && text.lines().skip(1).all(|line| line.starts_with("  !!   ")), "{text}");
        assert_eq!((text.matches(name.as_str()).count(), text.matches(mark).count()), (2, 1), "{text}");
        assert!(!text.contains(CONTINUES), "{text}");
        let mut page = Page::default();
        page.sentence("  ", &format!("Name \"{}\" is long.", "x".repeat(200)));
        let text = page.finish();
        assert!(text.contains(CONTINUES) && text.lines().all(|line| width(line) <= WIDTH), "{text}");
        assert_eq!(text.matches('x').count(), 200);
    }

    #[test]
    fn line_that_just_fits_is_not_wrapped() {
        assert_eq!(wrapped(&"x".repeat(10), 10), ["x".repeat(10)]);
        assert_eq!(wrapped(&"x".repeat(11), 10), ["x".repeat(7) + CONTINUES, "x".repeat(4)]);
    }
}
