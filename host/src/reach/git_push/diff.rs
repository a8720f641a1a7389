//! The text of the diff of a push: its statistics for the page of the request, every changed line, and the digest of all of it.
//!
//! Pure, and a function of the commits alone: the same commits have the same digest. Never cuts anything off before the digest.

use super::changes::{Changed, Changes, Range};
use super::objects::{Content, Entry, Kind, Objects};
use ironclaw_contract::canonical::Digest;
use ironclaw_text::diff::{LineMark, lines};
use ironclaw_text::excerpt::start;
use ironclaw_text::lookalike;
use std::fmt::Write as _;

/// Files that the statistics list.
const FILES_LISTED_MAX: usize = 30;
/// Characters of the paths in a line of the statistics.
const WHAT_CHARACTERS_MAX: usize = 300;
/// Unchanged lines around a changed one.
const CONTEXT_LINES: usize = 3;
/// Work of comparing lines in one diff: for each file, the product of its numbers of changed lines before and after. Beyond it, all of
/// these lines count as replaced.
const WORK_MAX: usize = 40_000_000;

/// The diff of a push.
#[derive(Debug, PartialEq, Eq)]
pub struct Diff {
    /// The numbers of commits, files and lines, in one line.
    pub summary: String,
    /// A line for each changed file, bounded.
    pub changes: String,
    /// Every line: `=` before a file, `@` before a place in it, `-` and `+` before changed lines, a blank before others.
    pub text: String,
    /// The digest of `text`.
    pub digest: Digest,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    added: usize,
    removed: usize,
}

impl Diff {
    /// Writes the diff of the commits of a push.
    pub(super) fn write(objects: &Objects, range: &Range, changes: &Changes) -> Self {
        let mut writer = Writer { objects, text: String::new(), work: 0, count: Count::default(), opaque: 0 };
        let mut stat: Vec<String> = Vec::new();
        let _ = writeln!(writer.text, "= from {}", words_of_base(changes));
        stat.extend(changes.result.iter().map(|changed| writer.file(changed)));
        // The numbers are those of the result of the push.
        let (Count { added, removed }, opaque) = (writer.count, writer.opaque);
        stat.extend(changes.history.iter().map(|changed| writer.file(changed)));
        let (files, history) = (changes.result.len(), changes.history.len());
        let mut summary =
            format!("{}, {}, +{added} -{removed} lines", number(range.commits.len(), "commit"), number(files, "file"));
        if opaque > 0 {
            let _ = write!(summary, ", {} of bytes that are no text", number(opaque, "file"));
        }
        if history > 0 {
            let _ = write!(summary, ", and {} IN THE HISTORY ONLY", number(history, "file"));
        }
        if range.old.is_none() {
            summary.push_str(", a new branch");
        }
        // Files that only the history has come first: the result of the push does not show them.
        stat.rotate_left(files);
        let more = stat.len().saturating_sub(FILES_LISTED_MAX);
        stat.truncate(FILES_LISTED_MAX);
        stat.insert(0, format!("from {}:", words_of_base(changes)));
        if more > 0 {
            stat.push(format!("and {} more; the digest covers them", number(more, "file")));
        }
        if files + history == 0 {
            stat.push("no file changes".to_owned());
        }
        Self { summary, changes: stat.join("\n"), digest: Digest::of(writer.text.as_bytes()), text: writer.text }
    }
}

fn words_of_base(changes: &Changes) -> String {
    changes.base.as_ref().map_or_else(|| "nothing".to_owned(), |base| format!("commit {base}"))
}

struct Writer<'o> {
    objects: &'o Objects,
    text: String,
    work: usize,
    count: Count,
    /// Files whose lines are not shown.
    opaque: usize,
}

impl<'o> Writer<'o> {
    /// Writes a file, and returns its line of the statistics.
    fn file(&mut self, changed: &Changed) -> String {
        let path = quoted(&changed.path);
        let what = match (&changed.before, &changed.after, &changed.moved_from) {
            (_, _, Some(from)) => format!("moved {} to {path}", quoted(from)),
            (None, _, _) => format!("new {path}"),
            (_, None, _) => format!("removed {path}"),
            (Some(_), Some(_), None) => format!("changed {path}"),
        };
        let mut notes: Vec<String> = modes(changed.before.as_ref(), changed.after.as_ref()).into_iter().collect();
        let _ = writeln!(self.text, "= {what}{}", notes.iter().map(|note| format!(", {note}")).collect::<String>());
        if let Some(commit) = &changed.only_in {
            let note = format!("IN THE HISTORY ONLY, in commit {commit}");
            let _ = writeln!(self.text, "= {note}");
            notes.insert(0, note);
        }
        if changed.moved_from.is_none() {
            notes.extend(self.content(changed));
        }
        let what = start(&what, WHAT_CHARACTERS_MAX);
        let notes = if notes.is_empty() { "the same content".to_owned() } else { notes.join(", ") };
        lookalike::neutralise(&format!("{what}: {notes}")).into()
    }

    /// Writes the content of a file, and returns words about it.
    fn content(&mut self, changed: &Changed) -> Option<String> {
        let (before, after) = (changed.before.as_ref(), changed.after.as_ref());
        let is_submodule = |entry: Option<&Entry>| entry.is_some_and(|entry| entry.kind == Kind::Submodule);
        if is_submodule(before) || is_submodule(after) {
            let name = |entry: Option<&Entry>| entry.map_or("nothing".to_owned(), |entry| entry.hash.to_string());
            let words = format!("submodule, from {} to {}", name(before), name(after));
            let _ = writeln!(self.text, "= {words}");
            return Some(words);
        }
        if before.map(|entry| &entry.hash) == after.map(|entry| &entry.hash) {
            return None;
        }
        let (old, new) = (self.text_of(before), self.text_of(after));
        if let (Some(old), Some(new)) = (old, new) {
            let count = self.lines(old, new);
            self.count.added += count.added;
            self.count.removed += count.removed;
            return Some(format!("+{} -{}", count.added, count.removed));
        }
        self.opaque += 1;
        let words = format!("no text, from {} to {}", self.bytes_of(before), self.bytes_of(after));
        let _ = writeln!(self.text, "= {words}");
        Some(words)
    }

    /// Returns the content of a file as text; an absent file is empty.
    fn text_of(&self, entry: Option<&Entry>) -> Option<&'o str> {
        let Some(entry) = entry else { return Some("") };
        match self.objects.content(&entry.hash) {
            Content::Whole(bytes) if !bytes.contains(&0) => std::str::from_utf8(bytes).ok(),
            Content::Whole(_) | Content::Large(_) | Content::Gone => None,
        }
    }

    /// Describes a content that is no text: by its size and its digest.
    fn bytes_of(&self, entry: Option<&Entry>) -> String {
        let Some(entry) = entry else { return "nothing".to_owned() };
        match self.objects.content(&entry.hash) {
            Content::Whole(bytes) => format!("{} bytes with SHA-256 {}", bytes.len(), Digest::of(bytes)),
            Content::Large(size) => format!("{size} bytes, as git says, with the name {}", entry.hash),
            Content::Gone => format!("an absent object with the name {}", entry.hash),
        }
    }
}

impl Writer<'_> {
    /// Writes the changed lines of a text with some lines around.
    fn lines(&mut self, old: &str, new: &str) -> Count {
        let (old, new): (Vec<&str>, Vec<&str>) =
            (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        let marked = self.compared(&old, &new);
        let mut count = Count::default();
        let changes: Vec<usize> = (0..marked.len()).filter(|at| marked[*at].0 != LineMark::Unchanged).collect();
        let (mut next, mut shown_to) = (0, None);
        let (mut old_line, mut new_line) = (1, 1);
        for (at, (mark, line)) in marked.iter().enumerate() {
            while changes.get(next).is_some_and(|change| change + CONTEXT_LINES < at) {
                next += 1;
            }
            if changes.get(next).is_some_and(|change| at + CONTEXT_LINES >= *change) {
                if shown_to != Some(at) {
                    let _ = writeln!(self.text, "@ line {old_line} before, line {new_line} after");
                }
                self.line(*mark, line);
                shown_to = Some(at + 1);
            }
            let (is_old, is_new) = (*mark != LineMark::Added, *mark != LineMark::Removed);
            count.removed += usize::from(!is_new);
            count.added += usize::from(!is_old);
            old_line += usize::from(is_old);
            new_line += usize::from(is_new);
        }
        count
    }

    fn line(&mut self, mark: LineMark, line: &str) {
        self.text.push(match mark {
            LineMark::Removed => '-',
            LineMark::Added => '+',
            LineMark::Unchanged => ' ',
        });
        self.text.push_str(line);
        if !line.ends_with('\n') {
            self.text.push_str("\n= no line feed at the end of this line\n");
        }
    }

    /// Returns the lines of both texts with their marks. The work is bounded by the input alone, so that the digest is too.
    fn compared<'t>(&mut self, old: &[&'t str], new: &[&'t str]) -> Vec<(LineMark, &'t str)> {
        let shorter = old.len().min(new.len());
        let before = (0..shorter).take_while(|at| old[*at] == new[*at]).count();
        let after = (0..shorter - before).take_while(|at| old[old.len() - 1 - at] == new[new.len() - 1 - at]).count();
        let (changed_old, changed_new) = (&old[before..old.len() - after], &new[before..new.len() - after]);
        let work = changed_old.len().saturating_mul(changed_new.len());
        let mut marked: Vec<(LineMark, &str)> = old[..before].iter().map(|line| (LineMark::Unchanged, *line)).collect();
        if self.work.saturating_add(work) <= WORK_MAX {
            self.work += work;
            marked.extend(lines(changed_old, changed_new).into_iter().map(|(mark, line)| (mark, *line)));
        } else {
            marked.extend(changed_old.iter().map(|line| (LineMark::Removed, *line)));
            marked.extend(changed_new.iter().map(|line| (LineMark::Added, *line)));
        }
        marked.extend(old[old.len() - after..].iter().map(|line| (LineMark::Unchanged, *line)));
        marked
    }
}

/// Returns the notes about the kinds of a file.
fn modes(before: Option<&Entry>, after: Option<&Entry>) -> Option<String> {
    let word = |entry: &Entry| match entry.kind {
        Kind::Directory => "directory",
        Kind::File => "file",
        Kind::Executable => "EXECUTABLE",
        Kind::Link => "LINK",
        Kind::Submodule => "SUBMODULE",
        Kind::Odd => "UNKNOWN MODE",
    };
    match (before, after) {
        (Some(before), Some(after)) if before.kind != after.kind => {
            Some(format!("{} becomes {}", word(before), word(after)))
        }
        (_, Some(entry)) | (Some(entry), None) if entry.kind != Kind::File => Some(word(entry).to_owned()),
        _ => None,
    }
}

/// Returns a path on one line: its bytes in quotes, and each that is no plain text as a code.
fn quoted(path: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in path.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => text.extend(['\\', character]),
                _ if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') => {
                    text.extend(character.escape_unicode());
                }
                _ => text.push(character),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text.push('"');
    text
}

fn number(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests;
