//! Moves the end of instructions that are too long into texts of their own.

use super::notes::Notes;
use super::tree::{File, Files};
use crate::{INSTRUCTIONS, INSTRUCTIONS_BYTES_MAX};

/// Bytes of one part, with the line that names the next one.
const PART_BYTES_MAX: usize = INSTRUCTIONS_BYTES_MAX as usize - 512;
/// Parts of the longest instructions.
const PARTS_MAX: usize = 64;

/// Splits the instructions, if they are longer than a package has them.
pub(super) fn split(files: &mut Files, notes: &mut Notes) {
    let Some(text) = files.get(INSTRUCTIONS).and_then(File::text).map(str::to_owned) else { return };
    if text.len() as u64 <= INSTRUCTIONS_BYTES_MAX {
        return;
    }
    let (mut path, mut rest) = (INSTRUCTIONS.to_owned(), text.as_str());
    for number in 2..PARTS_MAX {
        let end = if rest.len() <= PART_BYTES_MAX { rest.len() } else { end_of_part(rest) };
        let (part, after) = rest.split_at(end);
        let next = free_path(files, number);
        let mut part = part.to_owned();
        if !after.is_empty() {
            part.push_str(&format!("\nThese instructions go on in `{next}`: read it now.\n"));
            notes.add(INSTRUCTIONS, None, format!("it is too long: its end is in {next}"));
        }
        files.insert(path, File { may_run: false, bytes: part.into_bytes() });
        if after.is_empty() {
            return;
        }
        (path, rest) = (next, after);
    }
}

fn free_path(files: &Files, number: usize) -> String {
    let own = format!("references/instructions-{number}.md");
    if files.contains_key(&own) { format!("references/instructions-part-{number}.md") } else { own }
}

/// Returns the end of the first part of a text: before a heading, else after a line, and outside of blocks of code if possible.
fn end_of_part(text: &str) -> usize {
    let (mut heading, mut line_end, mut at) = (None, 0, 0);
    let mut is_code = false;
    for line in text.split_inclusive('\n') {
        if at + line.len() > PART_BYTES_MAX {
            break;
        }
        is_code ^= line.trim_start().starts_with("```");
        if line.starts_with('#') && !is_code && at > PART_BYTES_MAX / 4 {
            heading = Some(at);
        }
        at += line.len();
        line_end = at;
    }
    match heading.unwrap_or(line_end) {
        // One line that is longer than a part.
        0 => (1..=PART_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(text.len()),
        end => end,
    }
}
