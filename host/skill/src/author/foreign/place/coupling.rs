//! Finds the files that programs need at the places where they are: modules that they import, and files that they name.
//!
//! Looks at the first parts of paths. A word too many moves a directory along, which does no harm.

use super::top;
use crate::author::foreign::program::{ending, is_code};
use crate::author::foreign::tree::Files;
use crate::path::{self, DIRECTORY_OF_SCRIPTS};
use crate::{INSTRUCTIONS, MANIFEST};
use std::collections::{BTreeMap, BTreeSet};

/// Files beside programs of Node that it looks for on its own.
const OF_NODE: [&str; 4] = ["package.json", "tsconfig.json", "deno.json", "jsconfig.json"];
/// Bytes of the programs below one first part that are looked at.
const CODE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The first parts of the paths that move to `scripts/` together.
pub(super) struct Coupled {
    pub(super) tops: BTreeSet<String>,
    programs: Vec<Programs>,
}

impl Coupled {
    /// Returns whether a program names the file.
    pub(super) fn is_named(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.programs.iter().any(|programs| programs.name(name))
    }
}

/// The files below one first part of a path.
#[derive(Default)]
struct Group<'a> {
    programs: Programs,
    has_code: bool,
    /// True if one of its files has no place where it is.
    moves: bool,
    /// The first parts with which it is coupled.
    with: BTreeSet<&'a str>,
}

pub(super) fn coupled(files: &Files) -> Coupled {
    let mut groups: BTreeMap<&str, Group<'_>> = BTreeMap::new();
    for (path, file) in files.iter().filter(|(path, _)| ![INSTRUCTIONS, MANIFEST].contains(&path.as_str())) {
        let group = groups.entry(top(path)).or_default();
        group.moves |= path::check(path).is_err();
        if is_code(path, file) {
            group.has_code = true;
            group.programs.add(path, file.text().unwrap_or_default());
        }
    }
    let tops: Vec<&str> = groups.keys().copied().collect();
    let mut pairs = Vec::new();
    for (one, group) in groups.iter().filter(|(_, group)| group.has_code) {
        let needs = |other: &&str| group.programs.name(other) || group.programs.is_of_node && OF_NODE.contains(other);
        pairs.extend(tops.iter().filter(|other| *other != one && needs(other)).map(|other| [*one, *other]));
    }
    for [one, other] in pairs {
        groups.entry(one).or_default().with.insert(other);
        groups.entry(other).or_default().with.insert(one);
    }
    let mut moved: BTreeSet<String> = BTreeSet::new();
    for top in &tops {
        let together = reached(&groups, top);
        let (moves, has_code) = (|top: &&str| groups[*top].moves, |top: &&str| groups[*top].has_code);
        if together.iter().any(moves) && together.iter().any(has_code) {
            moved.insert((*top).to_owned());
        }
    }
    // What moves into scripts/ must not meet a path that stays there.
    let inner = files.keys().filter_map(|path| path.strip_prefix(DIRECTORY_OF_SCRIPTS));
    if inner.into_iter().any(|rest| moved.contains(super::top(rest))) {
        moved.insert(DIRECTORY_OF_SCRIPTS.trim_end_matches('/').to_owned());
    }
    Coupled { tops: moved, programs: groups.into_values().map(|group| group.programs).collect() }
}

/// Returns everything that is coupled with a first part, over others.
fn reached<'a>(groups: &BTreeMap<&'a str, Group<'a>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(top) = open.pop() {
        open.extend(groups[top].with.iter().filter(|other| reached.insert(**other)));
    }
    reached
}

/// The texts of programs.
#[derive(Default)]
struct Programs {
    text: String,
    /// The words of their imports.
    imported: BTreeSet<String>,
    is_of_node: bool,
}

impl Programs {
    fn add(&mut self, path: &str, text: &str) {
        self.is_of_node |= ending(path).ends_with("js") || ending(path).ends_with("ts");
        if self.text.len() + text.len() > CODE_BYTES_MAX {
            return;
        }
        self.text.push_str(text);
        self.text.push('\n');
        let lines = text.lines().map(str::trim_start);
        for line in lines.filter(|line| line.starts_with("from ") || line.starts_with("import ")) {
            let is_part = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-'));
            self.imported.extend(line.split(is_part).filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }

    /// Returns whether they name a file or directory: in quotes, as a part of a path, or in an import.
    fn name(&self, name: &str) -> bool {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        self.imported.contains(stem) || is_named(&self.text, name)
    }
}

fn is_named(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        let is_edge = |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '_' | '-')));
        let is_mark = |c: Option<char>| c.is_some_and(|c| matches!(c, '"' | '\'' | '/' | '`'));
        is_edge(before) && is_edge(after) && (is_mark(before) || is_mark(after))
    })
}
