//! Looks for references of a finished skill that lead nowhere. Shares no scanner with [`super::rewrite`], so that it finds its faults.

use super::program::{is_code, is_document};
use super::reference::Layout;
use super::tree::{Files, joined};
use std::collections::BTreeMap;

/// Characters of a word that may be a path.
const WORD_CHARACTERS_MAX: usize = 255;

/// A word of a text that names a file or directory which is not where the word says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lost {
    /// The new path of the text.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    pub target: String,
}

/// The references that lead nowhere.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Those that led somewhere before the import.
    pub(super) dead: Vec<Lost>,
    /// Those that led nowhere in the original either.
    pub(super) absent: Vec<Lost>,
}

/// Looks at the files of a skill at their new paths. `old` has the old path of each.
pub(super) fn audit(files: &Files, old: &BTreeMap<String, String>, layout: &Layout) -> Found {
    let mut found = Found::default();
    for (path, file) in files {
        let (Some(text), Some(from)) = (file.text(), old.get(path)) else { continue };
        for (number, line) in text.lines().enumerate() {
            let lost = |target: &str| Lost { file: path.clone(), line: number + 1, target: target.to_owned() };
            if is_document(path) {
                found.dead.extend(words(line).filter(|word| is_dead(word, from, path, layout)).map(lost));
                found.absent.extend(links(line).filter(|target| is_absent(target, from, path, layout)).map(lost));
            } else if is_code(path, file) {
                found.dead.extend(quoted(line).filter(|word| is_lost(word, from, path, layout)).map(lost));
            }
        }
    }
    found.dead.sort();
    found.dead.dedup();
    found.absent.sort();
    found.absent.dedup();
    found
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_edge = |c: char| c.is_whitespace() || "`'\"()[]<>{},;|*=#$".contains(c);
    let words = line.split(is_edge).map(|word| word.trim_end_matches(['.', ':', '!', '?']));
    words.filter(|word| word.contains(['/', '.']) && word.len() <= WORD_CHARACTERS_MAX && !word.contains("://"))
}

/// Returns whether a word names a path that moved, and leads nowhere now.
fn is_dead(word: &str, from: &str, path: &str, layout: &Layout) -> bool {
    let Some(named) = layout.find(parent(from), word).filter(|named| !named.differs) else { return false };
    // A word for a directory is one with a slash behind it.
    let is_path = !named.is_directory || word.ends_with('/');
    let is_bare = !word.contains('/') && super::rewrite::is_common(word);
    is_path && !is_bare && layout.new_path(&named) != named.path && !layout.is_there(parent(path), word)
}

/// Returns the targets of the links of Markdown.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '#', '?']).next());
    let targets = targets.map(|target| target.trim_matches(['<', '>']));
    targets
        .filter(|target| target.contains('.') && !target.contains(':') && !target.contains(['{', '<', '*', '$', '`']))
}

fn is_absent(target: &str, from: &str, path: &str, layout: &Layout) -> bool {
    let target = target.replace("%20", " ");
    layout.find(parent(from), &target).is_none() && !layout.is_there(parent(path), &target)
}

fn quoted(line: &str) -> impl Iterator<Item = &str> {
    let inner = line.split(['"', '\'', '`']).skip(1).step_by(2);
    inner.filter(|word| word.starts_with('.') && word.contains('/') && word.len() <= WORD_CHARACTERS_MAX)
}

/// Returns whether a program names a path from its own directory that is somewhere else now.
fn is_lost(word: &str, from: &str, path: &str, layout: &Layout) -> bool {
    let Some(named) = layout.find(parent(from), word).filter(|named| named.is_relative && !named.differs) else {
        return false;
    };
    joined(parent(path), word).as_deref() != Some(layout.new_path(&named))
}
