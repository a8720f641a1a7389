//! The tool that searches the text files of the workspace with a regular expression.
//!
//! It follows no link and reads no pipe. A search takes time linear to the text, and every quantity has a bound. See
//! [`crate::files`].

use crate::Error;
use crate::outcome::{RESULT_BYTES_MAX, prefix_that_fits};
use crate::workspace::{Below, EntryKind, Workspace};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use std::fmt::Write as _;
use std::io::Read;

/// Longest pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1024;
/// Largest compiled pattern, in bytes; its cache may take as much again.
const COMPILED_BYTES_MAX: usize = 256 * 1024;
/// Lines in a result if the call has no limit.
const LINES_DEFAULT: usize = 100;
/// Lines in a result at most.
pub const LINES_MAX: usize = 1000;
/// Bytes of a line in a result.
const LINE_BYTES_MAX: usize = 400;
/// Files that one search reads.
pub const FILES_MAX: usize = 5000;
/// Largest file that a search reads; larger ones are left out.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Entries of a directory that a search reads.
const ENTRIES_MAX: usize = 5000;
/// Directories in the queue of a search.
const DIRECTORIES_MAX: usize = 5000;

/// Arguments of `search_files`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchFiles {
    /// A regular expression, for one line.
    pattern: String,
    /// The file, or the directory below which to search; the whole workspace if absent.
    path: Option<String>,
    /// Lines to show at most.
    max: Option<usize>,
}

/// The matches, and the counts of files that were left out.
struct Found {
    text: String,
    lines: usize,
    lines_max: usize,
    files: usize,
    skipped: usize,
    cut: bool,
}

/// Searches, with one line for each line that matches: path, number and text.
pub fn run(workspace: &Workspace, call: &SearchFiles) -> Result<String, Error> {
    let pattern = compile(&call.pattern)?;
    let start = call.path.as_deref().map_or(Ok(Below::ROOT), Below::parse)?;
    let lines_max = call.max.unwrap_or(LINES_DEFAULT).min(LINES_MAX);
    let mut found = Found { text: String::new(), lines: 0, lines_max, files: 0, skipped: 0, cut: false };
    match workspace.list(&start, 0) {
        Ok(_) => search_below(workspace, start, &pattern, &mut found)?,
        // Not a directory, so perhaps a file; otherwise reading it returns the error.
        Err(_) => {
            workspace.read(&start)?;
            search_file(workspace, &start, &pattern, &mut found);
        }
    }
    Ok(found.into_result())
}

fn compile(pattern: &str) -> Result<Regex, Error> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(Error::Pattern(format!("a pattern has at most {PATTERN_BYTES_MAX} bytes")));
    }
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(COMPILED_BYTES_MAX).dfa_size_limit(COMPILED_BYTES_MAX);
    builder.build().map_err(|error| Error::Pattern(error.to_string()))
}

fn search_below(workspace: &Workspace, start: Below, pattern: &Regex, found: &mut Found) -> Result<(), Error> {
    let mut directories = vec![start];
    while let Some(directory) = directories.pop() {
        let Ok((entries, more)) = workspace.list(&directory, ENTRIES_MAX) else {
            found.skipped += 1;
            continue;
        };
        found.cut |= more;
        let mut below = Vec::new();
        for entry in entries {
            let Some(path) = directory.join(&entry.name) else {
                found.skipped += 1;
                continue;
            };
            match entry.kind {
                EntryKind::File(_) => search_file(workspace, &path, pattern, found),
                EntryKind::Directory => below.push(path),
                EntryKind::Link | EntryKind::Special => found.skipped += 1,
            }
            if found.is_full() {
                found.cut = true;
                return Ok(());
            }
        }
        // The last entry of the stack is the next one, so the names keep their order.
        directories.extend(below.into_iter().rev());
        if directories.len() > DIRECTORIES_MAX {
            found.cut = true;
            directories.drain(..directories.len() - DIRECTORIES_MAX);
        }
    }
    Ok(())
}

/// Adds the matching lines of one file; a file that is not readable as text counts as left out.
fn search_file(workspace: &Workspace, path: &Below, pattern: &Regex, found: &mut Found) {
    let text = workspace.read(path).ok().and_then(|(file, _)| {
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
        String::from_utf8(bytes).ok().filter(|text| text.len() as u64 <= FILE_BYTES_MAX)
    });
    let Some(text) = text else {
        found.skipped += 1;
        return;
    };
    found.files += 1;
    let name = path.text();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| pattern.is_match(line)) {
        if found.is_full() {
            found.cut = true;
            return;
        }
        let end = line.floor_char_boundary(LINE_BYTES_MAX);
        let rest = if end < line.len() { " […]" } else { "" };
        let _ = writeln!(found.text, "{name}:{}: {}{rest}", number + 1, &line[..end]);
        found.lines += 1;
    }
}

impl Found {
    fn is_full(&self) -> bool {
        self.lines >= self.lines_max || self.files >= FILES_MAX || self.text.len() >= RESULT_BYTES_MAX / 2
    }

    fn into_result(mut self) -> String {
        let fits = prefix_that_fits(&self.text);
        self.cut |= fits < self.text.len();
        self.text.truncate(fits);
        let Self { mut text, lines, files, skipped, cut, .. } = self;
        let _ = write!(text, "[{lines} lines in {files} files");
        if skipped > 0 {
            let _ = write!(text, "; {skipped} links, special, large or non-text files left out");
        }
        text.push_str(if cut { "; stopped early, there may be more]" } else { "]" });
        text
    }
}
