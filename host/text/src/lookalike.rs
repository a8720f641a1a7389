//! Takes the force out of text that looks like the host's own wrappers, result blocks or a model's role markers.
//!
//! Never drops a character and never decides who wrote a text: what it changes shows. Next: `lookalike::fold` for which
//! characters are read as the same.
//!
//! The scheme: the opening bracket of a look-alike is put between `⟦` and `⟧`; nothing else changes. `[MSG_AUTH:1]` becomes
//! `⟦[⟧MSG_AUTH:1]`. Such a group of three characters is harmless and is left as it is, so a second pass changes nothing: what a
//! model copies does not grow. Two neutral texts that are put side by side may form a look-alike across the joint: neutralise
//! what will stand together as one text, or put something visible between.

mod fold;

use fold::{Glyph, glyph};
use std::borrow::Cow;

/// Opens a group of three: this, the character that was there, [`CLOSE`].
pub const OPEN: char = '⟦';
/// Closes the group.
pub const CLOSE: char = '⟧';
/// Bytes that [`Stream`] holds back at most. An opening bracket whose text is still undecided after so many bytes (only a very
/// long run of invisible characters can do that) is taken for a look-alike, which costs nothing but its looks.
pub const HELD_BYTES_MAX: usize = 512;

/// What must not stand in a text, as [`fold`] reads it: lower case, without spaces, invisible characters, `_` and `-`. Slashes after the
/// bracket are skipped, so that each stands for its closing form too. A hit needs the whole of an entry and nothing after it.
const FORBIDDEN: &[&str] = &[
    // The wrappers of this host.
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

/// The text with every look-alike made visible and harmless; borrowed where there is nothing to change.
///
/// Takes time linear in the length, whatever the text. `neutralise(&neutralise(x)) == neutralise(x)` for every `x`.
pub fn neutralise(text: &str) -> Cow<'_, str> {
    settle(text, true).0
}

/// [`neutralise`] for a text that comes in pieces: the same output, however the text is cut.
#[derive(Debug, Default)]
pub struct Stream {
    held: String,
}

impl Stream {
    /// At the beginning of a text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece and gives what is decided by now; at most [`HELD_BYTES_MAX`] bytes stay behind.
    pub fn push(&mut self, chunk: &str) -> String {
        self.held.push_str(chunk);
        let text = std::mem::take(&mut self.held);
        let (settled, rest) = settle(&text, false);
        self.held.push_str(rest);
        settled.into_owned()
    }

    /// The rest, when nothing follows any more.
    pub fn finish(self) -> String {
        neutralise(&self.held).into_owned()
    }
}

/// The neutral form of what is decided, and the rest that is not; with `whole` there is no rest.
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
    /// A group of so many bytes that an earlier pass made.
    Group(usize),
    /// The text ends too early to say.
    Undecided,
}

/// Whether the bracket that this text starts with opens something forbidden. `whole` says that nothing follows the text.
///
/// Reads [`HELD_BYTES_MAX`] bytes at most, and stops at the next opening bracket but one: that is what keeps the time linear.
fn verdict(text: &str, whole: bool) -> Verdict {
    if let Some(found) = group(text, whole) {
        return found;
    }
    let mut alive: u64 = (1 << FORBIDDEN.len()) - 1;
    let mut matched = 0;
    for (at, character) in text.char_indices() {
        // It may begin a group, and ends every entry.
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
        if alive == 0 {
            return Verdict::Miss;
        }
        matched += 1;
    }
    if whole { Verdict::Miss } else { Verdict::Undecided }
}

/// Whether a group begins here: [`OPEN`], an opening bracket, [`CLOSE`]. `None` where none can.
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
        other => matches!(glyph(other), Glyph::Like(b'[' | b'<')),
    }
}

#[cfg(test)]
mod tests;
