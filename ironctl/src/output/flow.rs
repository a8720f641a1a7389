//! A text that comes in parts, on a terminal broken between its words.
//!
//! Prints each part at once; a word that turns out to be too long for its line is taken back and begins the next one. Without a terminal
//! each part is printed as it comes. See [`super::Output::line`] for whole lines.

use super::Output;
use crate::failure::Error;
use std::fmt::Write as _;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns between two stops of a tab.
const TAB_COLUMNS: usize = 8;

/// A line that is written in parts.
#[derive(Debug, Default)]
pub struct Flow {
    /// The columns in front of the last word and its blanks.
    at: usize,
    /// The blanks in front of the last word.
    gap: String,
    /// The last word, so far.
    word: String,
}

impl Flow {
    /// Prints a part.
    pub fn add(&mut self, out: Output, text: &str) -> Result<(), Error> {
        let Some(width) = out.width() else { return out.part(text) };
        let ready = self.take(&out.shown(text), width);
        out.safe_part(&ready)
    }

    /// Ends the line.
    pub fn end(&mut self, out: Output) -> Result<(), Error> {
        *self = Self::default();
        out.safe_part("\n")
    }

    /// Takes safe text, and returns the characters to print.
    fn take(&mut self, text: &str, width: usize) -> String {
        let mut ready = String::new();
        for character in text.chars() {
            match character {
                '\n' => {
                    ready.push('\n');
                    *self = Self::default();
                }
                ' ' | '\t' => {
                    self.end_word(width);
                    self.gap.push(character);
                }
                _ => {
                    // A line may end before and behind a wide character: its scripts have no blanks.
                    let is_alone = character.width() == Some(2);
                    if is_alone {
                        self.end_word(width);
                    }
                    self.put(character, width, &mut ready);
                    if is_alone {
                        self.end_word(width);
                    }
                }
            }
        }
        ready
    }

    /// Writes a character of the last word.
    fn put(&mut self, character: char, width: usize, ready: &mut String) {
        let is_first = self.word.is_empty();
        self.word.push(character);
        if self.at > 0 && self.start() + self.word.width() > width {
            if !is_first {
                // To the end of the word before, wherever the terminal has left the cursor on this line.
                let _ = write!(ready, "\r\x1b[{}C\x1b[K", self.at);
            }
            ready.push('\n');
            ready.push_str(&self.word);
            (self.at, self.gap) = (0, String::new());
            return;
        }
        if is_first {
            ready.push_str(&self.gap);
        }
        ready.push(character);
    }

    /// Returns the columns in front of the last word.
    fn start(&self) -> usize {
        self.gap.chars().fold(self.at, |at, blank| match blank {
            '\t' => (at / TAB_COLUMNS + 1) * TAB_COLUMNS,
            _ => at + 1,
        })
    }

    fn end_word(&mut self, width: usize) {
        if self.word.is_empty() {
            return;
        }
        let end = self.start() + self.word.width();
        // The terminal broke a word that is wider than a line.
        self.at = if end > width { end % width } else { end };
        self.gap.clear();
        self.word.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZero;

    const ROWS: NonZero<u16> = NonZero::new(6).unwrap();

    /// Returns the lines of a terminal after a text in these parts.
    fn lines(parts: &[&str], width: u16) -> Vec<String> {
        let (mut flow, mut screen) =
            (Flow::default(), vt100::Parser::new(ROWS, NonZero::new(width).expect("columns"), 0));
        for part in parts {
            screen.process(flow.take(part, usize::from(width)).replace('\n', "\r\n").as_bytes());
        }
        let lines = screen.screen().rows(0, width).map(|line| line.trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n").trim_end().split('\n').map(str::to_owned).collect()
    }

    #[test]
    fn parts_are_broken_between_words() {
        for (parts, expected) in [
            (&["a> one two th", "ree four"][..], &["a> one two", "three four"][..]),
            (&["one", " ", "two\n", "\nthree"], &["one two", "", "three"]),
            (&["  - a  b", " long word"], &["  - a  b", "long word"]),
            (&["0123456789", "ab c"], &["0123456789", "ab c"]),
            (&["x 012345678", "9a"], &["x", "0123456789", "a"]),
            (&["abcd efghi", "j k"], &["abcd", "efghij k"]),
            (&["ok 你好吗你好吗"], &["ok 你好吗", "你好吗"]),
        ] {
            assert_eq!(lines(parts, 10), expected, "{parts:?}");
        }
    }
}
