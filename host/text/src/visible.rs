//! Makes an untrusted string safe to show: characters that hide, reorder, control or look like others are written as codes.
//!
//! Never drops a character: each mark is between `⟦` and `⟧`, which no string can write, so the string can be restored from the
//! shown text. Never shows two different strings in the same way, even if Unicode calls them equal. `gateway/review_page` breaks
//! the lines.

use crate::confusable;
use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;
use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, is_nfc_quick, is_nfkc_quick};
use unicode_security::skeleton;

/// Opens a mark of the host. The same character in a string is written as its code.
pub const OPEN: char = '⟦';

pub const CLOSE: char = '⟧';

/// From this number on, spaces in a row are counted and not shown.
const SPACES_MAX: usize = 4;

/// Combining marks on one letter; more would overlap the lines around.
const COMBINING_MAX: usize = 2;

/// Look-alikes with an explanation after a string. All of them are written as codes.
const EXPLAINED_MAX: usize = 6;

/// Typographic characters that no reader takes for those of a keyboard; shown in prose only.
const TYPOGRAPHIC: &str = "…–—‘’“”„‚«»‹›•·、。「」（），：；？！";

/// Full stops of other scripts, which the name of a host reads as a dot (UTS 46).
const HOST_DOTS: [char; 3] = ['\u{3002}', '\u{ff0e}', '\u{ff61}'];

/// Characters between the words of a right-to-left line that do not change its order.
const BETWEEN: &str = " .,!?:;'-";

/// Assigned, visible letters, marks, numbers, punctuation and symbols.
static VISIBLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[[\p{L}\p{M}\p{N}\p{P}\p{S}]--[\p{Default_Ignorable_Code_Point}\u{2800}]]$")
        .expect("checked by a test")
});

/// Combining marks of one script, such as vowels. Marks of no script combine with any letter.
static OWN_MARK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[\p{M}--[\p{Me}\p{sc=Zinh}\p{sc=Zyyy}]]$").expect("checked by a test"));

static MARK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\p{M}$").expect("checked by a test"));

static LATIN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\p{sc=Latin}").expect("checked by a test"));

/// Ids of the host, ids of keys, SHA-1, SHA-256, UUIDs, and times of RFC 3339.
static OPAQUE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x)\b(?:
            [a-z]{3,4}_[0-9a-z]{26}
            | [0-9a-f]{16} | [0-9A-F]{16} | [0-9a-f]{40} | [0-9a-f]{64}
            | [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}
            | [0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?
        )\b",
    )
    .expect("checked by a test")
});

/// Numbers with a unit, between blanks.
static MEASURE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[\s(])([0-9]+(?:ms|s|m|min|h|d|st|nd|rd|th|B|kB|KB|MB|GB|KiB|MiB|GiB))(?:[\s,;)!?]|\.?(?:\s|$))")
        .expect("checked by a test")
});

/// The kind of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    /// A text in which every character matters.
    Name,
    /// A line of a text.
    Prose,
}

/// A shown line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    /// True if the whole line is written from right to left.
    pub is_right_to_left: bool,
}

/// Shows a name, a path or an address: in quotes, on one line, with notes about look-alikes after it.
pub fn name(text: &str) -> String {
    let (shown, notes) = write_out(text, TextKind::Name, false);
    format!("\"{shown}\"{notes}")
}

/// Shows a line of a text, given without its line feed.
pub fn line(text: &str) -> Line {
    let is_right_to_left = is_right_to_left(text);
    let (shown, notes) = write_out(text, TextKind::Prose, is_right_to_left);
    Line { text: shown + &notes, is_right_to_left }
}

/// Writes the characters of a text that have no width, change the order of others or control a terminal as codes. Lines, tabs and all
/// other characters stay. Borrows a text without such characters.
pub fn without_hidden(text: &str) -> Cow<'_, str> {
    let is_hidden = |character: char| {
        let is_control = character.is_control() && !matches!(character, '\n' | '\t');
        is_control || confusable::is_unseen(character)
    };
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match is_hidden(character) {
            true => out.push_str(&format!("{OPEN}U+{:04X}{CLOSE}", u32::from(character))),
            false => out.push(character),
        }
    }
    Cow::Owned(out)
}

/// Returns two forms of the appearance of a name: in lower case, and in its own case. If two names have one form in common, a
/// reader can take one for the other.
pub fn appearances(text: &str) -> [String; 2] {
    let seen = |text: &str| skeleton(text).filter(|character| !confusable::is_unseen(*character)).collect();
    // A capital I looks like a small l only in its own case.
    [seen(&text.to_lowercase()), seen(text)]
}

/// Returns whether a character combines with the one before it.
pub fn is_combining(character: char) -> bool {
    !character.is_ascii() && fits(&MARK, character)
}

/// Returns the greatest number of columns that a character takes.
pub fn columns(character: char) -> usize {
    if character.is_ascii() || matches!(character, OPEN | CLOSE) { 1 } else { 2 }
}

fn fits(class: &Regex, character: char) -> bool {
    class.is_match(character.encode_utf8(&mut [0; 4]))
}

fn write_out(text: &str, kind: TextKind, is_right_to_left: bool) -> (String, String) {
    let characters: Vec<char> = text.chars().collect();
    let mut shown: Vec<bool> =
        characters.iter().map(|character| is_shown(*character, kind, is_right_to_left)).collect();
    let look_alikes = look_alikes(&characters, kind);
    for (shown, reads_as) in shown.iter_mut().zip(&look_alikes) {
        *shown &= reads_as.is_none();
    }
    settle_combining(&characters, &mut shown);

    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < characters.len() {
        let spaces = characters[at..].iter().take_while(|character| **character == ' ').count();
        let is_outside = at == 0 || at + spaces == characters.len();
        match spaces {
            0 if shown[at] => out.push(characters[at]),
            0 => out.push_str(&format!("{OPEN}U+{:04X}{CLOSE}", u32::from(characters[at]))),
            1 if is_outside => out.push_str(&format!("{OPEN}1 space{CLOSE}")),
            _ if is_outside || spaces >= SPACES_MAX => out.push_str(&format!("{OPEN}{spaces} spaces{CLOSE}")),
            _ => out.push_str(&" ".repeat(spaces)),
        }
        at += spaces.max(1);
    }
    (out, notes(&characters, &look_alikes, kind))
}

/// Returns whether a character alone, without its neighbours, may be shown unchanged.
fn is_shown(character: char, kind: TextKind, is_right_to_left: bool) -> bool {
    match character {
        '"' => kind == TextKind::Prose,
        ' '..='~' => true,
        OPEN | CLOSE => false,
        _ if character.is_ascii() || confusable::is_unseen(character) || !fits(&VISIBLE, character) => false,
        _ if reads_right_to_left(character) => is_right_to_left && is_canonical(character),
        _ if kind == TextKind::Prose && TYPOGRAPHIC.contains(character) => true,
        // A character that Unicode calls a form of another one looks like it, or is wider than its column.
        _ => is_canonical(character) && is_nfkc_quick(std::iter::once(character)) == IsNormalized::Yes,
    }
}

/// Returns whether Unicode calls it equal to no other character, alone or after another one.
fn is_canonical(character: char) -> bool {
    is_nfc_quick(std::iter::once(character)) == IsNormalized::Yes || fits(&OWN_MARK, character)
}

/// Shows a combining mark only on a letter of its script, a few at once, and only in the canonical order.
fn settle_combining(characters: &[char], shown: &mut [bool]) {
    let mut stack = 0;
    for at in 0..characters.len() {
        if characters[at].is_ascii() || !fits(&MARK, characters[at]) {
            stack = 0;
            continue;
        }
        let composes = is_nfc_quick(std::iter::once(characters[at])) != IsNormalized::Yes;
        let is_own = fits(&OWN_MARK, characters[at]) && !composes;
        let sits = at > 0 && shown[at - 1] && (characters[at - 1].is_alphabetic() || stack > 0);
        let ordered = stack == 0
            || canonical_combining_class(characters[at - 1]) == 0
            || canonical_combining_class(characters[at]) == 0;
        stack += 1;
        shown[at] &= is_own && sits && ordered && !characters[at - 1].is_ascii() && stack <= COMBINING_MAX;
    }
}

/// Returns, for each character, the ASCII text that it looks like, if any. A character counts in a word with Latin letters, or in
/// a word in which every character looks like ASCII.
fn look_alikes(characters: &[char], kind: TextKind) -> Vec<Option<String>> {
    let mut found: Vec<Option<String>> = characters.iter().map(|character| reads_as(*character)).collect();
    let in_word = |character: char| character.is_alphanumeric() || is_combining(character);
    let mut at = 0;
    while at < characters.len() {
        if !in_word(characters[at]) {
            if kind == TextKind::Prose && TYPOGRAPHIC.contains(characters[at]) {
                found[at] = None;
            }
            at += 1;
            continue;
        }
        let end = at + characters[at..].iter().take_while(|character| in_word(**character)).count();
        let word = &characters[at..end];
        let has_latin = word.iter().any(|character| character.is_ascii() || fits(&LATIN, *character));
        let has_own = found[at..end].iter().any(Option::is_none);
        if has_own && !has_latin {
            found[at..end].fill(None);
        }
        at = end;
    }
    found
}

/// Returns the ASCII text that a character outside of ASCII looks like.
fn reads_as(character: char) -> Option<String> {
    if character.is_ascii() {
        return None;
    }
    if HOST_DOTS.contains(&character) {
        return Some(".".to_owned());
    }
    let read =
        |text: &str| Some(skeleton(text).collect::<String>()).filter(|read| read.is_ascii() && !read.trim().is_empty());
    let own = character.to_string();
    read(&own).or_else(|| read(&own.to_lowercase()))
}

/// Returns whether a character is written from right to left.
fn reads_right_to_left(character: char) -> bool {
    matches!(character, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

/// Returns whether a whole line is written from right to left, so that no part of it is reordered.
fn is_right_to_left(text: &str) -> bool {
    let plain = |character| {
        BETWEEN.contains(character)
            || reads_right_to_left(character)
                && character.is_alphabetic()
                && is_shown(character, TextKind::Prose, true)
                && !is_combining(character)
    };
    text.chars().any(reads_right_to_left) && text.chars().all(plain)
}

/// Returns for each character if it belongs to an id, a digest, a time or a measure, in which no digit is taken for a letter.
fn in_opaque_words(characters: &[char]) -> Vec<bool> {
    let text: String = characters.iter().collect();
    let mut found = vec![false; characters.len()];
    let measures = MEASURE.captures_iter(&text).filter_map(|found| found.get(1));
    for word in OPAQUE.find_iter(&text).chain(measures) {
        let start = text[..word.start()].chars().count();
        found[start..start + word.as_str().chars().count()].fill(true);
    }
    found
}

/// Returns whether the capital I at this place begins a word of prose, such as `If`: a text with blanks, and letters alone between two
/// of them.
fn begins_prose_word(characters: &[char], at: usize) -> bool {
    let is_blank = |character: &char| character.is_whitespace();
    let start = characters[..at].iter().rposition(is_blank).map_or(0, |before| before + 1);
    let end = characters[at..].iter().position(is_blank).map_or(characters.len(), |after| at + after);
    let outside = |character: &char| !character.is_alphanumeric();
    let opening = characters[start..end].iter().take_while(|character| outside(character)).count();
    let closing = characters[start..end].iter().rev().take_while(|character| outside(character)).count();
    let is_prose = start > 0 || end < characters.len();
    let in_word = |character: &char| character.is_alphabetic() || matches!(character, '\'' | '’' | '-');
    is_prose && at == start + opening && characters[at..end - closing].iter().all(in_word)
}

/// Returns the notes after a string.
fn notes(characters: &[char], look_alikes: &[Option<String>], kind: TextKind) -> String {
    let mut explained: Vec<String> = Vec::new();
    let mut note = |words: String| {
        if !explained.contains(&words) {
            explained.push(words);
        }
    };
    for (character, reads_as) in characters.iter().zip(look_alikes) {
        if let Some(reads_as) = reads_as {
            note(format!("{OPEN}U+{:04X} reads as \"{reads_as}\"{CLOSE}", u32::from(*character)));
        }
    }
    let opaque = if kind == TextKind::Name { in_opaque_words(characters) } else { vec![true; characters.len()] };
    for (at, character) in characters.iter().enumerate().filter(|(at, _)| !opaque[*at]) {
        let is_letter = |at: usize| characters.get(at).is_some_and(char::is_ascii_alphabetic);
        let is_small = |at: usize| characters.get(at).is_some_and(char::is_ascii_lowercase);
        let beside = |is: &dyn Fn(usize) -> bool| is(at + 1) || at.checked_sub(1).is_some_and(is);
        match character {
            'I' if beside(&is_small) && !begins_prose_word(characters, at) => {
                note(format!("{OPEN}the I is a capital i{CLOSE}"))
            }
            '0' if beside(&is_letter) => note(format!("{OPEN}the 0 is a digit{CLOSE}")),
            '1' if beside(&is_letter) => note(format!("{OPEN}the 1 is a digit{CLOSE}")),
            _ => {}
        }
    }
    let more = explained.len().saturating_sub(EXPLAINED_MAX);
    explained.truncate(EXPLAINED_MAX);
    if more > 0 {
        explained.push(format!("{OPEN}and {more} more look-alikes{CLOSE}"));
    }
    explained.into_iter().map(|note| format!(" {note}")).collect()
}

#[cfg(test)]
mod tests;
