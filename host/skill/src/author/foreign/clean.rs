//! Makes the texts of a skill readable as they are: UTF-8 with line feeds, without characters that a screen does not show.
//!
//! Never changes what a program does: see [`escaped`] for the characters in its strings.

use super::notes::Notes;
use super::program::{ending, is_code, is_document, runs_alone};
use super::tree::{File, Files};
use crate::plain::is_hidden;
use ironclaw_text::lookalike::neutralise;
use std::borrow::Cow;

const BOM: char = '\u{feff}';
/// Variation selectors and joiners of emoji, which stay.
const OF_EMOJI: [char; 3] = ['\u{fe0e}', '\u{fe0f}', '\u{200d}'];

/// Cleans every text of a skill. `keeps_marks` is true for a skill that was written for this host.
pub(super) fn clean(files: &mut Files, notes: &mut Notes) {
    for (path, file) in files.iter_mut() {
        if is_document(path) && decode(file) {
            notes.add(path, None, "its characters are written in UTF-8");
        }
        let is_program = runs_alone(path, file);
        if file.may_run != is_program {
            file.may_run = is_program;
            let what = if is_program { "it is made executable" } else { "it is no program, and no longer executable" };
            notes.add(path, None, what);
        }
        let Some(text) = file.text() else { continue };
        let clean = cleaned(path, text, is_code(path, file), notes);
        if clean != text {
            file.bytes = clean.into_bytes();
        }
    }
}

fn cleaned(path: &str, text: &str, is_code: bool, notes: &mut Notes) -> String {
    let mut clean = text.strip_prefix(BOM).unwrap_or(text).to_owned();
    if clean.len() != text.len() {
        notes.add(path, Some(1), "the byte order mark is left out");
    }
    if clean.contains("\r\n") && (is_document(path) || clean.starts_with("#!")) {
        clean = clean.replace("\r\n", "\n");
        notes.add(path, None, "its lines end in line feeds alone");
    }
    let mut first = None;
    let mut count = 0;
    for (number, line) in clean.lines().enumerate() {
        let hidden = line.chars().filter(|c| is_unwanted(*c)).count();
        if hidden > 0 {
            first = first.or_else(|| Some((number + 1, line.chars().find(|c| is_unwanted(*c)).map_or(0, u32::from))));
            count += hidden;
        }
    }
    if let Some((line, code)) = first {
        match (is_code, escape_of(path)) {
            (false, _) => {
                clean.retain(|c| !is_unwanted(c));
                notes.add(path, Some(line), format!("hidden characters are left out ({count}), such as U+{code:04X}"));
            }
            (true, Some(escape)) => {
                clean = escaped(&clean, escape);
                let what = format!("hidden characters are written as escapes ({count}), such as U+{code:04X}");
                notes.add(path, Some(line), what);
            }
            // `lint` refuses it: no person would see what it runs.
            (true, None) => {}
        }
    }
    if is_document(path)
        && let Cow::Owned(marked) = neutralise(&clean)
    {
        notes.add(path, None, "marks that look like those of the host or of a model are written as text");
        clean = marked;
    }
    clean
}

fn is_unwanted(character: char) -> bool {
    is_hidden(character) && !OF_EMOJI.contains(&character) && character != '\r'
}

/// The form of a hidden character in the strings of a language.
#[derive(Clone, Copy)]
enum Escape {
    Python,
    Script,
}

fn escape_of(path: &str) -> Option<Escape> {
    match ending(path).as_str() {
        "py" => Some(Escape::Python),
        "go" | "java" | "kts" => Some(Escape::Python),
        "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" | "jsx" | "tsx" | "rb" => Some(Escape::Script),
        _ => None,
    }
}

/// Writes hidden characters of a program as the escapes that its strings have for them. A form feed between lines is left out.
fn escaped(text: &str, escape: Escape) -> String {
    let mut out = String::new();
    for character in text.chars() {
        let code = u32::from(character);
        match (is_unwanted(character), escape, code) {
            (false, ..) => out.push(character),
            (true, _, 0x0c) => {}
            (true, _, 0..=0xffff) => out.push_str(&format!("\\u{code:04x}")),
            (true, Escape::Python, _) => out.push_str(&format!("\\U{code:08x}")),
            (true, Escape::Script, _) => out.push_str(&format!("\\u{{{code:x}}}")),
        }
    }
    out
}

/// Turns UTF-16 with a byte order mark, and texts of one byte a character, into UTF-8. Returns whether it changed.
fn decode(file: &mut File) -> bool {
    let units = |from: fn([u8; 2]) -> u16| {
        let pairs = file.bytes[2..].chunks_exact(2).map(|pair| from([pair[0], pair[1]]));
        String::from_utf16_lossy(&pairs.collect::<Vec<_>>())
    };
    let text = match file.bytes.get(..2) {
        Some(b"\xff\xfe") => units(u16::from_le_bytes),
        Some(b"\xfe\xff") => units(u16::from_be_bytes),
        _ => match std::str::from_utf8(&file.bytes) {
            Ok(text) if text.contains('\0') => text.replace('\0', ""),
            Ok(_) => return false,
            Err(_) => file.bytes.iter().filter(|byte| **byte != 0).map(|byte| char::from(*byte)).collect(),
        },
    };
    file.bytes = text.into_bytes();
    true
}
