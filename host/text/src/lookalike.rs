//! Neutralises text that looks like the host's own wrappers, result blocks or the role markers of a model.
//!
//! Never drops a character and never decides who wrote a text: each change is visible. `lookalike::fold` lists the characters
//! that look the same.
//!
//! The scheme: the opening bracket of a look-alike is put between `⟦` and `⟧`; nothing else changes. `[MSG_AUTH:1]` becomes
//! `⟦[⟧MSG_AUTH:1]`. Such a group of three characters is harmless, and a second pass does not change it. Therefore a text does
//! not grow when a model copies it. Two neutral texts side by side may form a look-alike across their border: neutralise them
//! as one text, or put a visible separator between them.

mod fold;

use fold::{Glyph, glyph};
use std::borrow::Cow;

/// Opens a group of three characters: this one, the original character, [`CLOSE`].
pub const OPEN: char = '⟦';
pub const CLOSE: char = '⟧';
/// Bytes that [`Stream`] holds back at most. If the text after an opening bracket is undecided after so many bytes, the bracket
/// counts as a look-alike. Only a very long run of invisible characters has that effect, and the marked bracket does no harm.
pub const HELD_BYTES_MAX: usize = 512;

/// The beginnings that a text must not have, as [`fold`] reads them: lower case, without spaces, invisible characters, `_` and
/// `-`. Slashes after the bracket are skipped, so each entry also covers its closing form. A hit needs a whole entry; the text
/// after it does not matter.
const FORBIDDEN: &[&str] = &[
    // The wrappers of this host.
    "[thehostquotes",
    "[theagent",
    "[amodel'ssummary",
    "[ascheduleisdue",
    "[msgauth",
    "[toolresultfor",
    // Blocks in which models are shown their calls and results.
    "<toolresult",
    "<tooluse",
    "<toolcall",
    "<toolresponse",
    "<functionresult",
    "<functioncall",
    "<functionresponse",
    // Markers of roles and turns in the templates of well-known models.
    "[inst]",
    "<<sys>>",
    "<system>",
    "<assistant>",
    "<startofturn>",
    "<endofturn>",
    "<|imstart|",
    "<|imend|",
    "<|imsep|",
    "<|system|",
    "<|user|",
    "<|assistant|",
    "<|human|",
    "<|tool|",
    "<|toolresult|",
    "<|observation|",
    "<|function|",
    "<|start|",
    "<|end|",
    "<|message|",
    "<|channel|",
    "<|call|",
    "<|return|",
    "<|endoftext|",
    "<|endofprompt|",
    "<|beginoftext|",
    "<|eotid|",
    "<|startheaderid|",
    "<|endheaderid|",
];
const _: () = assert!(FORBIDDEN.len() < 64, "one bit each");

/// The beginning of the host's own lines. It is a hit unless a letter or a digit follows at once, as in `[the hostname]`.
const OWN: &[u8] = b"[thehost";

/// Returns the text with every look-alike visible and harmless; a text without one is borrowed.
///
/// Takes time linear in the length for every text. `neutralise(&neutralise(x)) == neutralise(x)` for every `x`.
pub fn neutralise(text: &str) -> Cow<'_, str> {
    settle(text, true).0
}

/// [`neutralise`] for a text in pieces. The output does not depend on the cuts.
#[derive(Debug, Default)]
pub struct Stream {
    held: String,
}

impl Stream {
    /// Makes a stream for a new text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece and returns the decided part of the text. Holds back at most [`HELD_BYTES_MAX`] bytes.
    pub fn push(&mut self, chunk: &str) -> String {
        self.held.push_str(chunk);
        let text = std::mem::take(&mut self.held);
        let (settled, rest) = settle(&text, false);
        self.held.push_str(rest);
        settled.into_owned()
    }

    /// Returns the rest at the end of the text.
    pub fn finish(self) -> String {
        neutralise(&self.held).into_owned()
    }
}

/// Returns the neutral form of the decided part, and the undecided rest. With `whole` there is no rest.
fn settle(text: &str, whole: bool) -> (Cow<'_, str>, &str) {
    let mut output = String::new();
    let mut kept = 0;
    let mut end = text.len();
    let mut group_end = 0;
    for (at, character) in text.char_indices().filter(|&(_, character)| is_opening(character)) {
        if at < group_end {
            continue;
        }
        match verdict(&text[at..], whole) {
            Verdict::Hit => {
                output.push_str(&text[kept..at]);
                output.extend([OPEN, character, CLOSE]);
                kept = at + character.len_utf8();
            }
            Verdict::Group(bytes) => group_end = at + bytes,
            Verdict::Miss => {}
            Verdict::Undecided => {
                end = at;
                break;
            }
        }
    }
    if kept == 0 {
        return (Cow::Borrowed(&text[..end]), &text[end..]);
    }
    output.push_str(&text[kept..end]);
    (Cow::Owned(output), &text[end..])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Hit,
    Miss,
    /// A group of an earlier pass, with its number of bytes.
    Group(usize),
    /// The text ends too early for a decision.
    Undecided,
}

/// Decides whether the first bracket of this text begins a forbidden entry. With `whole`, no further text follows.
///
/// Reads at most [`HELD_BYTES_MAX`] bytes, and stops at the second bracket after the first: so the time is linear.
fn verdict(text: &str, whole: bool) -> Verdict {
    if let Some(found) = group(text, whole) {
        return found;
    }
    let mut alive: u64 = (1 << FORBIDDEN.len()) - 1;
    let (mut matched, mut is_own) = (0, true);
    for (at, character) in text.char_indices() {
        if is_own && matched == OWN.len() {
            if !character.is_alphanumeric() {
                return Verdict::Hit;
            }
            is_own = false;
        }
        // It may begin a group, and no entry contains it.
        if character == OPEN && at > 0 {
            return Verdict::Miss;
        }
        if at + character.len_utf8() > HELD_BYTES_MAX {
            return Verdict::Hit;
        }
        let byte = match glyph(character) {
            Glyph::Unseen => continue,
            Glyph::Like(b'/') if matched == 1 => continue,
            Glyph::Like(byte) => byte,
            Glyph::Other if character == OPEN => b'[',
            Glyph::Other => return Verdict::Miss,
        };
        for (bit, entry) in FORBIDDEN.iter().enumerate() {
            let is_alive = alive & (1 << bit) != 0;
            if is_alive && entry.as_bytes().get(matched) != Some(&byte) {
                alive &= !(1 << bit);
            } else if is_alive && matched + 1 == entry.len() {
                return Verdict::Hit;
            }
        }
        is_own &= matched >= OWN.len() || OWN[matched] == byte;
        if alive == 0 && !is_own {
            return Verdict::Miss;
        }
        matched += 1;
    }
    match (whole, is_own && matched == OWN.len()) {
        (true, true) => Verdict::Hit,
        (true, false) => Verdict::Miss,
        (false, _) => Verdict::Undecided,
    }
}

/// Decides whether the text begins with a group: [`OPEN`], an opening bracket, [`CLOSE`]. `None` if it cannot.
fn group(text: &str, whole: bool) -> Option<Verdict> {
    let mut characters = text.chars();
    if characters.next() != Some(OPEN) {
        return None;
    }
    let more = (!whole).then_some(Verdict::Undecided);
    let Some(bracket) = characters.next() else { return more };
    if !is_opening(bracket) {
        return None;
    }
    match characters.next() {
        Some(CLOSE) => Some(Verdict::Group(OPEN.len_utf8() + bracket.len_utf8() + CLOSE.len_utf8())),
        Some(_) => None,
        None => more,
    }
}

fn is_opening(character: char) -> bool {
    match character {
        '[' | '<' | OPEN => true,
        ascii if ascii.is_ascii() => false,
        other => matches!(fold::known(other), Glyph::Like(b'[' | b'<')),
    }
}

#[cfg(test)]
mod tests;
