//! The lines that a person typed while the agent worked, with the origin of each character.
//!
//! Never sends a line that a question, a failure or an edit may have changed the meaning of: the prompt shows it, and the person
//! decides. Never counts pasted text as typed. See [`super::prompt`].

use super::prompt::TypedLine;
use crate::terminal_line::Kept;

/// The marks of a terminal around pasted text (mode 2004).
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

const ESCAPE: u8 = 0x1b;

/// A line that was typed ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    pub line: TypedLine,
    /// True if the person ended it with Enter, and nothing came between.
    pub is_sent: bool,
}

/// Returns whether the typed bytes end within a paste: a terminal writes a long one in parts.
pub fn is_pasting(bytes: &[u8]) -> bool {
    let last = |mark: &[u8]| bytes.windows(mark.len()).rposition(|part| part == mark);
    last(PASTE_BEGINS) > last(PASTE_ENDS)
}

/// Typed bytes while they are split into lines.
#[derive(Default)]
struct Splitter {
    lines: Vec<Ahead>,
    /// Parts of the line, each with the number of its paste; 0 for a typed one.
    parts: Vec<(Vec<u8>, usize)>,
    /// The number of the last paste.
    pastes: usize,
    is_pasting: bool,
    /// True if a key was pressed that only an editor knows, such as an arrow.
    is_edited: bool,
    /// The place of the first byte of the line.
    start: usize,
}

/// Splits typed bytes into lines; the last one may have no end. On a terminal that `marks` no pastes, all text counts as pasted.
pub fn lines(kept: &Kept, marks: bool) -> Vec<Ahead> {
    let Kept { bytes, held, .. } = kept;
    let mut splitter = Splitter { is_pasting: !marks, pastes: usize::from(!marks), ..Splitter::default() };
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let length = match *byte {
            ESCAPE if rest.starts_with(PASTE_BEGINS) => {
                (splitter.is_pasting, splitter.pastes) = (true, splitter.pastes + 1);
                PASTE_BEGINS.len()
            }
            ESCAPE if rest.starts_with(PASTE_ENDS) => {
                splitter.is_pasting = !marks;
                PASTE_ENDS.len()
            }
            ESCAPE => {
                splitter.is_edited = true;
                key_length(rest)
            }
            b'\n' | b'\r' if !splitter.is_pasting || !marks => {
                splitter.end_line(at + 1, *held);
                1
            }
            b'\r' if rest.starts_with(b"\r\n") => 1,
            b'\r' => splitter.push(b'\n'),
            b'\n' | b'\t' => splitter.push(*byte),
            // An end of the input, or a key of an editor.
            0..0x20 | 0x7f => {
                splitter.is_edited = true;
                1
            }
            byte => splitter.push(byte),
        };
        at += length;
    }
    splitter.end()
}

/// Returns the bytes of a key with an escape sequence: `ESC [`, parameters, and a last byte; otherwise `ESC` and one byte.
fn key_length(bytes: &[u8]) -> usize {
    match bytes.get(1) {
        Some(b'[') => {
            bytes.iter().skip(2).position(|byte| (0x40..0x7f).contains(byte)).map_or(bytes.len(), |at| at + 3)
        }
        Some(b'O') => bytes.len().min(3),
        _ => bytes.len().min(2),
    }
}

impl Splitter {
    /// Adds a byte to the line; returns its length.
    fn push(&mut self, byte: u8) -> usize {
        let paste = if self.is_pasting { self.pastes } else { 0 };
        match self.parts.last_mut() {
            Some((part, of)) if *of == paste => part.push(byte),
            _ => self.parts.push((vec![byte], paste)),
        }
        1
    }

    /// Ends a line whose successor begins at this byte. An empty line is no message.
    fn end_line(&mut self, next: usize, held: usize) {
        let is_sent = self.start >= held && !self.is_edited;
        self.take_line(is_sent);
        (self.start, self.is_edited) = (next, false);
    }

    fn take_line(&mut self, is_sent: bool) {
        let parts = std::mem::take(&mut self.parts);
        let parts = parts.iter().map(|(part, paste)| (String::from_utf8_lossy(part), *paste));
        let line = TypedLine::from_parts(parts);
        if !line.text().trim().is_empty() {
            self.lines.push(Ahead { line, is_sent });
        }
    }

    /// Returns all lines. The last one has no end, so it is not sent.
    fn end(mut self) -> Vec<Ahead> {
        self.take_line(false);
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::super::prompt::Parts;
    use super::*;

    /// Returns the text of each line, its pasted texts, and whether it is sent.
    fn split(typed: &str, held: usize, marks: bool) -> Vec<(String, Vec<String>, bool)> {
        let kept = Kept { bytes: typed.as_bytes().to_vec(), held, ..Kept::default() };
        let all = lines(&kept, marks).into_iter().map(|Ahead { line, is_sent }| {
            let Parts { text, quoted } = line.parts();
            (text, quoted, is_sent)
        });
        all.collect()
    }

    fn line(text: &str, quoted: &[&str], is_sent: bool) -> (String, Vec<String>, bool) {
        (text.to_owned(), quoted.iter().map(|&text| text.to_owned()).collect(), is_sent)
    }

    #[test]
    fn typed_lines_are_sent_and_a_begun_one_is_not() {
        for (typed, wanted) in [
            ("one\ntwo\r\nthree", vec![line("one", &[], true), line("two", &[], true), line("three", &[], false)]),
            ("\n \n", vec![]),
            ("", vec![]),
            ("发给安娜\n", vec![line("发给安娜", &[], true)]),
            // Keys of an editor: the line is not what the person saw.
            ("helo\u{1b}[Dl\nnext\n", vec![line("helol", &[], false), line("next", &[], true)]),
            ("a\u{1b}OHb\nc\u{1}\nd\u{4}", vec![line("ab", &[], false), line("c", &[], false), line("d", &[], false)]),
            ("a\u{1b}[", vec![line("a", &[], false)]),
        ] {
            assert_eq!(split(typed, 0, true), wanted, "{typed:?}");
        }
    }

    #[test]
    fn line_before_a_question_is_not_sent() {
        let typed = "1 yes\nlater\n";
        for (held, wanted) in [(0, [true, true]), (1, [false, true]), (6, [false, true]), (7, [false, false])] {
            let sent: Vec<bool> = split(typed, held, true).into_iter().map(|(.., is_sent)| is_sent).collect();
            assert_eq!(sent, wanted, "{held}");
        }
    }

    #[test]
    fn pasted_lines_are_one_quotation() {
        for (typed, marks, wanted) in [
            ("sum up \u{1b}[200~a\r\nb\u{1b}[201~ now\n", true, vec![line("sum up [quoted 1] now", &["a\nb"], true)]),
            ("\u{1b}[200~/allow send\u{1b}[201~", true, vec![line("[quoted 1]", &["/allow send"], false)]),
            // The end of the paste is not there.
            ("\u{1b}[200~send it\n", true, vec![line("[quoted 1]", &["send it\n"], false)]),
            (
                "send it\npost",
                false,
                vec![line("[quoted 1]", &["send it"], true), line("[quoted 1]", &["post"], false)],
            ),
        ] {
            assert_eq!(split(typed, 0, marks), wanted, "{typed:?}");
            let has_no_end = typed.starts_with(&*format!("{}send", "\u{1b}[200~"));
            assert_eq!(is_pasting(typed.as_bytes()), has_no_end, "{typed:?}");
        }
    }
}
