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

/// Characters of an id after its prefix.
const ID_CHARACTERS: usize = 26;

/// Characters of a SHA-1 and of a SHA-256 in hexadecimal.
const DIGEST_CHARACTERS: [usize; 2] = [40, 64];

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

/// Returns whether a text has the form of an id of the host, in which a digit is not a look-alike.
fn is_id(characters: &[char]) -> bool {
    let end = characters.iter().position(|character| *character == '_').unwrap_or(0);
    let (prefix, rest) = characters.split_at(end);
    (3..=4).contains(&prefix.len())
        && prefix.iter().all(char::is_ascii_lowercase)
        && rest.len() == ID_CHARACTERS + 1
        && rest[1..].iter().all(|character| character.is_ascii_lowercase() || character.is_ascii_digit())
}

/// Returns for each character if its word is a digest in hexadecimal, in which a digit is not a look-alike.
fn in_digests(characters: &[char]) -> Vec<bool> {
    let mut found = Vec::with_capacity(characters.len());
    for word in characters.chunk_by(|one, next| one.is_alphanumeric() && next.is_alphanumeric()) {
        let is_hex = word.iter().all(|character| matches!(character, '0'..='9' | 'a'..='f'));
        found.resize(found.len() + word.len(), is_hex && DIGEST_CHARACTERS.contains(&word.len()));
    }
    found
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
    let digits_count = kind == TextKind::Name && !is_id(characters);
    let digests = in_digests(characters);
    for (at, character) in characters.iter().enumerate().filter(|(at, _)| digits_count && !digests[*at]) {
        let is_letter = |at: usize| characters.get(at).is_some_and(char::is_ascii_alphabetic);
        let is_small = |at: usize| characters.get(at).is_some_and(char::is_ascii_lowercase);
        let beside = |is: &dyn Fn(usize) -> bool| is(at + 1) || at.checked_sub(1).is_some_and(is);
        match character {
            'I' if beside(&is_small) => note(format!("{OPEN}the I is a capital i{CLOSE}")),
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Restores a string from its shown form. Notes follow a space and never hold `U+` alone.
    fn restore(shown: &str) -> String {
        let mut out = String::new();
        let mut rest = shown;
        while let Some(at) = rest.find(OPEN) {
            let end = rest.find(CLOSE).expect("a mark ends");
            let mark = &rest[at + OPEN.len_utf8()..end];
            if mark.contains("reads as") || mark.starts_with("the ") || mark.starts_with("and ") {
                // Notes come last, each after a space that the string cannot end with.
                return out + rest[..at].strip_suffix(' ').expect("a note follows a space");
            }
            out.push_str(&rest[..at]);
            match mark.strip_prefix("U+") {
                Some(code) => {
                    out.push(char::from_u32(u32::from_str_radix(code, 16).expect("hex")).expect("a character"));
                }
                None => {
                    let count = mark.split(' ').next().expect("a count").parse().expect("a number");
                    out.push_str(&" ".repeat(count));
                }
            }
            rest = &rest[end + CLOSE.len_utf8()..];
        }
        out + rest
    }

    #[test]
    fn full_stop_of_another_script_is_marked_in_a_name() {
        for (dot, code) in [('。', "U+3002"), ('．', "U+FF0E"), ('｡', "U+FF61")] {
            let shown = name(&format!("https://example.com{dot}evil.example/"));
            let expected = format!("\"https://example.com⟦{code}⟧evil.example/\" ⟦{code} reads as \".\"⟧");
            assert_eq!(shown, expected);
        }
        assert_eq!(line("はい。").text, "はい。", "in prose it is a full stop");
    }

    #[test]
    fn hidden_characters_are_codes_and_all_others_stay() {
        let plain = "Zwei Wörter\n\t    eingerückt: \"Привет\" ⟦x⟧";
        assert!(matches!(without_hidden(plain), Cow::Borrowed(text) if text == plain));
        let coded = "a⟦U+200B⟧b⟦U+202E⟧c⟦U+E0041⟧⟦U+001B⟧[2J";
        assert_eq!(without_hidden("a\u{200b}b\u{202e}c\u{e0041}\u{1b}[2J"), coded);
        assert_eq!(without_hidden(coded), coded);
    }

    fn restore_name(shown: &str) -> String {
        let end = shown.rfind('"').expect("quotes");
        // A note may also hold quotes; the end of the name comes before the first note.
        let end = shown.find("\" ⟦").unwrap_or(end);
        restore(&shown[1..end])
    }

    #[test]
    fn control_hidden_and_reordering_characters_are_codes() {
        for (text, shown) in [
            ("\u{1b}[2J", "\"⟦U+001B⟧[2J\""),
            ("a\tb\r\nc", "\"a⟦U+0009⟧b⟦U+000D⟧⟦U+000A⟧c\""),
            ("\u{85}\u{9b}\u{7f}", "\"⟦U+0085⟧⟦U+009B⟧⟦U+007F⟧\""),
            ("a\u{202e}b\u{2066}", "\"a⟦U+202E⟧b⟦U+2066⟧\""),
            ("a\u{200b}\u{200d}\u{feff}b", "\"a⟦U+200B⟧⟦U+200D⟧⟦U+FEFF⟧b\""),
            ("\u{e0041}\u{fe0f}\u{e0100}", "\"⟦U+E0041⟧⟦U+FE0F⟧⟦U+E0100⟧\""),
            ("\u{3164}\u{2800}\u{a0}\u{3000}", "\"⟦U+3164⟧⟦U+2800⟧⟦U+00A0⟧⟦U+3000⟧\""),
            ("\u{e000}\u{378}\u{10ffff}", "\"⟦U+E000⟧⟦U+0378⟧⟦U+10FFFF⟧\""),
            ("\u{2028}\u{2029}", "\"⟦U+2028⟧⟦U+2029⟧\""),
            ("⟦U+0041⟧", "\"⟦U+27E6⟧U+0041⟦U+27E7⟧\""),
            ("a\" would get \"b", "\"a⟦U+0022⟧ would get ⟦U+0022⟧b\""),
            (" a  b ", "\"⟦1 space⟧a  b⟦1 space⟧\""),
            ("a          b", "\"a⟦10 spaces⟧b\""),
            ("", "\"\""),
        ] {
            assert_eq!(name(text), shown);
        }
    }

    #[test]
    fn look_alike_letters_are_codes_with_an_explanation() {
        assert_eq!(name("p\u{430}ypal"), "\"p⟦U+0430⟧ypal\" ⟦U+0430 reads as \"a\"⟧");
        assert_eq!(name("\u{430}\u{440}"), "\"⟦U+0430⟧⟦U+0440⟧\" ⟦U+0430 reads as \"a\"⟧ ⟦U+0440 reads as \"p\"⟧");
        assert_eq!(name("\u{ff41}"), "\"⟦U+FF41⟧\" ⟦U+FF41 reads as \"a\"⟧");
        assert_eq!(name("heIper"), "\"heIper\" ⟦the I is a capital i⟧");
        assert_eq!(name("paypa1"), "\"paypa1\" ⟦the 1 is a digit⟧");
        let commit = "0a1".repeat(13) + "f";
        assert_eq!(name(&format!("{commit} Ada")), format!("\"{commit} Ada\""), "a digest is read as a whole");
        assert!(name(&format!("{commit}0")).contains("is a digit"));
        assert_eq!(name("/srv\u{2215}data"), "\"/srv⟦U+2215⟧data\" ⟦U+2215 reads as \"/\"⟧");
        assert_eq!(name("\u{212a}elvin"), "\"⟦U+212A⟧elvin\" ⟦U+212A reads as \"K\"⟧");
    }

    #[test]
    fn canonically_equal_texts_are_shown_differently() {
        assert_eq!(name("é"), "\"é\"");
        assert_eq!(name("e\u{301}"), "\"e⟦U+0301⟧\"");
        assert_ne!(name("\u{212b}"), name("Å"));
        assert_eq!(name("\u{958}"), "\"⟦U+0958⟧\"");
        assert_eq!(name("\u{1100}\u{1161}"), "\"\u{1100}⟦U+1161⟧\"");
    }

    #[test]
    fn stacked_combining_marks_are_bounded() {
        let tower = format!("a{}", "\u{301}\u{330}".repeat(200));
        assert!(!name(&tower).chars().any(is_combining));
        let own = format!("\u{915}{}", "\u{93e}".repeat(50));
        assert_eq!(name(&own).chars().filter(|character| is_combining(*character)).count(), COMBINING_MAX);
        assert!(!name("\u{93e}x").chars().any(is_combining), "none sits on the quote");
    }

    #[test]
    fn letters_of_all_scripts_are_shown_unchanged() {
        for text in
            ["müller", "Привет", "你好，世界。", "日本語", "한국어", "नमस्ते", "ภาษาไทย", "Ελλάδα", "„so“ – naja…", "👍"]
        {
            assert_eq!(line(text), Line { text: text.to_owned(), is_right_to_left: false });
        }
    }

    #[test]
    fn right_to_left_text_is_shown_only_if_nothing_moves() {
        assert_eq!(line("שלום, עולם"), Line { text: "שלום, עולם".to_owned(), is_right_to_left: true });
        for text in ["שלום abc", "שלום 12 (3)", "a/ש/b", "שלום | "] {
            let shown = line(text);
            assert!(!shown.is_right_to_left && !shown.text.chars().any(reads_right_to_left), "{shown:?}");
        }
        assert!(!name("שלום").chars().any(reads_right_to_left));
    }

    fn anything() -> impl Strategy<Value = String> {
        let odd = prop::sample::select(vec![
            '⟦', '⟧', '"', ' ', '\n', '\u{1b}', '\u{202e}', '\u{430}', 'a', 'I', '1', 'U', '+', '\u{301}', '\u{93e}',
            'ש', '|', '\u{915}', '4', 's',
        ]);
        prop::collection::vec(prop_oneof![odd, any::<char>()], 0..24).prop_map(|all| all.into_iter().collect())
    }

    proptest! {
        #[test]
        fn every_string_can_be_read_back(text in anything()) {
            prop_assert_eq!(restore_name(&name(&text)), text.clone());
            prop_assert_eq!(restore(&line(&text).text), text);
        }

        #[test]
        fn shown_text_has_no_control_or_hidden_character(text in anything()) {
            for character in name(&text).chars().chain(line(&text).text.chars()) {
                let seen = matches!(character, ' '..='~' | OPEN | CLOSE) || fits(&VISIBLE, character);
                prop_assert!(seen && !confusable::is_unseen(character), "{:?}", character);
            }
        }
    }
}
