//! The files and directories of a skill before and after its import, and what a word in a text means among them.

use super::tree::joined;
use std::collections::{BTreeMap, BTreeSet};

/// The directory in which an agent finds its skills.
pub(super) const SHOWN: &str = "/skills";

/// A file or directory that a word names, by its path before the import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) path: String,
    pub(super) is_directory: bool,
    /// True if the word is a path from the directory of the text, false if it is one from the root of the skill.
    pub(super) is_relative: bool,
    /// True if the word differs from the path by case only.
    pub(super) differs: bool,
}

/// The old and the new paths of a skill.
pub(super) struct Layout {
    /// The name of the skill.
    pub(super) name: String,
    /// The names that a path may have for its directory.
    pub(super) called: Vec<String>,
    files: BTreeMap<String, String>,
    directories: BTreeMap<String, String>,
    /// Paths of files and directories by their lower case.
    lower: BTreeMap<String, String>,
    new_files: BTreeSet<String>,
    new_directories: BTreeSet<String>,
}

impl Layout {
    pub(super) fn new(name: &str, called: Vec<String>, places: &BTreeMap<String, String>) -> Self {
        let directories = directories(places);
        let paths = places.keys().chain(directories.keys());
        let lower = paths.map(|path| (path.to_lowercase(), path.clone())).collect();
        let new_files: BTreeSet<String> = places.values().cloned().collect();
        let new_directories = new_files.iter().flat_map(|path| parents(path)).map(str::to_owned).collect();
        Self { name: name.to_owned(), called, files: places.clone(), directories, lower, new_files, new_directories }
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&String, &String)> {
        self.files.iter()
    }

    /// Returns the file or directory that a word of a text in `directory` names.
    pub(super) fn find(&self, directory: &str, word: &str) -> Option<Named> {
        let relative = joined(directory, word);
        let rooted = joined("", word);
        for differs in [false, true] {
            for (path, is_relative) in [(&relative, true), (&rooted, false)] {
                let Some(path) = path.as_deref().filter(|path| !path.is_empty()) else { continue };
                let path = match differs {
                    false => Some(path),
                    true => self.lower.get(&path.to_lowercase()).map(String::as_str),
                };
                let Some(path) = path else { continue };
                let is_directory = self.directories.contains_key(path);
                if is_directory || self.files.contains_key(path) {
                    return Some(Named { path: path.to_owned(), is_directory, is_relative, differs });
                }
            }
        }
        None
    }

    /// Returns the new path of a file or directory.
    pub(super) fn new_path(&self, named: &Named) -> &str {
        let paths = if named.is_directory { &self.directories } else { &self.files };
        &paths[&named.path]
    }

    pub(super) fn shown(&self, path: &str) -> String {
        let slash = if path.is_empty() { "" } else { "/" };
        format!("{SHOWN}/{}{slash}{path}", self.name)
    }

    /// Returns whether a word in a text of the new `directory` names something of the package.
    pub(super) fn is_there(&self, directory: &str, word: &str) -> bool {
        let own = format!("{SHOWN}/{}", self.name);
        let (base, word) = match word.strip_prefix(&own) {
            Some(rest) => ("", rest),
            None => (directory, word),
        };
        let candidates = [joined(base, word), joined("", word)];
        candidates.into_iter().flatten().any(|path| self.has_new(&path))
    }

    pub(super) fn has_new(&self, path: &str) -> bool {
        path.is_empty() || self.new_files.contains(path) || self.new_directories.contains(path)
    }
}

fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// Returns the new path of each directory: that of most of its files.
fn directories(places: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut counted: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for (from, to) in places {
        for directory in parents(from) {
            if let Some(new) = to.strip_suffix(&from[directory.len()..]) {
                *counted.entry(directory).or_default().entry(new).or_default() += 1;
            }
        }
    }
    let most = |counts: BTreeMap<&str, usize>| {
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(new, _)| new.to_owned())
    };
    counted.into_iter().filter_map(|(from, counts)| Some((from.to_owned(), most(counts)?))).collect()
}
