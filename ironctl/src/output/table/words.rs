//! The words of a cell, and their lines in a column.
//!
//! Never breaks an id, a digest or a time, unless it is wider than the column. A date and the time after it are one word.

use std::ops::Range;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Width of a longer word, such as a URL, in a narrow column: it may be broken.
const WORD_COLUMNS_MAX: usize = 30;

/// Characters after which a long word is broken best.
const BREAKS: [char; 9] = ['/', ',', ';', '?', '&', '=', ':', '-', '.'];

/// Characters of a hexadecimal digest, from which on a word of them is one.
const DIGEST_CHARACTERS_MIN: usize = 32;

/// Characters of an id behind its prefix.
const ID_CHARACTERS: usize = 26;

/// Returns the words of a text. A date and a time of day are one word.
pub fn words(text: &str) -> Vec<&str> {
    text.lines().flat_map(words_of_line).collect()
}

fn words_of_line(line: &str) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    let mut is_date = false;
    let mut start = 0;
    for word in line.split(' ') {
        let end = start + word.len();
        match words.last_mut() {
            // One blank is between the two.
            Some(last) if is_date && is_time_of_day(word) => *last = &line[start - 1 - last.len()..end],
            _ if !word.is_empty() => words.push(word),
            _ => {}
        }
        is_date = is_a_date(word);
        start = end + 1;
    }
    words
}

fn is_a_date(word: &str) -> bool {
    word.len() == 10
        && word
            .bytes()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() })
}

fn is_time_of_day(word: &str) -> bool {
    word.len() >= 5
        && word.contains(':')
        && word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'))
}

/// Returns whether a word is of use only as a whole: an id, or a digest.
fn is_whole(word: &str) -> bool {
    let is_id = word.split(|character: char| !character.is_ascii_alphanumeric() && character != '_').any(|part| {
        part.split_once('_').is_some_and(|(prefix, rest)| {
            (3..=4).contains(&prefix.len())
                && rest.len() == ID_CHARACTERS
                && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    });
    let is_time = word.get(..10).is_some_and(is_a_date) && word[10..].starts_with('T');
    is_id
        || is_time
        || word
            .split(':')
            .any(|part| part.len() >= DIGEST_CHARACTERS_MIN && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns the least width of a column for a word.
pub fn width_min(word: &str) -> usize {
    let width = word.width();
    if is_whole(word) { width } else { width.min(WORD_COLUMNS_MAX) }
}

/// Returns the lines of a text in a column of this width.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        // Blanks in a row are kept in a line that fits.
        match line.width() <= width {
            true => lines.push(line.to_owned()),
            false => lines.extend(packed(words_of_line(line).into_iter().flat_map(|word| pieces(word, width)), width)),
        }
    }
    lines
}

/// Returns the lines of sentences on a terminal of this width. A command of `ironctl` stays on one line, so that it can be copied, and
/// further lines have the blanks at the beginning of their first line. Blanks in a row inside of a line are kept.
pub fn wrapped_sentences(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let body = line.trim_start_matches(' ');
        let indent = line.len() - body.len();
        if line.width() <= width || indent >= width {
            lines.push(line.to_owned());
            continue;
        }
        let mut open = String::new();
        let mut end_of_last = 0;
        for unit in with_whole_commands(body) {
            let gap = &body[end_of_last..unit.start];
            let unit_text = &body[unit.clone()];
            end_of_last = unit.end;
            match open.is_empty() || open.width() + gap.width() + unit_text.width() <= width - indent {
                true => open.push_str(gap),
                false => lines.push(format!("{:indent$}{}", "", std::mem::take(&mut open))),
            }
            open.push_str(unit_text);
        }
        lines.push(format!("{:indent$}{open}", ""));
    }
    lines
}

/// Puts words on lines. A word that is wider than a line has a line of its own.
fn packed(words: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = String::new();
    for word in words {
        if !open.is_empty() && open.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut open));
        }
        if !open.is_empty() {
            open.push(' ');
        }
        open.push_str(&word);
    }
    lines.push(open);
    lines
}

/// Returns the places of the words of a line, with a command of `ironctl` as one word: up to its closing mark, or to the end.
fn with_whole_commands(line: &str) -> Vec<Range<usize>> {
    let place = |word: &str| {
        let start = word.as_ptr() as usize - line.as_ptr() as usize;
        start..start + word.len()
    };
    let (mut units, mut from) = (Vec::new(), 0);
    while let Some(found) = line[from..].find("ironctl ").map(|at| from + at) {
        // What precedes it without a blank, such as a bracket, belongs to it.
        let start = line[from..found].rfind(' ').map_or(from, |at| from + at + 1);
        let end = match line[start..found].ends_with('`') {
            true => {
                let closing = line[found..].find('`').map_or(line.len(), |at| found + at);
                line[closing..].find(' ').map_or(line.len(), |at| closing + at)
            }
            false => line.len(),
        };
        units.extend(words_of_line(&line[from..start]).into_iter().map(place));
        units.push(start..end);
        from = end;
    }
    units.extend(words_of_line(&line[from..]).into_iter().map(place));
    units
}

/// Returns the pieces of a word that are no wider than a column.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while rest.width() > width.max(1) {
        let mut columns = 0;
        let mut fits = |character: char| {
            columns += character.width().unwrap_or(0);
            columns <= width
        };
        // A character that is wider than the column has a line of its own.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let fitting: usize = rest.chars().take_while(|character| fits(*character)).map(char::len_utf8).sum();
        let end = fitting.max(first);
        let at = rest[..end].rfind(BREAKS).map(|at| at + 1).filter(|at| *at > end / 2).unwrap_or(end);
        pieces.push(rest[..at].to_owned());
        rest = &rest[at..];
    }
    if !rest.is_empty() {
        pieces.push(rest.to_owned());
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_whole_where_a_part_is_of_no_use() {
        let id = "ses_01j9zq4w0v2m6n8p0r2t4v6x8z";
        assert_eq!(words("at 2026-11-28 07:23:17 by ana"), ["at", "2026-11-28 07:23:17", "by", "ana"]);
        assert_eq!(words("2026-11-28  07:23"), ["2026-11-28", "07:23"], "two blanks");
        assert_eq!(words("a\nb  c"), ["a", "b", "c"]);
        for (word, width) in [
            (id, 30),
            ("loopback:per_01j9zq4w0v2m6n8p0r2t4v6x8z", 39),
            ("a short word", 12),
            ("2026-11-18T08:00:00+01:00[Europe/Berlin]", 40),
            ("https://hooks.example/services/T000/B000", 30),
        ] {
            assert_eq!(width_min(word), width, "{word}");
        }
        assert_eq!(width_min(&"0a".repeat(32)), 64);
    }

    #[test]
    fn lines_break_at_blanks_and_long_words_behind_a_separator() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert!(wrapped("", 7).is_empty());
        assert_eq!(wrapped("a\n\nb", 7), ["a", "", "b"]);
        assert_eq!(wrapped("https://hooks.example/services/T000", 24), ["https://hooks.example/", "services/T000"]);
        assert_eq!(wrapped("aaaaaaaaaa bb", 4), ["aaaa", "aaaa", "aa", "bb"]);
        assert_eq!(wrapped("you 你好吗", 4), ["you", "你好", "吗"]);
        assert_eq!(wrapped("吗", 1), ["吗"], "a column of one is too narrow for it");
    }

    #[test]
    fn command_in_a_sentence_stays_on_one_line() {
        let text = "the guard is lowered; raise it: ironctl agent set a --mode enforce";
        assert_eq!(
            wrapped_sentences(text, 40),
            ["the guard is lowered; raise it:", "ironctl agent set a --mode enforce"]
        );
        let text = "  2 wait; `ironctl inbox list --all`, and read on";
        assert_eq!(wrapped_sentences(text, 30), ["  2 wait;", "  `ironctl inbox list --all`,", "  and read on"]);
        let text = "it waits: ironctl agent set a --mode enforce";
        assert_eq!(
            wrapped_sentences(text, 20),
            ["it waits:", "ironctl agent set a --mode enforce"],
            "longer than a line"
        );
        let text = "the ceiling is nearly reached: requests may be refused (`ironctl usage`), and more";
        assert_eq!(
            wrapped_sentences(text, 60),
            ["the ceiling is nearly reached: requests may be refused", "(`ironctl usage`), and more"]
        );
        assert_eq!(wrapped_sentences("a  b   c d e f\n\ng", 9), ["a  b   c", "d e f", "", "g"], "blanks stay");
    }
}
